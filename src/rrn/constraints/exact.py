"""Exact search: counts solutions, proves that there is none or only one, and makes problems.

It enumerates choices of candidates with as many in every group as are allowed. It stops after a limit of
placements, because some problems are too large for any exact search.
"""

import numpy as np

from rrn._compat import compiled
from rrn.errors import InputError
from rrn.inference.result import Status
from rrn.inference.rules import CandidateLayout

MOST_PLACEMENTS = 20_000
UNKNOWN = -1


def search(
    layout: CandidateLayout,
    given: np.ndarray,
    excluded: np.ndarray | None = None,
    *,
    rank: np.ndarray | None = None,
    limit: int = 2,
    most_placements: int = MOST_PLACEMENTS,
) -> tuple[np.ndarray, int]:
    """The first solution, as bool (candidates,), and how many there are, counted up to ``limit``; UNKNOWN if the search
    reached its limit. Candidates are tried in the order of ``rank``, by default in their own."""
    count = len(layout.groups)
    solution = np.zeros(count, np.bool_)
    rank = np.arange(count) if rank is None else rank
    excluded = np.zeros(0, np.int64) if excluded is None else excluded
    found = _search(given, excluded, rank, *layout.arrays, limit, most_placements, solution)
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
    layout: CandidateLayout,
    rng: np.random.Generator,
    excluded: np.ndarray | None = None,
    most_placements: int = MOST_PLACEMENTS,
) -> np.ndarray:
    """The candidates that are true in a random answer, in their order."""
    nothing = np.zeros(0, np.int64)
    for _ in range(100):
        rank = rng.permutation(len(layout.groups))
        true, count = search(layout, nothing, excluded, rank=rank, limit=1, most_placements=most_placements)
        if count == 0:
            raise InputError("these constraints have no solution, proved by exact search")
        if count != UNKNOWN:
            return np.flatnonzero(true)
    raise InputError("no random answer was found within the limit; give an answer, or raise most_placements")


def dig(
    layout: CandidateLayout,
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
        if search(layout, fewer, excluded, most_placements=most_placements)[1] == 1:
            given = fewer
    return given, order[~np.isin(order, given)]


@compiled
def _block(candidate: int, groups: np.ndarray, blocked: np.ndarray, left: np.ndarray, sign: int) -> None:
    """Count one more (sign 1) or one less (sign -1) reason why a candidate cannot be chosen."""
    if sign < 0:
        blocked[candidate] -= 1
    if blocked[candidate] == 0:
        for column in range(groups.shape[1]):
            group = groups[candidate, column]
            if group >= 0:
                left[group] -= sign
    if sign > 0:
        blocked[candidate] += 1


@compiled
def _place(
    candidate: int,
    groups: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    upper: np.ndarray,
    blocked: np.ndarray,
    left: np.ndarray,
    placed: np.ndarray,
    sign: int,
) -> None:
    """Place a candidate (sign 1) or remove the last one placed (sign -1).

    ``blocked`` counts the reasons against a candidate; of each group, ``left`` the candidates without any, ``placed``
    the candidates placed.
    """
    _block(candidate, groups, blocked, left, sign)
    for column in range(groups.shape[1]):
        group = groups[candidate, column]
        if group < 0:
            continue
        if placed[group] + max(sign, 0) == upper[group]:
            for index in range(starts[group], starts[group + 1]):
                _block(members[index], groups, blocked, left, sign)
        placed[group] += sign


@compiled
def _search(
    given: np.ndarray,
    excluded: np.ndarray,
    rank: np.ndarray,
    groups: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    limit: int,
    most_placements: int,
    solution: np.ndarray,
) -> int:
    """The group with the fewest candidates to spare is next: its candidates are tried by rank.

    A candidate that was tried is false in the tries after it. When no group needs a candidate, the placed ones are a
    solution, and all candidates left are tried in addition.
    """
    count, total = groups.shape[0], lower.shape[0]
    blocked, left, placed = np.zeros(count, np.int64), starts[1:] - starts[:-1], np.zeros(total, np.int64)
    for candidate in excluded:
        _block(candidate, groups, blocked, left, 1)
    for group in range(total):
        if upper[group] == 0:
            for index in range(starts[group], starts[group + 1]):
                _block(members[index], groups, blocked, left, 1)
    for candidate in given:
        if blocked[candidate] > 0:
            return 0
        _place(candidate, groups, starts, members, upper, blocked, left, placed, 1)
    chosen, group_at = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    tried, tried_at = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    depth, found, placements, tries = 0, 0, 0, 0
    descending = True
    while True:
        if descending:
            best, fewest = total, count + 1
            for group in range(total):
                spare = left[group] - (lower[group] - placed[group])
                if placed[group] < lower[group] and spare < fewest:
                    best, fewest = group, spare
                    if fewest <= 0:
                        break
            if best == total:
                if found == 0:
                    for candidate in given:
                        solution[candidate] = True
                    for d in range(depth):
                        solution[chosen[d]] = True
                found += 1
                if found >= limit:
                    return found
            group_at[depth], tried_at[depth] = best, tries
            chosen[depth] = -1
        else:
            _place(chosen[depth], groups, starts, members, upper, blocked, left, placed, -1)
            _block(chosen[depth], groups, blocked, left, 1)
            tried[tries] = chosen[depth]
            tries += 1
        group, following, lowest = group_at[depth], -1, count
        if group == total:
            for other in range(count):
                if blocked[other] == 0 and rank[other] < lowest:
                    following, lowest = other, rank[other]
        elif left[group] >= lower[group] - placed[group]:
            for index in range(starts[group], starts[group + 1]):
                other = members[index]
                if blocked[other] == 0 and rank[other] < lowest:
                    following, lowest = other, rank[other]
        if following >= 0:
            chosen[depth] = following
            placements += 1
            if placements > most_placements:
                return UNKNOWN
            _place(following, groups, starts, members, upper, blocked, left, placed, 1)
            depth += 1
            descending = True
            continue
        while tries > tried_at[depth]:
            tries -= 1
            _block(tried[tries], groups, blocked, left, -1)
        depth -= 1
        descending = False
        if depth < 0:
            return found
