"""Problems with many solutions for benchmarks.constraints: maps, rosters, seating plans, Latin squares."""

from functools import cache
from itertools import pairwise, product

import numpy as np
from scipy.spatial import Delaunay

from rrn.constraints import Constraints, Problem

COLOURS = 4
DAYS, SHIFTS, NURSES = 7, ("early", "late", "night"), 7


def planar_map(regions: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """The borders of a random map: the Delaunay triangulation of random points."""
    triangles = Delaunay(rng.random((regions, 2))).simplices
    pairs = {tuple(sorted(pair)) for a, b, c in triangles.tolist() for pair in ((a, b), (b, c), (a, c))}
    return sorted(pairs)


def map_colouring(regions: int, rng: np.random.Generator) -> Constraints:
    """Candidates (region, colour). A region has one colour; two regions on a border do not share one."""
    borders = planar_map(regions, rng)
    return Constraints(
        product(range(regions), range(COLOURS)),
        exactly={"region": lambda c: c[0]},
        at_most={"border": [[(a, colour), (b, colour)] for a, b in borders for colour in range(COLOURS)]},
    )


@cache
def roster(order: int | None = None) -> Constraints:
    """Candidates (day, shift, nurse), with rules about rest; in a random order with this seed, or in order."""
    early, _, night = SHIFTS
    nurses, days = range(NURSES), range(DAYS)
    candidates = list(product(days, SHIFTS, nurses))
    if order is not None:
        candidates = [candidates[number] for number in np.random.default_rng(order).permutation(len(candidates))]
    return Constraints(
        candidates,
        exactly={"shift": lambda c: (c[0], c[1])},
        at_most={
            "one shift a day": lambda c: (c[0], c[2]),
            "rest after a night": [
                [(day, night, nurse), (after, early, nurse)] for day, after in pairwise(days) for nurse in nurses
            ],
            "days": lambda c: c[2],
            "nights in a row": [
                [(day + k, night, nurse) for k in range(3)] for day in range(DAYS - 2) for nurse in nurses
            ],
        },
        k={"days": 5, "nights in a row": 2},
    )


def absences(rng: np.random.Generator, share: float) -> list[tuple[int, str, int]]:
    """Candidates that are excluded: nurses are away on a share of the days."""
    away = rng.random((DAYS, NURSES)) < share
    return [(day, shift, nurse) for day, shift, nurse in roster().candidates if away[day, nurse]]


def solvable_roster(rng: np.random.Generator, share: float, preferences: bool = False) -> Problem:
    """An empty roster with absences that has a solution."""
    while True:
        problem = roster().problem(excluded=absences(rng, share))
        if problem.count_solutions(limit=1) == 1:
            break
    if not preferences:
        return problem
    wishes = dict(zip(roster().candidates, rng.normal(size=len(roster().candidates)).tolist(), strict=True))
    return roster().problem(excluded=problem.excluded, preferences=wishes)


def training_roster(rng: np.random.Generator) -> Problem:
    problem = solvable_roster(rng, rng.uniform(0, 0.5))
    return roster().dig(rng, excluded=problem.excluded)


def seating(guests: int, rng: np.random.Generator, dig: bool = False) -> Problem:
    """Guests at tables with few seats left over. Some pairs sit apart, some together; every table has two hosts.

    The plan exists: rules are drawn so that a hidden plan keeps them.
    """
    tables = max(2, guests // 4)
    table_of = rng.permutation(np.arange(guests) % tables)
    seats = np.bincount(table_of) + (rng.random(tables) < 0.25)
    hosts = [int(guest) for t in range(tables) for guest in rng.permutation(np.flatnonzero(table_of == t))[:2]]
    pairs = [(int(a), int(b)) for a, b in rng.integers(guests, size=(8 * guests, 2)) if a < b]
    apart = [(a, b) for a, b in pairs if table_of[a] != table_of[b]][: 2 * guests]
    together = [(a, b) for a, b in pairs if table_of[a] == table_of[b]][: guests // 4]
    constraints = Constraints(
        product(range(guests), range(tables)),
        exactly={"guest": lambda c: c[0]},
        at_most={
            "seats": lambda c: c[1],
            "apart": [[(a, t), (b, t)] for a, b in dict.fromkeys(apart) for t in range(tables)],
            "together": [
                [(a, t), (b, other)]
                for a, b in dict.fromkeys(together)
                for t in range(tables)
                for other in range(tables)
                if t != other
            ],
        },
        at_least={"hosts": lambda c: c[1] if c[0] in hosts else None},
        k={"seats": seats.tolist(), "hosts": 2},
    )
    answer = [(guest, int(t)) for guest, t in enumerate(table_of)]
    return constraints.dig(rng, answer=answer) if dig else constraints.problem(answer=answer)


@cache
def latin_square(size: int) -> Constraints:
    return Constraints(
        product(range(size), repeat=3),
        exactly={"cell": lambda c: c[:2], "digit in row": lambda c: (c[0], c[2]), "digit in column": lambda c: c[1:]},
    )
