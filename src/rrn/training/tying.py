"""Weight tying under a symmetry: weights that a renaming maps onto each other stay equal in training.

A Sudoku stays the same when its digits are renamed, a map when its colours are. So each digit gets units of every
layer; an `Axis` describes them for each side of each weight, and `tie` changes the optimizer. Every example then
trains all digits at once. Inputs, equations and weight files do not change; training can continue without tying.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import torch
from torch import Tensor, nn

from rrn.network import RRN
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout
from rrn.nn.updates import SharedLayerUpdate

EMPTY: Mapping[str, "Axis"] = MappingProxyType({})


@dataclass(frozen=True)
class Axis:
    """The units along one side of a weight: the owner of each, such as a digit (-1: shared), and its role.

    Units with the same role and different owners are tied. Roles of owned and of shared units differ.
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
        """``count`` adjacent entries for each unit: a filter has one per pixel."""
        role = self.role[:, None] * count + torch.arange(count, device="cpu")
        return Axis(self.owner.repeat_interleave(count), role.flatten())

    def __add__(self, other: "Axis") -> "Axis":
        """The concatenation of two axes; their roles differ."""
        first = int(self.role.max()) + 1
        return Axis(torch.cat([self.owner, other.owner]), torch.cat([self.role, first + other.role]))


class Ties:
    """The tied entries of a parameter. ``axes`` has one per dimension; ``inputs`` is the dimension of the inputs."""

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
        # An entry that is summed over k owners has k times the effect, so its step is 1/k.
        adds_up = (row < 0) & (column >= 0) if inputs else (row >= 0) & (column < 0)
        each = torch.where(both & ~same, 1 / max(owners - 1, 1), torch.where(adds_up, 1 / max(owners, 1), 1.0))
        self.each = each.view(parameter.shape)
        self.own = (both & same).view(parameter.shape)
        roles = len(rows.role.unique()), len(columns.role.unique())
        self.inputs, self.outputs = roles[inputs], roles[1 - inputs]

    def follow(self) -> None:
        """Move to the device of the parameter."""
        device = self.parameter.device
        self.group, self.size, self.each = self.group.to(device), self.size.to(device), self.each.to(device)

    def mean(self, values: Tensor) -> Tensor:
        """Each entry replaced by the mean of the entries tied to it."""
        sums = torch.zeros_like(self.size).index_add_(0, self.group, values.flatten())
        return (sums / self.size)[self.group].view_as(values)

    def broken(self) -> bool:
        """Whether tied entries differ by more than rounding."""
        values = self.parameter.detach()
        return bool((self.mean(values) - values).abs().max() > 1e-3)

    def share(self) -> None:
        """Copy the first of the tied entries to all of them: unlike a mean, this keeps the variance of new weights."""
        with torch.no_grad():
            last_to_first = self.group.flip(0), self.parameter.flatten().flip(0)
            first = torch.zeros_like(self.size).index_copy_(0, *last_to_first)
            self.parameter.copy_(first[self.group].view_as(self.parameter))

    def draw(self, gates: int = 1, own: float = 1.0, rest: float = 1.0) -> None:
        """New weights by Glorot's rule, as if there were a single owner; ``gates`` layers share the parameter.

        Weights within an owner are multiplied by ``own``, all others by ``rest``: sums over owners must not dominate
        the differences between them.
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
    """Ties of all parameters of a network except those of layers ``left_out``.

    The axis of a layer's inputs and outputs is ``every``, unless ``inputs`` or ``outputs`` has another for its name.
    """
    ties = []
    for name, parameter in network.named_parameters():
        layer = name.rpartition(".")[0]
        if layer not in left_out:
            axes = outputs.get(layer, every), inputs.get(layer, every)
            ties.append(Ties(parameter, *axes[: 1 + (parameter.dim() > 1)]))
    return ties


def ties_of_group_types(network: RRN, exchangeable: Sequence[tuple[int, int]]) -> list[Ties]:
    """The weights that are equal if a network on `Groups` does not distinguish the types of each pair.

    Of the units without a type, a third belong to the first type of each pair, a third to the second.
    """
    update, readout = cast(SharedLayerUpdate, network.update), cast(DotReadout, network.readout)
    types = cast(GroupMessage, network.message).group_types
    width = update.messages // types
    owner, role = torch.full((types,), -1, device="cpu"), torch.arange(types, device="cpu")
    for one, second in exchangeable:
        owner[one], owner[second], role[second] = 0, 1, one
    roles = role[:, None] * width + torch.arange(width, device="cpu")
    messages = Axis(owner.repeat_interleave(width), roles.flatten())
    layer, state = (
        Axis.of(2, units // 3, units - 2 * (units // 3))
        for units in (update.first.shape[1] - update.messages, update.hidden)
    )
    layer = messages + layer
    inputs = state + messages + Axis.of(0, 0, 1)
    return [
        Ties(update.first, inputs, layer, inputs=0),
        Ties(update.second, layer, state, inputs=0),
        Ties(readout.weight, state),
    ]


def draw_tied(ties: Sequence[Ties], own: float, rest: float) -> None:
    """Draw new weights for all layers; biases do not change. See `Ties.draw`."""
    for tied in ties:
        if tied.parameter.dim() > 1:
            tied.draw(own=own, rest=rest)


def tie(optimizer: torch.optim.Optimizer, ties: Sequence[Ties]) -> None:
    """Average tied entries now, and keep them equal in every step of the optimizer.

    The optimizer must update each entry separately by the same rule, as SGD and Adam do.
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
