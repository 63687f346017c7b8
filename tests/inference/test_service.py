"""The service: problems of many callers in one running batch."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from tests.inference.test_attempts import NEVER, Timed
from torch import Tensor

from rrn import InputError, State
from rrn.inference import BusyError, ClosedError, Service
from rrn.inference.attempts import STRIDE, AttemptLoop, Problems, Slots, Trial, run_attempts
from rrn.inference.service import FairLoop, Request
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.predict import Stages, load, solve

Advance = Callable[[FairLoop, int], None]


class Shared(Timed):
    """Timed problems of which all share a running batch."""

    def batch_key(self) -> str:
        return "shared"

    def empty(self) -> "Shared":
        return Shared()

    def put(self, number: int, others: Problems, row: int) -> None:
        assert isinstance(others, Timed)
        finish = list(self.finish)
        finish[number : number + 1] = [others.finish[row]]
        self.finish = tuple(finish)

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None) -> State:
        return state


def request(problems: Timed, max_steps: int = 64, attempts: int = 1, client: str = "") -> Request:
    trials = [Trial(problems, row, max_steps, attempts) for row in range(len(problems))]
    return Request(problems, trials, client)


def present(loop: FairLoop) -> list[list[int]]:
    """The problems in each stride so far."""
    assert isinstance(loop.problems, Timed)
    return [[problem for problem, _ in stride] for stride in loop.problems.strides]


@pytest.fixture(scope="module")
def advance() -> Iterator[Advance]:
    """Runs one stride as a service with so many slots does."""
    services = {slots: Service(slots=slots) for slots in (2, 4, 8)}
    yield lambda loop, slots: services[slots]._advance(loop)
    for service in services.values():
        service.close()


def test_the_result_is_that_of_run_attempts() -> None:
    service = Service(slots=2)
    for attempts in (1, 3):
        problems = [Timed([3, 1, 1]), Timed([NEVER, 12, NEVER], [20, 1, 1]), Timed([NEVER] * 3)]
        futures = [service.submit(each, max_steps=32, attempts=attempts) for each in problems]
        for each, future in zip(problems, futures, strict=True):
            expected, found = run_attempts(each, max_steps=32, attempts=attempts), future.result(10)
            assert (found.status, found.answers, found.message) == (expected.status, expected.answers, expected.message)
            assert found.steps.tolist() == expected.steps.tolist()
            assert found.attempts.tolist() == expected.attempts.tolist()
            assert found.details == expected.details
    service.close()


def test_requests_share_a_batch_and_numbers_are_used_again(advance: Advance) -> None:
    loop = FairLoop(Shared(), 0.0)
    first, second, third = request(Shared([3], [20])), request(Shared([9])), request(Shared([5]))
    loop.place(first)
    loop.place(second)
    advance(loop, 8)
    loop.place(third)
    assert loop.problems.finish == ([5], [20], [9]), "the new problem replaces the one that is done"
    while loop.trials:
        advance(loop, 8)
    assert present(loop) == [[0, 1, 2], [1, 2, 0], [1]]
    assert [each.future.result(0).steps.tolist() for each in (first, second, third)] == [[3, 20], [9], [5]]


def test_a_new_request_does_not_wait_for_long_ones(advance: Advance) -> None:
    loop = FairLoop(Shared(), 0.0)
    long = request(Shared(*[[NEVER]] * 8), max_steps=1024)
    loop.place(long)
    for _ in range(12):
        advance(loop, 8)
    short = request(Shared(*[[STRIDE]] * 4))
    loop.place(short)
    advance(loop, 8)
    assert short.future.done(), "four slots are paused for it"
    advance(loop, 8)
    assert sorted(present(loop)[-1]) == list(range(8)), "they resume, and their state is right"
    assert loop.paused is None


def test_attempts_of_usual_length_do_not_pause_for_newer_requests(advance: Advance) -> None:
    loop = FairLoop(Shared(), 0.0)
    unsolved = [request(Shared([NEVER]), max_steps=128) for _ in range(3)]
    for each in unsolved:
        loop.place(each)
    for _ in range(128 // STRIDE):
        loop.place(request(Shared(*[[STRIDE]] * 4)))
        advance(loop, 4)
    assert all(each.future.done() for each in unsolved)


def test_an_old_request_gets_a_share_of_the_slots(advance: Advance) -> None:
    loop = FairLoop(Shared(), 0.0)
    old = request(Shared(*[[NEVER]] * 4), max_steps=256)
    loop.place(old)
    for _ in range(200):
        loop.place(request(Shared(*[[STRIDE]] * 4)))
        advance(loop, 4)
        if old.future.done():
            return
    pytest.fail("new requests starve the old one")


def test_a_long_request_gets_a_quarter_of_the_slots_while_there_are_new_ones(advance: Advance) -> None:
    loop = FairLoop(Shared(), 0.0)
    loop.place(request(Shared(*[[NEVER]] * 6), max_steps=NEVER))
    for _ in range(6):
        advance(loop, 8)
    short = request(Shared([3 * STRIDE]))
    loop.place(short)
    loop.restricted = True
    for _ in range(3):
        advance(loop, 8)
    assert [len(stride) for stride in present(loop)] == [6] * 6 + [3] * 3, "slots stay free, so that strides are short"
    assert short.future.done()
    loop.restricted = False
    advance(loop, 8)
    assert len(present(loop)[-1]) == 6


def test_clients_take_turns(advance: Advance) -> None:
    loop = FairLoop(Shared(), 0.0)
    for _ in range(30):
        loop.place(request(Shared([STRIDE]), client="many"))
    few = request(Shared([STRIDE], [STRIDE]), client="few")
    loop.place(few)
    advance(loop, 8)
    assert few.future.done()


class Blocked(Shared):
    """Strides wait until they may run."""

    def __init__(self, *finish: list[int]) -> None:
        super().__init__(*finish)
        self.begun, self.go_on = threading.Event(), threading.Event()

    def batch_key(self) -> "Blocked":
        return self

    def empty(self) -> "Blocked":
        return self

    def put(self, number: int, others: Problems, row: int) -> None: ...

    def run(self, slots: Slots, steps: int) -> tuple[Tensor, State]:
        self.begun.set()
        assert self.go_on.wait(10)
        return super().run(slots, steps)


def test_a_cancelled_request_ends_after_the_current_stride() -> None:
    service, problems = Service(), Blocked([NEVER])

    async def leave() -> None:
        task = asyncio.create_task(service.solve(problems, max_steps=NEVER))
        await asyncio.to_thread(problems.begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    problems.go_on.set()
    service.submit(Timed([3]), max_steps=8).result(10)
    statistics = service.statistics()
    assert len(problems.strides) == 1
    assert (statistics["problems"], statistics["requests"]["cancelled"]) == (0, 1)
    service.close()


@pytest.mark.parametrize("how", ["solve", "submit"])
def test_finished_requests_leave_memory_without_the_garbage_collector(how: str) -> None:
    """A cycle of references would keep the recorded outputs of thousands of requests until the next full collection."""
    service, kept = Service(), list[weakref.ref[object]]()

    async def ask() -> None:
        for _ in range(10):
            problems = Shared([3])
            options = {"max_steps": 8, "record": lambda outputs: outputs}
            if how == "solve":
                result = await service.solve(problems, **options)
            else:
                result = await asyncio.to_thread(service.submit(problems, **options).result)
            kept.extend([weakref.ref(problems), weakref.ref(result)])

    gc.disable()
    try:
        asyncio.run(ask())
        assert sum(each() is not None for each in kept) <= 2  # the worker may hold the last one
    finally:
        gc.enable()
    service.close()


def test_a_recorded_problem_does_not_keep_the_outputs_of_other_slots() -> None:
    problems = Timed([NEVER], *[[3]] * 30)
    loop, trials = AttemptLoop(problems), [Trial(problems, row, 64, 1, record=lambda made: made) for row in range(31)]
    for problem, trial in enumerate(trials):
        loop.add(problem, trial)
    loop.advance(31)
    (recorded,) = trials[0].recorded[1]
    assert recorded.untyped_storage().nbytes() == recorded.nbytes


def test_limits_and_the_end() -> None:
    service, problems = Service(capacity=3), Blocked([NEVER], [NEVER])
    future = service.submit(problems, max_steps=NEVER)
    assert problems.begun.wait(10)
    with pytest.raises(BusyError, match="more than 3 problems"):
        service.submit(Timed([3], [3]), max_steps=8)
    waiting = service.submit(Timed([3]), max_steps=8)
    service.close()
    problems.go_on.set()
    for each in (future, waiting):
        with pytest.raises(ClosedError):
            each.result(10)
    with pytest.raises(ClosedError):
        service.submit(Timed([3]), max_steps=8)
    with pytest.raises(InputError, match="attempts: expected at least 1, got 0"):
        Service().submit(Timed([3]), max_steps=8, attempts=0)
    assert service.statistics()["requests"] == {"answered": 0, "cancelled": 0, "failed": 2, "refused": 1}


def test_other_threads_compute_as_before() -> None:
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    Service().close()
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert (torch.get_num_threads(), seen) == (2, [2])
    torch.set_num_threads(before)


def test_an_error_reaches_its_caller_and_no_other() -> None:
    class Broken(Timed):
        def run(self, slots: Slots, steps: int) -> tuple[Tensor, State]:
            raise RuntimeError("broken")

    service = Service()
    failing, working = service.submit(Broken([3]), max_steps=8), service.submit(Timed([3]), max_steps=8)
    with pytest.raises(RuntimeError, match="broken"):
        failing.result(10)
    assert working.result(10).solved.all()
    service.close()


def test_sudokus_of_many_callers_have_the_answers_of_one_batch() -> None:
    network, service = load("sudoku"), Service(slots=4, workers=2)
    puzzles, _ = generate(12, np.random.default_rng(3))
    expected = solve(puzzles, network=network, max_steps=64, attempts=1)
    stages = [Stages(puzzle[None], network) for puzzle in puzzles]
    futures = [service.submit(each.problems(network, each.rows), max_steps=64) for each in stages]
    for each, future in zip(stages, futures, strict=True):
        each.add(future.result(60))
    assert [each.result().steps[0] for each in stages] == expected.steps.tolist()
    np.testing.assert_array_equal(np.concatenate([each.result().answers for each in stages]), expected.answers)
    service.close()


def grid(puzzle: str) -> np.ndarray:
    return np.array([[int(digit) if digit.isdigit() else 0 for digit in puzzle]], np.uint8)


def test_a_search_survives_pauses() -> None:
    """Two slots for nine attempts, and new puzzles in between."""
    hard, easy, service = load("sudoku-hard"), load("sudoku"), Service(slots=2)
    extreme = Stages(grid("986.....4.......3..31.9..6...4.5.1..1..6...2..9..81..5.....5.9.........6467......"), hard)
    future = service.submit(extreme.problems(hard, extreme.rows), max_steps=96, attempts=4)
    other = Stages(grid(EXAMPLES[0]), hard)
    more = [service.submit(other.problems(hard, other.rows), max_steps=96) for _ in range(3)]
    small = Stages(grid(EXAMPLES[1]), easy)
    assert service.submit(small.problems(easy, small.rows), max_steps=128).result(60).solved.all()
    assert all(each.result(60).solved.all() for each in more)
    assert future.result(60).solved.all()
    service.close()
