"""Sudokus of other sizes, checked against the usual ones and against brute force."""

from itertools import product

import numpy as np
import pytest

from rrn import InputError
from rrn.pretrained import from_pretrained
from rrn.tasks.sudoku import generator, sizes
from rrn.tasks.sudoku.grid import is_solved, solves

BOXES = [(2, 2), (2, 3), (3, 2), (3, 3)]


def units(box: tuple[int, int]) -> list[list[int]]:
    high, wide = box
    n = high * wide
    rows = [[n * r + c for c in range(n)] for r in range(n)]
    columns = [[n * r + c for r in range(n)] for c in range(n)]
    corners = product(range(0, n, high), range(0, n, wide))
    boxes = [[n * (r + i) + c + j for i in range(high) for j in range(wide)] for r, c in corners]
    return rows + columns + boxes


@pytest.mark.parametrize("box", BOXES)
def test_puzzles_have_one_solution_and_no_clue_to_spare(box: tuple[int, int]) -> None:
    puzzles, solutions = sizes.generate(2, box, np.random.default_rng(0))
    n = box[0] * box[1]
    for puzzle, solution in zip(puzzles, solutions, strict=True):
        assert all(sorted(solution[unit]) == list(range(1, n + 1)) for unit in units(box))
        assert ((puzzle == 0) | (puzzle == solution)).all()
        assert sizes.count_solutions(puzzle, box) == 1
        for cell in np.flatnonzero(puzzle)[:5]:
            spared = puzzle.copy()
            spared[cell] = 0
            assert sizes.count_solutions(spared, box) == 2


def test_the_usual_size_agrees_with_its_own_generator_and_rules() -> None:
    puzzles, solutions = sizes.generate(2, (3, 3), np.random.default_rng(1))
    assert is_solved(solutions).all()
    assert solves(solutions, puzzles).all()
    for puzzle in generator.generate(5, np.random.default_rng(0))[0]:
        assert sizes.count_solutions(puzzle, (3, 3)) == 1


def test_counting_by_hand() -> None:
    assert sizes.count_solutions(np.zeros(16, np.uint8), (2, 2), limit=1000) == 288
    clash = np.zeros(16, np.uint8)
    clash[[0, 1]] = 3
    assert sizes.count_solutions(clash, (2, 2)) == 0
    assert sizes.count_solutions(np.zeros(256, np.uint8), (4, 4), most_nodes=10) == sizes.UNKNOWN


def test_extra_givens_come_back_and_seeds_decide() -> None:
    few, solutions = sizes.generate(3, (2, 2), np.random.default_rng(5))
    more, _ = sizes.generate(1, (2, 2), np.random.default_rng(5), extra_givens=4)
    assert (more > 0).sum() == (few[0] > 0).sum() + 4
    again = sizes.generate(3, (2, 2), np.random.default_rng(5))
    np.testing.assert_array_equal(again, (few, solutions))


def test_a_box_without_cells_is_refused() -> None:
    with pytest.raises(InputError, match=r"box \(0, 3\): expected rows and columns"):
        sizes.generate(1, (0, 3), np.random.default_rng(0))


def test_weights_trained_on_nine_by_nine_solve_four_by_four() -> None:
    network, _ = from_pretrained("sudoku")
    puzzles, solutions = sizes.generate(20, (2, 2), np.random.default_rng(0))
    first, cells = sizes.solved_by_step(network, puzzles, solutions, (2, 2), steps=16)
    assert (first <= 16).mean() > 0.9
    assert first.min() >= 1
    assert 0.9 < cells.mean() <= 1
