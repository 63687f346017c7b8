"""Declared constraints: candidates, and groups of them with exactly, at most or at least k true members."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rrn.constraints.exact import MOST_PLACEMENTS, dig, random_answer
from rrn.constraints.problem import Problem
from rrn.errors import InputError, shorten
from rrn.graphs import Groups
from rrn.inference.rules import CandidateLayout

if TYPE_CHECKING:
    from rrn.constraints.solve import Solver

Grouping = Iterable[Iterable[Hashable]] | Callable[[Any], Hashable]
"""The groups of a type: lists of candidates; or a function that returns the group of a candidate, None for no group."""
Bound = int | Sequence[int] | Mapping[Any, int] | Callable[[Any], int]
"""k of the groups of a type: one number; one for each listed group; or one for each value of the grouping function."""
MOST_MEMBERSHIPS = 5_000_000
"""Of all types: candidates times the most groups that one candidate is in. The arrays of groups have this size."""
RULES = ("exactly", "at most", "at least")


class Constraints:
    """Candidates that are true or false, and rules about groups of them.

    >>> latin = Constraints(
    ...     [(row, column, digit) for row in range(3) for column in range(3) for digit in range(3)],
    ...     exactly={
    ...         "cell": lambda c: (c[0], c[1]),
    ...         "digit in row": lambda c: (c[0], c[2]),
    ...         "digit in column": lambda c: (c[1], c[2]),
    ...     },
    ... )
    >>> latin
    Constraints(27 candidates; exactly one: cell (9), digit in row (9), digit in column (9))

    The nodes of the network's graph are the open candidates: those that neither are given nor are ruled out by the
    givens. Each group type has its own weights. Candidates and groups have no names in the graph, so a network trained
    on some sizes runs on others, as long as the group types are the same.

    Args:
        candidates: their names, any hashable values; or a number n for the names 0 to n - 1.
        exactly: groups with exactly k true members, by the name of their type.
        at_most: groups with at most k true members, by the name of their type.
        at_least: groups with at least k true members, by the name of their type.
        k: of the types where it is not 1: ``{"days": 5}``, or one k for each group.

    A candidate may be in any number of groups of a type; the network sums the messages of these groups. A candidate
    for which a grouping function returns None is in no group of that type.

    If the first type is an "exactly" type with k = 1, and every candidate is in one of its groups, the answer is the
    candidate with the largest logit of each of these groups (`decides`). Otherwise it is all candidates with a positive
    logit.
    """

    def __init__(
        self,
        candidates: int | Iterable[Hashable],
        exactly: Mapping[str, Grouping] | None = None,
        at_most: Mapping[str, Grouping] | None = None,
        at_least: Mapping[str, Grouping] | None = None,
        k: Mapping[str, Bound] | None = None,
    ) -> None:
        self.candidates: tuple[Any, ...] = tuple(range(candidates) if isinstance(candidates, int) else candidates)
        """The names of the candidates."""
        self.number = {name: number for number, name in enumerate(self.candidates)}
        """The number of each candidate by its name."""
        if not self.candidates:
            raise InputError("candidates: expected at least one, got none")
        if len(self.number) < len(self.candidates):
            twice = next(name for number, name in enumerate(self.candidates) if self.number[name] != number)
            raise InputError(f"candidates: {shorten(twice)!r} is in the list twice")
        declared = [(rule, dict(types or {})) for rule, types in zip(RULES, (exactly, at_most, at_least), strict=True)]
        names = [name for _, types in declared for name in types]
        both = next((name for name in names if names.count(name) > 1), None)
        if both is not None or not names:
            found = "expected at least one group type, got none" if both is None else f"{both!r} is in both"
            raise InputError(f"exactly, at_most, at_least: {found}")
        unknown = next((name for name in k or {} if name not in names), None)
        if unknown is not None:
            raise InputError(f"k: {shorten(unknown)!r} is no group type; there are {', '.join(names)}")
        self.group_types = tuple(names)
        """The names of the group types, those of "exactly" first, then "at most", then "at least"."""
        self.rules = tuple(rule for rule, types in declared for _ in types)
        """Of each type: "exactly", "at most" or "at least"."""
        columns: list[np.ndarray] = []
        numbers: list[np.ndarray] = []
        for _, types in declared:
            for name, grouping in types.items():
                groups, keys = self._groups(name, grouping)
                columns.append(_columns(groups, len(self.candidates)))
                if sum(of_type.size for of_type in columns) > MOST_MEMBERSHIPS:
                    most = f"{MOST_MEMBERSHIPS:,} candidates times groups of one candidate"
                    raise InputError(f"{name}: too many overlapping groups; the limit is {most}")
                numbers.append(_bounds(name, (k or {}).get(name, 1), keys))
        self.counts = tuple(len(of_type) for of_type in numbers)
        """The number of groups of each type."""
        self.column_types = tuple(t for t, of_type in enumerate(columns) for _ in range(of_type.shape[1]))
        """The type of each column of `member_of`."""
        self.member_of = np.concatenate(columns, axis=1)
        """(candidates, columns), the groups of each type that a candidate is in, numbered within the type; -1: none."""
        self.k = tuple(numbers)
        """Of each type: k of its groups, (groups,)."""
        self.counted_types = tuple(name for name, of_type in zip(names, numbers, strict=True) if (of_type != 1).any())
        """The types with a k other than 1: the network reads how many true members their groups still may have."""
        self.for_network = lru_cache(self._for_network)

    def __repr__(self) -> str:
        parts = [f"{len(self.candidates)} candidates"]
        for rule in RULES:
            for is_one in (True, False):
                types = [
                    t for t, own in enumerate(self.rules) if own == rule and bool((self.k[t] == 1).all()) == is_one
                ]
                if types:
                    names = ", ".join(f"{self.group_types[t]} ({self.counts[t]})" for t in types)
                    parts.append(f"{rule} {'one' if is_one else 'k'}: {names}")
        return f"Constraints({'; '.join(parts)})"

    def _groups(self, name: str, grouping: Grouping) -> tuple[list[list[int]], list[Any]]:
        """The groups of a type, and the keys of their k: what the function returned, or their position."""
        if callable(grouping):
            by_key: dict[Hashable, list[int]] = {}
            for number, candidate in enumerate(self.candidates):
                if (key := grouping(candidate)) is not None:
                    by_key.setdefault(key, []).append(number)
            return list(by_key.values()), list(by_key)
        groups = [self.numbers(group, f"{name}, group {n}").tolist() for n, group in enumerate(grouping, 1)]
        empty = next((n for n, group in enumerate(groups, 1) if not group), None)
        if empty is not None:
            raise InputError(f"{name}, group {empty}: it has no candidate")
        return groups, list(range(len(groups)))

    def numbers(self, names: Iterable[Hashable], what: str = "candidates") -> np.ndarray:
        """The numbers of candidates by name."""
        named = list(names)
        unknown = next((name for name in named if name not in self.number), None)
        if unknown is not None:
            raise InputError(f"{what}: {shorten(unknown)!r} is no candidate")
        if len(set(named)) < len(named):
            raise InputError(f"{what}: a candidate is in it twice")
        return np.array([self.number[name] for name in named], dtype=np.int64)

    @cached_property
    def layout(self) -> CandidateLayout:
        """The groups as `rrn.inference` and the exact search read them."""
        return self.for_network(self.group_types)

    @property
    def decides(self) -> bool:
        """Whether the answer is one candidate of each group of the first type."""
        return self.layout.decides

    def _for_network(self, group_types: tuple[str, ...]) -> CandidateLayout:
        """The layout in the order of a network's group types."""
        if set(group_types) != set(self.group_types):
            raise InputError(
                f"group types: the network has {', '.join(group_types)}; the problem has {', '.join(self.group_types)}"
            )
        order = [self.group_types.index(name) for name in group_types]
        counts = [self.counts[t] for t in order]
        columns, column_types, lower, upper = [], [], [], []
        for new, (t, start) in enumerate(zip(order, np.cumsum([0, *counts]), strict=False)):
            member_of = self.member_of[:, np.array(self.column_types) == t]
            columns.append(np.where(member_of >= 0, member_of + start, -1))
            column_types += [new] * member_of.shape[1]
            lower.append(np.zeros_like(self.k[t]) if self.rules[t] == "at most" else self.k[t])
            sizes = np.bincount(member_of[member_of >= 0], minlength=self.counts[t])
            upper.append(sizes if self.rules[t] == "at least" else self.k[t])
        lower_, upper_ = np.concatenate(lower), np.concatenate(upper)
        return CandidateLayout(np.concatenate(columns, axis=1), lower_, upper_, counts, column_types)

    def graph(self, open_: np.ndarray | None = None) -> Groups:
        """The graph of the open candidates, bool (candidates,), for a custom network; by default of all candidates."""
        member_of = self.member_of if open_ is None else self.member_of[open_]
        return Groups(torch.from_numpy(member_of), self.counts, column_types=self.column_types)

    def violations(self, true: Iterable[Hashable]) -> list[str]:
        """The rules that an answer, its true candidates, breaks, in words; empty if it is valid."""
        return self.violations_of(self.numbers(true, "answer"))

    def violations_of(self, numbers: np.ndarray) -> list[str]:
        """The rules that an answer, the numbers of its true candidates, breaks."""
        groups, total = self.layout.groups[numbers].ravel(), len(self.layout.lower)
        counts = np.bincount(groups[groups >= 0], minlength=total)
        wrong = np.flatnonzero((counts > self.layout.upper) | (counts < self.layout.lower))
        described = ((self.describe(group), int(counts[group])) for group in wrong.tolist())
        return [f"{name}: {count} true instead of {rule}" for (name, rule), count in described]

    def describe(self, group: int) -> tuple[str, str]:
        """The type of a group, numbered through over all types, and its rule in words."""
        t = int(np.searchsorted(np.cumsum(self.counts), group, side="right"))
        members = [self.candidates[number] for number in np.flatnonzero((self.layout.groups == group).any(1))]
        k = int(self.k[t][group - sum(self.counts[:t])])
        listed = shorten(", ".join(map(str, members)))
        return self.group_types[t], f"{self.rules[t]} {'one' if k == 1 else k} of {listed}"

    def problem(
        self,
        given: Iterable[Hashable] = (),
        excluded: Iterable[Hashable] = (),
        answer: Iterable[Hashable] | None = None,
        preferences: Mapping[Any, float] | None = None,
    ) -> Problem:
        """A problem: candidates that are given (true) and excluded (false), by name.

        With an ``answer``, all true candidates, it can be trained on. ``preferences`` are weights of candidates; an
        answer is better the larger the sum over its true candidates is.
        """
        true = None
        if answer is not None:
            true = np.zeros(len(self.candidates), bool)
            true[self.numbers(answer, "answer")] = True
        weights = None
        if preferences is not None:
            weights = np.zeros(len(self.candidates), np.float32)
            weights[self.numbers(preferences, "preferences")] = list(preferences.values())
            if not np.isfinite(weights).all():
                raise InputError("preferences: expected finite numbers")
        return Problem(self, self.numbers(given, "given"), self.numbers(excluded, "excluded"), true, weights)

    def dig(
        self,
        rng: np.random.Generator,
        answer: Iterable[Hashable] | None = None,
        excluded: Iterable[Hashable] = (),
        most_placements: int = MOST_PLACEMENTS,
    ) -> Problem:
        """A random problem with exactly one solution and no given that could be left out.

        The givens begin as the whole answer, by default a random one. They are removed in random order wherever the
        exact search proves that the solution stays unique.
        """
        never = self.numbers(excluded, "excluded")
        if answer is None:
            true = random_answer(self.layout, rng, never, most_placements)
        else:
            true = self.numbers(answer, "answer")
        given, _ = dig(self.layout, true, rng, never, most_placements)
        solution = np.zeros(len(self.candidates), bool)
        solution[true] = True
        return Problem(self, given, never, solution)

    def fit(self, make: "Callable[[np.random.Generator], Problem] | None" = None, **settings: Any) -> "Solver":
        """Train a network on problems that ``make`` draws, by default with `dig`: `rrn.constraints.training.fit`."""
        from rrn.constraints.training import fit

        return fit(self, make or self.dig, **settings)


def _columns(groups: list[list[int]], candidates: int) -> np.ndarray:
    """The groups of each candidate in any order, -1 for none: (candidates, the most that one is in, at least 1)."""
    group = np.repeat(np.arange(len(groups)), [len(members) for members in groups])
    member = np.array([candidate for members in groups for candidate in members], np.int64)
    order = np.argsort(member, kind="stable")
    often = np.bincount(member, minlength=candidates)
    column = np.arange(len(member)) - np.repeat(np.cumsum(often) - often, often)
    most = max(1, int(often.max(initial=0)))
    if candidates * most > MOST_MEMBERSHIPS:
        return np.broadcast_to(np.int64(-1), (candidates, most))  # without memory; the caller refuses it
    columns = np.full((candidates, most), -1)
    columns[member[order], column] = group[order]
    return columns


def _bounds(name: str, k: Bound, keys: list[Any]) -> np.ndarray:
    """k of each group of a type."""
    if isinstance(k, int):
        values = [k] * len(keys)
    elif callable(k):
        values = [k(key) for key in keys]
    else:
        try:
            values = [k[key] for key in keys]
        except (KeyError, IndexError) as error:
            raise InputError(f"k: {name}: expected one k for each of {len(keys)} groups, got {len(k)}") from error
    wrong = next((value for value in values if isinstance(value, bool) or int(value) != value or value < 0), None)
    if wrong is not None:
        raise InputError(f"k: {name}: expected whole numbers from 0, got {shorten(repr(wrong))}")
    return np.array(values, np.int64).reshape(-1)
