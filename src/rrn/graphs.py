"""Graphs: who sends messages to whom.

A graph answers two questions, and only these, for the message function: *what do the two ends of every edge add up
to* (`Graph.pair`) and *what arrives at every node* (`Graph.collect`). Five layouts answer them:

* `EdgeList`: any graph, as an ``edge_index`` of shape (2, E), row 0 the senders and row 1 the receivers. Several
  graphs of different sizes are batched as one graph of disjoint parts (`union`).
* `NeighbourTable`: graphs in which every node hears from the same number of neighbours. No scatter is needed.
* `CompleteGraphs`: equally large graphs in which everybody hears everybody. No index is needed at all.
* `PackedGraphs`: the same for graphs of different sizes; nodes are packed, only edges are padded.
* `Groups`: every node stands in one group of each of several kinds and hears from all members of its groups.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import torch
import torch.nn.functional as F
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


class EdgeList(Graph):
    """Any directed graph. ``edge_index`` is (2, E) of integers: edge e goes from node [0, e] to node [1, e]."""

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.shape[0] != 2:
            shape = tuple(edge_index.shape) if isinstance(edge_index, Tensor) else type(edge_index).__name__
            raise InputError(f"edge_index: expected a tensor of shape (2, edges), got {shape}")
        if edge_index.dtype not in (torch.int64, torch.int32):
            raise InputError(f"edge_index: expected integers (torch.int64), got {edge_index.dtype}")
        if num_nodes < 1:
            raise InputError("x: the graph has no nodes")
        if edge_index.numel() and _has_values(edge_index):
            low, high = (int(v) for v in edge_index.aminmax())
            if low < 0 or high >= num_nodes:
                bad = low if low < 0 else high
                raise InputError(f"edge_index: names node {bad}, but x has nodes 0 to {num_nodes - 1}")
        self.source, self.target = edge_index.long()
        self.num_nodes = num_nodes
        self.edge_shape = (edge_index.shape[1],)

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        return source.index_select(0, self.source) + target.index_select(0, self.target)

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        zeros = values.new_zeros(self.num_nodes, values.shape[-1])
        if how == "max":
            index = self.target[:, None].expand_as(values)
            return zeros.scatter_reduce(0, index, values, "amax", include_self=False)
        total = zeros.index_add(0, self.target, values)
        return total / self.in_degree().to(values.dtype).clamp(min=1) if how == "mean" else total

    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        values = weights.expand(*self.edge_shape, -1)[..., None] * source.index_select(0, self.source)[:, None]
        return source.new_zeros(self.num_nodes, *values.shape[1:]).index_add(0, self.target, values)

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.source, self.target, torch.arange(len(self.source), device=self.source.device)

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[EdgeList, Tensor | None]":
        kept = nodes[self.source] & nodes[self.target]
        number = nodes.cumsum(0) - 1
        edges = torch.stack([number[self.source[kept]], number[self.target[kept]]])
        return EdgeList(edges, int(nodes.sum())), _rows_of(edge_attr, kept)

    @classmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[EdgeList, Tensor | None]":
        edges = [torch.stack([graph.source, graph.target]) + offset for graph, offset in _with_offsets(parts)]
        return cls(torch.cat(edges, dim=1), sum(graph.num_nodes for graph, _ in parts)), _joined(parts)

    def in_degree(self) -> Tensor:
        ones = torch.ones(self.edge_shape[0], 1, device=self.target.device)
        return torch.zeros(self.num_nodes, 1, device=self.target.device).index_add(0, self.target, ones)


class NeighbourTable(Graph):
    """A graph in which every node hears from k others: ``table[j]`` lists the k senders of node j, shape (N, k)."""

    def __init__(self, table: Tensor) -> None:
        if table.dim() != 2 or table.numel() == 0 or table.dtype not in (torch.int64, torch.int32):
            raise InputError(f"table: expected integers of shape (nodes, k), got {table.dtype} {tuple(table.shape)}")
        if _has_values(table):
            low, high = (int(v) for v in table.aminmax())
            if low < 0 or high >= len(table):
                raise InputError(f"table: names node {low if low < 0 else high}, but has nodes 0 to {len(table) - 1}")
        self.table = table.long()
        self.num_nodes = len(table)
        self.edge_shape = tuple(table.shape)
        self._ends: tuple[Tensor, Tensor, Tensor] | None = None
        self._parts: dict[int, list[NeighbourTable]] = {}

    @classmethod
    def repeat(cls, table: Tensor, graphs: int) -> "NeighbourTable":
        """The table of ``graphs`` copies of one graph, nodes of a copy next to each other."""
        offsets = torch.arange(graphs, device=table.device)[:, None, None] * len(table)
        return cls((table[None] + offsets).flatten(0, 1))

    def parts(self, count: int) -> "list[NeighbourTable]":
        """At most ``count`` parts of like size, nodes next to each other, with no edge from one to another; found once
        and kept."""
        if count not in self._parts:
            self._parts[count] = self._cut(count)
        return self._parts[count]

    def _cut(self, count: int) -> "list[NeighbourTable]":
        node = torch.arange(self.num_nodes, device=self.table.device)
        highest = self.table.amax(1).maximum(node).cummax(0).values
        lowest = self.table.amin(1).minimum(node).flip(0).cummin(0).values.flip(0)
        free = node[1:][(highest[:-1] < node[1:]) & (lowest[1:] >= node[1:])].tolist()
        wanted = [self.num_nodes * part // count for part in range(1, count)]
        cuts = sorted({min(free, key=lambda cut: abs(cut - place)) for place in wanted}) if free else []
        bounds = [0, *cuts, self.num_nodes]
        return [NeighbourTable(self.table[low:high] - low) for low, high in itertools.pairwise(bounds)]

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        gathered = source.index_select(0, self.table.flatten()).view(*self.edge_shape, -1)
        return gathered + target[:, None]

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        return _reduce(values, 1, how)

    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        gathered = source.index_select(0, self.table.flatten()).view(*self.edge_shape, -1)
        return weights.expand(*self.edge_shape, -1).transpose(1, 2) @ gathered

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        if self._ends is None:
            nodes, degree = self.table.shape
            receivers = torch.arange(nodes, device=self.table.device).repeat_interleave(degree)
            self._ends = self.table.flatten(), receivers, torch.arange(nodes * degree, device=self.table.device)
        return self._ends

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[NeighbourTable, Tensor | None]":
        number = torch.where(nodes, nodes.cumsum(0) - 1, -1)
        return NeighbourTable(number[self.table[nodes]]), _rows_of(edge_attr, nodes)

    @classmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[NeighbourTable, Tensor | None]":
        return cls(torch.cat([graph.table + offset for graph, offset in _with_offsets(parts)])), _joined(parts)

    def in_degree(self) -> Tensor:
        return torch.full((self.num_nodes, 1), float(self.edge_shape[1]), device=self.table.device)


class CompleteGraphs(Graph):
    """``graphs`` graphs of ``size`` nodes each, every node hearing from all the others of its graph.

    Nodes of a graph are next to each other. Edges lie as (graphs, sender, receiver). ``mask`` of shape (graphs, size)
    is true where a node exists: others neither send nor count (for graphs padded to one size). Without a mask,
    ``device`` says where the graphs are used.
    """

    def __init__(self, graphs: int, size: int, mask: Tensor | None = None, device: torch.device | str = "cpu") -> None:
        if graphs < 1 or size < 1:
            raise InputError(f"graphs, size: expected at least one graph of one node, got {graphs} of {size}")
        if mask is not None and (mask.shape != (graphs, size) or mask.dtype != torch.bool):
            raise InputError(f"mask: expected booleans of shape {(graphs, size)}, got {mask.dtype} {tuple(mask.shape)}")
        self.graphs, self.size, self.mask = graphs, size, mask
        self.num_nodes = graphs * size
        self.edge_shape = (graphs, size, size)
        edges = ~torch.eye(size, dtype=torch.bool, device=device if mask is None else mask.device)[None]
        if mask is not None:
            edges = edges & mask[:, :, None]
        self.edges = edges[..., None]  # (graphs or 1, sender, receiver, 1)

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        shape = (self.graphs, self.size, source.shape[-1])
        return source.view(shape)[:, :, None] + target.view(shape)[:, None]

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        edges = self.edges.to(values.device)
        if how == "max":
            reached = _reduce(values.masked_fill(~edges, float("-inf")), 1, how)
            return reached.masked_fill(reached == float("-inf"), 0).flatten(0, 1)
        if self.mask is not None:
            values = values * self.mask[:, :, None, None].to(values.dtype)
        total = values.sum(1) - values.diagonal(dim1=1, dim2=2).transpose(1, 2)
        total = total.flatten(0, 1)
        return total / self.in_degree().to(values).clamp(min=1) if how == "mean" else total

    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        weights = weights * self.edges.to(weights)  # (graphs, sender, receiver, k)
        by_receiver = weights.permute(0, 2, 3, 1).flatten(1, 2)
        return (by_receiver @ source.view(self.graphs, self.size, -1)).view(self.num_nodes, -1, source.shape[-1])

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        edges = self.edges.expand(*self.edge_shape, 1)[..., 0]
        graph, sender, receiver = edges.nonzero().T
        places = (graph * self.size + sender) * self.size + receiver
        return graph * self.size + sender, graph * self.size + receiver, places

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[CompleteGraphs, Tensor | None]":
        kept = nodes.view(self.graphs, self.size).any(1)
        mask = None if self.mask is None else self.mask[kept]
        return CompleteGraphs(int(kept.sum()), self.size, mask, self.edges.device), _rows_of(edge_attr, kept)

    @classmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[CompleteGraphs, Tensor | None]":
        graphs: list[CompleteGraphs] = [graph for graph, _ in parts]
        size, device = graphs[0].size, graphs[0].edges.device
        other = next((graph.size for graph in graphs if graph.size != size), size)
        if other != size:
            raise InputError(
                f"graphs: expected one size, got {size} and {other}; PackedGraphs holds graphs of any sizes"
            )
        mask = None
        if any(graph.mask is not None for graph in graphs):
            mask = torch.cat([graph.exists for graph in graphs])
        return cls(sum(graph.graphs for graph in graphs), size, mask, device=device), _joined(parts)

    @property
    def exists(self) -> Tensor:
        """Which nodes do: (graphs, size)."""
        everybody = torch.ones(self.graphs, self.size, dtype=torch.bool, device=self.edges.device)
        return everybody if self.mask is None else self.mask

    def graph_of_node(self, batch: Tensor | None) -> Tensor:
        return torch.arange(self.num_nodes, device=self.edges.device) // self.size

    def in_degree(self) -> Tensor:
        return self.edges.float().sum(1).expand(self.graphs, self.size, 1).reshape(-1, 1)

    def sum_nodes(self, h: Tensor, batch: Tensor | None) -> Tensor:
        h = h.view(self.graphs, self.size, -1)
        return h.sum(1) if self.mask is None else (h * self.mask[..., None].to(h.dtype)).sum(1)


class PackedGraphs(Graph):
    """Graphs of different ``sizes`` (graphs,), every node hearing from all the others of its graph.

    Nodes are packed, those of a graph next to each other, so that nothing is computed for nodes that do not exist.
    Edges lie as those of `CompleteGraphs` of the largest size: (graphs, sender, receiver).
    """

    def __init__(self, sizes: Tensor) -> None:
        if sizes.dim() != 1 or len(sizes) == 0 or int(sizes.min()) < 1:
            raise InputError("sizes: expected the number of nodes of each graph, at least 1, in one dimension")
        graphs, size = len(sizes), int(sizes.max())
        mask = torch.arange(size, device=sizes.device) < sizes[:, None]
        self.padded = CompleteGraphs(graphs, size, mask)
        self.exists = mask
        self.places = mask.flatten().nonzero()[:, 0]
        self.num_nodes = len(self.places)
        self.edge_shape = self.padded.edge_shape
        self.edges = self.padded.edges
        """(graphs, sender, receiver, 1): whether the sender exists and is not the receiver."""

    def pad(self, h: Tensor) -> Tensor:
        """(nodes, width) → (graphs, size, width), zeros where a graph has no node."""
        graphs, size, _ = self.edge_shape
        padded = h.new_zeros(graphs * size, h.shape[-1]).index_copy(0, self.places, h)
        return padded.view(graphs, size, -1)

    def pack(self, padded: Tensor) -> Tensor:
        """(graphs, size, width) → (nodes, width)."""
        return padded.flatten(0, 1).index_select(0, self.places)

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        return self.padded.pair(self.pad(source).flatten(0, 1), self.pad(target).flatten(0, 1))

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        return self.padded.collect(values, how).index_select(0, self.places)

    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        return self.padded.weighted_sums(self.pad(source).flatten(0, 1), weights).index_select(0, self.places)

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        senders, receivers, places = self.padded.ends()
        packed = torch.full((self.padded.num_nodes,), -1, device=self.places.device)
        packed[self.places] = torch.arange(self.num_nodes, device=self.places.device)
        exist = packed[receivers] >= 0
        return packed[senders[exist]], packed[receivers[exist]], places[exist]

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[PackedGraphs, Tensor | None]":
        kept = torch.zeros(len(self.exists), dtype=torch.bool, device=nodes.device)
        kept[self.graph_of_node(None)[nodes]] = True
        graphs = PackedGraphs(self.exists.sum(1)[kept])
        size = graphs.edge_shape[1]
        edge_attr = _rows_of(edge_attr, kept)
        return graphs, None if edge_attr is None else edge_attr[:, :size, :size]

    @classmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[PackedGraphs, Tensor | None]":
        joined = cls(torch.cat([graph.exists.sum(1) for graph, _ in parts]))
        size = joined.edge_shape[1]
        padded = []
        for graph, edge_attr in parts:
            if edge_attr is not None:
                wider = size - graph.edge_shape[1]
                padded.append((graph, F.pad(edge_attr.expand(*graph.edge_shape, -1), (0, 0, 0, wider, 0, wider))))
        return joined, _joined(padded) if padded else None

    def graph_of_node(self, batch: Tensor | None) -> Tensor:
        return self.exists.nonzero()[:, 0]

    def in_degree(self) -> Tensor:
        return self.padded.in_degree().index_select(0, self.places)

    def sum_nodes(self, h: Tensor, batch: Tensor | None) -> Tensor:
        return self.pad(h).sum(1)


class Groups(Graph):
    """Typed hyperedges: every node stands in one group of each kind, and hears from all members of it, itself included.

    For graphs whose edges are cliques, such as "exactly one of these is true". There are far more edges than nodes, so
    what a group has to say is summed once for all its members (`sums`); edges are listed only if a message function
    asks for them.

    Args:
        member_of: (nodes, kinds), the group of each kind that a node stands in, numbered from 0 within its graph.
        counts: how many groups of each kind a graph has, at most.
        stops: (graphs,), where the nodes of each graph end. By default there is one graph.
    """

    def __init__(self, member_of: Tensor, counts: Sequence[int], stops: Tensor | None = None) -> None:
        if member_of.dim() != 2 or member_of.dtype != torch.int64 or member_of.shape[1] != len(counts):
            found = f"{member_of.dtype} {tuple(member_of.shape)}"
            raise InputError(f"member_of: expected torch.int64 of shape (nodes, {len(counts)} kinds), got {found}")
        self.member_of, self.counts = member_of, tuple(int(count) for count in counts)
        self.num_nodes = member_of.shape[0]
        self.stops = torch.full((1,), self.num_nodes, device=member_of.device) if stops is None else stops
        if self.num_nodes and _has_values(member_of):
            high = member_of.amax(0)
            if int(member_of.min()) < 0 or bool((high >= high.new_tensor(self.counts)).any()):
                raise InputError(f"member_of: names a group that counts {self.counts} has no room for")
            if len(self.stops) == 0 or int(self.stops[-1]) != self.num_nodes or bool((self.stops.diff() < 0).any()):
                raise InputError(f"stops: expected ascending numbers that end with {self.num_nodes}, the nodes")

    @property
    def kinds(self) -> int:
        return len(self.counts)

    def graph_of_node(self, batch: Tensor | None = None) -> Tensor:
        sizes = self.stops.diff(prepend=self.stops.new_zeros(1))
        return torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes, output_size=self.num_nodes)

    def rows(self) -> Tensor:
        """The groups of each node, all kinds and graphs counted through: (nodes, kinds)."""
        if self._rows is None:
            offsets = self.member_of.new_tensor([0, *self.counts[:-1]]).cumsum(0)
            self._rows = self.graph_of_node()[:, None] * sum(self.counts) + offsets + self.member_of
        return self._rows

    _rows: Tensor | None = None

    def sums(self, values: Tensor) -> Tensor:
        """(nodes, kinds · width) → the same shape: part k of a node's row is summed over its group of kind k."""
        index = self.rows().flatten()
        parts = values.reshape(len(index), -1)
        total = values.new_zeros(len(self.stops) * sum(self.counts), parts.shape[1]).index_add(0, index, parts)
        return total.index_select(0, index).view_as(values)

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> tuple["Groups", Tensor | None]:
        """Any nodes, not only those of whole graphs; graphs that are left without a node are left out."""
        if edge_attr is not None:
            edge_attr = _rows_of(edge_attr, torch.logical_and(*(nodes[end] for end in self.ends()[:2])))
        sizes = torch.zeros_like(self.stops).index_add(
            0, self.graph_of_node()[nodes], torch.ones_like(nodes).long()[nodes]
        )
        return Groups(self.member_of[nodes], self.counts, sizes[sizes > 0].cumsum(0)), edge_attr

    @classmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[Groups, Tensor | None]":
        counts = [max(sizes) for sizes in zip(*(graph.counts for graph, _ in parts), strict=True)]
        stops = [graph.stops + offset for graph, offset in _with_offsets(parts)]
        joined = cls(torch.cat([graph.member_of for graph, _ in parts]), counts, torch.cat(stops))
        return joined, _joined(parts)

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        """By receiver, then by kind: everybody in the receiver's group."""
        if self._ends is None:
            found = []
            for group in self.rows().unbind(1):
                order = group.argsort(stable=True)
                size = group.bincount()
                first = size.cumsum(0) - size
                receivers = torch.arange(self.num_nodes, device=group.device).repeat_interleave(size[group])
                within = torch.arange(len(receivers), device=group.device)
                within -= (size[group].cumsum(0) - size[group]).repeat_interleave(size[group])
                found.append(torch.stack([order[first[group[receivers]] + within], receivers]))
            by_kind = torch.cat(found, dim=1)
            senders, receivers = by_kind[:, by_kind[1].argsort(stable=True)]
            self._ends = senders, receivers, torch.arange(len(senders), device=senders.device)
        return self._ends

    _ends: tuple[Tensor, Tensor, Tensor] | None = None

    @property
    def edge_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (len(self.ends()[0]),)

    def _edges(self) -> EdgeList:
        return EdgeList(torch.stack(self.ends()[:2]), self.num_nodes)

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        return self._edges().pair(source, target)

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        return self._edges().collect(values, how)

    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        return self._edges().weighted_sums(source, weights)

    def in_degree(self) -> Tensor:
        sizes = self.rows().flatten().bincount()
        return sizes[self.rows()].sum(1, keepdim=True).float()

    def sum_nodes(self, h: Tensor, batch: Tensor | None) -> Tensor:
        return h.new_zeros(len(self.stops), h.shape[-1]).index_add(0, self.graph_of_node(), h)


def _has_values(tensor: Tensor) -> bool:
    """Whether the numbers can be looked at: not while a program is traced, nor on the meta device."""
    return not torch.compiler.is_compiling() and tensor.device.type != "meta"


Part = tuple[Any, Tensor | None]
"""A graph and its edge features."""


def _with_offsets(parts: Sequence[Part]) -> list[tuple[Any, int]]:
    """Each graph and the number of its first node among the nodes of all."""
    sizes = [graph.num_nodes for graph, _ in parts]
    return [(graph, sum(sizes[:index])) for index, (graph, _) in enumerate(parts)]


def _joined(parts: Sequence[Part]) -> Tensor | None:
    """The edge features of all, if they have any."""
    features = [attr.expand(graph.edge_shape[0], *attr.shape[1:]) for graph, attr in parts if attr is not None]
    return torch.cat(features) if features else None


def _rows_of(edge_attr: Tensor | None, kept: Tensor) -> Tensor | None:
    """The rows of edge features that are left, where they are not the same for all."""
    return edge_attr if edge_attr is None or len(edge_attr) == 1 != len(kept) else edge_attr[kept]


def _reduce(values: Tensor, dim: int, how: Aggregate) -> Tensor:
    if how == "max":
        return values.amax(dim)
    return values.sum(dim) if how == "sum" else values.mean(dim)


def complete_edges(size: int) -> Tensor:
    """The ``edge_index`` of one complete graph without self-edges: (2, size · (size - 1))."""
    pairs = (~torch.eye(size, dtype=torch.bool)).nonzero().T
    return pairs.contiguous()


def neighbour_edges(table: Tensor) -> Tensor:
    """The ``edge_index`` of a neighbour table: the same graph, edges ordered by receiver."""
    receivers = torch.arange(len(table), device=table.device).repeat_interleave(table.shape[1])
    return torch.stack([table.flatten(), receivers])


@overload
def union(graphs: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def union(graphs: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def union(graphs: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Batch graphs of any sizes as one graph of disjoint parts.

    Graphs ``(x, edge_index)`` become ``x, edge_index, batch``; graphs ``(x, edge_index, edge_attr)`` become
    ``x, edge_index, edge_attr, batch``. Everything stays on its device and keeps its type.
    """
    if not graphs:
        raise InputError("graphs: expected at least one (x, edge_index), got none")
    for number, graph in enumerate(graphs):
        _check_part(graph, graphs[0], number)
    xs, edges, *attributes = zip(*graphs, strict=True)
    sizes, device = [x.shape[0] for x in xs], xs[0].device
    offsets = [0, *itertools.accumulate(sizes)]
    edge_index = torch.cat([part + offset for part, offset in zip(edges, offsets, strict=False)], dim=1)
    numbers = torch.arange(len(graphs), device=device)
    batch = numbers.repeat_interleave(torch.tensor(sizes, device=device), output_size=offsets[-1])
    return torch.cat(xs), edge_index, *(torch.cat(values) for values in attributes), batch


def _check_part(graph: tuple[Tensor, ...], first: tuple[Tensor, ...], number: int) -> None:
    if len(graph) not in (2, 3) or len(graph) != len(first):
        expected = "(x, edge_index) or (x, edge_index, edge_attr), the same for all"
        raise InputError(f"graphs: expected {expected}, got {len(graph)} parts in graph {number}")
    edge_index, *rest = graph[1:]
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise InputError(f"graph {number}: expected edge_index of shape (2, edges), got {tuple(edge_index.shape)}")
    if rest and (rest[0].dim() != 2 or rest[0].shape[0] != edge_index.shape[1]):
        expected = f"({edge_index.shape[1]}, edge features)"
        raise InputError(f"graph {number}: expected edge_attr of shape {expected}, got {tuple(rest[0].shape)}")
    for name, mine, theirs in zip(("x", "edge_index", "edge_attr"), graph, first, strict=False):
        for what in ("dtype", "device"):
            if getattr(mine, what) != getattr(theirs, what):
                found = f"{getattr(mine, what)}, but graph 0 has {getattr(theirs, what)}"
                raise InputError(f"graph {number}: {name} has {what} {found}")
        if name != "edge_index" and mine.shape[1:] != theirs.shape[1:]:
            found = f"{tuple(mine.shape)}, but graph 0 has {tuple(theirs.shape)}"
            raise InputError(f"graph {number}: {name} has shape {found}")


def from_networkx(graph: Any, features: str = "x", edge_features: str | None = None) -> dict[str, Tensor | None]:
    """Arguments of `RRN.forward` from a networkx graph.

    ``features`` names the node attribute that holds a node's numbers, ``edge_features`` that of an edge. Nodes keep
    the order of ``graph.nodes``; an undirected edge becomes two directed ones.
    """
    if not len(graph):
        raise InputError("graph: it has no nodes")
    order = {node: index for index, node in enumerate(graph.nodes)}
    missing = [node for node, data in graph.nodes(data=True) if features not in data]
    if missing:
        raise InputError(f"graph: node {missing[0]!r} has no attribute {features!r}; name the attribute with features=")
    x = _rows([data[features] for _, data in graph.nodes(data=True)], features)
    edges = [(order[a], order[b], data) for a, b, data in graph.edges(data=True)]
    if not graph.is_directed():
        edges += [(b, a, data) for a, b, data in edges if a != b]
    edge_index = torch.tensor([[a for a, _, _ in edges], [b for _, b, _ in edges]], dtype=torch.long)
    edge_attr = None
    if edge_features is not None:
        if not edges:
            raise InputError(f"graph: it has no edges to take {edge_features!r} from; leave edge_features out")
        lacking = [(a, b) for a, b, data in edges if edge_features not in data]
        if lacking:
            raise InputError(f"graph: edge {lacking[0]} has no attribute {edge_features!r}")
        edge_attr = _rows([data[edge_features] for _, _, data in edges], edge_features)
    return {"x": x, "edge_index": edge_index, "edge_attr": edge_attr, "batch": None}


def from_pyg(data: Any) -> dict[str, Tensor | None]:
    """Arguments of `RRN.forward` from a PyTorch Geometric ``Data``, ``Batch`` or ``HeteroData``.

    Of a ``HeteroData`` the types become features. Types are taken in alphabetical order, whatever their order in
    ``data``; nodes, and answers about nodes, stand in that order too, and so do edges. A row of x holds the features of
    all node types side by side, zeros where they are not its own, then which type it is; a row of edge_attr the same of
    edge types.
    """
    if hasattr(data, "node_types"):
        return _from_hetero(data)
    if data.x is None or data.edge_index is None:
        raise InputError("data: expected a torch_geometric Data with x and edge_index")
    edge_attr = data.edge_attr
    return {
        "x": _columns(data.x),
        "edge_index": data.edge_index,
        "edge_attr": None if edge_attr is None else _columns(edge_attr),
        "batch": getattr(data, "batch", None),
    }


def _from_hetero(data: Any) -> dict[str, Tensor | None]:
    nodes, kinds = sorted(data.node_types), sorted(data.edge_types)
    if not nodes or not kinds:
        raise InputError("data: expected a HeteroData with nodes and edges, got one without")
    if any("batch" in data[kind] for kind in nodes):
        raise InputError("data: a batch of HeteroData; read one graph at a time and join them with rrn.graphs.union")
    lacking = [kind for kind in nodes if data[kind].get("x") is None]
    if lacking:
        raise InputError(f"data: nodes of type {lacking[0]!r} have no x; give them one, if only a column of ones")
    features = [_columns(data[kind].x) for kind in nodes]
    offsets = dict(zip(nodes, itertools.accumulate([0, *map(len, features)]), strict=False))
    edges, edge_features = [], []
    for kind in kinds:
        edge_index, attributes = data[kind].edge_index, data[kind].get("edge_attr")
        offset = torch.tensor([[offsets[kind[0]]], [offsets[kind[-1]]]], device=edge_index.device)
        edges.append(edge_index + offset)
        edge_features.append(edge_index.new_zeros(edge_index.shape[1], 0) if attributes is None else attributes)
    return {
        "x": _by_type(features),
        "edge_index": torch.cat(edges, dim=1),
        "edge_attr": _by_type([_columns(each) for each in edge_features]),
        "batch": None,
    }


def _by_type(parts: list[Tensor]) -> Tensor:
    """Features of things of several types as rows of one table: those of each type, then which type it is."""
    types = [part.new_ones(len(part), 1) for part in parts]
    return torch.cat([torch.block_diag(*parts), torch.block_diag(*types)], dim=1)


def _columns(values: Tensor) -> Tensor:
    return (values[:, None] if values.dim() == 1 else values).float()


def _rows(values: list[Any], attribute: str) -> Tensor:
    try:
        rows = torch.stack([torch.as_tensor(value, dtype=torch.float32) for value in values])
    except (RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"graph: expected {attribute!r} to hold equally many numbers everywhere ({error})") from error
    return rows[:, None] if rows.dim() == 1 else rows
