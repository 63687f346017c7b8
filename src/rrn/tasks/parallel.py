"""Jobs spread over processes or threads, results in the order of the jobs."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np

from rrn.errors import InputError

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_jobs(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    processes: int = 1,
    finished: Callable[[int], None] = lambda _index: None,
) -> list[Result]:
    """``[function(job) for job in jobs]`` in ``processes`` processes; ``finished`` is told the index of each job done.

    Processes are spawned, not forked (a fork of a process with threads can hang), so ``function`` must be importable
    and a script that calls this needs the usual ``if __name__ == "__main__"``. One process: all runs in this one.
    """
    if processes <= 1 or len(jobs) <= 1:
        results = []
        for index, job in enumerate(jobs):
            results.append(function(job))
            finished(index)
        return results
    with ProcessPoolExecutor(min(processes, len(jobs)), mp_context=get_context("spawn")) as executor:
        futures = {executor.submit(function, job): index for index, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                future.result()
                finished(futures[future])
        except BaseException:
            executor.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]


def in_threads(function: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """``[function(job) for job in jobs]`` in as many threads as torch has, each of which then computes with one."""
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


def adding_up(sizes: Sequence[int], progress: Callable[[int, int], Any]) -> Callable[[int], None]:
    """For ``finished`` of `run_jobs`: tells ``progress`` how much is done of the whole, of jobs of these sizes."""
    done, total = 0, sum(sizes)

    def finished(index: int) -> None:
        nonlocal done
        done += sizes[index]
        progress(done, total)

    return finished


def make_in_jobs(
    make: Callable[..., Sequence[np.ndarray]],
    count: int,
    per_job: int,
    seed: int,
    settings: tuple[Any, ...] = (),
    processes: int = 1,
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> list[np.ndarray]:
    """The arrays of ``make(count, rng, *settings)``, made ``per_job`` rows at a time, each job with a random generator
    of its own: so they do not depend on the number of processes."""
    if count < 1:
        raise InputError(f"a set of {count}: ask for at least one")
    sizes = [min(per_job, count - start) for start in range(0, count, per_job)]
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    jobs = [(make, size, own, settings) for size, own in zip(sizes, seeds, strict=True)]
    parts = run_jobs(_make, jobs, processes, adding_up(sizes, progress))
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def apply_in_jobs(
    function: Callable[[np.ndarray], Sequence[np.ndarray]],
    array: np.ndarray,
    per_job: int,
    processes: int,
    progress: Callable[[int, int], Any],
) -> list[np.ndarray]:
    """Arrays that a function returns, as many rows as it is given: called with so many rows at a time."""
    parts = [array[start : start + per_job] for start in range(0, max(len(array), 1), per_job)]
    results = run_jobs(function, parts, processes, adding_up([len(part) for part in parts], progress))
    return [np.concatenate(arrays) for arrays in zip(*results, strict=True)]


def _make(job: tuple[Any, ...]) -> Sequence[np.ndarray]:
    make, count, seed, settings = job
    made: Sequence[np.ndarray] = make(count, np.random.default_rng(seed), *settings)
    return made
