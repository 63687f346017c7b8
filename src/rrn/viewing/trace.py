"""Records what a network computes at every step: probabilities, residuals and the effects of single messages."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rrn.errors import InputError
from rrn.graphs import EdgeList, Graph
from rrn.inference.convergence import Settled, StoppingRule
from rrn.nn.losses import IGNORE, known
from rrn.nn.readouts import EdgeReadout, answer_of
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

INTEGRATION_POINTS = 16
"""Gradients per step between the senders' previous states and their present ones."""


class Record(NamedTuple):
    """The steps of a network on the graphs of a batch.

    Attributes:
        probabilities: (steps, answers, classes). An answer of one logit has two classes, no and yes.
        residuals: (steps, graphs), the largest change of a probability in a step.
        effects: (steps, edges), the change of the predicted class's probability at the receiver (with a graph or edge
            readout: anywhere in the graph) that the change of the sender's state caused. None if not requested.
        edge_index: (2, edges).
        graph_of_node: (nodes,).
        graph_of_answer: (answers,).
        readout: what an answer belongs to: "node", "graph" or "edge".
        steps: (graphs,), the number of steps until `RRN.think` stopped.
        finished: (graphs,), whether the stopping rule was then satisfied.
    """

    probabilities: Tensor
    residuals: Tensor
    effects: Tensor | None
    edge_index: Tensor
    graph_of_node: Tensor
    graph_of_answer: Tensor
    readout: Literal["node", "graph", "edge"]
    steps: Tensor
    finished: Tensor

    def select(self, graph: int) -> "Record":
        """The record of one graph, up to its last step."""
        if not 0 <= graph < len(self.steps):
            raise InputError(f"graph: expected 0 to {len(self.steps) - 1}, got {graph}")
        nodes, answers = self.graph_of_node == graph, self.graph_of_answer == graph
        edges, last = nodes[self.edge_index[0]], int(self.steps[graph])
        return Record(
            self.probabilities[:last, answers],
            self.residuals[:last, graph : graph + 1],
            None if self.effects is None else self.effects[:last, edges],
            self.edge_index[:, edges] - int(nodes.int().argmax()),
            self.graph_of_node[nodes] - graph,
            self.graph_of_answer[answers] - graph,
            self.readout,
            self.steps[graph : graph + 1],
            self.finished[graph : graph + 1],
        )

    def accuracy(self, targets: Tensor | np.ndarray, ignore_index: int = IGNORE) -> Tensor:
        """The share of correct answers at each step in each graph: (steps, graphs); NaN where no target is known."""
        targets = torch.as_tensor(targets, device="cpu")
        if targets.shape != self.graph_of_answer.shape:
            raise InputError(f"targets: expected shape {tuple(self.graph_of_answer.shape)}, got {tuple(targets.shape)}")
        counts = known(targets, ignore_index)
        correct = ((self.probabilities.argmax(-1) == targets) & counts).double()
        total = correct.new_zeros(len(correct), len(self.steps)).index_add(1, self.graph_of_answer, correct)
        return total / correct.new_zeros(len(self.steps)).index_add(0, self.graph_of_answer, counts.double())


def record_steps(
    network: "RRN",
    x: Tensor,
    edge_index: Tensor | Graph,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
    *,
    until: StoppingRule = Settled(),  # noqa: B008 (frozen)
    max_steps: int = 64,
    messages: bool = True,
) -> Record:
    """Run a network as `RRN.think` does in one attempt, and record every step.

    Args:
        network: one with a node, graph or edge readout.
        x, edge_index, edge_attr, batch: as in `RRN.forward`.
        until: the stopping rule, as in `RRN.think`.
        max_steps: of each graph.
        messages: whether to compute the effects of messages. This takes several gradients per step, and needs a message
            function that accepts any edge list.
    """
    given = network.prepare(x, edge_index, edge_attr, batch)
    result = network.think(given, until=until, max_steps=max_steps)
    senders, receivers, order = given.graph.ends()
    graph_of_node = given.graph.graph_of_node(batch)
    effects_of = _MessageEffects(network, given) if messages else None
    probabilities, effects = [], []
    with torch.no_grad():
        state = network.initial_state(given)
        probabilities.append(_probabilities(network, given, state, order))
        previous = torch.zeros_like(state.h)
        for _ in range(int(result.steps.max())):
            h = state.h
            if effects_of is None:
                _, state = network.step(state, given)
            else:
                state, effect = effects_of.step(state, previous, order)
                effects.append(effect)
            probabilities.append(_probabilities(network, given, state, order))
            previous = h
    stacked = torch.stack(probabilities).cpu()
    edges, graph_of_node = torch.stack([senders, receivers]).cpu(), graph_of_node.cpu()
    readout = _readout_of(network, stacked.shape[1], len(graph_of_node), len(result.steps))
    graphs = torch.arange(len(result.steps), device="cpu")
    graph_of_answer = {"node": graph_of_node, "graph": graphs, "edge": graph_of_node[edges[1]]}[readout]
    change = (stacked[1:] - stacked[:-1]).abs().amax(-1)
    residuals = change.new_zeros(len(change), len(result.steps))
    residuals = residuals.scatter_reduce(1, graph_of_answer.expand_as(change), change, "amax")
    return Record(
        stacked[1:],
        residuals,
        torch.stack(effects).cpu() if messages else None,
        edges,
        graph_of_node,
        graph_of_answer,
        readout,
        torch.from_numpy(result.steps),
        torch.from_numpy(result.solved),
    )


class _MessageEffects:
    """Steps on a graph in which every edge has its own copy of the sender.

    A copy then reaches one receiver only. The gradient of a probability with respect to each copy is summed along the
    line from the senders' previous states to the present ones (integrated gradients). So the effects of all messages
    to a node add up to the change of its probability.
    """

    def __init__(self, network: "RRN", given: "Prepared") -> None:
        self.network, self.given = network, given
        self.senders, receivers, order = given.graph.ends()
        nodes, edges = given.graph.num_nodes, len(self.senders)
        copies = torch.arange(nodes, nodes + edges, device=self.senders.device)
        self.graph = EdgeList(torch.stack([copies, receivers]), nodes + edges)
        edge_attr = given.edge_attr
        if edge_attr is not None:
            edge_attr = edge_attr.expand(*given.graph.edge_shape, -1).flatten(0, -2)[order]
        try:
            self.edge_term = network.message.encode_edges(edge_attr)
            network.message(given.x.new_zeros(nodes + edges, network.hidden), self.graph, self.edge_term)
        except (InputError, RuntimeError, IndexError) as error:
            name = type(network.message).__name__
            raise InputError(
                f"messages: {name} does not accept an edge list ({error}); use record_steps(…, messages=False)"
            ) from error

    def step(self, state: State, previous: Tensor, order: Tensor) -> tuple[State, Tensor]:
        """The state after one step and the effect of each message (edges,)."""
        state = state.detach()
        before, change = previous[self.senders], (state.h - previous)[self.senders]
        after, probabilities = self._after(state, before + change, order)
        predicted = probabilities.argmax(-1, keepdim=True)
        gradients = torch.zeros_like(change)
        for point in range(INTEGRATION_POINTS):
            sent = (before + (point + 0.5) / INTEGRATION_POINTS * change).requires_grad_()
            with torch.enable_grad():
                _, probabilities = self._after(state, sent, order)
                (gradient,) = torch.autograd.grad(probabilities.gather(-1, predicted).sum(), sent)
            gradients += gradient / INTEGRATION_POINTS
        return after, (gradients * change).sum(-1)

    def _after(self, state: State, sent: Tensor, order: Tensor) -> tuple[State, Tensor]:
        """State and probabilities after one step in which the sender of each edge has the state ``sent`` (edges, …)."""
        network, given = self.network, self.given
        m = network.message(torch.cat([state.h, sent]), self.graph, self.edge_term)[: given.graph.num_nodes]
        after = network.update(state, given.x, m)
        return after, _probabilities(network, given, after, order)


def _probabilities(network: "RRN", given: "Prepared", state: State, order: Tensor) -> Tensor:
    """(answers, classes)."""
    logits = answer_of(network.read(given, state))
    if isinstance(network.readout, EdgeReadout):
        logits = logits.flatten(0, -2)[order]
    if logits.shape[-1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=-1)
    return logits.softmax(-1)


def _readout_of(network: "RRN", answers: int, nodes: int, graphs: int) -> Literal["node", "graph", "edge"]:
    if isinstance(network.readout, EdgeReadout):
        return "edge"
    if answers not in (nodes, graphs):
        name = type(network.readout).__name__
        raise InputError(
            f"network: expected one answer of {name} per node ({nodes}) or graph ({graphs}), got {answers}"
        )
    return "node" if answers == nodes else "graph"
