"""Exact search: counts solutions, proves that there is none or only one, and makes problems.

It enumerates choices of candidates with exactly one, or at most one, in every group. It stops after a limit of
placements, because some problems are too large for any exact search.
"""

from typing import NamedTuple

import numpy as np

from rrn._compat import compiled
from rrn.errors import InputError
from rrn.inference.result import Status

MOST_PLACEMENTS = 20_000
UNKNOWN = -1


class Cover(NamedTuple):
    """Groups as the search reads them, numbered through over all types.

    Attributes:
        groups: (candidates, types), the groups that each candidate is in.
        starts: (groups + 1,), where the members of each group begin.
        members: (candidates · types,), the candidates of the first group, then of the second …
        needed: (groups,), whether exactly one is true, not at most one.
    """

    groups: np.ndarray
    starts: np.ndarray
    members: np.ndarray
    needed: np.ndarray

    @classmethod
    def of(cls, groups: np.ndarray, needed: np.ndarray) -> "Cover":
        sizes = np.bincount(groups.ravel(), minlength=len(needed))
        members = np.argsort(groups.ravel(), kind="stable") // groups.shape[1]
        return cls(groups, np.concatenate([[0], np.cumsum(sizes)]), members, needed)


def search(
    cover: Cover,
    given: np.ndarray,
    excluded: np.ndarray | None = None,
    *,
    rank: np.ndarray | None = None,
    limit: int = 2,
    most_placements: int = MOST_PLACEMENTS,
) -> tuple[np.ndarray, int]:
    """The first solution, as bool (candidates,), and how many there are, counted up to ``limit``; UNKNOWN if the search
    reached its limit. Candidates are tried in the order of ``rank``, by default in their own."""
    count = len(cover.groups)
    solution = np.zeros(count, np.bool_)
    rank = np.arange(count) if rank is None else rank
    excluded = np.zeros(0, np.int64) if excluded is None else excluded
    found = _search(given, excluded, rank, *cover, limit, most_placements, solution)
    return solution, int(found)


def diagnosis(what: str, count: int) -> tuple[Status, str]:
    """The status and the message for ``what`` was not solved and has so many solutions, as `search` counts them."""
    if count == 0:
        return Status.IMPOSSIBLE, f"{what} has no solution, proved by exact search"
    if count == 1:
        return Status.UNSOLVED, f"{what} has one solution, which the network did not find"
    if count > 1:
        return Status.AMBIGUOUS, f"{what} has several solutions, and the network found none of them"
    return Status.UNSOLVED, f"{what} may have no solution: the exact search reached its limit"


def random_answer(
    cover: Cover, rng: np.random.Generator, excluded: np.ndarray | None = None, most_placements: int = MOST_PLACEMENTS
) -> np.ndarray:
    """The candidates that are true in a random answer, in their order."""
    nothing = np.zeros(0, np.int64)
    for _ in range(100):
        rank = rng.permutation(len(cover.groups))
        true, count = search(cover, nothing, excluded, rank=rank, limit=1, most_placements=most_placements)
        if count == 0:
            raise InputError("these constraints have no solution, proved by exact search")
        if count != UNKNOWN:
            return np.flatnonzero(true)
    raise InputError("no random answer was found within the limit; give an answer, or raise most_placements")


def dig(
    cover: Cover,
    answer: np.ndarray,
    rng: np.random.Generator,
    excluded: np.ndarray | None = None,
    most_placements: int = MOST_PLACEMENTS,
) -> tuple[np.ndarray, np.ndarray]:
    """The candidates of an answer that must be given, and the others, in random order.

    A candidate is removed from the givens if the search proves that the solution stays unique.
    """
    order = rng.permutation(answer)
    given = order
    for candidate in order:
        fewer = given[given != candidate]
        if search(cover, fewer, excluded, most_placements=most_placements)[1] == 1:
            given = fewer
    return given, order[~np.isin(order, given)]


@compiled
def _place(
    candidate: int,
    groups: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    blocked: np.ndarray,
    left: np.ndarray,
    decided: np.ndarray,
    sign: int,
) -> None:
    """Place a candidate (sign 1) or remove the last one placed (sign -1).

    ``blocked`` counts the choices that rule a candidate out, ``left`` the candidates not ruled out in a group.
    """
    for t in range(groups.shape[1]):
        group = groups[candidate, t]
        decided[group] = sign > 0
        for index in range(starts[group], starts[group + 1]):
            other = members[index]
            if sign < 0:
                blocked[other] -= 1
            if blocked[other] == 0:
                for k in range(groups.shape[1]):
                    left[groups[other, k]] -= sign
            if sign > 0:
                blocked[other] += 1


@compiled
def _search(
    given: np.ndarray,
    excluded: np.ndarray,
    rank: np.ndarray,
    groups: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    needed: np.ndarray,
    limit: int,
    most_placements: int,
    solution: np.ndarray,
) -> int:
    """The needed group with the fewest candidates left is decided next."""
    count, types, total = groups.shape[0], groups.shape[1], needed.shape[0]
    blocked, left = np.zeros(count, np.int64), starts[1:] - starts[:-1]
    decided = ~needed
    for candidate in excluded:
        if blocked[candidate] == 0:
            for t in range(types):
                left[groups[candidate, t]] -= 1
        blocked[candidate] += 1
    for candidate in given:
        if blocked[candidate] > 0:
            return 0
        _place(candidate, groups, starts, members, blocked, left, decided, 1)
    chosen, group_at = np.zeros(total + 1, np.int64), np.zeros(total + 1, np.int64)
    depth, found, placements = 0, 0, 0
    descending = True
    while True:
        if descending:
            best, fewest = -1, count + 1
            for group in range(total):
                if needed[group] and not decided[group] and left[group] < fewest:
                    best, fewest = group, left[group]
                    if fewest <= 1:
                        break
            if best < 0:
                if found == 0:
                    for candidate in given:
                        solution[candidate] = True
                    for d in range(depth):
                        solution[chosen[d]] = True
                found += 1
                if found >= limit:
                    return found
            group_at[depth] = best
            chosen[depth] = -1
        group, last = group_at[depth], -1
        if group >= 0:
            if chosen[depth] >= 0:
                last = rank[chosen[depth]]
                _place(chosen[depth], groups, starts, members, blocked, left, decided, -1)
            following, lowest = -1, count
            for index in range(starts[group], starts[group + 1]):
                other = members[index]
                if blocked[other] == 0 and last < rank[other] < lowest:
                    following, lowest = other, rank[other]
            chosen[depth] = following
            if following >= 0:
                placements += 1
                if placements > most_placements:
                    return UNKNOWN
                _place(following, groups, starts, members, blocked, left, decided, 1)
                depth += 1
                descending = True
                continue
        depth -= 1
        descending = False
        if depth < 0:
            return found
