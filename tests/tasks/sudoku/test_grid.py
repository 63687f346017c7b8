import numpy as np
import pytest

from rrn.errors import InputError
from rrn.tasks.sudoku.grid import (
    as_grids,
    breaks_a_rule,
    candidate_groups,
    clashes,
    grid_to_line,
    is_solved,
    neighbours,
    places,
    solves,
    units,
)
from rrn.tasks.sudoku.text import cells_of

BOXES = [(3, 3), (2, 3), (3, 2), (1, 4)]


def test_each_cell_has_twenty_neighbours_each_once_and_mutual() -> None:
    assert units().shape == (27, 9)
    assert neighbours().shape == (81, 20)
    assert neighbours()[0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 18, 19, 20, 27, 36, 45, 54, 63, 72]
    adjacent = np.zeros((81, 81), dtype=int)
    np.add.at(adjacent, (np.repeat(np.arange(81), 20), neighbours().ravel()), 1)
    assert adjacent.max() == 1
    assert (adjacent == adjacent.T).all()
    assert not adjacent.diagonal().any()


def test_boxes_that_are_wider_than_high() -> None:
    _, _, box = places((2, 3))
    assert box.reshape(6, 6).tolist() == [[2 * (r // 2) + c // 3 for c in range(6)] for r in range(6)]
    assert units((2, 3))[12:14].tolist() == [[0, 1, 2, 6, 7, 8], [3, 4, 5, 9, 10, 11]]
    assert neighbours((2, 3)).shape == (36, 12)


@pytest.mark.parametrize("box", BOXES)
def test_groups_of_candidates(box: tuple[int, int]) -> None:
    """Two candidates are in one group of a kind exactly if they share what makes the kind."""
    high, wide = box
    n = high * wide
    groups, counts = candidate_groups(box)
    assert groups.shape == (n**3, 6)
    assert [len(np.unique(kind)) for kind in groups.T] == counts.tolist() == (groups.max(0) + 1).tolist()
    row, column, digit = np.unravel_index(np.arange(n**3), (n, n, n))
    band, stack = row // high, column // wide
    kinds = [(row, column), (digit, row), (digit, column), (digit, band, stack), (digit, row, stack)]
    for kind, shared in enumerate([*kinds, (digit, column, band)]):
        alike = np.logical_and.reduce([key[:, None] == key for key in shared])
        np.testing.assert_array_equal(groups[:, kind, None] == groups[:, kind], alike)


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
    bands = "\n---+---+---\n".join(line[start : start + 27] for start in (0, 27, 54))
    assert cells_of(line) == cells_of(bands) == "".join(map(str, puzzle))


@pytest.mark.parametrize("bad", [np.zeros(80, int), np.zeros((2, 81)), np.full((1, 81), 10), np.full((1, 81), -1)])
def test_what_is_not_a_grid_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(InputError):
        as_grids(bad)


def test_grids_of_other_sizes() -> None:
    assert as_grids(np.arange(16) % 5, (2, 2)).shape == (1, 16)
    assert as_grids(np.zeros((3, 6, 6), int), (2, 3)).shape == (3, 36)
    with pytest.raises(InputError, match="digits 1 to 4"):
        as_grids(np.full(16, 5), (2, 2))
