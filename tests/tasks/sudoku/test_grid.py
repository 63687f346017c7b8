import numpy as np
import pytest

from rrn.errors import InputError
from rrn.tasks.sudoku.grid import (
    PEERS,
    UNITS,
    as_grids,
    breaks_a_rule,
    cells_of,
    clashes,
    grid_to_line,
    grid_to_text,
    is_solved,
    solves,
)


def test_each_cell_has_twenty_peers_each_once_and_mutual() -> None:
    assert UNITS.shape == (27, 9)
    assert PEERS.shape == (81, 20)
    assert sorted(PEERS[0]) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 18, 19, 20, 27, 36, 45, 54, 63, 72]
    adjacent = np.zeros((81, 81), dtype=int)
    np.add.at(adjacent, (np.repeat(np.arange(81), 20), PEERS.ravel()), 1)
    assert adjacent.max() == 1
    assert (adjacent == adjacent.T).all()
    assert not adjacent.diagonal().any()


@pytest.mark.parametrize(("other", "clash"), [(8, True), (72, True), (20, True), (40, False), (10, True), (31, False)])
def test_two_equal_digits_clash_in_row_column_and_box_only(other: int, clash: bool) -> None:
    grid = np.zeros((1, 81), dtype=np.uint8)
    grid[0, [0, other]] = 7
    assert breaks_a_rule(grid).tolist() == [clash]
    assert np.flatnonzero(clashes(grid)[0]).tolist() == ([0, other] if clash else [])


def test_a_swapped_pair_in_a_solution_is_no_solution(some: tuple[np.ndarray, np.ndarray]) -> None:
    puzzles, solutions = some
    assert is_solved(solutions).all()
    assert solves(solutions, puzzles).all()
    wrong = solutions.copy()
    wrong[:, [0, 1]] = wrong[:, [1, 0]]
    assert not is_solved(wrong).any()
    assert (breaks_a_rule(wrong) == clashes(wrong).any(axis=1)).all()
    assert not is_solved(puzzles).any()
    assert not breaks_a_rule(puzzles).any()


def test_a_solved_grid_that_changes_a_given_does_not_solve(some: tuple[np.ndarray, np.ndarray]) -> None:
    puzzles, solutions = some
    assert not solves(np.roll(solutions, 1, axis=0), puzzles).any()


def test_text_forms_hold_the_same_cells(some: tuple[np.ndarray, np.ndarray]) -> None:
    puzzle = some[0][0]
    line = grid_to_line(puzzle)
    assert len(line) == 81
    assert cells_of(line) == cells_of(grid_to_text(puzzle)) == "".join(map(str, puzzle))
    assert len(grid_to_text(puzzle).splitlines()) == 11


@pytest.mark.parametrize("bad", [np.zeros(80, int), np.zeros((2, 81)), np.full((1, 81), 10), np.full((1, 81), -1)])
def test_what_is_not_a_grid_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(InputError):
        as_grids(bad)
