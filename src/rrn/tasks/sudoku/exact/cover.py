"""Sudoku of any box as exact cover: slower than bit masks, but for every size.

Each of n³ candidates (row, column, digit) belongs to 4 of 4 · n² groups of n candidates; a solution is a choice of
candidates with exactly one in every group. Larger grids can be beyond any search, so one is given up after so many
placements.
"""

from functools import cache

import numpy as np

from rrn.compiled import compiled
from rrn.tasks.sudoku.grid import Box, candidate_groups, size_of

MOST_PLACEMENTS = 20_000
UNKNOWN = -1


@cache
def _cover(box: Box) -> tuple[np.ndarray, np.ndarray]:
    """The groups of each candidate (n³, 4), and the candidates of each group (4 · n², n)."""
    n = size_of(box)
    member_of, counts = candidate_groups(box)
    groups = member_of[:, :4] + np.cumsum([0, *counts[:3]])
    order = np.argsort(groups, axis=0, kind="stable")
    return groups, order.T.reshape(4 * n * n, n)


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
    most_placements: int,
    solution: np.ndarray,
) -> int:
    """Count solutions up to ``limit``, the first into ``solution``; UNKNOWN when ``most_placements`` did not suffice.

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
    depth, found, placements = 0, 0, 0
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
                placements += 1
                if placements > most_placements:
                    return UNKNOWN
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


def solve(grid: np.ndarray, box: Box, limit: int, most_placements: int) -> tuple[np.ndarray, int]:
    """The first solution of a grid (n²,), zeros if there is none, and how many there are, counted up to ``limit``;
    UNKNOWN if the search was given up."""
    groups, members = _cover(box)
    cells = np.flatnonzero(grid)
    givens = cells * size_of(box) + grid[cells].astype(np.int64) - 1
    solution = np.zeros(len(grid), np.uint8)
    return solution, int(_search(givens, np.arange(len(groups)), groups, members, limit, most_placements, solution))


def generate(
    count: int, box: Box, rng: np.random.Generator, extra_givens: tuple[int, int] = (0, 0)
) -> tuple[np.ndarray, np.ndarray]:
    """Puzzles and solutions, uint8 (count, n²) each, with a number of extra givens from the first to the second.

    Cells of a random grid are emptied in random order wherever the solution is proved to stay the only one.
    """
    cells, (fewest, most) = size_of(box) ** 2, extra_givens
    puzzles, solutions = np.zeros((count, cells), np.uint8), np.zeros((count, cells), np.uint8)
    for puzzle, solution in zip(puzzles, solutions, strict=True):
        solution[:] = _filled(box, rng)
        puzzle[:] = solution
        order = rng.permutation(cells)
        for cell in order:
            puzzle[cell] = 0
            if solve(puzzle, box, 2, MOST_PLACEMENTS)[1] != 1:
                puzzle[cell] = solution[cell]
        extra = fewest if fewest == most else int(rng.integers(fewest, most + 1))
        back = [cell for cell in order if not puzzle[cell]][:extra]
        puzzle[back] = solution[back]
    return puzzles, solutions


def _filled(box: Box, rng: np.random.Generator) -> np.ndarray:
    groups, members = _cover(box)
    while True:
        rank, grid = rng.permutation(len(groups)), np.zeros(size_of(box) ** 2, np.uint8)
        if _search(np.zeros(0, np.int64), rank, groups, members, 1, MOST_PLACEMENTS, grid) == 1:
            return grid
