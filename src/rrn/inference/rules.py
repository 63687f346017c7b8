"""The rules of problems of candidates: the groups that candidates are in, and whether a choice breaks any."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rrn._compat import COMPILED, compiled


class CandidateLayout:
    """The candidates of a problem and the groups they are in.

    Args:
        groups: (candidates, columns), the groups of each candidate, numbered through over all types; -1 for no group.
        lower: (groups,), the least number of true candidates in each group.
        upper: (groups,), the largest number.
        counts: the number of groups of each type.
        column_types: (columns,), the type of each column, ascending; by default column k has type k.
    """

    def __init__(
        self,
        groups: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        counts: Sequence[int],
        column_types: Sequence[int] | None = None,
    ) -> None:
        self.groups, self.lower, self.upper, self.counts = groups, lower, upper, tuple(int(count) for count in counts)
        self.column_types = tuple(range(groups.shape[1]) if column_types is None else column_types)
        self.cells = self.counts[0]
        """The number of groups of the first type."""
        first = slice(0, self.cells)
        one_each = self.column_types.count(0) == 1 and bool((groups[:, 0] >= 0).all())
        self.decides = one_each and bool((lower[first] == 1).all() and (upper[first] == 1).all())
        """Whether exactly one candidate of each group of the first type, a cell, is true, and all are in one."""
        self.index = torch.from_numpy(np.where(groups < 0, len(lower), groups))  # the group of no rule is the last
        self.least, self.most = torch.from_numpy(lower), torch.from_numpy(upper)
        self.stacked: StackedLayouts | None = None
        """Cache of `StackedLayouts.of` for problems with this layout."""

    @cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What compiled code reads: groups; where the members of each group begin; the members; lower; upper."""
        candidate, column = np.nonzero(self.groups >= 0)
        group = self.groups[candidate, column]
        starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(self.lower)))])
        members = candidate[np.argsort(group, kind="stable")]
        return self.groups, starts, members, self.lower, self.upper

    def count(self, candidates: Tensor) -> Tensor:
        """How many of the candidates, (candidates,) bool, are in each group: (groups,)."""
        return self.index[candidates].flatten().bincount(minlength=len(self.lower) + 1)[:-1]

    def excluded_by(self, true: Tensor) -> Tensor:
        """The members of groups with as many true candidates as they may have, those included: (candidates,) bool."""
        full = torch.cat([self.count(true) >= self.most, true.new_zeros(1)])
        return full[self.index].any(1)

    def possible(self, left: Tensor) -> bool:
        """Whether every group has enough candidates among those left, (candidates,) bool."""
        return bool((self.count(left) >= self.least).all())

    def predict(self, open_: Tensor, logits: Tensor) -> "Prediction":
        """Probabilities from logits (candidates,), if one open candidate of each cell is true, or none."""
        cell = self.index[:, 0]
        logits = torch.where(open_, logits, float("-inf"))
        highest = logits.new_full((self.cells,), float("-inf")).scatter_reduce(0, cell, logits, "amax")
        highest = highest.nan_to_num(neginf=0.0)
        weights = (logits - highest[cell]).exp()
        total = weights.new_zeros(self.cells).index_add(0, cell, weights)
        probability = weights / total[cell].clamp_min(torch.finfo(weights.dtype).tiny)
        entropy = probability.new_zeros(self.cells).index_add(0, cell, -torch.xlogy(probability, probability))
        options = open_.new_zeros(self.cells, dtype=torch.long).index_add(0, cell, open_.long())
        return Prediction(probability, entropy, options, highest + total.log())


class Prediction(NamedTuple):
    """Predicted probability of each candidate, (candidates,); and of each cell, (cells,), the entropy, the number of
    open candidates, and the log odds that one of them is true against none, whose logit is zero."""

    probability: Tensor
    entropy: Tensor
    options: Tensor
    log_odds: Tensor


class StackedLayouts(NamedTuple):
    """The layouts of n problems, padded to the same numbers of candidates, groups and columns.

    Attributes:
        member_of: (n, candidates, columns), groups numbered within their type, -1 for none; (1, …) if all are the same.
        counts: the largest number of groups of each type.
        column_types: (columns,).
        group_of: as ``member_of``, numbered through over all types; the last group, of no rule, instead of -1.
        lower, upper: (n, groups + 1), bounds of each group.
    """

    member_of: Tensor
    counts: tuple[int, ...]
    column_types: tuple[int, ...]
    group_of: Tensor
    lower: Tensor
    upper: Tensor

    @classmethod
    def of(cls, layouts: Sequence[CandidateLayout], candidates: int) -> "StackedLayouts":
        if any(layout is not layouts[0] for layout in layouts):
            return cls._stack(layouts, candidates)
        if layouts[0].stacked is None or layouts[0].stacked.group_of.shape[1] != candidates:
            layouts[0].stacked = cls._stack(layouts[:1], candidates)
        return layouts[0].stacked

    @classmethod
    def _stack(cls, layouts: Sequence[CandidateLayout], candidates: int) -> "StackedLayouts":
        types = range(len(layouts[0].counts))
        counts = tuple(max(layout.counts[t] for layout in layouts) for t in types)
        widths = [max(layout.column_types.count(t) for layout in layouts) for t in types]
        first_group, first_column, total = np.cumsum([0, *counts]), np.cumsum([0, *widths]), sum(counts)
        member_of = np.full((len(layouts), candidates, sum(widths)), -1)
        lower, upper = np.zeros((2, len(layouts), total + 1), np.int64)
        upper[:] = candidates + 1
        for row, layout in enumerate(layouts):
            start, column = np.cumsum([0, *layout.counts]), 0
            for t in types:
                width, to = layout.column_types.count(t), first_group[t]
                part = layout.groups[:, column : column + width]
                at = slice(first_column[t], first_column[t] + width)
                member_of[row, : len(part), at] = np.where(part >= 0, part - start[t], -1)
                lower[row, to : to + layout.counts[t]] = layout.lower[start[t] : start[t + 1]]
                upper[row, to : to + layout.counts[t]] = layout.upper[start[t] : start[t + 1]]
                column += width
        column_types = tuple(t for t, width in enumerate(widths) for _ in range(width))
        group_of = np.where(member_of >= 0, member_of + first_group[list(column_types)], total)
        stacked = (torch.from_numpy(part) for part in (group_of, lower, upper))
        return cls(torch.from_numpy(member_of), counts, column_types, *stacked)

    def select(self, values: Tensor, problems: Tensor) -> Tensor:
        """Rows of problems, of values with one row each or one row for all."""
        return values[problems] if len(values) > 1 else values.expand(len(problems), *values.shape[1:])

    def remaining(self, true: Tensor, problems: Tensor, types: Sequence[int]) -> Tensor:
        """How many true candidates the groups of each candidate still need, or may have, summed by group type.

        ``true`` is (slots, candidates) bool, ``types`` some of the types; returns (slots, candidates, types).
        """
        groups = self.select(self.group_of, problems)
        lower, upper = self.select(self.lower, problems), self.select(self.upper, problems)
        index = groups.flatten(1)
        placed = torch.zeros_like(lower).scatter_add(1, index, true.long().repeat_interleave(groups.shape[2], dim=1))
        left = (torch.where(lower > 0, lower, upper) - placed).clamp_min(0).float()
        left[:, -1] = 0
        of_column = left.gather(1, index).view(groups.shape)
        return torch.stack([of_column[..., [t == of for of in self.column_types]].sum(2) for t in types], dim=-1)

    def largest_of_cells(self, logits: Tensor, problems: Tensor) -> Tensor:
        """The candidates with the largest logit of their cell, which is above -inf.

        Logits (steps, problems, candidates) → the same shape, bool.
        """
        cell, groups = self.group_of[..., 0], self.lower.shape[1]
        if COMPILED:
            chosen = np.empty(logits.shape, np.bool_)
            _largest_of_cells(
                logits.detach().contiguous().numpy(), cell.contiguous().numpy(), self._rows(problems), groups, chosen
            )
            return torch.from_numpy(chosen)
        cells = self.select(cell, problems).expand_as(logits)
        largest = torch.full_like(logits[..., :1], float("-inf")).expand(*logits.shape[:2], groups)
        return (logits == largest.scatter_reduce(2, cells, logits, "amax").gather(2, cells)) & (logits > float("-inf"))

    def keep_rules(self, chosen: Tensor, true: Tensor, problems: Tensor) -> Tensor:
        """Whether a choice breaks no rule and contains the candidates that are ``true``, (problems, candidates).

        ``chosen`` is (steps, problems, candidates) bool; returns (steps, problems) bool.
        """
        steps, count, _ = chosen.shape
        if COMPILED:
            kept = np.empty((steps, count), np.bool_)
            rules = (part.numpy() for part in (self.group_of, self.lower, self.upper))
            _keep_rules(chosen.contiguous().numpy(), true.contiguous().numpy(), *rules, self._rows(problems), kept)
            return torch.from_numpy(kept)
        groups = self.lower.shape[1]
        step, slot, candidate = chosen.nonzero(as_tuple=True)
        owner = problems[slot] if len(self.group_of) > 1 else torch.zeros_like(slot)
        group = self.group_of[owner, candidate] + ((step * count + slot) * groups)[:, None]
        counts = group.flatten().bincount(minlength=steps * count * groups).view(steps, count, groups)
        lower, upper = self.select(self.lower, problems), self.select(self.upper, problems)
        valid = ((counts <= upper) & (counts >= lower))[..., :-1].all(-1)
        return valid & (chosen | ~true).all(-1)

    def _rows(self, problems: Tensor) -> np.ndarray:
        """The row of each problem in the stacked tensors."""
        return problems.numpy() if len(self.group_of) > 1 else np.zeros(len(problems), np.int64)


@compiled
def _largest_of_cells(logits: np.ndarray, cell: np.ndarray, rows: np.ndarray, groups: int, chosen: np.ndarray) -> None:
    largest = np.empty(groups, logits.dtype)
    for step in range(logits.shape[0]):
        for slot in range(logits.shape[1]):
            cells = cell[rows[slot]]
            largest[:] = -np.inf
            for k in range(logits.shape[2]):
                value = logits[step, slot, k]
                if value > largest[cells[k]] or np.isnan(value):  # no candidate equals NaN, so none is chosen then
                    largest[cells[k]] = value
            for k in range(logits.shape[2]):
                value = logits[step, slot, k]
                chosen[step, slot, k] = value == largest[cells[k]] and value > -np.inf


@compiled
def _keep_rules(
    chosen: np.ndarray,
    true: np.ndarray,
    group_of: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    rows: np.ndarray,
    valid: np.ndarray,
) -> None:
    last = lower.shape[1] - 1  # the group of no rule
    counts = np.empty(last + 1, np.int64)
    for step in range(chosen.shape[0]):
        for slot in range(chosen.shape[1]):
            row, kept = rows[slot], True
            counts[:] = 0
            for k in range(chosen.shape[2]):
                if chosen[step, slot, k]:
                    for column in range(group_of.shape[2]):
                        counts[group_of[row, k, column]] += 1
                elif true[slot, k]:
                    kept = False
                    break
            if kept:
                for group in range(last):
                    if counts[group] > upper[row, group] or counts[group] < lower[row, group]:
                        kept = False
                        break
            valid[step, slot] = kept


@compiled
def propagate(
    open_: np.ndarray,
    true: np.ndarray,
    groups: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> bool:
    """Close open candidates of full groups, and make candidates true that a group needs, until nothing changes.

    ``open_`` and ``true`` are (candidates,) bool and change in place. Returns whether every group can still be met.
    """
    changed = True
    while changed:
        changed = False
        for group in range(len(lower)):
            placed, left = 0, 0
            for index in range(starts[group], starts[group + 1]):
                placed += true[members[index]]
                left += open_[members[index]]
            if placed > upper[group] or placed + left < lower[group]:
                return False
            if left == 0 or (placed < upper[group] and placed + left > lower[group]):
                continue
            for index in range(starts[group], starts[group + 1]):
                if open_[members[index]]:
                    open_[members[index]] = False
                    true[members[index]] = placed < upper[group]
            changed = True
    return True
