"""Jobs spread over processes or threads, results in the order of the jobs."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, TypeVar

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
