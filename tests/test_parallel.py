import os

import pytest

from rrn.parallel import adding_up, run_jobs


def doubled(job: int) -> tuple[int, int]:
    if job < 0:
        raise ValueError(f"job {job}")
    return 2 * job, os.getpid()


def test_one_process_runs_all_in_order() -> None:
    finished: list[int] = []
    assert run_jobs(doubled, [3, 1, 2], 1, finished.append) == [(2 * job, os.getpid()) for job in (3, 1, 2)]
    assert finished == [0, 1, 2]


def test_two_processes_give_results_in_the_order_of_the_jobs_and_raise_what_a_job_raises() -> None:
    finished: list[int] = []
    results = run_jobs(abs, [-3, 1, -2, 5], 2, finished.append)
    assert results == [3, 1, 2, 5]
    assert sorted(finished) == [0, 1, 2, 3]
    with pytest.raises(TypeError):
        run_jobs(abs, [1, "two"], 2)


def test_an_error_in_this_process_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="job -1"):
        run_jobs(doubled, [1, -1, 2])


def test_what_jobs_have_done_adds_up() -> None:
    told = []
    run_jobs(abs, [-3, 1, -2], finished=adding_up([10, 10, 5], lambda done, of: told.append((done, of))))
    assert told == [(10, 25), (20, 25), (25, 25)]
