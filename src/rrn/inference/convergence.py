"""Stopping rules of `RRN.think`: when the answer to a graph is accepted, and its slot becomes free."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from rrn.inference.attempts import Problems, Slots
from rrn.nn.readouts import Outputs, answer_of
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.graphs import Graph
    from rrn.network import RRN, Prepared


class StoppingRule(Protocol):
    """Decides after which step the answer to a graph is accepted."""

    def accept(self, stride: "Stride") -> Tensor:
        """Whether each slot is finished after each step: (steps, slots) bool."""


@dataclass
class Stride:
    """The answers of some steps, with those before the first of them.

    Attributes:
        logits: (1 + steps, rows, width).
        slot_of: (rows,) the slot of each row.
        slots: the contents of the slots.
        unchanged: (attempts + 1, graphs) for how many steps each answer has been the same, kept between strides.
        residual: (steps, slots) the largest change of a probability in each step.
    """

    logits: Tensor
    slot_of: Tensor
    slots: Slots
    unchanged: Tensor
    residual: Tensor


@dataclass(frozen=True)
class Settled:
    """Accept when no predicted class of the graph has changed for so many ``steps``."""

    steps: int = 4

    def accept(self, stride: Stride) -> Tensor:
        logits, attempts, problems = stride.logits, stride.slots.attempts, stride.slots.problems
        classes = logits.argmax(-1) if logits.shape[-1] > 1 else (logits[..., 0] > 0).long()
        changed = _largest((classes[1:] != classes[:-1]).float(), stride.slot_of, len(problems)).cpu() > 0
        accepted = []
        for now in changed:
            unchanged = torch.where(now, 0, stride.unchanged[attempts, problems] + 1)
            stride.unchanged[attempts, problems] = unchanged
            accepted.append(unchanged >= self.steps)
        return torch.stack(accepted)


@dataclass(frozen=True)
class Converged:
    """Accept when no probability of the graph changes by ``tolerance`` or more in a step."""

    tolerance: float = 1e-3

    def accept(self, stride: Stride) -> Tensor:
        return stride.residual < self.tolerance


@dataclass(frozen=True)
class Accepted:
    """Accept when a ``check`` of the answer (its rows, width) and the number of the graph returns true."""

    check: Callable[[Tensor, int], bool]

    def accept(self, stride: Stride) -> Tensor:
        numbers = stride.slots.problems.tolist()
        accepted = [
            [bool(self.check(step[stride.slot_of == slot], number)) for slot, number in enumerate(numbers)]
            for step in stride.logits[1:]
        ]
        return torch.tensor(accepted, device="cpu")


def as_rule(until: "StoppingRule | Callable[[Tensor, int], bool]") -> StoppingRule:
    """The stopping rule, or a check as one."""
    return until if hasattr(until, "accept") else Accepted(until)


class GraphBatch(Problems):
    """The graphs of a batch as problems of `rrn.inference.attempts`."""

    def __init__(self, network: "RRN", given: "Prepared", rule: StoppingRule, attempts: int) -> None:
        self.network, self.given, self.rule = network, given, rule
        self.graph_of = given.graph.graph_of_node(given.batch)
        self.graphs = int(self.graph_of[-1]) + 1
        self.unchanged = torch.zeros(attempts + 1, self.graphs, dtype=torch.long, device="cpu")
        self.residual = self.unchanged
        self.selected: tuple[list[int], Prepared, Tensor] | None = None

    def __len__(self) -> int:
        return self.graphs

    def enter(self, problems: Tensor) -> tuple[Tensor, State]:
        given, slot_of = self._select(problems)
        return slot_of.bincount(minlength=len(problems)).cpu(), self.network.initial_state(given)

    def run(self, slots: Slots, steps: int) -> tuple[Tensor | Outputs, State]:
        given, _ = self._select(slots.problems)
        return self.network.run(given, steps=steps, state=slots.state)

    def finished(self, slots: Slots, outputs: Tensor | Outputs) -> Tensor:
        given, _ = self._select(slots.problems)
        before = answer_of(self.network.read(given, slots.state))
        logits, slot_of = self._rows(slots, torch.cat([before[None], answer_of(outputs)]))
        probabilities = logits.softmax(-1) if logits.shape[-1] > 1 else logits.sigmoid()
        change = (probabilities[1:] - probabilities[:-1]).abs().amax(-1)
        self.residual = _largest(change, slot_of, len(slots.problems)).cpu()
        finite = _largest((~logits[1:].isfinite()).any(-1).float(), slot_of, len(slots.problems)).cpu() == 0
        return self.rule.accept(Stride(logits, slot_of, slots, self.unchanged, self.residual)) & finite

    def answer(self, slots: Slots, outputs: Tensor | Outputs, slot: int, step: int) -> tuple[Tensor, float]:
        logits, slot_of = self._rows(slots, answer_of(outputs)[step : step + 1])
        return logits[0, slot_of == slot], float(self.residual[step, slot])

    def confidence(self, answers: list[tuple[Tensor, float]]) -> np.ndarray:
        def of(logits: Tensor) -> float:
            if not len(logits):
                return 1.0
            if logits.shape[-1] > 1:
                return float(logits.softmax(-1).amax(-1).mean())
            return float((logits.abs()).sigmoid().mean())

        return np.array([of(logits) for logits, _ in answers])

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None) -> State:
        return self.network.update.add_noise(state, noise, generator)

    def _rows(self, slots: Slots, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The answers of some steps as (steps, rows, width), and the slot of each row."""
        given, slot_of = self._select(slots.problems)
        if not self.network.readout.reads_edges:
            if logits.shape[1] == len(slot_of):
                return logits, slot_of
            if logits.shape[1] == len(slots.problems):
                return logits, torch.arange(len(slots.problems), device=slot_of.device)
        _, receivers, edges = given.graph.ends()
        return logits.flatten(1, -2)[:, edges], slot_of[receivers]

    def _select(self, problems: Tensor) -> "tuple[Prepared, Tensor]":
        """The inputs of some graphs, in this order, and the slot of each node. A graph may be in several slots."""
        wanted = problems.tolist()
        if self.selected is None or self.selected[0] != wanted:
            sizes = self.graph_of.bincount()[problems.to(self.graph_of.device)]
            slot_of = torch.arange(len(wanted), device=sizes.device).repeat_interleave(sizes)
            once = wanted == sorted(set(wanted))
            parts = [self._part(wanted)] if once else [self._part([number]) for number in wanted]
            graph, edge_attr = type(self.given.graph).join([part[1:] for part in parts])
            x, term = torch.cat([part[0] for part in parts]), self.network.message.encode_edges(edge_attr)
            given = self.given._replace(x=x, graph=graph, edge_attr=edge_attr, edge_term=term, batch=slot_of)
            self.selected = wanted, given, slot_of
        return self.selected[1], self.selected[2]

    def _part(self, graphs: list[int]) -> "tuple[Tensor, Graph, Tensor | None]":
        nodes = torch.isin(self.graph_of, self.graph_of.new_tensor(graphs))
        return self.given.x[nodes], *self.given.graph.select(nodes, self.given.edge_attr)


def _largest(values: Tensor, slot_of: Tensor, slots: int) -> Tensor:
    """The largest value of each slot: (steps, rows) → (steps, slots)."""
    zeros = values.new_zeros(len(values), slots)
    return zeros.scatter_reduce(1, slot_of.expand_as(values), values, "amax")
