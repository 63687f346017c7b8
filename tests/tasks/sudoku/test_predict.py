"""The loop around a network: stopping, starting again, and never calling a wrong grid a solution."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import rrn.tasks.sudoku
from rrn import engines
from rrn._compat import COMPILED
from rrn.errors import InputError
from rrn.inference.places import NOISE_EVERY, STRIDE
from rrn.inference.search import FIRST_GUESS
from rrn.nn.updates import State
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.grid import clashes, grid_to_line, is_solved, solves
from rrn.tasks.sudoku.model import CandidateSudoku
from rrn.tasks.sudoku.predict import RESTARTS, answers_by_step, solve
from rrn.tasks.sudoku.puzzle_network import PuzzleNetwork
from rrn.tasks.sudoku.settings import CandidatesPreset
from rrn.tasks.weights import from_pretrained

Puzzles = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def twenty() -> Puzzles:
    return generate(20, np.random.default_rng(11), 4)


class KnowsTheAnswer(PuzzleNetwork):
    """Says ``answers`` of a puzzle from the step on that ``ready`` names, and the digit 1 everywhere before.

    Its state counts the steps of each puzzle (h), and how often noise was put on it (memory). ``begins`` is told the
    puzzles of every start.
    """

    def __init__(
        self,
        puzzles: np.ndarray,
        answers: np.ndarray,
        ready: np.ndarray | int,
        heard: Callable[[float], bool] = lambda shakes: True,
    ) -> None:
        super().__init__()
        self.row = {grid_to_line(puzzle): row for row, puzzle in enumerate(puzzles)}
        self.answers = torch.from_numpy(answers).long()
        self.ready = torch.as_tensor(np.broadcast_to(ready, len(puzzles)).copy())
        self.heard = heard
        self.largest_batch = self.steps_run = 0

    def start(self, batch: dict[str, Tensor]) -> State:
        count = len(batch["puzzle"])
        return State(torch.zeros(count, 1), (torch.zeros(count, 1),))

    def noisy(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return State(state.h, (state.memory[0] + noise,))

    def forward(self, batch: dict[str, Tensor], *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        puzzles = batch["puzzle"]
        self.largest_batch, self.steps_run = max(self.largest_batch, len(puzzles)), self.steps_run + steps
        state = self.start(batch) if state is None else state
        rows = torch.tensor([self.row[grid_to_line(puzzle.numpy())] for puzzle in puzzles])
        willing = torch.tensor([self.heard(float(shakes)) for shakes in state.memory[0]])
        outputs = []
        for t in range(1, steps + 1):
            knows = (state.h[:, 0] + t >= self.ready[rows]) & willing
            said = torch.where(knows[:, None], self.answers[rows], 1)
            outputs.append(4.0 * nn.functional.one_hot(said - 1, 9).flatten(0, 1))
        return torch.stack(outputs), State(state.h + steps, state.memory)


def test_it_stops_at_the_first_step_with_a_solution(twenty: Puzzles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrn.tasks.sudoku.predict.PLACES", 8)
    puzzles, solutions = twenty
    ready = np.arange(1, 21)
    network = KnowsTheAnswer(puzzles, solutions, ready)
    found = solve(puzzles, network=network, max_steps=20)
    assert found.valid.all()
    np.testing.assert_array_equal(found.steps, ready)
    np.testing.assert_array_equal(found.grids, solutions)
    np.testing.assert_array_equal(found.first_grids, solutions)
    assert (found.starts == 1).all()
    assert found.probabilities is None
    assert network.largest_batch == 8
    certain = np.exp(4) / (np.exp(4) + 8)
    np.testing.assert_allclose(found.confidence, certain, rtol=1e-5)


@pytest.mark.parametrize("max_steps", [1, STRIDE - 1, STRIDE, STRIDE + 2])
def test_no_start_runs_longer_than_it_may(twenty: Puzzles, max_steps: int) -> None:
    puzzles, solutions = twenty
    network = KnowsTheAnswer(puzzles[:1], solutions[:1], max_steps + 1)
    found = solve(puzzles[:1], network=network, max_steps=max_steps, restarts=0)
    assert not found.valid[0]
    assert found.steps[0] == max_steps == network.steps_run
    assert solve(puzzles[:1], network=network, max_steps=max_steps + 1, restarts=0).valid[0]


def test_a_filled_grid_is_a_solution_only_if_rules_and_givens_hold(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    broken = solutions.copy()
    empty = np.flatnonzero(puzzles[0] == 0)[:2]
    broken[0, empty] = broken[0, empty][::-1]
    broken[0, empty[0]] = broken[0, empty[1]]
    other_givens = solutions % 9 + 1
    for answers in (broken[:1], other_givens[:1]):
        found = solve(puzzles[:1], network=KnowsTheAnswer(puzzles[:1], answers, 2), max_steps=6, restarts=2)
        assert not found.valid[0]
        assert found.starts[0] == 3
        np.testing.assert_array_equal(found.grids, answers)
    assert is_solved(other_givens).all()


def test_restarts_are_noisy_and_counted(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    deaf_without_noise = KnowsTheAnswer(puzzles, solutions, 3, heard=lambda shakes: shakes > 0)
    assert not solve(puzzles, network=deaf_without_noise, max_steps=8, restarts=0).valid.any()
    found = solve(puzzles, network=deaf_without_noise, max_steps=8, restarts=4)
    assert found.valid.all()
    assert (found.starts == 2).all()
    assert (found.steps == 3).all()
    assert (found.first_grids == 1).all()
    easy = np.arange(20) % 2 == 0
    ready = np.where(easy, 2, 99)
    found = solve(puzzles, network=KnowsTheAnswer(puzzles, solutions, ready), max_steps=8, restarts=3)
    np.testing.assert_array_equal(found.valid, easy)
    np.testing.assert_array_equal(found.starts, np.where(easy, 1, 4))


def test_noise_comes_in_doses_in_the_first_half_of_a_start(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    max_steps = 4 * NOISE_EVERY
    for doses, enough in ((2, True), (3, False)):
        network = KnowsTheAnswer(puzzles[:1], solutions[:1], 1, heard=lambda shakes, doses=doses: shakes >= doses)
        found = solve(puzzles[:1], network=network, max_steps=max_steps, restarts=1, noise=1.0)
        assert found.valid[0] == enough


def test_the_trace_is_of_the_start_that_counts(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    ready = np.where(np.arange(20) < 18, 3, 99)
    network = KnowsTheAnswer(puzzles, solutions, ready, heard=lambda shakes: shakes > 0)
    found = solve(puzzles, network=network, max_steps=7, restarts=2, trace=True)
    assert found.probabilities is not None
    assert found.probabilities.shape == (7, 20, 81, 9)
    np.testing.assert_allclose(found.probabilities.sum(-1), 1, rtol=1e-5)
    said = found.probabilities.argmax(-1) + 1
    assert found.valid[:18].all()
    assert (said[:2] == 1).all()
    assert (said[2:, :18] == solutions[:18]).all()
    assert (said[:, 18:] == 1).all()
    for row in range(20):
        np.testing.assert_array_equal(said[found.steps[row] - 1, row], found.grids[row])


def test_one_at_a_time_is_all_at_once(twenty: Puzzles) -> None:
    puzzles, _ = twenty
    torch.manual_seed(3)
    trained = {"weights": "sudoku", "max_steps": 24, "restarts": 0, "trace": True}
    together = solve(puzzles, **trained)
    assert together.valid.any()
    for row in range(0, 20, 3):
        alone = solve(puzzles[row], **trained)
        assert (alone.valid[0], alone.steps[0]) == (together.valid[row], together.steps[row])
        np.testing.assert_array_equal(alone.grids[0], together.grids[row])
        np.testing.assert_allclose(alone.probabilities[:, 0], together.probabilities[:, row], atol=0.01)


def test_shipped_weights_solve_and_what_they_solve_is_solved(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    found = rrn.tasks.sudoku.solve([grid_to_line(puzzle) for puzzle in puzzles], max_steps=48, restarts=1)
    assert found.valid.mean() > 0.5
    np.testing.assert_array_equal(found.valid, solves(found.grids, puzzles))
    np.testing.assert_array_equal(found.grids[found.valid], solutions[found.valid])
    assert ((found.confidence > 0) & (found.confidence <= 1)).all()
    assert (found.steps <= 48).all()


def test_the_same_seed_solves_the_same(twenty: Puzzles) -> None:
    torch.manual_seed(5)
    network = CandidateSudoku(CandidatesPreset(name="tiny", about="", hidden=8, message_width=4, layer_width=30)).eval()
    one, two, three = (
        solve(twenty[0][:3], network=network, max_steps=4, restarts=2, noise=1.0, seed=seed, trace=True)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.grids, two.grids)
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    assert (three.starts == 3).all()


def test_answers_by_step_do_not_stop(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    answers = answers_by_step(KnowsTheAnswer(puzzles[:3], solutions[:3], 2), puzzles[:3], 5)
    assert answers.shape == (5, 3, 81)
    assert (answers[0] == 1).all()
    assert (answers[1:] == solutions[:3]).all()


def test_progress_ends_with_everything_done(twenty: Puzzles) -> None:
    puzzles, solutions = twenty
    told: list[tuple[int, int]] = []
    network = KnowsTheAnswer(puzzles, solutions, np.arange(1, 21))
    solve(puzzles, network=network, max_steps=30, progress=lambda done, of: told.append((done, of)))
    done = [at for at, _ in told]
    assert done == sorted(done)
    assert told[-1] == (20, 20)


@pytest.mark.parametrize(
    ("puzzles", "options", "message"),
    [
        ("." * 81, {"max_steps": 0}, "max_steps: expected at least 1, got 0"),
        ("." * 81, {"restarts": -1}, "restarts: expected 0 or more, got -1"),
        ("." * 80, {}, "80 cells where a puzzle has 81"),
        (["." * 81, "q" * 81], {}, "puzzle 2:1: 'q' in place 1 is neither a digit nor an empty cell"),
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


def test_the_default_number_of_restarts_is_that_of_the_command_line(call: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = call("solve", "--help")
    assert f"Unset: {RESTARTS}." in out


def add_until_nothing_fits(puzzle: np.ndarray) -> None:
    """Givens that clash with no other, as long as there are any."""
    for cell in np.flatnonzero(puzzle == 0):
        for digit in range(1, 10):
            puzzle[cell] = digit
            if not clashes(puzzle[None]).any():
                break
            puzzle[cell] = 0


@pytest.mark.skipif(not COMPILED, reason="numba is not installed")
@pytest.mark.parametrize("max_steps", [5, 40])
def test_the_compiled_engine_solves_what_the_plain_one_solves(max_steps: int) -> None:
    """On puzzles easy enough that some are solved, and some that have no solution."""
    network = from_pretrained("sudoku")
    puzzles, _ = generate(30, np.random.default_rng(5), (0, 12))
    for row in (3, 4):
        add_until_nothing_fits(puzzles[row])
    ours = solve(puzzles, network=network, max_steps=max_steps, restarts=0)
    with engines.only("plain"):
        theirs = solve(puzzles, network=network, max_steps=max_steps, restarts=0)
    assert 0 < ours.valid.sum() < 30
    for name in ("grids", "valid", "steps", "starts", "first_grids"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    np.testing.assert_allclose(ours.confidence, theirs.confidence, atol=1e-4)


@pytest.mark.parametrize("box", [(1, 7), (3, 2)])
def test_boxes_that_the_number_of_cells_does_not_tell(box: tuple[int, int]) -> None:
    """A Latin square of 7, and a grid of 36 cells whose boxes stand upright."""
    puzzles, solutions = generate(3, np.random.default_rng(0), 6, box=box)
    found = solve(puzzles, box=box)
    assert found.valid.all()
    np.testing.assert_array_equal(found.grids, solutions)


def test_a_network_that_knows_nothing_solves_by_guesses_what_elimination_leaves_easy() -> None:
    torch.manual_seed(0)
    puzzles, solutions = generate(12, np.random.default_rng(5), 25)
    network = CandidateSudoku(
        CandidatesPreset(name="", about="", hidden=8, message_width=4, layer_width=30, contradiction_share=0.5)
    )
    without = solve(puzzles, network=network, max_steps=256, restarts=0, guess=False)
    found = solve(puzzles, network=network, max_steps=256, restarts=1)
    assert not without.valid.any()
    assert found.valid.sum() > 6
    assert (found.grids[found.valid] == solutions[found.valid]).all()
    assert (found.steps[found.valid] > FIRST_GUESS).all()
    again = solve(puzzles, network=network, max_steps=256, restarts=1)
    assert (found.grids == again.grids).all()
    traced = solve(puzzles[:2], network=network, max_steps=64, restarts=0, trace=True)
    assert traced.probabilities is not None
    assert traced.probabilities.shape == (64, 2, 81, 9)


def test_guesses_work_on_other_sizes() -> None:
    torch.manual_seed(0)
    box = (2, 2)
    puzzles, _ = generate(4, np.random.default_rng(5), 2, box=box)
    network = CandidateSudoku(
        CandidatesPreset(name="", about="", hidden=8, message_width=4, layer_width=30, contradiction_share=0.5)
    )
    assert solve(puzzles, network=network, box=box, max_steps=128, restarts=0).valid.all()
