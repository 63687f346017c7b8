"""Constraints, declared: candidates, groups of them with exactly one or at most one true member, and problems."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rrn.constraints.search import MOST_PLACEMENTS, Cover, dig, random_answer, search
from rrn.errors import InputError, shorten
from rrn.graphs import Groups
from rrn.inference.search import Candidates

if TYPE_CHECKING:
    from rrn.constraints.solving import Solver

Grouping = Iterable[Iterable[Hashable]] | Callable[[Any], Hashable]
"""The groups of a kind: lists of candidates; or a function that says which group a candidate stands in, None for none.
"""


FURTHER = re.compile(r" \d+$")
"""How the name ends of a kind that was made because groups overlap."""


class Constraints:
    """Candidates that are true or false, and what is to hold of them.

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

    A network sees the graph whose nodes are the open candidates: those that share no group with what is given. Each
    kind of group has weights of its own, and candidates and groups have no names there, so what was trained on some
    sizes runs on others, as long as the kinds are the same.

    Args:
        candidates: their names, anything that can be a key of a dictionary; or how many, and they are 0, 1, ….
        exactly: the groups with exactly one true member, kind by kind, by the kind's name.
        at_most: the groups with at most one true member, likewise.

    Within a kind a candidate stands in one group. Where groups of a kind overlap, further kinds are made ("vertex 2",
    "vertex 3", …), as many as it takes. A candidate that stands in no group of a kind gets a group of its own there,
    which is no rule; the network cannot tell it from a group whose other members are closed, so "exactly" kinds had
    better have every candidate.

    If every candidate stands in a group of the first kind, and that is an "exactly" kind, an answer is the candidate
    with the largest logit in each of these groups (`decides`). Otherwise it is all candidates whose logit is positive.
    """

    def __init__(
        self,
        candidates: int | Iterable[Hashable],
        exactly: Mapping[str, Grouping] | None = None,
        at_most: Mapping[str, Grouping] | None = None,
    ) -> None:
        self.names: tuple[Any, ...] = tuple(range(candidates) if isinstance(candidates, int) else candidates)
        self.number = {name: number for number, name in enumerate(self.names)}
        if not self.names:
            raise InputError("candidates: there are none")
        if len(self.number) < len(self.names):
            twice = next(name for number, name in enumerate(self.names) if self.number[name] != number)
            raise InputError(f"candidates: {shorten(twice)!r} stands in the list twice")
        exactly, at_most = dict(exactly or {}), dict(at_most or {})
        both = exactly.keys() & at_most.keys()
        if both or not (exactly or at_most):
            found = f"{min(both)!r} is in both" if both else "there is no kind of group"
            raise InputError(f"exactly, at_most: {found}")
        kinds: list[str] = []
        columns: list[np.ndarray] = []
        needed: list[np.ndarray] = []
        rules: list[str] = []
        for kind, grouping in (exactly | at_most).items():
            for layer, (column, groups) in enumerate(self._layers(kind, grouping), 1):
                alone = column < 0
                column[alone] = groups + np.arange(alone.sum())
                kinds.append(kind if layer == 1 else f"{kind} {layer}")
                rules.append("exactly" if kind in exactly else "at most")
                columns.append(column)
                needed.append((np.arange(groups + alone.sum()) < groups) & (kind in exactly))
        self.kinds = tuple(kinds)
        """The names of the kinds of groups, those of "exactly" first."""
        self.rules = tuple(rules)
        """Of each kind: "exactly" or "at most"."""
        self.counts = tuple(len(of_kind) for of_kind in needed)
        """How many groups each kind has, with those of candidates that stand alone."""
        self.member_of = np.stack(columns, axis=1)
        """(candidates, kinds), the group of each kind that a candidate stands in."""
        self.needed = np.concatenate(needed)
        """Whether exactly one is true, of the groups of all kinds, one kind after the other."""
        self.decides = bool(exactly) and bool(needed[0].all())

    def __repr__(self) -> str:
        parts = [f"{len(self.names)} candidates"]
        for rule in dict.fromkeys(self.rules):
            kinds = [f"{self.kinds[k]} ({self.counts[k]})" for k, of_kind in enumerate(self.rules) if of_kind == rule]
            parts.append(f"{rule} one: {', '.join(kinds)}")
        return f"Constraints({'; '.join(parts)})"

    def _layers(self, kind: str, grouping: Grouping) -> list[tuple[np.ndarray, int]]:
        """The groups of a kind, spread so that none overlap: per layer the group of each candidate, -1 for none, and
        how many there are."""
        if callable(grouping):
            by_key: dict[Hashable, list[int]] = {}
            for number, name in enumerate(self.names):
                if (key := grouping(name)) is not None:
                    by_key.setdefault(key, []).append(number)
            groups = list(by_key.values())
        else:
            groups = [self.numbers(group, f"{kind}, group {n}").tolist() for n, group in enumerate(grouping, 1)]
        layers: list[tuple[np.ndarray, int]] = []
        for number, group in enumerate(groups, 1):
            if not group:
                raise InputError(f"{kind}, group {number}: it has no candidate")
            place = next((i for i, (column, _) in enumerate(layers) if (column[group] < 0).all()), len(layers))
            if place == len(layers):
                layers.append((np.full(len(self.names), -1), 0))
            column, count = layers[place]
            column[group] = count
            layers[place] = column, count + 1
        return layers or [(np.full(len(self.names), -1), 0)]

    def numbers(self, names: Iterable[Hashable], what: str = "candidates") -> np.ndarray:
        """The numbers of candidates by name."""
        named = list(names)
        unknown = next((name for name in named if name not in self.number), None)
        if unknown is not None:
            raise InputError(f"{what}: {shorten(unknown)!r} is no candidate")
        if len(set(named)) < len(named):
            raise InputError(f"{what}: a candidate stands in it twice")
        return np.array([self.number[name] for name in named], dtype=np.int64)

    @cached_property
    def groups(self) -> np.ndarray:
        """(candidates, kinds), as `member_of`, the groups of all kinds counted through."""
        return self.member_of + np.cumsum([0, *self.counts[:-1]])

    @cached_property
    def candidates(self) -> Candidates:
        """The groups as the search by guesses reads them."""
        return Candidates(torch.from_numpy(self.groups), torch.from_numpy(self.needed), self.counts[0])

    @cached_property
    def cover(self) -> Cover:
        """The groups as the exact search reads them."""
        return Cover.of(self.groups, self.needed)

    def as_kinds(self, kinds: tuple[str, ...]) -> tuple[np.ndarray, tuple[int, ...], tuple[np.ndarray, ...]]:
        """`member_of` and `counts` in terms of a network's kinds, and of each kind which of the groups counted through
        these are. A further kind of overlapping groups that is not needed here has groups of one."""
        extra = [kind for kind in self.kinds if kind not in kinds]
        missing = [kind for kind in kinds if kind not in self.kinds and not FURTHER.search(kind)]
        if extra or missing:
            raise InputError(
                f"kinds of groups: the network knows {', '.join(kinds)}; the problem has {', '.join(self.kinds)}"
            )
        count, first = len(self.names), np.cumsum([0, *self.counts])
        at = [self.kinds.index(kind) if kind in self.kinds else None for kind in kinds]
        columns = [np.arange(count) if k is None else self.member_of[:, k] for k in at]
        counts = tuple(count if k is None else self.counts[k] for k in at)
        groups = tuple(np.zeros(0, np.int64) if k is None else np.arange(first[k], first[k + 1]) for k in at)
        return np.stack(columns, axis=1), counts, groups

    def graph(self, still_open: np.ndarray | None = None) -> Groups:
        """The graph of the open candidates, bool (candidates,); by default of all."""
        member_of = self.member_of if still_open is None else self.member_of[still_open]
        return Groups(torch.from_numpy(member_of), self.counts)

    def broken(self, true: Iterable[Hashable]) -> list[str]:
        """The rules that an answer breaks, in words; none if it is right."""
        return self._broken(self.numbers(true, "answer"))

    def _broken(self, true: np.ndarray) -> list[str]:
        counts = np.bincount(self.groups[true].ravel(), minlength=len(self.needed))
        wrong = np.flatnonzero((counts > 1) | (self.needed & (counts == 0)))
        return [self._describe(group, int(counts[group])) for group in wrong.tolist()]

    def _describe(self, group: int, count: int) -> str:
        kind = int(np.searchsorted(np.cumsum(self.counts), group, side="right"))
        members = [self.names[number] for number in np.flatnonzero(self.groups[:, kind] == group)]
        rule = "exactly" if self.needed[group] else "at most"
        return f"{self.kinds[kind]}: {count} true instead of {rule} one of {shorten(', '.join(map(str, members)))}"

    def problem(
        self,
        given: Iterable[Hashable] = (),
        excluded: Iterable[Hashable] = (),
        answer: Iterable[Hashable] | None = None,
    ) -> "Problem":
        """What is known of some candidates, by name: those given are true, those excluded are false. With an
        ``answer``, all that are true, it can be trained on."""
        true = None
        if answer is not None:
            true = np.zeros(len(self.names), bool)
            true[self.numbers(answer, "answer")] = True
        return Problem(self, self.numbers(given, "given"), self.numbers(excluded, "excluded"), true)

    def dig(
        self,
        rng: np.random.Generator,
        answer: Iterable[Hashable] | None = None,
        excluded: Iterable[Hashable] = (),
        most_placements: int = MOST_PLACEMENTS,
    ) -> "Problem":
        """A random problem with exactly one solution, and nothing given that could be left out.

        What is true in the answer, by default a random one, is taken back in random order wherever the search proves
        that there is still one solution only.
        """
        never = self.numbers(excluded, "excluded")
        if answer is None:
            true = random_answer(self.cover, rng, never, most_placements)
        else:
            true = self.numbers(answer, "answer")
        given, _ = dig(self.cover, true, rng, never, most_placements)
        solution = np.zeros(len(self.names), bool)
        solution[true] = True
        return Problem(self, given, never, solution)

    def fit(self, make: "Callable[[np.random.Generator], Problem]", **settings: Any) -> "Solver":
        """Train a network on problems of your own: see `rrn.constraints.training.fit`."""
        from rrn.constraints.training import fit

        return fit(self.kinds, make, **settings)


@dataclass(frozen=True, eq=False)
class Problem:
    """Constraints, and what is known: numbers of candidates that are given (true) and excluded (false).

    Made by `Constraints.problem` or `Constraints.dig`. ``answer``, where known, is bool (candidates,).
    """

    constraints: Constraints
    given: np.ndarray
    excluded: np.ndarray
    answer: np.ndarray | None = None

    def __post_init__(self) -> None:
        names = self.constraints.names
        both = np.intersect1d(self.given, self.excluded)
        if len(both):
            raise InputError(f"given, excluded: {shorten(names[both[0]])!r} is in both")
        groups = self.constraints.groups[self.given]
        if len(np.unique(groups)) < groups.size:
            for place, row in enumerate(groups):
                clash = np.flatnonzero((groups[:place] == row).any(1))
                if len(clash):
                    first, second = (shorten(names[self.given[p]]) for p in (clash[0], place))
                    kind = self.constraints.kinds[int((groups[clash[0]] == row).argmax())]
                    raise InputError(f"given: {first!r} and {second!r} stand in the same group ({kind})")
        if self.answer is not None and (wrong := self.broken(np.flatnonzero(self.answer))):
            raise InputError(f"answer: breaks a rule: {wrong[0]}")

    @cached_property
    def taken(self) -> np.ndarray:
        """Which groups, of all kinds counted through, have their true member already."""
        taken = np.zeros(len(self.constraints.needed), bool)
        taken[self.constraints.groups[self.given]] = True
        return taken

    @cached_property
    def still_open(self) -> np.ndarray:
        """Which candidates are neither given, nor excluded, nor share a group with a given: bool (candidates,)."""
        still_open = ~self.taken[self.constraints.groups].any(1)
        still_open[self.excluded] = False
        return still_open

    def broken(self, true: np.ndarray) -> list[str]:
        """What is wrong with an answer (numbers of candidates), in words; nothing if it is right."""
        names = self.constraints.names
        lost, wrong = np.setdiff1d(self.given, true), np.intersect1d(self.excluded, true)
        said = [f"{names[number]!r} is given, but not true" for number in lost]
        said += [f"{names[number]!r} is excluded, but true" for number in wrong]
        return said + self.constraints._broken(true)

    def with_more(self, share: float, rng: np.random.Generator) -> "Problem":
        """With a share of what is left of the answer given as well."""
        assert self.answer is not None
        left = np.flatnonzero(self.answer & self.still_open)
        more = rng.permutation(left)[: round(share * len(left))]
        return replace(self, given=np.concatenate([self.given, more]))

    def with_wrong(self, rng: np.random.Generator) -> "Problem":
        """With an open candidate given that is false, but leaves no group without a candidate that needs one: nothing
        solves it, which does not meet the eye, and it has no answer. As it is, if there is no such candidate."""
        assert self.answer is not None
        for number in rng.permutation(np.flatnonzero(self.still_open & ~self.answer)):
            wrong = replace(self, given=np.append(self.given, number), answer=None)
            left = np.bincount(self.constraints.groups[wrong.still_open].ravel(), minlength=len(wrong.taken))
            if (left > 0)[self.constraints.needed & ~wrong.taken].all():
                return wrong
        return self

    def count_solutions(self, limit: int = 2, most_placements: int = MOST_PLACEMENTS) -> int:
        """How many solutions there are, counted up to ``limit``; `UNKNOWN` if the exact search was given up."""
        found = search(self.constraints.cover, self.given, self.excluded, limit=limit, most_placements=most_placements)
        return found[1]
