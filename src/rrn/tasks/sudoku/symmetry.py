"""Symmetries of Sudoku: random ones for augmentation, and a fingerprint that is invariant under all of them."""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from rrn.tasks.sudoku.exact.integers import mix
from rrn.tasks.sudoku.grid import as_grids


class Symmetries(NamedTuple):
    """One symmetry for each of n grids: the source of each cell (n, 81) and the new digit of each digit (n, 10)."""

    cells: np.ndarray
    digits: np.ndarray

    def apply(self, grids: Any) -> np.ndarray:
        moved = np.take_along_axis(as_grids(grids), self.cells, axis=1)
        return np.take_along_axis(self.digits, moved.astype(np.intp), axis=1)


def draw_symmetries(count: int, rng: np.random.Generator) -> Symmetries:
    """Symmetries drawn uniformly from all 9! x 2 x (3!)^8.

    They permute digits, rows within their band, bands, columns within their stack and stacks, and may transpose.
    """
    rows, columns = _draw_lines(count, rng), _draw_lines(count, rng)
    transposed = rng.random(count) < 0.5
    cells = rows[:, :, None] * 9 + columns[:, None, :]
    cells[transposed] = cells[transposed].transpose(0, 2, 1)
    return Symmetries(cells.reshape(count, 81), _draw_digits(count, rng))


def draw_relabellings(count: int, rng: np.random.Generator) -> Symmetries:
    """Permutations of the digits only."""
    return Symmetries(np.tile(np.arange(81), (count, 1)), _draw_digits(count, rng))


def random_symmetry(puzzles: Any, solutions: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Puzzles and solutions (n, 81), each pair under another random symmetry."""
    puzzles = as_grids(puzzles)
    symmetries = draw_symmetries(len(puzzles), rng)
    return symmetries.apply(puzzles), symmetries.apply(solutions)


def _draw_lines(count: int, rng: np.random.Generator) -> np.ndarray:
    bands, lines = np.argsort(rng.random((count, 3))), np.argsort(rng.random((count, 3, 3)))
    return (bands[:, :, None] * 3 + lines).reshape(count, 9)


def _draw_digits(count: int, rng: np.random.Generator) -> np.ndarray:
    digits = np.zeros((count, 10), dtype=np.uint8)
    digits[:, 1:] = np.argsort(rng.random((count, 9))) + 1
    return digits


_PAIRS = np.array(list(combinations(range(9), 2)))
_SAME_BAND = _PAIRS[:, 0] // 3 == _PAIRS[:, 1] // 3


def fingerprints(solutions: Any) -> np.ndarray:
    """A number for each solved grid (n, 81) that no symmetry changes: uint64 (n,).

    Two lines of a grid define a permutation of the digits. Its cycle lengths do not depend on the labels. Those of all
    pairs of rows and of columns, grouped by band, are hashed independently of the order of lines and bands and of
    transposition. Different numbers prove unrelated grids; equal numbers are almost certainly related ones.
    """
    solutions = as_grids(solutions)
    found = np.empty(len(solutions), dtype=np.uint64)
    for start in range(0, len(solutions), 2048):
        grids = solutions[start : start + 2048].reshape(-1, 9, 9).astype(np.intp) - 1
        found[start : start + 2048] = mix(mix(_lines_hash(grids)) + mix(_lines_hash(grids.transpose(0, 2, 1))))
    return found


def _lines_hash(grids: np.ndarray) -> np.ndarray:
    """A hash (n,) of the rows of grids (n, 9, 9) of digits from 0."""
    count = len(grids)
    columns = np.argsort(grids, axis=2)
    step = np.take_along_axis(grids[:, _PAIRS[:, 1]], columns[:, _PAIRS[:, 0]], axis=2)
    fixed_points = np.zeros((count, len(_PAIRS)), dtype=np.uint64)
    power = step
    for _ in range(2, 9):
        power = np.take_along_axis(step, power, axis=2)
        fixed_points = fixed_points * np.uint64(10) + (power == np.arange(9)).sum(axis=2).astype(np.uint64)
    pair_hash = mix(fixed_points * np.uint64(2) + _SAME_BAND.astype(np.uint64))
    lines = np.zeros((count, 9), dtype=np.uint64)
    for _ in range(2):
        seen = np.zeros_like(lines)
        for pair, (one, other) in enumerate(_PAIRS):
            seen[:, one] += mix(pair_hash[:, pair] + lines[:, other])
            seen[:, other] += mix(pair_hash[:, pair] + lines[:, one])
        lines = mix(seen + lines)
    return mix(lines.reshape(count, 3, 3).sum(axis=2, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
