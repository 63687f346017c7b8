"""r, the output function (eq. 4): o = r(h), of a node, of a graph, of an edge, or of a group of nodes."""

from abc import ABC, abstractmethod

import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.graphs import Graph
from rrn.layers import MLP


class Readout(nn.Module, ABC):
    reads_edges = False
    """Whether `forward` also takes the edge features, as a fourth argument."""

    @abstractmethod
    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor: ...


class NodeReadout(Readout):
    """o_i = r(h_i): (nodes, outputs)."""

    def __init__(self, hidden: int, outputs: int, layers: int = 0, dropout: float = 0.0, dropout_layers: int = 1):
        super().__init__()
        self.mlp = MLP(hidden, hidden, outputs, layers, dropout=dropout, dropout_layers=dropout_layers)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        return self.mlp(h)


class GraphReadout(Readout):
    """o = r(Σ_i h_i): (graphs, outputs)."""

    def __init__(self, hidden: int, outputs: int, layers: int = 0, dropout: float = 0.0, dropout_layers: int = 1):
        super().__init__()
        self.mlp = MLP(hidden, hidden, outputs, layers, dropout=dropout, dropout_layers=dropout_layers)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        return self.mlp(graph.sum_nodes(h, batch))


class EdgeReadout(Readout):
    """o_ij = r(h_i, h_j, e_ij) of every edge i → j: (edges, outputs), or ``graph.edge_shape + (outputs,)`` in general.

    r has at least one ReLU layer: without one it could only add what its two ends say, never compare them. As in
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


class GroupReadout(Readout):
    """One logit a node, gathered over groups of ``size`` nodes that stand next to each other: (groups, size).

    For graphs whose nodes are the *choices* of something, such as the nine candidates of a Sudoku's cell.
    """

    def __init__(self, hidden: int, size: int, layers: int = 0):
        super().__init__()
        self.size = size
        self.mlp = MLP(hidden, hidden, 1, layers)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        if len(h) % self.size:
            raise InputError(f"x: {len(h)} nodes do not divide into groups of {self.size}")
        return self.mlp(h).view(-1, self.size)
