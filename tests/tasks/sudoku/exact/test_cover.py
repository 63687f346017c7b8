"""Sudokus of other sizes, checked against the usual ones and against brute force."""

import hashlib
from itertools import product

import numpy as np
import pytest

from rrn import InputError
from rrn.constraints.exact import MOST_PLACEMENTS
from rrn.tasks.sudoku.exact import UNKNOWN, count_solutions, cover, generate, solve_exactly
from rrn.tasks.sudoku.grid import is_solved, solves

BOXES = [(2, 2), (2, 3), (3, 2), (3, 3)]


def lines_and_boxes(box: tuple[int, int]) -> list[list[int]]:
    high, wide = box
    n = high * wide
    rows = [[n * r + c for c in range(n)] for r in range(n)]
    columns = [[n * r + c for r in range(n)] for c in range(n)]
    corners = product(range(0, n, high), range(0, n, wide))
    boxes = [[n * (r + i) + c + j for i in range(high) for j in range(wide)] for r, c in corners]
    return rows + columns + boxes


@pytest.mark.parametrize("box", BOXES)
def test_puzzles_have_one_solution_and_no_clue_to_spare(box: tuple[int, int]) -> None:
    puzzles, solutions = cover.generate(2, box, np.random.default_rng(0))
    n = box[0] * box[1]
    found, counts = solve_exactly(puzzles, box=box)
    np.testing.assert_array_equal(found, solutions)
    assert counts.tolist() == [1, 1]
    for puzzle, solution in zip(puzzles, solutions, strict=True):
        assert all(sorted(solution[unit]) == list(range(1, n + 1)) for unit in lines_and_boxes(box))
        assert ((puzzle == 0) | (puzzle == solution)).all()
        clues = np.flatnonzero(puzzle)[:5]
        spared = np.tile(puzzle, (len(clues), 1))
        spared[np.arange(len(clues)), clues] = 0
        assert (count_solutions(spared, box=box) == 2).all()


def test_the_usual_size_agrees_with_the_bit_masks() -> None:
    puzzles, solutions = cover.generate(2, (3, 3), np.random.default_rng(1))
    assert is_solved(solutions).all()
    assert solves(solutions, puzzles).all()
    for puzzle, solution in zip(*generate(5, np.random.default_rng(0)), strict=True):
        found, count = cover.solve(puzzle, (3, 3), 2, MOST_PLACEMENTS)
        assert count == 1
        np.testing.assert_array_equal(found, solution)


def test_counting_by_hand() -> None:
    assert count_solutions(np.zeros(16, np.uint8), 1000, box=(2, 2)).tolist() == [288]
    clash = np.zeros(16, np.uint8)
    clash[[0, 1]] = 3
    assert count_solutions(clash, box=(2, 2)).tolist() == [0]
    assert count_solutions(np.zeros(256, np.uint8), box=(4, 4), most_tries=10).tolist() == [UNKNOWN]


def test_extra_givens_come_back_and_seeds_decide() -> None:
    few, solutions = generate(3, np.random.default_rng(5), box=(2, 2))
    more, _ = generate(1, np.random.default_rng(5), 4, box=(2, 2))
    assert (more > 0).sum() == (few[0] > 0).sum() + 4
    again = generate(3, np.random.default_rng(5), box=(2, 2))
    np.testing.assert_array_equal(again, (few, solutions))
    drawn, its_solutions = generate(30, np.random.default_rng(5), (0, 9), box=(2, 2))
    assert (count_solutions(drawn, box=(2, 2)) == 1).all()
    assert ((drawn == 0) | (drawn == its_solutions)).all()
    givens = (drawn > 0).sum(1)
    assert givens.min() < 8 < 11 < givens.max()


def test_the_same_seed_gives_the_bytes_it_always_gave() -> None:
    made = b"".join(part.tobytes() for part in generate(10, np.random.default_rng(3), 3, box=(2, 3)))
    assert hashlib.sha256(made).hexdigest()[:16] == "103035ea51bf1442"


def test_a_box_without_cells_is_refused() -> None:
    with pytest.raises(InputError, match=r"box \(0, 3\): expected rows and columns"):
        generate(1, np.random.default_rng(0), box=(0, 3))
