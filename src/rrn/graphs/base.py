"""The base class of all graph layouts, and their common functions."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from rrn._compat import VERSION
from rrn.errors import InputError

Aggregate = Literal["sum", "mean", "max"]


class SortedEdges(NamedTuple):
    """Edges sorted by receiver: those that end in node j are ``senders[starts[j]:starts[j + 1]]``.

    ``positions`` are the positions of these edges in the graph's own order.
    """

    senders: Tensor
    starts: Tensor
    positions: Tensor


class Graph(ABC):
    """The edges of a batch of graphs over ``num_nodes`` nodes.

    Values on edges have the shape ``edge_shape + (width,)``; edge features may have 1 where they are shared along a
    dimension of ``edge_shape`` (for instance a feature per graph of `CompleteGraphs`: ``(graphs, 1, 1, features)``).
    """

    num_nodes: int
    edge_shape: tuple[int, ...]
    graphs = 1
    """The number of graphs, where the layout knows it."""
    tensors: tuple[Tensor, ...] = ()
    """The tensors that define the graph."""
    _versions: Sequence[int] = ()

    def _keep(self, *tensors: Tensor) -> None:
        """Remember the tensors that define the graph, for `check_unchanged`."""
        if not torch.compiler.is_compiling():
            self.tensors, self._versions = tensors, _versions(tensors)

    def _copy(self, *tensors: Tensor) -> list[Tensor]:
        """Copies that define the graph, so that in-place changes of the arguments do not reach it."""
        if torch.compiler.is_compiling():
            return list(tensors)
        copies = [tensor.clone(memory_format=torch.contiguous_format) for tensor in tensors]
        self._keep(*copies)
        return copies

    def check_unchanged(self) -> None:
        """Raise an `InputError` if a tensor of the graph was changed in place: its nodes were checked before that."""
        if self.tensors and not torch.compiler.is_compiling() and _versions(self.tensors) != self._versions:
            raise InputError("graph: its tensors were changed in place; make a new graph")

    @abstractmethod
    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        """``source[i] + target[j]`` for every edge i → j: (nodes, width) twice → ``edge_shape + (width,)``."""

    @abstractmethod
    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        """Aggregate edge values at their receivers: ``edge_shape + (width,)`` → (nodes, width); 0 without senders."""

    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        """Σ_i weights_ijk · source_i for every node j and edge feature k: (nodes, width) → (nodes, k, width)."""
        sent, features = self.pair(source, torch.zeros_like(source)), weights.expand(*self.edge_shape, -1).split(1, -1)
        return torch.stack([self.collect(sent * feature, "sum") for feature in features], dim=1)

    @abstractmethod
    def in_degree(self) -> Tensor:
        """The number of edges that end in each node, as floats: (nodes, 1)."""

    @abstractmethod
    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sender, receiver and position in ``edge_shape`` of every existing edge: (edges,) each."""

    def sorted_edges(self) -> SortedEdges:
        """The edges sorted by receiver; sorted once, then cached."""
        if self._sorted is None:
            senders, receivers, positions = self.ends()
            order = receivers.argsort(stable=True)
            counts = receivers.bincount(minlength=self.num_nodes)
            starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
            self._sorted = SortedEdges(senders[order], starts, positions[order])
        return self._sorted

    _sorted: SortedEdges | None = None

    @abstractmethod
    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[Graph, Tensor | None]":
        """The subgraph of whole graphs, given as a mask over nodes, and its edge features."""

    @classmethod
    @abstractmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[Graph, Tensor | None]":
        """Concatenate graphs of this layout into one batch, with their edge features if there are any."""

    def graph_of_node(self, batch: Tensor | None) -> Tensor:
        """The graph of each node, numbered from 0: (nodes,)."""
        device = self.ends()[0].device
        return torch.zeros(self.num_nodes, dtype=torch.long, device=device) if batch is None else batch

    def sum_nodes(self, h: Tensor, batch: Tensor | None) -> Tensor:
        """The sum of the nodes of every graph: (nodes, width) → (graphs, width)."""
        if batch is None:
            return h.sum(0, keepdim=True)
        graphs = torch.sym_int(batch[-1].item()) + 1  # int() would be a constant to torch.export
        total = h.new_zeros(graphs, h.shape[-1])
        return total.index_add(0, batch, h)

    def pool_nodes(self, h: Tensor, batch: Tensor | None, how: Aggregate) -> Tensor:
        """The sum, mean or maximum over the nodes of every graph: (nodes, width) → (graphs, width)."""
        if how != "max":
            total = self.sum_nodes(h, batch)
            return total if how == "sum" else total / self.sum_nodes(torch.ones_like(h[:, :1]), batch).clamp(min=1)
        graph_of_node = self.graph_of_node(batch)
        index = graph_of_node[:, None].expand_as(h)
        graphs = torch.sym_int(graph_of_node[-1].item()) + 1
        return h.new_zeros(graphs, h.shape[-1]).scatter_reduce(0, index, h, "amax", include_self=False)

    def check_edge_attr(self, edge_attr: Tensor, features: int) -> None:
        """Raise an `InputError` unless the shape is ``edge_shape + (features,)``, up to shared dimensions."""
        expected = (*self.edge_shape, features)
        fits = edge_attr.dim() == len(expected) and all(
            a in (1, b) for a, b in zip(edge_attr.shape[:-1], self.edge_shape, strict=True)
        )
        if not fits or edge_attr.shape[-1] != features:
            raise InputError(f"edge_attr: expected shape {expected}, got {tuple(edge_attr.shape)}")


def _versions(tensors: Sequence[Tensor]) -> list[int]:
    """How often each tensor was changed in place; 0 where torch does not count, as for inference tensors."""
    return [0 if tensor.is_inference() else int(getattr(tensor, VERSION, 0)) for tensor in tensors]


def describe(value: object) -> str:
    """The type and shape of a tensor, or the type of another value, for messages."""
    return f"{value.dtype} {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


Part = tuple[Any, Tensor | None]
"""A graph and its edge features."""


def with_offsets(parts: Sequence[Part]) -> list[tuple[Any, int]]:
    """Each graph and the index of its first node in the batch."""
    sizes = [graph.num_nodes for graph, _ in parts]
    return [(graph, sum(sizes[:index])) for index, (graph, _) in enumerate(parts)]


def joined_edge_attr(parts: Sequence[Part]) -> Tensor | None:
    """The concatenated edge features, or None."""
    features = [attr.expand(graph.edge_shape[0], *attr.shape[1:]) for graph, attr in parts if attr is not None]
    return torch.cat(features) if features else None


def select_rows(edge_attr: Tensor | None, selected: Tensor) -> Tensor | None:
    """The selected rows of edge features; all of them where one row is shared by all edges."""
    return edge_attr if edge_attr is None or len(edge_attr) == 1 != len(selected) else edge_attr[selected]
