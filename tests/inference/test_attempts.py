"""The loop over slots: problems enter and leave a running batch, and get several attempts."""

import numpy as np
import pytest
import torch
from torch import Tensor

from rrn import InputError, State
from rrn.inference.attempts import NOISE_EVERY, STRIDE, Problems, Slots, run_attempts
from rrn.inference.result import Status

NEVER = 10**6


def make_slots(problems: list[int], rows: list[int]) -> Slots:
    """Slots whose state is the number of the problem, and ten times that in memory."""
    values = torch.tensor(problems).repeat_interleave(torch.tensor(rows))[:, None].float()
    return Slots.enter(torch.tensor(problems), torch.tensor(rows), State(values, (10 * values,)))


def test_slots_enter_release_and_join() -> None:
    slots = make_slots([4, 7, 5], [2, 1, 3])
    assert slots.attempts.tolist() == [1, 1, 1]
    assert slots.age.tolist() == [0, 0, 0]
    slots = slots.advance(slots.state, 8).release(torch.tensor([False, True, False]))
    assert slots.entries() == [(4, 1), (5, 1)]
    assert slots.state.h.flatten().tolist() == [4, 4, 5, 5, 5]
    assert slots.release(torch.tensor([False, False])) is slots
    joined = slots.join(make_slots([9], [2]))
    assert (joined.problems.tolist(), joined.rows.tolist()) == ([4, 5, 9], [2, 3, 2])
    assert joined.age.tolist() == [8, 8, 0]
    assert joined.state.h.flatten().tolist() == [4, 4, 5, 5, 5, 9, 9]
    assert joined.state.memory[0].flatten().tolist() == [40, 40, 50, 50, 50, 90, 90]


def test_noise_is_added_to_the_rows_of_its_slot() -> None:
    slots = make_slots([4, 7, 5], [2, 1, 3])
    noisy = slots.with_noise(
        lambda state, noise, _: State(state.h + noise, state.memory), torch.tensor([0.0, 0.5, 0.25])
    )
    assert (noisy.state.h - slots.state.h).flatten().tolist() == [0, 0, 0.5, 0.25, 0.25, 0.25]
    assert noisy.state.memory is slots.state.memory


class Timed(Problems):
    """Problems that finish at given steps, one per attempt. Their state is their number and age.

    ``statuses`` are what `diagnose` returns for each problem.
    """

    def __init__(self, *finish: list[int], statuses: list[Status] | None = None) -> None:
        self.finish = finish
        self.statuses = statuses or [Status.UNSOLVED] * len(finish)
        self.strides: list[list[tuple[int, int]]] = []
        self.noise: list[tuple[int, int, float]] = []
        self.diagnosed: list[int] = []

    def __len__(self) -> int:
        return len(self.finish)

    def enter(self, problems: Tensor) -> tuple[Tensor, State]:
        rows = problems % 3 + 1
        return rows, State((100 * problems).repeat_interleave(rows)[:, None].float())

    def run(self, slots: Slots, steps: int) -> tuple[Tensor, State]:
        expected = (100 * slots.problems + slots.age).repeat_interleave(slots.rows)
        assert slots.state.h.flatten().tolist() == expected.tolist()
        self.strides.append(slots.entries())
        return slots.age + torch.arange(1, steps + 1)[:, None], State(slots.state.h + steps)

    def finished(self, slots: Slots, outputs: Tensor) -> Tensor:
        return outputs >= torch.tensor([self.finish[problem][attempt - 1] for problem, attempt in slots.entries()])

    def answer(self, slots: Slots, outputs: Tensor, slot: int, step: int) -> tuple[int, int, int]:
        return (*slots.entries()[slot], int(outputs[step, slot]))

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None) -> State:
        rows = state.h.flatten()
        self.noise += [(int(row) // 100, int(row) % 100, float(n)) for row, n in zip(rows, noise, strict=True)]
        return state

    def diagnose(self, problem: int) -> tuple[Status, str]:
        self.diagnosed.append(problem)
        return self.statuses[problem], f"diagnosis of {problem}"


def test_each_problem_takes_the_steps_it_needs() -> None:
    problems, done = Timed([3], [20], [8], [NEVER], [9]), []
    result = run_attempts(problems, max_steps=24, progress=done.append)
    assert result.steps.tolist() == [3, 20, 8, 24, 9]
    assert result.solved.tolist() == [True, True, True, False, True]
    assert result.answers == [(0, 1, 3), (1, 1, 20), (2, 1, 8), (3, 1, 24), (4, 1, 9)]
    assert result.attempts.tolist() == [1] * 5
    assert result.details["first_answers"] == result.answers
    assert sum(done) == 5
    present = [[problem for problem, _ in stride] for stride in problems.strides]
    assert present == [[0, 1, 2, 3, 4], [1, 3, 4], [1, 3]], "finished problems free their slot"


def test_new_problems_enter_free_slots() -> None:
    problems = Timed([3], [20], [8], [NEVER], [9])
    result = run_attempts(problems, max_steps=24, slots=2)
    assert result.steps.tolist() == [3, 20, 8, 24, 9]
    present = [[problem for problem, _ in stride] for stride in problems.strides]
    assert present == [[0, 1], [1, 2], [1, 3], [3, 4], [3, 4]]


def test_the_last_stride_ends_with_the_last_step() -> None:
    result = run_attempts(Timed([NEVER], [STRIDE + 2]), max_steps=STRIDE + 3)
    assert result.steps.tolist() == [STRIDE + 3, STRIDE + 2]


def test_problems_that_the_first_attempt_leaves_unsolved_get_further_attempts() -> None:
    problems, done = Timed([5, 1, 1], [NEVER, 12, NEVER], [NEVER, NEVER, NEVER]), []
    result = run_attempts(problems, max_steps=16, attempts=3, slots=1, progress=done.append)
    assert result.status == [Status.SOLVED, Status.SOLVED, Status.UNSOLVED]
    assert result.attempts.tolist() == [1, 2, 3]
    assert result.answers == [(0, 1, 5), (1, 2, 12), (2, 1, 16)]
    assert result.details["first_answers"] == [(0, 1, 5), (1, 1, 16), (2, 1, 16)]
    assert result.solved_by_attempts() == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert sum(done) == 3
    assert not any(problem == 0 and attempt > 1 for stride in problems.strides for problem, attempt in stride)


def test_an_attempt_that_solves_a_problem_ends_the_others() -> None:
    problems = Timed([NEVER, NEVER, 2])
    result = run_attempts(problems, max_steps=32, attempts=3)
    assert (result.attempts.tolist(), result.steps.tolist()) == ([3], [2])
    assert problems.strides == 4 * [[(0, 1)]] + [[(0, 2), (0, 3)]], "further attempts run side by side"


def test_impossible_problems_get_no_further_attempts() -> None:
    statuses = [Status.IMPOSSIBLE, Status.AMBIGUOUS, Status.UNSOLVED, Status.AMBIGUOUS, Status.IMPOSSIBLE]
    problems, done = Timed(*[[NEVER] * 3] * 3, [NEVER, NEVER, 4], [2, 2, 2], statuses=statuses), []
    result = run_attempts(problems, max_steps=16, attempts=3, progress=done.append)
    solved = Status.SOLVED
    assert result.status == [Status.IMPOSSIBLE, Status.AMBIGUOUS, Status.UNSOLVED, solved, solved]
    assert result.attempts.tolist() == [1, 3, 3, 3, 1]
    assert result.message == ["diagnosis of 0", "diagnosis of 1", "diagnosis of 2", "", ""]
    assert problems.diagnosed == [0, 1, 2, 3], "only what the first attempt left unsolved, once each"
    assert not any(problem == 0 and attempt > 1 for stride in problems.strides for problem, attempt in stride)
    assert sum(done) == 5


def test_a_diagnosis_is_made_for_a_single_attempt_too() -> None:
    problems = Timed([NEVER], [3], statuses=[Status.IMPOSSIBLE, Status.IMPOSSIBLE])
    result = run_attempts(problems, max_steps=8)
    assert result.status == [Status.IMPOSSIBLE, Status.SOLVED]
    assert result.attempts.tolist() == [1, 1]


def test_the_attempt_that_is_returned_is_recorded() -> None:
    problems = Timed([3, 1], [NEVER, 12], [NEVER, NEVER])
    result = run_attempts(problems, max_steps=16, attempts=2, record=lambda outputs: 2 * outputs)
    expected = [[2, 4, 6], list(range(2, 26, 2)), list(range(2, 34, 2))]
    assert [steps.tolist() for steps in result.record] == expected
    assert all(isinstance(steps, np.ndarray) for steps in result.record)
    assert run_attempts(Timed([3]), max_steps=16).record is None


def test_noise_is_added_in_the_first_half_of_further_attempts() -> None:
    problems = Timed([NEVER, NEVER])
    run_attempts(problems, max_steps=4 * NOISE_EVERY, attempts=2, noise=0.5)
    assert [(age, noise) for _, age, noise in problems.noise if noise] == [(0, 0.5), (NOISE_EVERY, 0.5)]
    problems = Timed([NEVER, NEVER])
    run_attempts(problems, max_steps=4 * NOISE_EVERY, attempts=2, noise=0.0)
    assert problems.noise == []


@pytest.mark.parametrize("name", ["max_steps", "attempts", "slots"])
def test_numbers_below_one_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: expected at least 1, got 0"):
        run_attempts(Timed([1]), **{"max_steps": 4, name: 0})


def test_no_problems_give_an_empty_result() -> None:
    result = run_attempts(Timed(), max_steps=4)
    assert (result.answers, result.steps.tolist(), len(result)) == ([], [], 0)
