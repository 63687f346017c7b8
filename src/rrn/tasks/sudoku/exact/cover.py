"""Sudoku with boxes of any size as exact cover: slower than bit masks.

Each of n³ candidates (row, column, digit) belongs to 4 of 4 · n² groups of n candidates; a solution is a choice of
candidates with exactly one in every group. Large grids can be intractable, so the number of
placements is limited.
"""

from functools import cache

import numpy as np

from rrn.constraints.exact import dig, random_answer, search
from rrn.inference.rules import CandidateLayout
from rrn.tasks.sudoku.grid import Box, candidate_groups, size_of


@cache
def _layout(box: Box) -> CandidateLayout:
    member_of, counts = candidate_groups(box)
    one = np.ones(4 * size_of(box) ** 2, np.int64)
    return CandidateLayout(member_of[:, :4] + np.cumsum([0, *counts[:3]]), one, one, counts[:4].tolist())


def solve(grid: np.ndarray, box: Box, limit: int, most_placements: int) -> tuple[np.ndarray, int]:
    """The first solution of a grid (n²,), zeros if there is none, and how many there are, counted up to ``limit``;
    UNKNOWN if the search was not finished."""
    cells = np.flatnonzero(grid)
    givens = cells * size_of(box) + grid[cells].astype(np.int64) - 1
    true, count = search(_layout(box), givens, limit=limit, most_placements=most_placements)
    return _as_grid(np.flatnonzero(true), box), count


def _as_grid(candidates: np.ndarray, box: Box) -> np.ndarray:
    grid, n = np.zeros(size_of(box) ** 2, np.uint8), size_of(box)
    grid[candidates // n] = candidates % n + 1
    return grid


def generate(
    count: int, box: Box, rng: np.random.Generator, extra_givens: tuple[int, int] = (0, 0)
) -> tuple[np.ndarray, np.ndarray]:
    """Puzzles and solutions, uint8 (count, n²) each, with a number of extra givens from the first to the second.

    Cells of a random grid are emptied in random order if the solution provably stays unique.
    """
    fewest, most = extra_givens
    puzzles, solutions = np.zeros((2, count, size_of(box) ** 2), np.uint8)
    for puzzle, solution in zip(puzzles, solutions, strict=True):
        answer = random_answer(_layout(box), rng)
        given, emptied = dig(_layout(box), answer, rng)
        extra = fewest if fewest == most else int(rng.integers(fewest, most + 1))
        puzzle[:] = _as_grid(np.concatenate([given, emptied[:extra]]), box)
        solution[:] = _as_grid(answer, box)
    return puzzles, solutions
