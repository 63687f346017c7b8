"""What a graph answers to: the base class of all layouts, and what they share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rrn.errors import InputError

Aggregate = Literal["sum", "mean", "max"]


class SortedEdges(NamedTuple):
    """Edges sorted by receiver: those that end in node j are ``senders[starts[j]:starts[j + 1]]``.

    ``places`` says where each of them lies in the graph's own order of edges.
    """

    senders: Tensor
    starts: Tensor
    places: Tensor

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.senders.numpy(), self.starts.numpy(), self.places.numpy()


class Graph(ABC):
    """The edges of a batch of graphs over ``num_nodes`` nodes.

    Values on edges have the shape ``edge_shape + (width,)``; edge features may have 1 where they are shared along a
    dimension of ``edge_shape`` (for instance a feature per graph of `CompleteGraphs`: ``(graphs, 1, 1, features)``).
    """

    num_nodes: int
    edge_shape: tuple[int, ...]

    @abstractmethod
    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        """``source[i] + target[j]`` for every edge i → j: (nodes, width) twice → ``edge_shape + (width,)``."""

    @abstractmethod
    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        """What arrives at every node: ``edge_shape + (width,)`` → (nodes, width). Nodes nobody sends to get zeros."""

    @abstractmethod
    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        """Σ_i weights_ijk · source_i for every node j and edge feature k: (nodes, width) → (nodes, k, width)."""

    @abstractmethod
    def in_degree(self) -> Tensor:
        """How many edges end in each node, as floats: (nodes, 1)."""

    @abstractmethod
    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sender, receiver, and place in the order of edges, of every edge that exists: (edges,) each."""

    def sorted_edges(self) -> SortedEdges:
        """The edges by receiver, sorted once and kept."""
        if self._sorted is None:
            senders, receivers, places = self.ends()
            order = receivers.argsort(stable=True)
            counts = receivers.bincount(minlength=self.num_nodes)
            starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
            self._sorted = SortedEdges(senders[order], starts, places[order])
        return self._sorted

    _sorted: SortedEdges | None = None

    @abstractmethod
    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[Graph, Tensor | None]":
        """The graph of some nodes, those of whole graphs (a mask over nodes), and what is left of the edge features."""

    @classmethod
    @abstractmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[Graph, Tensor | None]":
        """Graphs of this layout one after the other as one batch, with their edge features if they have any."""

    def graph_of_node(self, batch: Tensor | None) -> Tensor:
        """The graph that each node belongs to, from 0: (nodes,)."""
        device = self.ends()[0].device
        return torch.zeros(self.num_nodes, dtype=torch.long, device=device) if batch is None else batch

    def sum_nodes(self, h: Tensor, batch: Tensor | None) -> Tensor:
        """The sum of the nodes of every graph: (nodes, width) → (graphs, width)."""
        if batch is None:
            return h.sum(0, keepdim=True)
        graphs = torch.sym_int(batch[-1].item()) + 1  # int() would make torch.export take it for a constant
        total = h.new_zeros(graphs, h.shape[-1])
        return total.index_add(0, batch, h)

    def check_edge_attr(self, edge_attr: Tensor, features: int) -> None:
        expected = (*self.edge_shape, features)
        fits = edge_attr.dim() == len(expected) and all(
            a in (1, b) for a, b in zip(edge_attr.shape[:-1], self.edge_shape, strict=True)
        )
        if not fits or edge_attr.shape[-1] != features:
            raise InputError(f"edge_attr: expected shape {expected}, got {tuple(edge_attr.shape)}")


def has_values(tensor: Tensor) -> bool:
    """Whether the numbers can be looked at: not while a program is traced, nor on the meta device."""
    return not torch.compiler.is_compiling() and tensor.device.type != "meta"


Part = tuple[Any, Tensor | None]
"""A graph and its edge features."""


def with_offsets(parts: Sequence[Part]) -> list[tuple[Any, int]]:
    """Each graph and the number of its first node among the nodes of all."""
    sizes = [graph.num_nodes for graph, _ in parts]
    return [(graph, sum(sizes[:index])) for index, (graph, _) in enumerate(parts)]


def joined_edge_attr(parts: Sequence[Part]) -> Tensor | None:
    """The edge features of all, if they have any."""
    features = [attr.expand(graph.edge_shape[0], *attr.shape[1:]) for graph, attr in parts if attr is not None]
    return torch.cat(features) if features else None


def rows_of(edge_attr: Tensor | None, kept: Tensor) -> Tensor | None:
    """The rows of edge features that are left, where they are not the same for all."""
    return edge_attr if edge_attr is None or len(edge_attr) == 1 != len(kept) else edge_attr[kept]


def reduce(values: Tensor, dim: int, how: Aggregate) -> Tensor:
    if how == "max":
        return values.amax(dim)
    return values.sum(dim) if how == "sum" else values.mean(dim)
