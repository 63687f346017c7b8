"""The network on open candidates for batches of problems that share their groups, as tensors."""

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor

from rrn.constraints.solving import make_network, run
from rrn.graphs import Groups
from rrn.growing import widen
from rrn.places import Resumable
from rrn.readouts import DotReadout
from rrn.tying import Axis, Ties
from rrn.updates import SharedLayerUpdate, State


def open_graph(still_open: Tensor, member_of: Tensor, counts: Sequence[int]) -> tuple[Groups, Tensor]:
    """The graph of the open candidates (problems, candidates), and which of all candidates its nodes are."""
    nodes = still_open.flatten().nonzero()[:, 0]
    return Groups(member_of[nodes % still_open.shape[1]], counts, still_open.sum(1).cumsum(0)), nodes


class CandidateNetwork(Resumable):
    """`make_network` on problems that share their groups: those of a batch with "open", which candidates are, and
    "known", the logits of the others, (problems, candidates) each; `prepare` may derive them.

    Candidates that are not open take no part: the graph itself says what is known.
    """

    exchanged: Sequence[tuple[int, int]] = ()
    """Pairs of kinds that a symmetry of the problem exchanges, all at once: rows and columns, say."""

    def __init__(self, kinds: int, hidden: int, message_width: int, layer_width: int) -> None:
        super().__init__()
        self.rrn = make_network(kinds, hidden, message_width, layer_width)
        self.kinds = kinds

    def run(
        self, batch: dict[str, Tensor], member_of: Tensor, counts: Sequence[int], steps: int, state: State | None
    ) -> tuple[Tensor, State]:
        """The logits of all candidates after each step, (steps, problems · candidates), and the state after the last.

        ``member_of`` and ``counts`` are as in `Constraints`.
        """
        graph, nodes = open_graph(batch["open"], member_of, counts)
        outputs, state = run(self.rrn, graph, steps, state or self.start(batch))
        return batch["known"].flatten().repeat(steps, 1).index_copy(1, nodes, outputs), state

    def rows(self, batch: dict[str, Tensor]) -> Tensor:
        return self.prepare(batch)["open"].sum(1)

    def start(self, batch: dict[str, Tensor]) -> State:
        return self.rrn.init_state(next(self.parameters()).new_ones(int(self.rows(batch).sum()), 1))

    def noisy(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return self.rrn.update.noisy(state, noise, generator)

    def ties(self) -> list[Ties]:
        """What is equal if the network treats kinds alike that are `exchanged`: a third of its units belong to the
        first of each pair, and a third to the second."""
        if not self.exchanged:
            return []
        update, readout = cast(SharedLayerUpdate, self.rrn.update), cast(DotReadout, self.rrn.readout)
        width = update.messages // self.kinds
        owner, role = torch.full((self.kinds,), -1, device="cpu"), torch.arange(self.kinds, device="cpu")
        for one, second in self.exchanged:
            owner[one], owner[second], role[second] = 0, 1, one
        roles = role[:, None] * width + torch.arange(width, device="cpu")
        messages = Axis(owner.repeat_interleave(width), roles.flatten())
        layer, state = (_thirds(units) for units in (update.first.shape[1] - update.messages, update.hidden))
        layer = messages + layer
        told = state + messages + Axis.of(0, 0, 1)
        return [
            Ties(update.first, told, layer, inputs=0),
            Ties(update.second, layer, state, inputs=0),
            Ties(readout.weight, state),
        ]

    def widened(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The weights of a narrower network of this kind, in the midst of this one's own: see `rrn.growing.widen`."""
        update, second = cast(SharedLayerUpdate, self.rrn.update), weights.get("rrn.update.second")
        if second is None or second.shape == update.second.shape:
            return weights
        layer, hidden = second.shape
        rest = layer - (len(weights["rrn.update.first"]) - 1 - hidden)
        state, others = _thirds_of(hidden, update.hidden), _thirds_of(rest, len(update.second) - update.messages)
        return widen(self.rrn, weights, state, others, prefix="rrn.")


def _thirds(units: int) -> Axis:
    """A third of the units for the first of each pair of kinds, one for the second, and the rest for both."""
    return Axis.of(2, units // 3, units - 2 * (units // 3))


def _thirds_of(few: int, many: int) -> Tensor:
    """Where few units stand among many, if each keeps to its third."""
    each, third = few // 3, many // 3
    shares = (0, each), (third, each), (2 * third, few - 2 * each)
    return torch.cat([torch.arange(first, first + count, device="cpu") for first, count in shares])
