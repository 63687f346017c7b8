"""r, the output function (eq. 4): o = r(h), of a node, of a graph, or of a group of nodes."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from rrn.errors import InputError
from rrn.graphs import Graph
from rrn.layers import MLP


class Readout(nn.Module, ABC):
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
