"""Problems of candidates: declared constraints and Sudokus, solved by a network, with or without search."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from rrn.graphs import Groups
from rrn.inference.attempts import Problems, RecurrentNetwork, Slots
from rrn.inference.result import Status
from rrn.inference.search import CERTAIN_LOGIT, BestFirstSearch, BranchQueue, CandidateLayout
from rrn.network import RRN
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout
from rrn.nn.updates import SharedLayerUpdate, State

if TYPE_CHECKING:
    from rrn.training.tying import Axis, Ties


def make_network(types: int, hidden: int = 48, message_width: int = 16, layer_width: int = 128) -> RRN:
    """The network for groups of so many types, on a graph whose nodes are the open candidates."""
    messages = types * message_width
    return RRN(
        features=1,
        hidden=messages,
        encoder_layers=None,
        message=GroupMessage(types, message_width),
        update=SharedLayerUpdate(hidden, messages, layer_width),
        readout=DotReadout(hidden),
    )


class GroupTable(NamedTuple):
    """The groups of all candidates of a problem.

    Attributes:
        member_of: (candidates, types), the group of each type that a candidate is in; None: the batch has "member_of",
            (problems, candidates, types).
        counts: the number of groups of each type.
        classes: candidates per cell, if all cells have the same number of them, in order; otherwise 1.
    """

    member_of: Tensor | None
    counts: Sequence[int]
    classes: int = 1


class CandidateNetwork(RecurrentNetwork):
    """A network of `make_network` on batches of problems.

    A batch has "open", the open candidates, and "known", the logits of the others: (problems, candidates) each. Only
    open candidates are nodes, so the graph carries what is known.
    """

    exchangeable: Sequence[tuple[int, int]] = ()
    """Pairs of group types that a symmetry of the problem exchanges, all at once: rows and columns, for example."""

    def __init__(self, rrn: RRN, types: int) -> None:
        super().__init__()
        self.rrn, self.types = rrn, types

    def forward(
        self, batch: dict[str, Tensor], *, steps: int, state: State | None = None, groups: "GroupTable | None" = None
    ) -> tuple[Tensor, State]:
        """Logits of all candidates after each step, (steps, problems · cells, classes), and the state after the last.

        ``groups`` are those of the candidates; by default `groups_of` the batch.
        """
        batch = batch if "open" in batch else self.prepare(batch)
        member_of, counts, classes = self.groups_of(batch) if groups is None else groups
        graph, nodes = open_graph(batch["open"], batch["member_of"] if member_of is None else member_of, counts)
        state = self.initial_state(batch) if state is None else state
        logits = batch["known"].flatten().repeat(steps, 1)
        if graph.num_nodes:
            outputs, state = self.rrn.run(state.h.new_ones(graph.num_nodes, 1), graph, steps=steps, state=state)
            logits = logits.index_copy(1, nodes, outputs[..., 0])
        return logits.view(steps, -1, classes), state

    def groups_of(self, batch: dict[str, Tensor]) -> "GroupTable":
        """The groups of the candidates of a batch."""
        raise NotImplementedError

    def rows(self, batch: dict[str, Tensor]) -> Tensor:
        return batch["open"].sum(1)

    def initial_state(self, batch: dict[str, Tensor]) -> State:
        batch = batch if "open" in batch else self.prepare(batch)
        return self.rrn.initial_state(next(self.parameters()).new_ones(int(batch["open"].sum()), 1))

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return self.rrn.update.add_noise(state, noise, generator)

    def ties(self) -> "list[Ties]":
        """The weights that are equal if the network does not distinguish `exchangeable` group types.

        A third of its units belong to the first type of each pair, a third to the second.
        """
        from rrn.training.tying import Axis, Ties

        if not self.exchangeable:
            return []
        update, readout = cast(SharedLayerUpdate, self.rrn.update), cast(DotReadout, self.rrn.readout)
        width = update.messages // self.types
        owner, role = torch.full((self.types,), -1, device="cpu"), torch.arange(self.types, device="cpu")
        for one, second in self.exchangeable:
            owner[one], owner[second], role[second] = 0, 1, one
        roles = role[:, None] * width + torch.arange(width, device="cpu")
        messages = Axis(owner.repeat_interleave(width), roles.flatten())
        layer, state = (_thirds(units) for units in (update.first.shape[1] - update.messages, update.hidden))
        layer = messages + layer
        inputs = state + messages + Axis.of(0, 0, 1)
        return [
            Ties(update.first, inputs, layer, inputs=0),
            Ties(update.second, layer, state, inputs=0),
            Ties(readout.weight, state),
        ]

    def widened(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        from rrn.training.growing import widen

        update, second = cast(SharedLayerUpdate, self.rrn.update), weights.get("rrn.update.second")
        if second is None or second.shape == update.second.shape:
            return weights
        layer, hidden = second.shape
        rest = layer - (len(weights["rrn.update.first"]) - 1 - hidden)
        state = _indices_in_thirds(hidden, update.hidden)
        others = _indices_in_thirds(rest, len(update.second) - update.messages)
        return widen(self.rrn, weights, state, others, prefix="rrn.")


def open_graph(open_: Tensor, member_of: Tensor, counts: Sequence[int]) -> tuple[Groups, Tensor]:
    """The graph of the open candidates (problems, candidates), and the indices of its nodes among all candidates.

    ``member_of`` is (candidates, types), or (problems, candidates, types).
    """
    nodes = open_.flatten().nonzero()[:, 0]
    groups = member_of[nodes % open_.shape[1]] if member_of.dim() == 2 else member_of.flatten(0, 1)[nodes]
    return Groups(groups, counts, open_.sum(1).cumsum(0)), nodes


def known_logits(true: Tensor) -> Tensor:
    """Logits of candidates that are not open: which of them are true, bool, → ±`CERTAIN_LOGIT`."""
    return torch.where(true, CERTAIN_LOGIT, -CERTAIN_LOGIT)


class CandidateBatch(Problems):
    """n problems of candidates, padded to the same number, and the network that predicts their logits.

    An answer is the logits (candidates,) of a step. It is accepted if the chosen candidates break no rule and contain
    all that is given.

    Args:
        network: called with the batch of the problems in slots; returns a state and logits (steps, problems · cells,
            classes), of which those from ``first_class`` on are candidates.
        batch: what the network reads, tensors by name with n rows. For search it has "open" and "known", the open
            candidates and the logits of the others: (n, candidates) each.
        layouts: candidates and groups of each problem; one for all of them if they share it.
        true: (n, candidates) bool, the candidates that are given.
        decides: whether each cell has exactly one true candidate, so that the largest logit of a cell is chosen;
            otherwise all candidates with a positive logit are.
        search: use best-first search; for networks trained to detect contradictions.
        diagnose: the status and message of a problem whose first attempt failed, by its number.
        forward_kwargs: further arguments of the network.
    """

    def __init__(
        self,
        network: RecurrentNetwork,
        batch: dict[str, Tensor],
        layouts: CandidateLayout | Sequence[CandidateLayout],
        true: Tensor,
        *,
        decides: bool = True,
        search: bool = False,
        diagnose: Callable[[int], tuple[Status, str]] | None = None,
        **forward_kwargs: Any,
    ) -> None:
        self.network, self.forward_kwargs, self.diagnosis = network, forward_kwargs, diagnose
        device = network.device
        self.batch = {name: part.to(device) for name, part in batch.items()}
        self.layouts = [layouts] * len(true) if isinstance(layouts, CandidateLayout) else list(layouts)
        self.true, self.decides = true, decides
        shared = isinstance(layouts, CandidateLayout) or all(layout is self.layouts[0] for layout in self.layouts)
        self.group_of, self.needed = _stack(self.layouts[:1] if shared else self.layouts, true.shape[1])
        if search:
            self.search = BestFirstSearch(self._queue, self._initial_state)

    def __len__(self) -> int:
        return len(self.true)

    def batch_key(self) -> Hashable:
        if len(self.group_of) > 1:
            return self  # problems with different layouts
        parts = tuple((name, part.shape[1:]) for name, part in self.batch.items())
        kwargs = tuple((name, id(value)) for name, value in self.forward_kwargs.items())
        return id(self.network), id(self.layouts[0]), parts, kwargs, self.decides, self.search is not None

    def empty(self) -> "CandidateBatch":
        if self.batch_key() is self:
            return self
        batch = {name: part[:0] for name, part in self.batch.items()}
        none = CandidateBatch(
            self.network, batch, self.layouts[:1], self.true[:0], decides=self.decides, search=self.search is not None
        )
        none.forward_kwargs = self.forward_kwargs
        return none

    def put(self, number: int, others: Problems, row: int) -> None:
        if others is self:
            return
        assert isinstance(others, CandidateBatch)
        if number == len(self.true):
            one = slice(row, row + 1)
            self.true = torch.cat([self.true, others.true[one]])
            self.batch = {name: torch.cat([part, others.batch[name][one]]) for name, part in self.batch.items()}
            self.layouts += self.layouts[:1] if number else []
        else:
            self.true[number] = others.true[row]
            for name, part in self.batch.items():
                part[number] = others.batch[name][row]

    def enter(self, problems: Tensor) -> tuple[Tensor, State]:
        batch = {name: part[problems] for name, part in self.batch.items()}
        return self.network.rows(batch).cpu(), self.network.initial_state(batch)

    def run(self, slots: Slots, steps: int) -> tuple[Tensor, State]:
        batch = {name: part[slots.problems] for name, part in self.batch.items()}
        if self.search is not None:
            branches = self.search.branches(slots)
            batch["open"] = torch.stack([branch.open for branch in branches]).to(self.network.device)
            batch["known"] = known_logits(torch.stack([branch.true for branch in branches])).to(batch["known"])
        outputs, state = self.network(batch, steps=steps, state=slots.state, **self.forward_kwargs)
        first, classes = self.network.first_class, outputs.shape[-1]
        logits = outputs.view(steps, len(slots.problems), -1, classes)[..., first:].flatten(2).cpu()
        if self.search is not None:
            widths = [len(self.layouts[problem].groups) for problem in slots.problems.tolist()]
            self.search.observe(slots, [row[:width] for row, width in zip(logits[-1], widths, strict=True)])
        return logits, state

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None) -> State:
        return self.network.add_noise(state, noise, generator)

    def diagnose(self, problem: int) -> tuple[Status, str]:
        return (Status.UNSOLVED, "") if self.diagnosis is None else self.diagnosis(problem)

    def finished(self, slots: Slots, outputs: Tensor) -> Tensor:
        return self.keeps_rules(self.choose(outputs, slots.problems), slots.problems)

    def answer(self, slots: Slots, outputs: Tensor, slot: int, step: int) -> Tensor:
        return outputs[step, slot]

    def choose(self, logits: Tensor, problems: Tensor) -> Tensor:
        """The candidates chosen by logits (steps, problems, candidates), bool."""
        if "open" in self.batch:
            logits = logits.where((self.batch["open"][problems].cpu() | self.true[problems]), float("-inf"))
        if not self.decides:
            return logits > 0
        cell = self._rows(self.group_of, problems)[..., 0].expand_as(logits)
        largest = torch.full_like(logits[..., :1], float("-inf")).expand(*logits.shape[:2], self.needed.shape[1])
        return (logits == largest.scatter_reduce(2, cell, logits, "amax").gather(2, cell)) & (logits > float("-inf"))

    def keeps_rules(self, chosen: Tensor, problems: Tensor) -> Tensor:
        """Whether a choice (steps, problems, candidates) breaks no rule and contains the givens: (steps, problems)."""
        steps, count, _ = chosen.shape
        groups = self.needed.shape[1]
        step, slot, candidate = chosen.nonzero(as_tuple=True)
        owner = problems[slot] if len(self.group_of) > 1 else torch.zeros_like(slot)
        group = self.group_of[owner, candidate] + ((step * count + slot) * groups)[:, None]
        counts = group.flatten().bincount(minlength=steps * count * groups).view(steps, count, groups)
        valid = ((counts <= 1) & ((counts == 1) | ~self._rows(self.needed, problems)))[..., :-1].all(-1)
        return valid & (chosen | ~self.true[problems]).all(-1)

    def confidence(self, answers: list[Tensor]) -> np.ndarray:
        if not answers:
            return np.zeros(0)
        logits, given = torch.stack(answers), self.true
        if not self.decides:
            certainty = logits.abs().sigmoid().where(logits.abs() < CERTAIN_LOGIT, 0.0)
            open_ = (certainty > 0).sum(1)
            return (certainty.sum(1) / open_.clamp_min(1)).where(open_ > 0, 1.0).double().numpy()
        cell = self._rows(self.group_of, torch.arange(len(logits), device="cpu"))[..., 0]
        cells = logits.new_zeros(len(logits), self.needed.shape[1])
        largest = torch.full_like(cells, float("-inf")).scatter_reduce(1, cell, logits, "amax")
        total = cells.scatter_add(1, cell, (logits - largest.gather(1, cell)).exp())
        asked = cells.scatter_reduce(1, cell, torch.where(given, 2.0, 1.0).to(cells), "amax") == 1.0
        asked[:, -1] = False
        mean = (1 / total.clamp_min(1)).where(asked, 0.0).sum(1) / asked.sum(1).clamp_min(1)
        return mean.where(asked.any(1), 1.0).double().numpy()

    @staticmethod
    def _rows(values: Tensor, problems: Tensor) -> Tensor:
        """Rows of problems, of values with one row each or one row for all."""
        return values[problems] if len(values) > 1 else values.expand(len(problems), *values.shape[1:])

    def _initial_state(self, problem: int) -> State:
        return self.enter(torch.tensor([problem], device="cpu"))[1]

    def _queue(self, problem: int) -> BranchQueue:
        layout = self.layouts[problem]
        width = len(layout.groups)
        return BranchQueue(layout, self.batch["open"][problem, :width].cpu(), self.true[problem, :width])


def _stack(layouts: Sequence[CandidateLayout], candidates: int) -> tuple[Tensor, Tensor]:
    """The groups (layouts, candidates, types) and needed groups (layouts, groups) of several layouts, padded.

    Padding candidates are in a group of their own, the last one, which is not needed.
    """
    types = max(layout.groups.shape[1] for layout in layouts)
    most = max(len(layout.needed) for layout in layouts)
    groups = torch.full((len(layouts), candidates, types), most, dtype=torch.long, device="cpu")
    needed = torch.zeros(len(layouts), most + 1, dtype=torch.bool, device="cpu")
    for row, layout in enumerate(layouts):
        groups[row, : len(layout.groups), : layout.groups.shape[1]] = layout.groups
        needed[row, : len(layout.needed)] = layout.needed
    return groups, needed


def _thirds(units: int) -> "Axis":
    """Units in thirds: for the first type of each pair, for the second, and the rest for both."""
    from rrn.training.tying import Axis

    return Axis.of(2, units // 3, units - 2 * (units // 3))


def _indices_in_thirds(few: int, many: int) -> Tensor:
    """Indices of the old units in the new layer, each within its third."""
    each, third = few // 3, many // 3
    shares = (0, each), (third, each), (2 * third, few - 2 * each)
    return torch.cat([torch.arange(first, first + count, device="cpu") for first, count in shares])
