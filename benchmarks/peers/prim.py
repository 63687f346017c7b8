"""Parts of a network that learns Prim's algorithm: each step needs the lightest edge of the whole graph.

The last edge feature is the number of the graph. It groups the nodes and is no input of a learned function.
"""

import torch
from torch import Tensor

from rrn import RRN
from rrn.graphs import Graph
from rrn.nn.layers import MLP, Linear
from rrn.nn.messages import MLPMessage
from rrn.nn.readouts import EdgeReadout

SCALES = (1.0, 10.0, 100.0, 1000.0)
"""How sharply a score is compared: several nodes with nearly the best score have to be told apart."""


class GraphMaximumMessage(MLPMessage):
    """Messages m_j with max aggregation, then a score s_j of each node, compared with the best of its graph::

    s_j  = MLP([h_j, m_j])
    m'_j = W [m_j; relu(1 + SCALES · (s_j - max_k s_k))]      k: all nodes of the graph
    """

    def __init__(self, hidden: int, edge_features: int) -> None:
        super().__init__(hidden, edge_features, aggregate=("max",))
        self.score = MLP(2 * hidden, hidden, 1, 1)
        self.join = Linear(hidden + len(SCALES), hidden)

    def encode_edges(self, edge_attr: Tensor | None) -> Tensor | None:
        assert edge_attr is not None
        encoded = super().encode_edges(edge_attr[:, :-1])
        assert encoded is not None
        return torch.cat([encoded, edge_attr[:, -1:]], dim=1)

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        assert edge_term is not None
        graph_of_node = graph.collect(edge_term[:, -1:], "max").long().expand(-1, len(SCALES))  # nodes have self-loops
        received = super().forward(h, graph, edge_term[:, :-1])
        scores = self.score(torch.cat([h, received], dim=-1)).expand(-1, len(SCALES))
        best = scores.new_full((int(graph_of_node.max()) + 1, len(SCALES)), -torch.inf)
        best = best.scatter_reduce(0, graph_of_node, scores, "amax")
        below = scores - best.gather(0, graph_of_node)
        below = torch.cat([below[:, :2], below[:, 2:].detach()], dim=1)  # gradients of the sharp ones are too large
        near = (1 + below * scores.new_tensor(SCALES)).relu()
        return self.join(torch.cat([received, near], dim=-1))


class PlainEdgeReadout(EdgeReadout):
    """`EdgeReadout` without the last edge feature."""

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None, edge_attr: Tensor | None = None) -> Tensor:
        assert edge_attr is not None
        return super().forward(h, graph, batch, edge_attr[:, :-1])


def parts(hidden: int) -> dict[str, GraphMaximumMessage | PlainEdgeReadout]:
    """The custom parts: edges have a mark of self-loops and a weight; outputs are a pointer's score and two classes."""
    return {"message": GraphMaximumMessage(hidden, 2), "readout": PlainEdgeReadout(hidden, 3, edge_features=2)}


def make_network(hidden: int) -> RRN:
    return RRN(1, hidden, edge_features=3, update="gru", **parts(hidden))  # type: ignore[arg-type]
