"""An exact solver: solutions, and whether there is more than one. No network in it; data and tests rest on it."""

from typing import Any

import numpy as np

from rrn.tasks.sudoku import kernels
from rrn.tasks.sudoku.grid import as_grids


def solve_exactly(puzzles: Any, limit: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Solve puzzles (n, 81) by search: solutions uint8 (n, 81) and how many each has, counted up to ``limit``, (n,).

    With the default limit a count of 0 is an impossible puzzle (its solution all zeros), 1 a unique solution, proved,
    and 2 more than one, of which the first found is returned. ``limit=1`` proves nothing but that one exists.
    """
    puzzles = as_grids(puzzles)
    solutions = np.zeros_like(puzzles)
    counts = np.zeros(len(puzzles), dtype=np.uint8)
    kernels.solve_all(puzzles, limit, solutions, counts)
    return solutions, counts


def count_solutions(puzzles: Any) -> np.ndarray:
    """The number of solutions of each puzzle, counted up to 2: uint8 (n,)."""
    return solve_exactly(puzzles)[1]
