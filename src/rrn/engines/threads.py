"""Shares of some work at once, on the threads that torch computes with.

Threads of our own would compete with torch's, which stay awake for a while after each of its operations. Torch's come
from an OpenMP library; where that is GNU's, as in torch for Linux, it takes other work too.
"""

import threading
from collections.abc import Callable
from typing import Any

import torch

from rrn._compat import run_on_openmp_threads, torch_api

MOST = 8
"""Shares: more would wait for Python's lock between the matrix products."""

_within = threading.local()

_HAS_OPENMP = torch_api().openmp_parallel is not None


def shares() -> int:
    """How many `at_once` can work on."""
    return 1 if not _HAS_OPENMP or within() else min(torch.get_num_threads(), MOST)


def within() -> bool:
    """Whether this is work on a share: it has one thread for itself."""
    return getattr(_within, "threads", False)


def at_once_by_rows(work: Callable[..., None], *arrays: Any) -> None:
    """``work(*arrays)``, which treats their rows alike, on equal shares of the rows."""
    rows, count = len(arrays[0]), shares()
    cuts = [rows * share // count for share in range(count + 1)]
    at_once(lambda share: work(*(array[cuts[share] : cuts[share + 1]] for array in arrays)), count)


def at_once(work: Callable[[int], None], count: int) -> None:
    """``work(0)`` to ``work(count - 1)``. Within several, torch computes on one thread and records no gradients.

    Which thread takes which share is left open: what a share adds to must be its own.
    """
    if count == 1:
        return work(0)
    waiting, failed, inference = iter(range(count)), [], torch.is_inference_mode_enabled()

    def run() -> None:
        try:
            _within.threads = True
            with torch.inference_mode(inference), torch.no_grad():
                for share in waiting:
                    work(share)
        except BaseException as error:
            failed.append(error)
        finally:
            _within.threads = False

    run_on_openmp_threads(run, count)
    if failed:
        raise failed[0]
