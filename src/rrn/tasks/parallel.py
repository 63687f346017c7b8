"""Jobs spread over processes or threads, results in the order of the jobs."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np

from rrn.errors import InputError

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_jobs(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    sizes: Sequence[int],
    processes: int = 1,
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> list[Result]:
    """``[function(job) for job in jobs]`` in ``processes`` processes; ``progress`` gets the size done and the total.

    Processes are spawned, not forked (a fork of a process with threads can hang), so ``function`` must be importable
    and a script that calls this needs the usual ``if __name__ == "__main__"``. One process: all runs in this one.
    """
    results: list[Result] = []

    def collect(found: Iterable[Result]) -> list[Result]:
        for result in found:
            results.append(result)
            progress(sum(sizes[: len(results)]), sum(sizes))
        return results

    if processes <= 1 or len(jobs) <= 1:
        return collect(map(function, jobs))
    with ProcessPoolExecutor(min(processes, len(jobs)), mp_context=get_context("spawn")) as executor:
        return collect(executor.map(function, jobs))


def in_threads(function: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """``[function(job) for job in jobs]`` in as many threads as torch uses; each then computes with one."""
    import torch

    workers = torch.get_num_threads()
    if workers == 1 or len(jobs) <= 1:
        return [function(job) for job in jobs]
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, jobs))
    finally:
        torch.set_num_threads(workers)


def make_in_jobs(
    make: Callable[..., Sequence[np.ndarray]],
    count: int,
    per_job: int,
    seed: int,
    settings: tuple[Any, ...] = (),
    processes: int = 1,
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> list[np.ndarray]:
    """The arrays of ``make(count, rng, *settings)``, ``per_job`` rows per job. Each job has its random generator, so
    the arrays do not depend on the number of processes."""
    if count < 1:
        raise InputError(f"a set of {count}: ask for at least one")
    sizes = [min(per_job, count - start) for start in range(0, count, per_job)]
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    jobs = [(make, size, job_seed, settings) for size, job_seed in zip(sizes, seeds, strict=True)]
    parts = run_jobs(_make, jobs, sizes, processes, progress)
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def apply_in_jobs(
    function: Callable[[np.ndarray], Sequence[np.ndarray]],
    array: np.ndarray,
    per_job: int,
    processes: int,
    progress: Callable[[int, int], Any],
) -> list[np.ndarray]:
    """The arrays that a function returns for all rows, called with ``per_job`` rows at a time."""
    parts = [array[start : start + per_job] for start in range(0, max(len(array), 1), per_job)]
    results = run_jobs(function, parts, [len(part) for part in parts], processes, progress)
    return [np.concatenate(arrays) for arrays in zip(*results, strict=True)]


def _make(job: tuple[Any, ...]) -> Sequence[np.ndarray]:
    make, count, seed, settings = job
    made: Sequence[np.ndarray] = make(count, np.random.default_rng(seed), *settings)
    return made
