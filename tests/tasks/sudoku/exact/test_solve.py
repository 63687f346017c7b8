from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from pysat.solvers import Cadical153

from rrn._compat import COMPILED
from rrn.tasks.sudoku import exact
from rrn.tasks.sudoku.exact import UNKNOWN, count_guesses, count_solutions, generate, solve_exactly
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.grid import solves, units


class SatOracle:
    """Sudoku as clauses: an opinion that shares no code and no idea with the solver under test."""

    def __init__(self) -> None:
        self.sat = Cadical153()
        digits = range(1, 10)
        for cell in range(81):
            self.sat.add_clause([self.name(cell, digit) for digit in digits])
            for digit in digits:
                for other in range(digit + 1, 10):
                    self.sat.add_clause([-self.name(cell, digit), -self.name(cell, other)])
        for unit in units().tolist():
            for digit in digits:
                for place, cell in enumerate(unit):
                    for other in unit[place + 1 :]:
                        self.sat.add_clause([-self.name(cell, digit), -self.name(other, digit)])
        self.switches = 9 * 81

    @staticmethod
    def name(cell: int, digit: int) -> int:
        return 9 * cell + digit

    def solve(self, puzzle: np.ndarray) -> tuple[list[int] | None, int]:
        givens = [self.name(cell, int(digit)) for cell, digit in enumerate(puzzle) if digit]
        if not self.sat.solve(assumptions=givens):
            return None, 0
        true = [name for name in self.sat.get_model()[: 9 * 81] if name > 0]
        self.switches += 1
        self.sat.add_clause([-name for name in true] + [-self.switches])
        another = self.sat.solve(assumptions=[*givens, self.switches])
        return [(name - 1) % 9 + 1 for name in true], 2 if another else 1


@pytest.fixture(scope="module")
def variants(some: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Puzzles with one solution, with several (a clue less), and with none or one (a digit changed)."""
    rng = np.random.default_rng(0)
    puzzles = some[0]
    fewer, changed = puzzles.copy(), puzzles.copy()
    for row in range(len(puzzles)):
        cell = rng.choice(np.flatnonzero(puzzles[row]))
        fewer[row, cell] = 0
        changed[row, cell] = changed[row, cell] % 9 + 1
    return np.concatenate([puzzles, fewer, changed])


def test_agrees_with_a_sat_solver(variants: np.ndarray) -> None:
    oracle = SatOracle()
    solutions, counts = solve_exactly(variants)
    expected = [oracle.solve(puzzle) for puzzle in variants]
    assert counts.tolist() == [count for _, count in expected]
    assert set(counts.tolist()) == {0, 1, 2}
    for solution, count, (known, _) in zip(solutions, counts, expected, strict=True):
        if count == 1:
            assert solution.tolist() == known
    assert solves(solutions, variants)[counts > 0].all()
    assert not solutions[counts == 0].any()


def test_plain_python_gives_the_same(
    variants: np.ndarray, plain_bitboards: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_numba = solve_exactly(variants)
    monkeypatch.setattr(exact, "bitboards", plain_bitboards)
    without = solve_exactly(variants)
    assert (with_numba[0] == without[0]).all()
    assert (with_numba[1] == without[1]).all()


def test_an_empty_grid_has_solutions() -> None:
    solutions, counts = solve_exactly(np.zeros((2, 81), dtype=np.uint8))
    assert counts.tolist() == [2, 2]
    assert solves(solutions, np.zeros_like(solutions)).all()
    assert solve_exactly(np.zeros(81, dtype=np.uint8), limit=1)[1].tolist() == [1]


@pytest.mark.parametrize("cells", [(0, 8), (0, 72), (0, 20)], ids=["row", "column", "box"])
def test_clashing_givens_have_no_solution(cells: tuple[int, int]) -> None:
    puzzle = np.zeros((1, 81), dtype=np.uint8)
    puzzle[0, list(cells)] = 4
    assert count_solutions(puzzle).tolist() == [0]


def test_a_cell_without_candidates_and_a_digit_without_a_place() -> None:
    no_candidate = np.zeros((9, 9), dtype=np.uint8)
    no_candidate[0, 1:] = [1, 2, 3, 4, 5, 6, 7, 8]
    no_candidate[5, 0] = 9
    no_place = np.zeros((9, 9), dtype=np.uint8)
    no_place[1, 3] = no_place[2, 6] = no_place[3, 1] = no_place[6, 2] = 1
    no_place[0, 0] = 2
    assert count_solutions(np.stack([no_candidate, no_place])).tolist() == [0, 0]


def test_a_full_grid_is_its_own_solution(some: tuple[np.ndarray, np.ndarray]) -> None:
    solutions, counts = solve_exactly(some[1])
    assert (solutions == some[1]).all()
    assert (counts == 1).all()


def test_two_rows_that_can_be_exchanged_make_two_solutions(some: tuple[np.ndarray, np.ndarray]) -> None:
    grid = some[1][:1].reshape(9, 9).copy()
    grid[:2] = 0
    assert count_solutions(grid).tolist() == [2]


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_solutions_are_counted_up_to_the_limit(limit: int) -> None:
    assert solve_exactly(np.zeros(81, dtype=np.uint8), limit)[1].tolist() == [limit]


def test_a_search_can_be_given_up(some: tuple[np.ndarray, np.ndarray]) -> None:
    guesses = count_guesses(some[0])
    hardest = some[0][guesses.argmax()]
    most = int(guesses.max())
    assert most > 1
    assert count_solutions(hardest, most_tries=most).tolist() == [1]
    solutions, counts = solve_exactly(hardest, most_tries=most - 1)
    assert counts.tolist() == [UNKNOWN]
    assert not solutions.any()


def test_guesses_are_counted() -> None:
    """A full grid needs none; of the two solutions without two rows, the first is a guess and so is its proof."""
    full = generate(1, np.random.default_rng(0))[1]
    assert count_guesses(full).tolist() == [0]
    without_rows = full.reshape(9, 9).copy()
    without_rows[:2] = 0
    assert count_guesses(without_rows)[0] > 0


@pytest.mark.parametrize("name", ["royle17", "forum_hardest", "extreme_valid"])
def test_the_hardest_known_puzzles(name: str, shared_puzzles: Path) -> None:
    path = shared_puzzles / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not there: the solver was NOT tried on the hardest puzzles")
    file = read_puzzles(path, limit=2000 if COMPILED else 50)
    solutions, counts = solve_exactly(file.puzzles)
    assert (counts == 1).all()
    assert (solutions == file.solutions).all()
