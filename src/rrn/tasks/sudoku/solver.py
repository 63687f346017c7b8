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
    solutions, counts, _ = _search(puzzles, limit)
    return solutions, counts


def count_solutions(puzzles: Any) -> np.ndarray:
    """The number of solutions of each puzzle, counted up to 2: uint8 (n,)."""
    return _search(puzzles, 2)[1]


def count_guesses(puzzles: Any) -> np.ndarray:
    """How hard puzzles are to search: the guesses it takes this solver to find and prove the solution, (n,)."""
    return _search(puzzles, 2)[2]


def _search(puzzles: Any, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    puzzles = as_grids(puzzles)
    solutions = np.zeros_like(puzzles)
    counts = np.zeros(len(puzzles), dtype=np.uint8)
    guesses = np.zeros(len(puzzles), dtype=np.int64)
    kernels.solve_all(puzzles, limit, solutions, counts, guesses)
    return solutions, counts, guesses
