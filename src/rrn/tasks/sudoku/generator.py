"""Puzzles from nothing: random grids, clues removed until minimal, extra givens put back."""

import numpy as np

from rrn.errors import InputError
from rrn.tasks.sudoku import kernels
from rrn.tasks.sudoku.symmetry import random_symmetry

# Raise it whenever the same seed gives other puzzles than before.
GENERATOR_VERSION = 1
MOST_EXTRA_GIVENS = 40


def generate(
    count: int, rng: np.random.Generator, extra_givens: int | tuple[int, int] = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Puzzles and solutions, uint8 (count, 81) each; every puzzle has exactly one solution.

    A puzzle is dug until no clue can be spared (21 to 28 are left, mostly), then gets back ``extra_givens`` of its
    solution's digits: as many as said, or, for a pair, a number drawn uniformly from the first to the last. Then a
    random symmetry. The same state of ``rng`` gives the same bytes, with numba and without.
    """
    fewest, most = extra_givens if isinstance(extra_givens, tuple) else (extra_givens, extra_givens)
    if not 0 <= fewest <= most <= MOST_EXTRA_GIVENS:
        raise InputError(f"extra givens {extra_givens}: must be from 0 to {MOST_EXTRA_GIVENS}, the smaller first")
    seeds = rng.integers(1, 1 << 32, size=(count, 4), dtype=np.int64)
    puzzles = np.zeros((count, 81), dtype=np.uint8)
    solutions = np.zeros((count, 81), dtype=np.uint8)
    kernels.generate_all(seeds, fewest, most, puzzles, solutions)
    return random_symmetry(puzzles, solutions, rng)


def add_givens(
    puzzles: np.ndarray, solutions: np.ndarray, extra: int | np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Puzzles (n, 81) with ``extra`` (one number, or n) more cells of the solution filled in, drawn uniformly."""
    if ((puzzles == 0).sum(axis=1) < extra).any():
        raise InputError(f"a puzzle has fewer empty cells than the {np.max(extra)} extra givens asked for")
    keys = np.where(puzzles == 0, rng.random(puzzles.shape), 2.0)
    rank = np.argsort(np.argsort(keys, axis=1), axis=1)
    return np.where(rank < np.reshape(extra, (-1, 1)), solutions, puzzles)
