"""Exact solver and generator of Sudokus, without a network.

9 × 9 grids are searched with bit masks (`bitboards`, `walks`), other sizes as exact cover (`cover`).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rrn.constraints.exact import MOST_PLACEMENTS
from rrn.errors import InputError
from rrn.tasks.sudoku.exact import bitboards, cover, walks
from rrn.tasks.sudoku.grid import USUAL, Box, as_grids, size_of
from rrn.tasks.sudoku.symmetry import fingerprints, random_symmetry

# Raise it whenever the same seed gives other puzzles than before.
GENERATOR_VERSION = 2
MOST_EXTRA_GIVENS = 50
UNKNOWN = bitboards.UNKNOWN
LEVEL, LEVEL_SPREAD, SAVED_PER_WALK = 1.2, 0.6, 8
"""Walks to hard puzzles: median target as a multiple of the least guesses, standard deviation of its logarithm. Both
walks: most puzzles of one walk."""


def solve_exactly(
    puzzles: Any, limit: int = 2, *, box: Box = USUAL, most_tries: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Solve puzzles (n, 81) by search: solutions uint8 (n, 81) and how many each has, counted up to ``limit``, (n,).

    With the default limit a count of 0 is an impossible puzzle (its solution all zeros), 1 a unique solution, proved,
    and 2 more than one, of which the first found is returned. ``limit=1`` proves nothing but that one exists.

    After ``most_tries`` guesses the search ends with the count `UNKNOWN`. For boxes other than 3 × 3 these are
    placements, at most 20,000 by default, because large grids can be intractable.
    """
    if box == USUAL:
        return _search(puzzles, limit, most_tries)[:2]
    grids = as_grids(puzzles, box)
    most = MOST_PLACEMENTS if most_tries is None else most_tries
    found = [cover.solve(grid, box, limit, most) for grid in grids]
    return np.array([grid for grid, _ in found]).reshape(grids.shape), np.array([count for _, count in found], np.int64)


def count_solutions(puzzles: Any, limit: int = 2, *, box: Box = USUAL, most_tries: int | None = None) -> np.ndarray:
    """The number of solutions of each puzzle as `solve_exactly` counts them: (n,)."""
    return solve_exactly(puzzles, limit, box=box, most_tries=most_tries)[1]


def count_guesses(puzzles: Any) -> np.ndarray:
    """The guesses that the search needs to find the solution of each puzzle (n, 81) and prove it unique: (n,)."""
    return _search(puzzles, 2, None)[2]


def generate(
    count: int, rng: np.random.Generator, extra_givens: int | tuple[int, int] = 0, *, box: Box = USUAL
) -> tuple[np.ndarray, np.ndarray]:
    """Puzzles and solutions, uint8 (count, 81) each; every puzzle has exactly one solution.

    Puzzles are minimal: no given can be removed (mostly 21 to 28 are left; beyond 9 × 9 a few may be redundant where
    a proof was not finished). Then ``extra_givens`` digits of the solution are added; for a pair, a number drawn
    uniformly from it. The same state of ``rng`` gives the same bytes, with and without numba.
    """
    fewest, most = extra_givens if isinstance(extra_givens, tuple) else (extra_givens, extra_givens)
    limit = MOST_EXTRA_GIVENS if box == USUAL else size_of(box) ** 2
    if not 0 <= fewest <= most <= limit:
        raise InputError(f"extra givens {extra_givens}: must be from 0 to {limit}, the smaller first")
    if box != USUAL:
        return cover.generate(count, box, rng, (fewest, most))
    seeds = rng.integers(1, 1 << 32, size=(count, 4), dtype=np.int64)
    puzzles, solutions = np.zeros((2, count, 81), dtype=np.uint8)
    bitboards.generate_all(seeds, fewest, most, puzzles, solutions)
    return random_symmetry(puzzles, solutions, rng)


def generate_hard(
    count: int,
    rng: np.random.Generator,
    least_guesses: int = 20,
    avoid: np.ndarray | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimal puzzles that need at least ``least_guesses`` (`count_guesses`), and mostly far more.

    Returns puzzles and solutions, uint8 (count, 81) each, and their guesses (count,). `walks.walk_to_hard`
    finds them. No two solutions are related by a symmetry, and none to a solution with a fingerprint in ``avoid``.
    ``progress`` is called with the number of puzzles made so far.

    Without numba this takes hundreds of times as long and gives the same bytes.
    """
    if least_guesses < 1:
        raise InputError(f"least_guesses: expected at least 1, got {least_guesses}; generate() makes easier puzzles")
    taken = set() if avoid is None else set(avoid.tolist())
    (hard, solved), needed, number = np.zeros((2, count, 81), dtype=np.uint8), np.zeros(count, dtype=np.int64), 0
    while number < count:
        level = max(least_guesses, round(least_guesses * LEVEL * math.exp(LEVEL_SPREAD * rng.standard_normal())))
        puzzles, solutions = np.zeros((2, SAVED_PER_WALK, 81), dtype=np.uint8)
        saved = walks.walk_to_hard(rng.integers(1, 1 << 32, size=4, dtype=np.int64), level, puzzles, solutions)
        puzzles, solutions = random_symmetry(puzzles[:saved], solutions[:saved], rng)
        for row, guesses in enumerate(count_guesses(puzzles)):
            grid = int(fingerprints(solutions[row])[0])
            if number < count and guesses >= least_guesses and grid not in taken:
                hard[number], solved[number], needed[number] = puzzles[row], solutions[row], guesses
                taken.add(grid)
                number += 1
        progress(number)
    return hard, solved, needed


def generate_few_givens(
    count: int, rng: np.random.Generator, progress: Callable[[int], None] = lambda _: None
) -> tuple[np.ndarray, np.ndarray]:
    """Minimal puzzles with few givens, some 20 where `generate` leaves 24, and their solutions, uint8 (count, 81) each.

    `walks.walk_to_few_givens` finds them; the eight puzzles of one walk are related. About a hundred per second and
    core; without numba hundreds of times slower, with the same bytes. ``progress`` is called with the number so far.
    """
    number = -(-count // SAVED_PER_WALK)
    puzzles, solutions = np.zeros((2, number, SAVED_PER_WALK, 81), dtype=np.uint8)
    for walk, seed in enumerate(rng.integers(1, 1 << 32, size=(number, 4), dtype=np.int64)):
        walks.walk_to_few_givens(seed, puzzles[walk], solutions[walk])
        progress(min(count, (walk + 1) * SAVED_PER_WALK))
    order = rng.permutation(number * SAVED_PER_WALK)[:count]
    return random_symmetry(puzzles.reshape(-1, 81)[order], solutions.reshape(-1, 81)[order], rng)


def _search(puzzles: Any, limit: int, most_guesses: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    puzzles = as_grids(puzzles)
    solutions = np.zeros_like(puzzles)
    counts, guesses = np.zeros((2, len(puzzles)), dtype=np.int64)
    most = bitboards.UNLIMITED if most_guesses is None else most_guesses
    bitboards.solve_all(puzzles, limit, most, solutions, counts, guesses)
    return solutions, counts, guesses
