"""A problem: declared constraints, and what is given and excluded."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rrn.constraints.exact import MOST_PLACEMENTS, diagnosis, search
from rrn.errors import InputError, shorten
from rrn.inference.result import Status

if TYPE_CHECKING:
    from rrn.constraints.declare import Constraints


@dataclass(frozen=True, eq=False)
class Problem:
    """Constraints, and the numbers of candidates that are given (true) and excluded (false).

    Made by `Constraints.problem` or `Constraints.dig`. ``answer``, where known, is bool (candidates,).
    """

    constraints: "Constraints"
    given_numbers: np.ndarray
    excluded_numbers: np.ndarray
    answer: np.ndarray | None = None

    def __post_init__(self) -> None:
        names = self.constraints.candidates
        both = np.intersect1d(self.given_numbers, self.excluded_numbers)
        if len(both):
            raise InputError(f"given, excluded: {shorten(names[both[0]])!r} is in both")
        groups = self.constraints.groups[self.given_numbers]
        if len(np.unique(groups)) < groups.size:
            for row, own in enumerate(groups):
                clash = np.flatnonzero((groups[:row] == own).any(1))
                if len(clash):
                    first, second = (shorten(names[self.given_numbers[r]]) for r in (clash[0], row))
                    group_type = self.constraints.group_types[int((groups[clash[0]] == own).argmax())]
                    raise InputError(f"given: {first!r} and {second!r} are in the same group ({group_type})")
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
    def taken(self) -> np.ndarray:
        """Which groups, numbered through over all types, contain a given."""
        taken = np.zeros(len(self.constraints.needed), bool)
        taken[self.constraints.groups[self.given_numbers]] = True
        return taken

    @cached_property
    def open(self) -> np.ndarray:
        """Which candidates are neither given, nor excluded, nor in a group with a given: bool (candidates,)."""
        open_ = ~self.taken[self.constraints.groups].any(1)
        open_[self.excluded_numbers] = False
        return open_

    def violations(self, true: np.ndarray) -> list[str]:
        """What is wrong with an answer, the numbers of its true candidates, in words; empty if it is valid."""
        names = self.constraints.candidates
        lost, wrong = np.setdiff1d(self.given_numbers, true), np.intersect1d(self.excluded_numbers, true)
        found = [f"{names[number]!r} is given, but not true" for number in lost]
        found += [f"{names[number]!r} is excluded, but true" for number in wrong]
        return found + self.constraints.violations_of(true)

    def with_more_givens(self, share: float, rng: np.random.Generator) -> "Problem":
        """The problem with a share of the rest of its answer given as well."""
        assert self.answer is not None
        left = np.flatnonzero(self.answer & self.open)
        more = rng.permutation(left)[: round(share * len(left))]
        return self._with_givens(np.concatenate([self.given_numbers, more]), self.answer)

    def with_contradiction(self, rng: np.random.Generator) -> "Problem":
        """The problem with a false candidate given, so that it has no solution and no answer.

        No needed group is left without an open candidate. Unchanged if there is no such candidate.
        """
        assert self.answer is not None
        for number in rng.permutation(np.flatnonzero(self.open & ~self.answer)):
            wrong = self._with_givens(np.append(self.given_numbers, number), None)
            left = np.bincount(self.constraints.groups[wrong.open].ravel(), minlength=len(wrong.taken))
            if (left > 0)[self.constraints.needed & ~wrong.taken].all():
                return wrong
        return self

    def _with_givens(self, given_numbers: np.ndarray, answer: np.ndarray | None) -> "Problem":
        """The same problem with other givens, known to be consistent, so they are not checked again."""
        problem = object.__new__(Problem)
        values = {"given_numbers": given_numbers, "excluded_numbers": self.excluded_numbers, "answer": answer}
        problem.__dict__.update(values, constraints=self.constraints)
        return problem

    def count_solutions(self, limit: int = 2, most_placements: int = MOST_PLACEMENTS) -> int:
        """How many solutions there are, counted up to ``limit``; `UNKNOWN` if the exact search reached its limit."""
        cover, given, excluded = self.constraints.cover, self.given_numbers, self.excluded_numbers
        return search(cover, given, excluded, limit=limit, most_placements=most_placements)[1]

    def diagnose(self) -> tuple[Status, str]:
        """Whether the problem is impossible or ambiguous, by exact search; and a message."""
        return diagnosis("the problem", self.count_solutions())
