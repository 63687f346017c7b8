"""A problem: declared constraints, and what is given and excluded."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rrn.constraints.exact import MOST_PLACEMENTS, diagnosis, search
from rrn.errors import InputError, shorten
from rrn.inference.result import Status
from rrn.inference.rules import CandidateLayout

if TYPE_CHECKING:
    from rrn.constraints.declare import Constraints


@dataclass(frozen=True, eq=False)
class Problem:
    """Constraints, and the numbers of candidates that are given (true) and excluded (false).

    Made by `Constraints.problem` or `Constraints.dig`. ``answer``, where known, is bool (candidates,); ``preferences``
    are the weights of candidates in the objective, float32 (candidates,).
    """

    constraints: "Constraints"
    given_numbers: np.ndarray
    excluded_numbers: np.ndarray
    answer: np.ndarray | None = None
    preferences: np.ndarray | None = None

    def __post_init__(self) -> None:
        names = self.constraints.candidates
        both = np.intersect1d(self.given_numbers, self.excluded_numbers)
        if len(both):
            raise InputError(f"given, excluded: {shorten(names[both[0]])!r} is in both")
        layout = self.constraints.layout
        clash = np.flatnonzero(self._placed > layout.upper)
        if len(clash):
            name, rule = self.constraints.describe(int(clash[0]))
            inside = [shorten(names[n]) for n in self.given_numbers if clash[0] in layout.groups[n]]
            found = " and ".join(f"{name!r}" for name in inside[:3])
            raise InputError(f"given: {found} are in the same group ({name}): {rule}")
        if self.answer is not None and (wrong := self.violations(np.flatnonzero(self.answer))):
            raise InputError(f"answer: breaks a rule: {wrong[0]}")

    @property
    def given(self) -> list[Any]:
        """The names of the givens."""
        return [self.constraints.candidates[number] for number in self.given_numbers]

    @property
    def excluded(self) -> list[Any]:
        """The names of the excluded candidates."""
        return [self.constraints.candidates[number] for number in self.excluded_numbers]

    @cached_property
    def _placed(self) -> np.ndarray:
        """How many givens are in each group, numbered through over all types."""
        groups = self.constraints.layout.groups[self.given_numbers].ravel()
        return np.bincount(groups[groups >= 0], minlength=len(self.constraints.layout.upper))

    @cached_property
    def open(self) -> np.ndarray:
        """Which candidates are neither given, nor excluded, nor in a group that the givens fill: bool (candidates,)."""
        layout = self.constraints.layout
        full = np.append(self._placed >= layout.upper, False)  # the last is for -1, no group
        open_ = ~full[layout.groups].any(1)
        open_[self.given_numbers] = open_[self.excluded_numbers] = False
        return open_

    def violations(self, true: np.ndarray) -> list[str]:
        """What is wrong with an answer, the numbers of its true candidates, in words; empty if it is valid."""
        names = self.constraints.candidates
        lost, wrong = np.setdiff1d(self.given_numbers, true), np.intersect1d(self.excluded_numbers, true)
        found = [f"{names[number]!r} is given, but not true" for number in lost]
        found += [f"{names[number]!r} is excluded, but true" for number in wrong]
        return found + self.constraints.violations_of(true)

    def objective(self, true: np.ndarray) -> float:
        """The sum of the preferences of candidates, by their numbers."""
        return 0.0 if self.preferences is None else float(self.preferences[true].sum())

    def with_more_givens(self, share: float, rng: np.random.Generator) -> "Problem":
        """The problem with a share of the rest of its answer given as well."""
        assert self.answer is not None
        left = np.flatnonzero(self.answer & self.open)
        more = rng.permutation(left)[: round(share * len(left))]
        return self._changed(given_numbers=np.concatenate([self.given_numbers, more]))

    def with_fewer_givens(self, share: float, rng: np.random.Generator) -> "Problem":
        """The problem without a share of its givens: it may have several solutions."""
        kept = rng.permutation(self.given_numbers)[round(share * len(self.given_numbers)) :]
        return self._changed(given_numbers=kept)

    def with_contradiction(self, rng: np.random.Generator) -> "Problem":
        """The problem with a false candidate given, so that it has no solution and no answer.

        No needed group is left without an open candidate. Unchanged if there is no such candidate.
        """
        assert self.answer is not None
        for number in rng.permutation(np.flatnonzero(self.open & ~self.answer)):
            wrong = self._changed(given_numbers=np.append(self.given_numbers, number), answer=None)
            layout = self.constraints.layout
            groups = layout.groups[wrong.open].ravel()
            left = np.bincount(groups[groups >= 0], minlength=len(layout.lower))
            if (left + wrong._placed >= layout.lower).all():
                return wrong
        return self

    def with_random_preferences(self, strength: float, rng: np.random.Generator) -> "Problem":
        """The problem with random preferences that favour its answer.

        They are the log-likelihood ratios of normal observations of each candidate, of standard deviation ``strength``.
        """
        assert self.answer is not None
        mean = np.where(self.answer, 0.5, -0.5) * strength**2
        return self._changed(preferences=rng.normal(mean, strength).astype(np.float32))

    def _changed(self, **changes: Any) -> "Problem":
        """The same problem with changes that are known to be consistent, so they are not checked again."""
        problem = object.__new__(Problem)
        problem.__dict__.update({field.name: getattr(self, field.name) for field in fields(self)} | changes)
        return problem

    def count_solutions(self, limit: int = 2, most_placements: int = MOST_PLACEMENTS) -> int:
        """How many solutions there are, counted up to ``limit``; `UNKNOWN` if the exact search reached its limit."""
        layout, given, excluded = self.constraints.layout, self.given_numbers, self.excluded_numbers
        return search(layout, given, excluded, limit=limit, most_placements=most_placements)[1]

    def explain(self, most_placements: int = MOST_PLACEMENTS) -> list[str]:
        """Rules and givens of an impossible problem that clash: without any one of them the rest has a solution.

        Empty if the problem has a solution, or if the exact search reached its limit.
        """
        layout = self.constraints.layout
        lower, upper, given = layout.lower.copy(), layout.upper.copy(), self.given_numbers
        sizes = np.bincount(layout.groups[layout.groups >= 0], minlength=len(lower))

        def impossible(lower: np.ndarray, upper: np.ndarray, given: np.ndarray) -> bool:
            loose = CandidateLayout(layout.groups, lower, upper, layout.counts, layout.column_types)
            return search(loose, given, self.excluded_numbers, limit=1, most_placements=most_placements)[1] == 0

        if not impossible(lower, upper, given):
            return []
        used = np.flatnonzero((lower > 0) | (upper < sizes))
        size = max(1, len(used) // 4)
        while size:  # leave out several rules at a time, then fewer
            for part in [used[low : low + size] for low in range(0, len(used), size)]:
                looser, wider = lower.copy(), upper.copy()
                looser[part], wider[part] = 0, sizes[part]
                if impossible(looser, wider, given):
                    lower, upper, used = looser, wider, np.setdiff1d(used, part)
            size //= 2
        for number in given:
            if impossible(lower, upper, given[given != number]):
                given = given[given != number]
        rules = [": ".join(self.constraints.describe(group)) for group in used.tolist()]
        return rules + [f"{shorten(repr(self.constraints.candidates[number]))} is given" for number in given]

    def diagnose(self) -> tuple[Status, str]:
        """Whether the problem is impossible or ambiguous, by exact search; and a message."""
        return diagnosis("the problem", self.count_solutions())


def vary(problems: Sequence[Problem], more: np.ndarray, fewer: np.ndarray, rng: np.random.Generator) -> list[Problem]:
    """The problems without a share of their givens, then with a share of the rest of their answers given as well."""
    varied = []
    for problem, added, removed in zip(problems, more.tolist(), fewer.tolist(), strict=True):
        problem = problem.with_fewer_givens(removed, rng) if removed else problem
        varied.append(problem.with_more_givens(added, rng) if added else problem)
    return varied


def count_open(problems: Sequence[Problem]) -> list[int]:
    """How many candidates of each problem are open."""
    return [int(problem.open.sum()) for problem in problems]
