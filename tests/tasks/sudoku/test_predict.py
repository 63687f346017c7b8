"""Solving Sudokus: stopping at a valid grid, further attempts, the fallback, and no wrong grid as a solution."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import rrn.tasks.sudoku
from rrn import engines
from rrn._compat import COMPILED
from rrn.constraints.solve import ATTEMPTS as DECLARED_ATTEMPTS
from rrn.errors import InputError
from rrn.inference.attempts import NOISE_EVERY, STRIDE
from rrn.inference.result import Result, Status
from rrn.inference.search import FIRST_SPLIT
from rrn.nn.updates import State
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.grid import clashes, grid_to_line, is_solved, solves
from rrn.tasks.sudoku.model import CandidateSudoku, PuzzleNetwork
from rrn.tasks.sudoku.predict import ATTEMPTS, answers_by_step, solve
from rrn.tasks.sudoku.settings import CandidatesPreset
from rrn.tasks.weights import from_pretrained

Puzzles = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def twenty() -> Puzzles:
    return generate(20, np.random.default_rng(11), 4)


class Oracle(PuzzleNetwork):
    """Predicts ``answers`` of a puzzle from the step ``ready`` on, and the digit 1 everywhere before.

    Its state counts the steps of each puzzle (h), and sums the noise that was added (memory). ``accepts`` decides by
    that noise whether it ever predicts the answer.
    """

    def __init__(
        self,
        puzzles: np.ndarray,
        answers: np.ndarray,
        ready: np.ndarray | int,
        accepts: Callable[[float], bool] = lambda noise: True,
    ) -> None:
        super().__init__()
        self.row = {grid_to_line(puzzle): row for row, puzzle in enumerate(puzzles)}
        self.answers = torch.from_numpy(answers).long()
        self.ready = torch.as_tensor(np.broadcast_to(ready, len(puzzles)).copy())
        self.accepts = accepts
        self.largest_batch = self.steps_run = 0

    def initial_state(self, batch: dict[str, Tensor]) -> State:
        count = len(batch["puzzle"])
        return State(torch.zeros(count, 1), (torch.zeros(count, 1),))

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return State(state.h, (state.memory[0] + noise,))

    def forward(self, batch: dict[str, Tensor], *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        puzzles = batch["puzzle"]
        self.largest_batch, self.steps_run = max(self.largest_batch, len(puzzles)), self.steps_run + steps
        state = self.initial_state(batch) if state is None else state
        rows = torch.tensor([self.row[grid_to_line(puzzle.numpy())] for puzzle in puzzles])
        accepted = torch.tensor([self.accepts(float(noise)) for noise in state.memory[0]])
        outputs = []
        for t in range(1, steps + 1):
            ready = (state.h[:, 0] + t >= self.ready[rows]) & accepted
            digits = torch.where(ready[:, None], self.answers[rows], 1)
            outputs.append(4.0 * nn.functional.one_hot(digits - 1, 9).flatten(0, 1))
        return torch.stack(outputs), State(state.h + steps, state.memory)


def test_each_puzzle_stops_at_the_first_valid_grid(twenty: Puzzles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrn.tasks.sudoku.predict.SLOTS", 8)
    puzzles, solutions = twenty
    ready = np.arange(1, 21)
    network = Oracle(puzzles, solutions, ready)
    found = solve(puzzles, network=network, max_steps=20)
    assert found.solved.all()
    np.testing.assert_array_equal(found.steps, ready)
    np.testing.assert_array_equal(found.answers, solutions)
    np.testing.assert_array_equal(found.details["first_answers"], solutions)
    assert (found.attempts == 1).all()
    assert found.record is None
    assert network.largest_batch == 8
    certain = np.exp(4) / (np.exp(4) + 8)
    np.testing.assert_allclose(found.confidence, certain, rtol=1e-5)


@pytest.mark.parametrize("max_steps", [1, STRIDE - 1, STRIDE, STRIDE + 2])
def test_no_attempt_exceeds_its_steps(twenty: Puzzles, max_steps: int) -> None:
    puzzles, solutions = twenty
    network = Oracle(puzzles[:1], solutions[:1], max_steps + 1)
    found = solve(puzzles[:1], network=network, max_steps=max_steps, attempts=1)
    assert not found.solved[0]
    assert found.steps[0] == max_steps == network.steps_run
    assert solve(puzzles[:1], network=network, max_steps=max_steps + 1, attempts=1).solved[0]


def test_a_full_grid_is_a_solution_only_if_it_breaks_no_rule_and_has_the_givens(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    broken = solutions.copy()
    empty = np.flatnonzero(puzzles[0] == 0)[:2]
    broken[0, empty] = broken[0, empty][::-1]
    broken[0, empty[0]] = broken[0, empty[1]]
    other_givens = solutions % 9 + 1
    for answers in (broken[:1], other_givens[:1]):
        found = solve(puzzles[:1], network=Oracle(puzzles[:1], answers, 2), max_steps=6, attempts=3)
        assert not found.solved[0]
        assert found.attempts[0] == 3
        np.testing.assert_array_equal(found.answers, answers)
    assert is_solved(other_givens).all()


def test_further_attempts_add_noise_and_are_counted(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    needs_noise = Oracle(puzzles, solutions, 3, accepts=lambda noise: noise > 0)
    assert not solve(puzzles, network=needs_noise, max_steps=8, attempts=1).solved.any()
    found = solve(puzzles, network=needs_noise, max_steps=8, attempts=5)
    assert found.solved.all()
    assert (found.attempts == 2).all()
    assert (found.steps == 3).all()
    assert (found.details["first_answers"] == 1).all()
    easy = np.arange(20) % 2 == 0
    ready = np.where(easy, 2, 99)
    found = solve(puzzles, network=Oracle(puzzles, solutions, ready), max_steps=8, attempts=4)
    np.testing.assert_array_equal(found.solved, easy)
    np.testing.assert_array_equal(found.attempts, np.where(easy, 1, 4))


def test_noise_is_added_twice_in_the_first_half_of_an_attempt(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    max_steps = 4 * NOISE_EVERY
    for doses, enough in ((2, True), (3, False)):
        network = Oracle(puzzles[:1], solutions[:1], 1, accepts=lambda noise, doses=doses: noise >= doses)
        found = solve(puzzles[:1], network=network, max_steps=max_steps, attempts=2, noise=1.0)
        assert found.solved[0] == enough


def test_the_record_is_of_the_attempt_that_is_returned(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    ready = np.where(np.arange(20) < 18, 3, 99)
    network = Oracle(puzzles, solutions, ready, accepts=lambda noise: noise > 0)
    found = solve(puzzles, network=network, max_steps=7, attempts=3, record=True)
    assert found.solved[:18].all()
    assert [steps.shape for steps in found.record] == [(3, 81, 9)] * 18 + [(7, 81, 9)] * 2
    for row, steps in enumerate(found.record):
        np.testing.assert_allclose(steps.sum(-1), 1, rtol=1e-5)
        digits = steps.argmax(-1) + 1
        assert (digits[:2] == 1).all()
        np.testing.assert_array_equal(digits[-1], found.answers[row])
    assert (found.answers[:18] == solutions[:18]).all()


def test_a_puzzle_alone_is_solved_as_in_a_batch(twenty: Puzzles) -> None:
    puzzles, _ = twenty
    torch.manual_seed(3)
    trained = {"weights": "sudoku", "max_steps": 24, "attempts": 1, "record": True}
    together = solve(puzzles, **trained)
    assert together.solved.any()
    for row in range(0, 20, 3):
        alone = solve(puzzles[row], **trained)
        assert (alone.solved[0], alone.steps[0]) == (together.solved[row], together.steps[row])
        np.testing.assert_array_equal(alone.answers[0], together.answers[row])
        np.testing.assert_allclose(alone.record[0], together.record[row], atol=0.01)


def test_the_shipped_weights_solve_most_puzzles_and_report_it_correctly(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    found = rrn.tasks.sudoku.solve([grid_to_line(puzzle) for puzzle in puzzles], max_steps=48, attempts=2)
    assert found.solved.mean() > 0.5
    np.testing.assert_array_equal(found.solved, solves(found.answers, puzzles))
    np.testing.assert_array_equal(found.answers[found.solved], solutions[found.solved])
    assert ((found.confidence > 0) & (found.confidence <= 1)).all()
    assert (found.steps <= 48).all()


def test_the_same_seed_gives_the_same_result(twenty: Puzzles) -> None:
    torch.manual_seed(5)
    network = CandidateSudoku(CandidatesPreset(name="tiny", about="", hidden=8, message_width=4, layer_width=30)).eval()
    one, two, three = (
        solve(twenty[0][:3], network=network, max_steps=4, attempts=3, noise=1.0, seed=seed, record=True)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.answers, two.answers)
    np.testing.assert_array_equal(one.record, two.record)
    assert (three.attempts == 3).all()


def test_answers_by_step_do_not_stop(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    answers = answers_by_step(Oracle(puzzles[:3], solutions[:3], 2), puzzles[:3], 5)
    assert answers.shape == (5, 3, 81)
    assert (answers[0] == 1).all()
    assert (answers[1:] == solutions[:3]).all()


def test_progress_counts_every_puzzle_once(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    calls: list[tuple[int, int]] = []
    network = Oracle(puzzles, solutions, np.arange(1, 21))
    solve(puzzles, network=network, max_steps=30, progress=lambda done, of: calls.append((done, of)))
    assert calls == [(done, 20) for done in range(1, 21)]


@pytest.mark.parametrize(
    ("puzzles", "options", "message"),
    [
        ("." * 81, {"max_steps": 0}, "max_steps: expected at least 1, got 0"),
        ("." * 81, {"attempts": 0}, "attempts: expected at least 1, got 0"),
        ("." * 80, {}, "80 cells where a puzzle has 81"),
        (["." * 81, "q" * 81], {}, "puzzle 2:1: 'q' in cell 1 is neither a digit nor an empty cell"),
        ("11" + "." * 79, {}, "two equal givens clash: 1 in row 1, column 1 and in row 1, column 2"),
        (np.ones((2, 81), int), {}, "puzzle 1: two of its givens clash"),
        (np.zeros((2, 80), int), {}, "integers of shape"),
        (np.full((1, 81), 10), {}, "digits 1 to 9"),
        ("." * 81, {"weights": "ages"}, "weights 'ages': for the task 'ages', not for 'sudoku'"),
    ],
)
def test_bad_input_is_named(puzzles: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        solve(puzzles, **options)


def test_the_default_number_of_attempts_is_that_of_the_command_line(call: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = call("solve", "--help")
    printed = " ".join(out.replace("│", " ").split())
    assert f"Unset: {ATTEMPTS} by each network" in printed
    assert f"of a declared problem {DECLARED_ATTEMPTS}." in printed


def add_wrong_givens(puzzle: np.ndarray) -> None:
    """Give digits that clash with no other, as long as there are any."""
    for cell in np.flatnonzero(puzzle == 0):
        for digit in range(1, 10):
            puzzle[cell] = digit
            if not clashes(puzzle[None]).any():
                break
            puzzle[cell] = 0


@pytest.mark.skipif(not COMPILED, reason="numba is not installed")
@pytest.mark.parametrize("max_steps", [5, 40])
def test_the_compiled_engine_solves_what_the_plain_engine_solves(max_steps: int) -> None:
    """On puzzles easy enough that some are solved, and some that have no solution."""
    network = from_pretrained("sudoku")
    puzzles, _ = generate(30, np.random.default_rng(5), (0, 12))
    for row in (3, 4):
        add_wrong_givens(puzzles[row])
    compiled = solve(puzzles, network=network, max_steps=max_steps, attempts=1)
    with engines.only("plain"):
        plain = solve(puzzles, network=network, max_steps=max_steps, attempts=1)
    assert 0 < compiled.solved.sum() < 30
    for name in ("answers", "solved", "steps", "attempts"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(plain, name), err_msg=name)
    np.testing.assert_array_equal(compiled.details["first_answers"], plain.details["first_answers"])
    np.testing.assert_allclose(compiled.confidence, plain.confidence, atol=1e-4)


@pytest.mark.parametrize("box", [(1, 7), (3, 2)])
def test_boxes_that_the_number_of_cells_does_not_determine(box: tuple[int, int]) -> None:
    """A Latin square of 7, and a grid of 36 cells with boxes of three rows and two columns."""
    puzzles, solutions = generate(3, np.random.default_rng(0), 6, box=box)
    found = solve(puzzles, box=box)
    assert found.solved.all()
    np.testing.assert_array_equal(found.answers, solutions)


def test_an_untrained_network_solves_easy_puzzles_by_search() -> None:
    torch.manual_seed(0)
    puzzles, solutions = generate(12, np.random.default_rng(5), 25)
    network = CandidateSudoku(
        CandidatesPreset(name="", about="", hidden=8, message_width=4, layer_width=30, contradiction_share=0.5)
    )
    without = solve(puzzles, network=network, max_steps=256, attempts=1, search=False)
    found = solve(puzzles, network=network, max_steps=256, attempts=2)
    assert not without.solved.any()
    assert found.solved.sum() > 6
    assert (found.answers[found.solved] == solutions[found.solved]).all()
    assert (found.steps[found.solved] > FIRST_SPLIT).all()
    again = solve(puzzles, network=network, max_steps=256, attempts=2)
    assert (found.answers == again.answers).all()
    recorded = solve(puzzles[:2], network=network, max_steps=64, attempts=1, record=True)
    assert [len(steps) for steps in recorded.record] == recorded.steps.tolist()


def test_search_works_on_other_sizes() -> None:
    torch.manual_seed(0)
    box = (2, 2)
    puzzles, _ = generate(4, np.random.default_rng(5), 2, box=box)
    network = CandidateSudoku(
        CandidatesPreset(name="", about="", hidden=8, message_width=4, layer_width=30, contradiction_share=0.5)
    )
    assert solve(puzzles, network=network, box=box, max_steps=128, attempts=1).solved.all()


def impossible_puzzle(puzzles: np.ndarray) -> np.ndarray:
    puzzle = puzzles.copy()
    add_wrong_givens(puzzle)
    assert not is_solved(puzzle[None]).any()
    return puzzle


def test_each_puzzle_gets_the_attempts_it_needs_and_the_fallback_is_last(twenty: Puzzles) -> None:
    """Already solved, solved first, impossible, solved by noise, solved by the fallback, by its noise, not at all."""
    puzzles, solutions = twenty[0][:7].copy(), twenty[1][:7]
    puzzles[0], puzzles[2] = solutions[0], impossible_puzzle(puzzles[2])
    puzzles[6] = 0  # has many solutions
    made = []

    class Split(Oracle):
        """An oracle that predicts the answers of ``quiet`` rows without noise, and the others only with noise."""

        def __init__(self, ready: list[int], quiet: set[int]) -> None:
            super().__init__(puzzles, solutions, np.array(ready))
            self.quiet, self.seen = quiet, set()

        def forward(self, batch: dict[str, Tensor], *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
            state = self.initial_state(batch) if state is None else state
            outputs, after = super().forward(batch, steps=steps, state=state)
            rows = torch.tensor([self.row[grid_to_line(puzzle.numpy())] for puzzle in batch["puzzle"]])
            self.seen |= set(rows.tolist())
            allowed = (state.memory[0][:, 0] > 0) | torch.isin(rows, torch.tensor(sorted(self.quiet)))
            ones = 4.0 * nn.functional.one_hot(torch.zeros(81, dtype=torch.long), 9)
            keep = allowed.repeat_interleave(81)[None, :, None]
            return torch.where(keep, outputs, ones.repeat(len(rows), 1)[None]), after

    def fallback() -> PuzzleNetwork:
        made.append(Split([99, 99, 99, 99, 4, 5, 99], {4}))
        return made[-1]

    first = Split([1, 2, 99, 3, 99, 99, 99], {1})
    found = solve(puzzles, network=first, fallback=fallback, max_steps=8, attempts=3, record=True)
    assert isinstance(found, Result)
    solved = Status.SOLVED
    expected = [Status.ALREADY_SOLVED, solved, Status.IMPOSSIBLE, solved, solved, solved, Status.AMBIGUOUS]
    assert found.status == expected
    assert found.attempts.tolist() == [0, 1, 1, 2, 3 + 1, 3 + 2, 3 + 3]
    assert found.steps.tolist() == [0, 2, 8, 3, 4, 5, 8]
    assert found.details["fallback"].tolist() == [False] * 4 + [True] * 3
    assert len(made) == 1
    assert set(made[0].seen) == {4, 5, 6}, "the fallback runs only on what is unsolved and may have a solution"
    right = [0, 1, 3, 4, 5]
    np.testing.assert_array_equal(found.answers[right], solutions[right])
    np.testing.assert_array_equal(found.details["puzzles"], puzzles)
    assert (found.details["first_answers"][[3, 4, 5]] == 1).all(), "those of the first attempt of the first network"
    assert found.record[0] is None
    assert len(found.record[5]) == 5
    assert "no solution" in found.message[2]
    assert "several solutions" in found.message[6]
    assert found.message[1] == found.message[4] == ""


def test_the_fallback_is_not_loaded_if_nothing_is_left(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    stuck = impossible_puzzle(puzzles[0])
    some, answers = np.stack([puzzles[1], stuck, solutions[2]]), solutions[:3]
    network = Oracle(some, answers[[1, 0, 2]], 2)

    def fallback() -> PuzzleNetwork:
        raise AssertionError("the fallback was loaded")

    found = solve(some, network=network, fallback=fallback, max_steps=4, attempts=2)
    assert found.status == [Status.SOLVED, Status.IMPOSSIBLE, Status.ALREADY_SOLVED]


def test_the_fallback_thinks_longer_about_what_is_left(twenty: Puzzles) -> None:
    """Solved by the fallback in its usual steps, only in more of them, and an ambiguous puzzle, which gets no more."""
    puzzles, solutions = twenty[0][:4].copy(), twenty[1][:4]
    puzzles[3] = 0
    strong, calls = Oracle(puzzles, solutions, np.array([1, 3, 40, 999])), list[tuple[int, int]]()
    found = solve(
        puzzles,
        network=Oracle(puzzles, solutions, np.array([1, 99, 99, 99])),
        fallback=lambda: strong,
        think_longer=lambda left, number: calls.append((left, number)),
        max_steps=4,
        attempts=2,
    )
    assert found.status == [Status.SOLVED] * 3 + [Status.AMBIGUOUS]
    assert found.attempts.tolist() == [1, 2 + 1, 2 + 2 + 1, 2 + 2]
    assert found.steps[2] == 40
    assert calls == [(1, 1)]


def test_every_round_of_thinking_longer_searches_deeper(twenty: Puzzles) -> None:
    """A puzzle that needs more steps than the attempts of the first two rounds have."""
    puzzles, solutions = twenty[0][:1], twenty[1][:1]
    calls: list[tuple[int, int]] = []
    found = solve(
        puzzles,
        network=Oracle(puzzles, solutions, 9999),
        fallback=lambda: Oracle(puzzles, solutions, 1500),
        think_longer=lambda left, number: calls.append((left, number)),
        max_steps=2,
        attempts=2,
    )
    assert found.status == [Status.SOLVED]
    assert found.steps.tolist() == [1500]
    assert calls == [(1, 1), (1, 2), (1, 3)]


def test_progress_counts_full_grids_and_puzzles_of_the_fallback_once(twenty: Puzzles) -> None:
    puzzles, solutions = twenty[0][:4].copy(), twenty[1][:4]
    puzzles[0] = solutions[0]
    calls: list[tuple[int, int]] = []
    found = solve(
        puzzles,
        network=Oracle(puzzles, solutions, np.array([1, 2, 99, 99])),
        fallback=lambda: Oracle(puzzles, solutions, 2),
        max_steps=4,
        attempts=2,
        progress=lambda done, of: calls.append((done, of)),
    )
    assert found.solved.all()
    assert [of for _, of in calls] == [4] * len(calls)
    done = [done for done, _ in calls]
    assert done == sorted(done)
    assert done[-1] == 4


def test_results_are_of_one_type(twenty: Puzzles) -> None:
    found = solve(twenty[0][:3], max_steps=16, attempts=1)
    assert isinstance(found, Result)
    for row, one in enumerate(found):
        assert isinstance(one, Result)
        assert isinstance(one.status, Status)
        assert (one.solved, one.steps) == (found.solved[row], found.steps[row])
        np.testing.assert_array_equal(one.answers, found.answers[row])
        np.testing.assert_array_equal(one.details["puzzles"], twenty[0][row])


def test_the_exact_search_can_be_limited(twenty: Puzzles) -> None:
    """Without guesses it proves nothing about a hard puzzle, and the message reports that."""
    puzzle = np.zeros((1, 81), np.uint8)
    network = Oracle(puzzle, np.ones((1, 81), np.uint8), 99)
    found = solve(puzzle, network=network, max_steps=2, attempts=1, exact_guesses=1)
    assert found.status == [Status.UNSOLVED]
    assert "reached its limit" in found.message[0]
