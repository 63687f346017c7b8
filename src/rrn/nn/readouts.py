"""r, the output function (eq. 4): o = r(h), per node, per graph or per edge."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError, shorten
from rrn.graphs import Aggregate, Graph
from rrn.nn.layers import MLP, Resettable


class Outputs(NamedTuple):
    """A readout's answer and further named tensors, in training as in evaluation.

    One step: (nodes or graphs, classes); a run stacks the steps: (steps, …).
    """

    answer: Tensor
    extras: dict[str, Tensor]


def answer_of(outputs: Tensor | Outputs) -> Tensor:
    """The answer, whether the readout returned a tensor or `Outputs`."""
    return outputs.answer if isinstance(outputs, Outputs) else outputs


def concatenate_outputs(runs: Sequence[Tensor | Outputs]) -> Tensor | Outputs:
    """Concatenate the outputs of several runs along the steps."""
    answers, first = torch.cat([answer_of(run) for run in runs]), runs[0]
    if not isinstance(first, Outputs):
        return answers
    named = [run.extras for run in runs if isinstance(run, Outputs)]
    return Outputs(answers, {name: torch.cat([extras[name] for extras in named]) for name in first.extras})


def stack(steps: Sequence[Tensor | Outputs]) -> Tensor | Outputs:
    """Stack the outputs of single steps into those of a run."""
    return concatenate_outputs(
        [
            Outputs(step.answer[None], {name: value[None] for name, value in step.extras.items()})
            if isinstance(step, Outputs)
            else step[None]
            for step in steps
        ]
    )


class Readout(Resettable, ABC):
    """The output function r. Subclass it and implement `forward`."""

    reads_edges = False
    """Whether `forward` takes the edge features as a fourth argument."""

    @abstractmethod
    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor | Outputs:
        """Hidden states (nodes, hidden) → the answer, or `Outputs` with the answer and further tensors."""


class _MLPReadout(Readout):
    def __init__(self, hidden: int, outputs: int, layers: int = 0, dropout: float = 0.0, dropout_layers: int = 1):
        super().__init__()
        self.mlp = MLP(hidden, hidden, outputs, layers, dropout=dropout, dropout_layers=dropout_layers)


class NodeReadout(_MLPReadout):
    """o_i = r(h_i): (nodes, outputs)."""

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        return self.mlp(h)


class GraphReadout(Readout):
    """o = r(Σ_i h_i): (graphs, outputs).

    ``pool`` names how the nodes are pooled: the paper's ("sum",), "mean" or "max", or several, concatenated.
    """

    def __init__(
        self,
        hidden: int,
        outputs: int,
        layers: int = 0,
        dropout: float = 0.0,
        dropout_layers: int = 1,
        pool: Sequence[Aggregate] = ("sum",),
    ) -> None:
        super().__init__()
        if isinstance(pool, str) or not pool or not set(pool) <= set(get_args(Aggregate)) or len(pool) > 3:
            raise InputError(f"pool: expected a tuple of 'sum', 'mean' or 'max', got {shorten(repr(pool))}")
        self.pool = tuple(pool)
        width = hidden * len(self.pool)
        self.mlp = MLP(width, hidden, outputs, layers, dropout=dropout, dropout_layers=dropout_layers)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        if self.pool == ("sum",):
            return self.mlp(graph.sum_nodes(h, batch))
        return self.mlp(torch.cat([graph.pool_nodes(h, batch, how) for how in self.pool], dim=-1))

    def read_steps(self, states: Sequence[Tensor], graph: Graph, batch: Tensor | None) -> Tensor:
        """The outputs of several steps in one call: hidden states (nodes, hidden) each → (steps, graphs, outputs)."""
        h = torch.cat(list(states), dim=1)  # pooling treats each column independently
        pooled = [graph.pool_nodes(h, batch, how).unflatten(1, (len(states), -1)) for how in self.pool]
        return self.mlp(torch.cat(pooled, dim=-1)).transpose(0, 1)


class EdgeReadout(Readout):
    """o_ij = r(h_i, h_j, e_ij) for every edge i → j: (edges, outputs), or ``graph.edge_shape + (outputs,)`` in general.

    r has at least one ReLU layer: without one it could only add terms of its two end nodes, not compare them. As in
    `MLPMessage`, the first layer is computed at the nodes.
    """

    reads_edges = True

    def __init__(
        self,
        hidden: int,
        outputs: int,
        layers: int = 1,
        dropout: float = 0.0,
        dropout_layers: int = 1,
        edge_features: int = 0,
    ) -> None:
        super().__init__()
        self.hidden = hidden
        width, layers = 2 * hidden + edge_features, max(layers, 1)
        self.mlp = MLP(width, hidden, outputs, layers, dropout=dropout, dropout_layers=dropout_layers)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None, edge_attr: Tensor | None = None) -> Tensor:
        weight, bias = self.mlp.weights()[0]
        to_source, to_target, to_edge = weight.tensor_split([self.hidden, 2 * self.hidden], dim=1)
        z = graph.pair(h @ to_source.T, F.linear(h, to_target, bias))
        return self.mlp.after_first(z if edge_attr is None else z + edge_attr @ to_edge.T)


class DotReadout(Readout):
    """One logit per node, w·h: (nodes, 1)."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.weight.copy_(torch.randn(len(self.weight)) * len(self.weight) ** -0.5)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        return (h @ self.weight)[:, None]
