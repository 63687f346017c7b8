"""Declared constraints: candidates, and groups of them with exactly one or at most one true member."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rrn.constraints.exact import MOST_PLACEMENTS, Cover, dig, random_answer
from rrn.constraints.problem import Problem
from rrn.errors import InputError, shorten
from rrn.graphs import Groups
from rrn.inference.search import CandidateLayout

if TYPE_CHECKING:
    from rrn.constraints.solve import Solver

Grouping = Iterable[Iterable[Hashable]] | Callable[[Any], Hashable]
"""The groups of a type: lists of candidates; or a function that returns the group of a candidate, None for no group."""

FURTHER = re.compile(r" #\d+$")
"""The end of the name of a type that was added because groups overlap. Names of declared types do not end like this."""


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

    The nodes of the network's graph are the open candidates: those that share no group with a given. Each group type
    has its own weights. Candidates and groups have no names in the graph, so a network trained on some sizes runs on
    others, as long as the group types are the same.

    Args:
        candidates: their names, any hashable values; or a number n for the names 0 to n - 1.
        exactly: groups with exactly one true member, by the name of their type.
        at_most: groups with at most one true member, by the name of their type.

    Within a type a candidate is in one group. Where groups of a type overlap, further types are added ("vertex #2",
    "vertex #3", …). A candidate that is in no group of a type gets a group of its own there, which is no rule. The
    network cannot distinguish it from a group whose other members are closed, so every candidate should be in a group
    of each "exactly" type.

    If every candidate is in a group of the first type, and that is an "exactly" type, the answer is the candidate with
    the largest logit of each of these groups (`decides`). Otherwise it is all candidates with a positive logit.
    """

    def __init__(
        self,
        candidates: int | Iterable[Hashable],
        exactly: Mapping[str, Grouping] | None = None,
        at_most: Mapping[str, Grouping] | None = None,
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
        exactly, at_most = dict(exactly or {}), dict(at_most or {})
        both = exactly.keys() & at_most.keys()
        if both or not (exactly or at_most):
            found = f"{min(both)!r} is in both" if both else "expected at least one group type, got none"
            raise InputError(f"exactly, at_most: {found}")
        reserved = next((name for name in (*exactly, *at_most) if FURTHER.search(name)), None)
        if reserved is not None:
            raise InputError(f"{reserved!r}: names of group types must not end in a number sign and a number")
        types: list[str] = []
        columns: list[np.ndarray] = []
        needed: list[np.ndarray] = []
        rules: list[str] = []
        for name, grouping in (exactly | at_most).items():
            for layer, (column, groups) in enumerate(self._layers(name, grouping), 1):
                alone = column < 0
                column[alone] = groups + np.arange(alone.sum())
                types.append(name if layer == 1 else f"{name} #{layer}")
                rules.append("exactly" if name in exactly else "at most")
                columns.append(column)
                needed.append((np.arange(groups + alone.sum()) < groups) & (name in exactly))
        self.group_types = tuple(types)
        """The names of the group types, those of "exactly" first."""
        self.rules = tuple(rules)
        """Of each type: "exactly" or "at most"."""
        self.counts = tuple(len(of_type) for of_type in needed)
        """The number of groups of each type, including groups of single candidates."""
        self.member_of = np.stack(columns, axis=1)
        """(candidates, types), the group of each type that a candidate is in."""
        self.needed = np.concatenate(needed)
        """Whether exactly one member is true, of the groups of all types, one type after the other."""
        self.decides = bool(exactly) and bool(needed[0].all())
        self.for_network = lru_cache(self._for_network)

    def __repr__(self) -> str:
        parts = [f"{len(self.candidates)} candidates"]
        for rule in dict.fromkeys(self.rules):
            names = [f"{self.group_types[t]} ({self.counts[t]})" for t, own in enumerate(self.rules) if own == rule]
            parts.append(f"{rule} one: {', '.join(names)}")
        return f"Constraints({'; '.join(parts)})"

    def _layers(self, name: str, grouping: Grouping) -> list[tuple[np.ndarray, int]]:
        """The groups of a type, spread over layers so that none overlap: of each layer the group of each candidate, -1
        for none, and the number of groups."""
        if callable(grouping):
            by_key: dict[Hashable, list[int]] = {}
            for number, candidate in enumerate(self.candidates):
                if (key := grouping(candidate)) is not None:
                    by_key.setdefault(key, []).append(number)
            groups = list(by_key.values())
        else:
            groups = [self.numbers(group, f"{name}, group {n}").tolist() for n, group in enumerate(grouping, 1)]
        layers: list[tuple[np.ndarray, int]] = []
        for number, group in enumerate(groups, 1):
            if not group:
                raise InputError(f"{name}, group {number}: it has no candidate")
            free = next((i for i, (column, _) in enumerate(layers) if (column[group] < 0).all()), len(layers))
            if free == len(layers):
                layers.append((np.full(len(self.candidates), -1), 0))
            column, count = layers[free]
            column[group] = count
            layers[free] = column, count + 1
        return layers or [(np.full(len(self.candidates), -1), 0)]

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
    def groups(self) -> np.ndarray:
        """(candidates, types), as `member_of`, with the groups numbered through over all types."""
        return self.member_of + np.cumsum([0, *self.counts[:-1]])

    @cached_property
    def layout(self) -> CandidateLayout:
        """The groups as `rrn.inference` reads them."""
        return CandidateLayout(torch.from_numpy(self.groups), torch.from_numpy(self.needed), self.counts[0])

    @cached_property
    def cover(self) -> Cover:
        """The groups as the exact search reads them."""
        return Cover.of(self.groups, self.needed)

    def _for_network(self, group_types: tuple[str, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
        """`member_of` and `counts` in the order of a network's group types.

        A further type of overlapping groups that these constraints do not need has groups of single candidates.
        """
        extra = [name for name in self.group_types if name not in group_types]
        missing = [name for name in group_types if name not in self.group_types and not FURTHER.search(name)]
        if extra or missing:
            raise InputError(
                f"group types: the network has {', '.join(group_types)}; the problem has {', '.join(self.group_types)}"
            )
        count = len(self.candidates)
        own = [self.group_types.index(name) if name in self.group_types else None for name in group_types]
        columns = [np.arange(count) if t is None else self.member_of[:, t] for t in own]
        return np.stack(columns, axis=1), tuple(count if t is None else self.counts[t] for t in own)

    def graph(self, open_: np.ndarray | None = None) -> Groups:
        """The graph of the open candidates, bool (candidates,), for a custom network; by default of all candidates."""
        member_of = self.member_of if open_ is None else self.member_of[open_]
        return Groups(torch.from_numpy(member_of), self.counts)

    def violations(self, true: Iterable[Hashable]) -> list[str]:
        """The rules that an answer, its true candidates, breaks, in words; empty if it is valid."""
        return self.violations_of(self.numbers(true, "answer"))

    def violations_of(self, numbers: np.ndarray) -> list[str]:
        """The rules that an answer, the numbers of its true candidates, breaks."""
        counts = np.bincount(self.groups[numbers].ravel(), minlength=len(self.needed))
        wrong = np.flatnonzero((counts > 1) | (self.needed & (counts == 0)))
        return [self._describe(group, int(counts[group])) for group in wrong.tolist()]

    def _describe(self, group: int, count: int) -> str:
        of_type = int(np.searchsorted(np.cumsum(self.counts), group, side="right"))
        members = [self.candidates[number] for number in np.flatnonzero(self.groups[:, of_type] == group)]
        rule = "exactly" if self.needed[group] else "at most"
        listed = shorten(", ".join(map(str, members)))
        return f"{self.group_types[of_type]}: {count} true instead of {rule} one of {listed}"

    def problem(
        self,
        given: Iterable[Hashable] = (),
        excluded: Iterable[Hashable] = (),
        answer: Iterable[Hashable] | None = None,
    ) -> Problem:
        """A problem: candidates that are given (true) and excluded (false), by name.

        With an ``answer``, all true candidates, it can be trained on.
        """
        true = None
        if answer is not None:
            true = np.zeros(len(self.candidates), bool)
            true[self.numbers(answer, "answer")] = True
        return Problem(self, self.numbers(given, "given"), self.numbers(excluded, "excluded"), true)

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
            true = random_answer(self.cover, rng, never, most_placements)
        else:
            true = self.numbers(answer, "answer")
        given, _ = dig(self.cover, true, rng, never, most_placements)
        solution = np.zeros(len(self.candidates), bool)
        solution[true] = True
        return Problem(self, given, never, solution)

    def fit(self, make: "Callable[[np.random.Generator], Problem]", **settings: Any) -> "Solver":
        """Train a network on problems that ``make`` draws: see `rrn.constraints.training.fit`."""
        from rrn.constraints.training import fit

        return fit(self.group_types, make, **settings)
