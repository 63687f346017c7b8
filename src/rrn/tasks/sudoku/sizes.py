"""Sudokus of other sizes: boxes of any shape, puzzles with exactly one solution, and how a network does on them.

A grid of boxes of ``high`` × ``wide`` cells has n = high · wide digits and n² cells, row by row, 0 for an empty one.
(3, 3) is the usual Sudoku, for which `rrn.tasks.sudoku.generator` is far faster.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rrn.errors import InputError
from rrn.tasks.sudoku.kernels import compiled

if TYPE_CHECKING:
    from torch import nn

KINDS = 4
MOST_NODES = 20_000
"""Placements tried before a search is given up."""
UNKNOWN = -1


@cache
def exact_cover(box: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Sudoku as exact cover: each of n³ candidates (row, column, digit) belongs to 4 of 4·n² groups of n candidates.

    Returns the groups of each candidate (n³, 4) and the candidates of each group (4·n², n). A solution is a choice
    of candidates with exactly one in every group.
    """
    high, wide = box
    if high < 1 or wide < 1 or high * wide < 2:
        raise InputError(f"box {box}: expected rows and columns of a box, such as (2, 3)")
    n = high * wide
    row, column, digit = np.unravel_index(np.arange(n**3), (n, n, n))
    in_box = row // high * (n // wide) + column // wide
    kinds = [n * row + column, n * row + digit, n * column + digit, n * in_box + digit]
    groups = np.stack([kind * n * n + of for kind, of in enumerate(kinds)], axis=1)
    order = np.argsort(groups, axis=0, kind="stable")
    members = np.concatenate([order[:, kind].reshape(n * n, n) for kind in range(KINDS)])
    return groups.astype(np.int64), members.astype(np.int64)


@compiled
def _place(
    candidate: int, groups: np.ndarray, members: np.ndarray, blocked: np.ndarray, left: np.ndarray, sign: int
) -> None:
    """Choose a candidate (sign 1) or take the last choice back (sign -1).

    ``blocked`` counts the choices that rule a candidate out, ``left`` the candidates not ruled out in a group.
    """
    for kind in range(4):
        group = groups[candidate, kind]
        for place in range(members.shape[1]):
            other = members[group, place]
            if sign < 0:
                blocked[other] -= 1
            if blocked[other] == 0:
                for k in range(4):
                    left[groups[other, k]] -= sign
            if sign > 0:
                blocked[other] += 1


@compiled
def _search(
    givens: np.ndarray,
    rank: np.ndarray,
    groups: np.ndarray,
    members: np.ndarray,
    limit: int,
    most_nodes: int,
    solution: np.ndarray,
) -> int:
    """Count solutions up to ``limit``, the first into ``solution``; -1 when ``most_nodes`` did not suffice.

    The group with the fewest candidates left is decided next, its candidates in the order of ``rank``.
    """
    count, n = groups.shape[0], members.shape[1]
    blocked, left = np.zeros(count, np.int64), np.full(members.shape[0], n, np.int64)
    decided = np.zeros(members.shape[0], np.int64)
    for candidate in givens:
        if blocked[candidate] > 0:
            return 0
        _place(candidate, groups, members, blocked, left, 1)
        for kind in range(4):
            decided[groups[candidate, kind]] = 1
    chosen, group_at = np.zeros(n * n + 1, np.int64), np.zeros(n * n + 1, np.int64)
    depth, found, nodes = 0, 0, 0
    descending = True
    while True:
        if descending:
            best, fewest = -1, n + 1
            for group in range(members.shape[0]):
                if decided[group] == 0 and left[group] < fewest:
                    best, fewest = group, left[group]
                    if fewest <= 1:
                        break
            if best < 0:
                if found == 0:
                    for candidate in givens:
                        solution[candidate // n] = candidate % n + 1
                    for d in range(depth):
                        solution[chosen[d] // n] = chosen[d] % n + 1
                found += 1
                if found >= limit:
                    return found
            group_at[depth] = best
            chosen[depth] = -1
        group, last = group_at[depth], -1
        if group >= 0:
            if chosen[depth] >= 0:
                last = rank[chosen[depth]]
                _place(chosen[depth], groups, members, blocked, left, -1)
                for kind in range(4):
                    decided[groups[chosen[depth], kind]] = 0
            following, lowest = -1, count
            for place in range(n):
                other = members[group, place]
                if blocked[other] == 0 and last < rank[other] < lowest:
                    following, lowest = other, rank[other]
            chosen[depth] = following
            if following >= 0:
                nodes += 1
                if nodes > most_nodes:
                    return -1
                _place(following, groups, members, blocked, left, 1)
                for kind in range(4):
                    decided[groups[following, kind]] = 1
                depth += 1
                descending = True
                continue
        depth -= 1
        descending = False
        if depth < 0:
            return found


def _candidates(grid: np.ndarray, size: int) -> np.ndarray:
    cells = np.flatnonzero(grid)
    return cells * size + grid[cells].astype(np.int64) - 1


def count_solutions(grid: np.ndarray, box: tuple[int, int], limit: int = 2, most_nodes: int = MOST_NODES) -> int:
    """How many solutions a grid (n²,) has, counted up to ``limit``; `UNKNOWN` if the search was given up."""
    groups, members = exact_cover(box)
    rank = np.arange(len(groups))
    found = np.zeros(len(grid), np.uint8)
    return int(_search(_candidates(grid, box[0] * box[1]), rank, groups, members, limit, most_nodes, found))


def _filled(box: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    groups, members = exact_cover(box)
    while True:
        rank, grid = rng.permutation(len(groups)), np.zeros((box[0] * box[1]) ** 2, np.uint8)
        if _search(np.zeros(0, np.int64), rank, groups, members, 1, MOST_NODES, grid) == 1:
            return grid


def generate(
    count: int, box: tuple[int, int], rng: np.random.Generator, extra_givens: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Puzzles and solutions, uint8 (count, n²) each; every puzzle has exactly one solution.

    Cells of a random grid are emptied in random order wherever the solution is proved to stay the only one, then
    ``extra_givens`` digits come back. Up to 9 × 9 no clue can be spared; in larger grids a few could, where the
    proof was given up. The same state of ``rng`` gives the same bytes, with numba and without.
    """
    n = box[0] * box[1]
    puzzles, solutions = np.zeros((count, n * n), np.uint8), np.zeros((count, n * n), np.uint8)
    for puzzle, solution in zip(puzzles, solutions, strict=True):
        solution[:] = _filled(box, rng)
        puzzle[:] = solution
        order = rng.permutation(n * n)
        for cell in order:
            puzzle[cell] = 0
            if count_solutions(puzzle, box) != 1:
                puzzle[cell] = solution[cell]
        back = [cell for cell in order if not puzzle[cell]][:extra_givens]
        puzzle[back] = solution[back]
    return puzzles, solutions


def solved_by_step(
    network: "nn.Module", puzzles: np.ndarray, solutions: np.ndarray, box: tuple[int, int], steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The step at which each grid was first right, steps + 1 where it never was; and the share of its empty cells
    that are right after the last step: (puzzles,) each."""
    import torch

    first, cells = np.full(len(puzzles), steps + 1), np.zeros(len(puzzles))
    places = max(1, 16 * 729 // (box[0] * box[1]) ** 3)
    with torch.inference_mode():
        for low in range(0, len(puzzles), places):
            part = slice(low, low + places)
            batch: dict[str, Any] = {"puzzle": torch.from_numpy(puzzles[part]).long()}
            outputs, _ = network(batch, steps=steps, box=box)
            right = outputs.argmax(-1).view(steps, -1, puzzles.shape[1]).numpy() + 1 == solutions[part]
            solved, empty = right.all(-1), puzzles[part] == 0
            first[part] = np.where(solved.any(0), solved.argmax(0) + 1, steps + 1)
            cells[part] = (right[-1] & empty).sum(1) / np.maximum(empty.sum(1), 1)
    return first, cells
