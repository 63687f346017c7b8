import os
import threading

import numpy as np
import pytest
import torch

from rrn.errors import InputError
from rrn.tasks.parallel import in_threads, make_in_jobs, run_jobs


def doubled(job: int) -> tuple[int, int]:
    if job < 0:
        raise ValueError(f"job {job}")
    return 2 * job, os.getpid()


def test_one_process_runs_all_in_order() -> None:
    assert run_jobs(doubled, [3, 1, 2], [1, 1, 1]) == [(2 * job, os.getpid()) for job in (3, 1, 2)]


def test_two_processes_give_results_in_the_order_of_the_jobs_and_raise_what_a_job_raises() -> None:
    reports: list[tuple[int, int]] = []
    results = run_jobs(abs, [-3, 1, -2, 5], [1, 1, 1, 1], 2, lambda *report: reports.append(report))
    assert results == [3, 1, 2, 5]
    assert reports == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(TypeError):
        run_jobs(abs, [1, "two"], [1, 1], 2)


def test_an_error_in_this_process_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="job -1"):
        run_jobs(doubled, [1, -1, 2], [1, 1, 1])


def test_what_jobs_have_done_adds_up() -> None:
    reports = []
    run_jobs(abs, [-3, 1, -2], [10, 10, 5], progress=lambda done, total: reports.append((done, total)))
    assert reports == [(10, 25), (20, 25), (25, 25)]


def drawn(count: int, rng: np.random.Generator, most: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = rng.integers(most, size=count)
    return numbers, 2 * numbers


def test_what_is_made_in_jobs_does_not_depend_on_the_processes() -> None:
    reports: list[tuple[int, int]] = []
    one = make_in_jobs(drawn, 70, 30, 5, (1000,), 1, lambda *report: reports.append(report))
    two = make_in_jobs(drawn, 70, 30, 5, (1000,), 2)
    assert reports == [(30, 70), (60, 70), (70, 70)]
    assert [len(part) for part in one] == [70, 70]
    assert len(np.unique(one[0])) > 50, "each job draws its own"
    for mine, others in zip(one, two, strict=True):
        np.testing.assert_array_equal(mine, others)
    with pytest.raises(InputError, match="at least one"):
        make_in_jobs(drawn, 0, 30, 5, (1000,))


def test_threads_compute_with_one_each_and_torch_has_its_own_back() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        met = threading.Barrier(2, timeout=20)  # passed only if both run at once

        def work(job: int) -> tuple[int, int]:
            met.wait()
            return 2 * job, torch.get_num_threads()

        assert in_threads(work, [3, 4]) == [(6, 1), (8, 1)]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
