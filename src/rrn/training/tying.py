"""Train under a symmetry: weights that renaming maps onto each other stay equal.

If a problem stays the same when things of one sort are renamed (the digits of a Sudoku, the colours of a map), a
network may as well treat them alike. Give each of them its own units in every layer, say so by an `Axis` for each side
of each weight, and `tie` the optimizer: every example then teaches all of them at once. Inputs, equations and weight
files of the network stay what they are; afterwards it can be trained on without ties.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

EMPTY: Mapping[str, "Axis"] = MappingProxyType({})


@dataclass(frozen=True)
class Axis:
    """The units along one side of a weight: who owns each (-1: nobody), and what it does for its owner.

    Units with the same role and different owners are alike. Roles of owned and of shared units differ.
    """

    owner: Tensor
    role: Tensor

    @classmethod
    def of(cls, owners: int, units: int, shared: int) -> "Axis":
        """First ``units`` of each owner, then ``shared`` ones."""
        owned = torch.arange(owners * units, device="cpu")
        owner = torch.cat([owned // max(units, 1), torch.full((shared,), -1, device="cpu")])
        return cls(owner, torch.cat([owned % max(units, 1), units + torch.arange(shared, device="cpu")]))

    def times(self, count: int) -> "Axis":
        """``count`` entries for each unit, side by side: a filter has one per pixel."""
        role = self.role[:, None] * count + torch.arange(count, device="cpu")
        return Axis(self.owner.repeat_interleave(count), role.flatten())

    def __add__(self, other: "Axis") -> "Axis":
        """One side by side with another, whose roles are others."""
        first = int(self.role.max()) + 1
        return Axis(torch.cat([self.owner, other.owner]), torch.cat([self.role, first + other.role]))


class Ties:
    """Which entries of a parameter are equal; ``axes``: one per dimension; over the one of ``inputs`` a layer sums."""

    def __init__(self, parameter: nn.Parameter, *axes: Axis, inputs: int = 1) -> None:
        self.parameter = parameter
        rows, columns = axes[0], axes[1] if len(axes) > 1 else Axis.of(0, 0, 1)
        row, column = rows.owner[:, None], columns.owner[None, :]
        owners = int(max(rows.owner.max(), columns.owner.max())) + 1
        both, same = (row >= 0) & (column >= 0), row == column
        relation = torch.where(both, torch.where(same, 1, 2), 0)
        key = (rows.role[:, None] * (columns.role.max() + 1) + columns.role) * 3 + relation
        _, group, size = torch.unique(key.flatten(), return_inverse=True, return_counts=True)
        self.group, self.size = group, size.float()
        # An entry that adds up over all owners, or over all others, counts as often: so it moves as much less.
        adds_up = (row < 0) & (column >= 0) if inputs else (row >= 0) & (column < 0)
        each = torch.where(both & ~same, 1 / max(owners - 1, 1), torch.where(adds_up, 1 / max(owners, 1), 1.0))
        self.each = each.view(parameter.shape)
        self.own = (both & same).view(parameter.shape)
        roles = len(rows.role.unique()), len(columns.role.unique())
        self.inputs, self.outputs = roles[inputs], roles[1 - inputs]

    def follow(self) -> None:
        """To the device of the parameter, which may have moved."""
        device = self.parameter.device
        self.group, self.size, self.each = self.group.to(device), self.size.to(device), self.each.to(device)

    def mean(self, values: Tensor) -> Tensor:
        """Each entry replaced by the mean of those it is tied to."""
        sums = torch.zeros_like(self.size).index_add_(0, self.group, values.flatten())
        return (sums / self.size)[self.group].view_as(values)

    def broken(self) -> bool:
        """Whether entries that are tied differ by more than rounding."""
        values = self.parameter.detach()
        return bool((self.mean(values) - values).abs().max() > 1e-3)

    def share(self) -> None:
        """Each entry becomes that of the first it is tied to, so that weights just drawn keep their spread."""
        with torch.no_grad():
            last_to_first = self.group.flip(0), self.parameter.flatten().flip(0)
            first = torch.zeros_like(self.size).index_copy_(0, *last_to_first)
            self.parameter.copy_(first[self.group].view_as(self.parameter))

    def draw(self, gates: int = 1, own: float = 1.0, rest: float = 1.0) -> None:
        """New weights by Glorot's rule, as if there were a single owner; ``gates``: so many layers in one.

        Those from an owner's units to its own are then multiplied by ``own``, all others by ``rest``: what adds up over
        owners must not drown what tells them apart.
        """
        most = math.sqrt(6 / (self.inputs + self.outputs / gates))
        drawn = torch.empty_like(self.size).uniform_(-most, most)
        with torch.no_grad():
            spread = torch.where(self.own, own, rest * self.each)
            self.parameter.copy_(drawn[self.group].view_as(self.parameter) * spread)


def ties_of(
    network: nn.Module,
    every: Axis,
    *,
    outputs: Mapping[str, Axis] = EMPTY,
    inputs: Mapping[str, Axis] = EMPTY,
    left_out: Collection[str] = (),
) -> list[Ties]:
    """Ties of all parameters of a network but those of layers ``left_out``.

    Its layers, named as in ``named_parameters``, go from ``every`` to ``every`` unless ``inputs`` and ``outputs`` say
    otherwise.
    """
    ties = []
    for name, parameter in network.named_parameters():
        layer = name.rpartition(".")[0]
        if layer not in left_out:
            axes = outputs.get(layer, every), inputs.get(layer, every)
            ties.append(Ties(parameter, *axes[: 1 + (parameter.dim() > 1)]))
    return ties


def draw_tied(ties: Sequence[Ties], own: float, rest: float) -> None:
    """New weights for all layers; biases stay. See `Ties.draw`."""
    for tied in ties:
        if tied.parameter.dim() > 1:
            tied.draw(own=own, rest=rest)


def tie(optimizer: torch.optim.Optimizer, ties: Sequence[Ties]) -> None:
    """From now on the optimizer keeps tied entries equal; what differs is averaged at once.

    Works with any optimizer that treats entries alike and one by one, as SGD and Adam do.
    """
    before: list[Tensor] = []

    def average_gradients(*_: Any) -> None:
        before[:] = [tied.parameter.detach().clone() for tied in ties]
        for tied in ties:
            tied.follow()
            if tied.parameter.grad is not None:
                tied.parameter.grad.copy_(tied.mean(tied.parameter.grad))

    @torch.no_grad()
    def shorten_steps(*_: Any) -> None:
        for tied, old in zip(ties, before, strict=True):
            tied.parameter.copy_(old + tied.each * (tied.parameter - old))

    with torch.no_grad():
        for tied in ties:
            tied.parameter.copy_(tied.mean(tied.parameter))
    optimizer.register_step_pre_hook(average_gradients)
    optimizer.register_step_post_hook(shorten_steps)
