"""Edge lists, neighbour tables, complete graphs and packed graphs."""

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from rrn.errors import InputError
from rrn.graphs.base import (
    Aggregate,
    Graph,
    Part,
    describe,
    joined_edge_attr,
    select_rows,
    with_offsets,
)


def _has_values(tensor: Tensor) -> bool:
    """Whether the values can be read: not while tracing, nor on the meta device."""
    return not torch.compiler.is_compiling() and tensor.device.type != "meta"


def _is_integers(value: object, dimensions: int, *dtypes: torch.dtype) -> bool:
    """Whether a value is a tensor of that many dimensions and of one of the types."""
    return isinstance(value, Tensor) and value.dim() == dimensions and value.dtype in dtypes


def _is_size(value: object) -> bool:
    """Whether a value is a number of things; torch.export passes symbols."""
    return isinstance(value, int | torch.SymInt) and not isinstance(value, bool)


class EdgeList(Graph):
    """Any directed graph. ``edge_index`` is (2, E) of integers: edge e goes from node [0, e] to node [1, e]."""

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.shape[0] != 2:
            raise InputError(f"edge_index: expected a tensor of shape (2, edges), got {describe(edge_index)}")
        if edge_index.dtype not in (torch.int64, torch.int32):
            raise InputError(f"edge_index: expected integers (torch.int64), got {edge_index.dtype}")
        if not _is_size(num_nodes):
            raise InputError(f"num_nodes: expected an integer, got {describe(num_nodes)}")
        if num_nodes < 1:
            raise InputError("x: the graph has no nodes")
        if edge_index.numel() and _has_values(edge_index):
            low, high = (int(v) for v in edge_index.aminmax())
            if low < 0 or high >= num_nodes:
                bad = low if low < 0 else high
                raise InputError(f"edge_index: names node {bad}, but x has nodes 0 to {num_nodes - 1}")
        self.source, self.target = self._copy(edge_index.long())[0]
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

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.source, self.target, torch.arange(len(self.source), device=self.source.device)

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[EdgeList, Tensor | None]":
        selected = nodes[self.source] & nodes[self.target]
        number = nodes.cumsum(0) - 1
        edges = torch.stack([number[self.source[selected]], number[self.target[selected]]])
        return EdgeList(edges, int(nodes.sum())), select_rows(edge_attr, selected)

    @classmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[EdgeList, Tensor | None]":
        edges = [torch.stack([graph.source, graph.target]) + offset for graph, offset in with_offsets(parts)]
        joined = cls(torch.cat(edges, dim=1), sum(graph.num_nodes for graph, _ in parts))
        joined.graphs = sum(graph.graphs for graph, _ in parts)
        return joined, joined_edge_attr(parts)

    def in_degree(self) -> Tensor:
        ones = torch.ones(self.edge_shape[0], 1, device=self.target.device)
        return torch.zeros(self.num_nodes, 1, device=self.target.device).index_add(0, self.target, ones)


class NeighbourTable(Graph):
    """A graph in which every node has k senders: row j of ``table`` (nodes, k) lists the senders of node j."""

    def __init__(self, table: Tensor) -> None:
        if not _is_integers(table, 2, torch.int64, torch.int32) or table.numel() == 0:
            raise InputError(f"table: expected integers of shape (nodes, k), got {describe(table)}")
        if _has_values(table):
            low, high = (int(v) for v in table.aminmax())
            if low < 0 or high >= len(table):
                raise InputError(f"table: names node {low if low < 0 else high}, but has nodes 0 to {len(table) - 1}")
        (self.table,) = self._copy(table.long())
        self.num_nodes = len(table)
        self.edge_shape = tuple(table.shape)
        self._ends: tuple[Tensor, Tensor, Tensor] | None = None
        self._parts: dict[int, list[NeighbourTable]] = {}

    @classmethod
    def repeat(cls, table: Tensor, graphs: int) -> "NeighbourTable":
        """The table of ``graphs`` copies of one graph; the nodes of a copy are adjacent."""
        if not _is_size(graphs) or graphs < 1:
            raise InputError(f"graphs: expected at least 1, got {graphs}")
        table = cls(table).table
        offsets = torch.arange(graphs, device=table.device)[:, None, None] * len(table)
        repeated = cls((table[None] + offsets).flatten(0, 1))
        repeated.graphs = graphs
        return repeated

    def parts(self, count: int) -> "list[NeighbourTable]":
        """At most ``count`` parts of similar size, each of adjacent nodes, without edges between parts; cached."""
        if count not in self._parts:
            self._parts[count] = self._cut(count)
        return self._parts[count]

    def _cut(self, count: int) -> "list[NeighbourTable]":
        node = torch.arange(self.num_nodes, device=self.table.device)
        highest = self.table.amax(1).maximum(node).cummax(0).values
        lowest = self.table.amin(1).minimum(node).flip(0).cummin(0).values.flip(0)
        free = node[1:][(highest[:-1] < node[1:]) & (lowest[1:] >= node[1:])].tolist()
        wanted = [self.num_nodes * part // count for part in range(1, count)]
        cuts = sorted({min(free, key=lambda cut: abs(cut - ideal)) for ideal in wanted}) if free else []
        bounds = [0, *cuts, self.num_nodes]
        return [NeighbourTable(self.table[low:high] - low) for low, high in itertools.pairwise(bounds)]

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        gathered = source.index_select(0, self.table.flatten()).view(*self.edge_shape, -1)
        return gathered + target[:, None]

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        if how == "max":
            return values.amax(1)
        return values.sum(1) if how == "sum" else values.mean(1)

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        if self._ends is None:
            nodes, degree = self.table.shape
            receivers = torch.arange(nodes, device=self.table.device).repeat_interleave(degree)
            self._ends = self.table.flatten(), receivers, torch.arange(nodes * degree, device=self.table.device)
        return self._ends

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[NeighbourTable, Tensor | None]":
        number = torch.where(nodes, nodes.cumsum(0) - 1, -1)
        return NeighbourTable(number[self.table[nodes]]), select_rows(edge_attr, nodes)

    @classmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[NeighbourTable, Tensor | None]":
        joined = cls(torch.cat([graph.table + offset for graph, offset in with_offsets(parts)]))
        joined.graphs = sum(graph.graphs for graph, _ in parts)
        return joined, joined_edge_attr(parts)

    def in_degree(self) -> Tensor:
        return torch.full((self.num_nodes, 1), float(self.edge_shape[1]), device=self.table.device)


class CompleteGraphs(Graph):
    """``graphs`` complete graphs of ``size`` nodes each, without self-edges.

    The nodes of a graph are adjacent. Edge values have the shape (graphs, sender, receiver, width). ``mask`` (graphs,
    size) is true where a node exists, for graphs padded to one size; other nodes do not send. Without a mask,
    ``device`` is the device of the graphs.
    """

    def __init__(self, graphs: int, size: int, mask: Tensor | None = None, device: torch.device | str = "cpu") -> None:
        for value in (graphs, size):
            if not _is_size(value) or value < 1:
                raise InputError(f"graphs, size: expected at least one graph of one node, got {graphs} of {size}")
        if mask is not None and (not _is_integers(mask, 2, torch.bool) or mask.shape != (graphs, size)):
            raise InputError(f"mask: expected booleans of shape {(graphs, size)}, got {describe(mask)}")
        self.graphs, self.size, self.mask = graphs, size, None if mask is None else mask.clone()
        self.num_nodes = graphs * size
        self.edge_shape = (graphs, size, size)
        edges = ~torch.eye(size, dtype=torch.bool, device=device if mask is None else mask.device)[None]
        if mask is not None:
            edges = edges & mask[:, :, None]
        self.edges = edges[..., None]  # (graphs or 1, sender, receiver, 1)
        self._keep(self.edges, *([] if self.mask is None else [self.mask]))

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        shape = (self.graphs, self.size, source.shape[-1])
        return source.view(shape)[:, :, None] + target.view(shape)[:, None]

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        edges = self.edges.to(values.device)
        if how == "max":
            largest = values.masked_fill(~edges, float("-inf")).amax(1)
            return largest.masked_fill(largest == float("-inf"), 0).flatten(0, 1)
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
        positions = (graph * self.size + sender) * self.size + receiver
        return graph * self.size + sender, graph * self.size + receiver, positions

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[CompleteGraphs, Tensor | None]":
        selected = nodes.view(self.graphs, self.size).any(1)
        mask = None if self.mask is None else self.mask[selected]
        return CompleteGraphs(int(selected.sum()), self.size, mask, self.edges.device), select_rows(edge_attr, selected)

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
        return cls(sum(graph.graphs for graph in graphs), size, mask, device=device), joined_edge_attr(parts)

    @property
    def exists(self) -> Tensor:
        """The mask of existing nodes: (graphs, size)."""
        if self.mask is not None:
            return self.mask
        return torch.ones(self.graphs, self.size, dtype=torch.bool, device=self.edges.device)

    def graph_of_node(self, batch: Tensor | None) -> Tensor:
        return torch.arange(self.num_nodes, device=self.edges.device) // self.size

    def in_degree(self) -> Tensor:
        return self.edges.float().sum(1).expand(self.graphs, self.size, 1).reshape(-1, 1)

    def sum_nodes(self, h: Tensor, batch: Tensor | None) -> Tensor:
        h = h.view(self.graphs, self.size, -1)
        return h.sum(1) if self.mask is None else (h * self.mask[..., None].to(h.dtype)).sum(1)

    def pool_nodes(self, h: Tensor, batch: Tensor | None, how: Aggregate) -> Tensor:
        if how == "max" and self.mask is not None:
            h = h.masked_fill(~self.mask.view(-1, 1), torch.finfo(h.dtype).min)
        return super().pool_nodes(h, batch, how)


class PackedGraphs(Graph):
    """Complete graphs of different ``sizes`` (graphs,), without self-edges.

    Nodes are packed, those of a graph adjacent, so that nothing is computed for padding nodes. Edge values are padded
    to the largest size, as in `CompleteGraphs`: (graphs, sender, receiver, width).
    """

    def __init__(self, sizes: Tensor) -> None:
        if not _is_integers(sizes, 1, torch.int64, torch.int32) or len(sizes) == 0 or int(sizes.min()) < 1:
            raise InputError("sizes: expected the number of nodes of each graph, at least 1, in one dimension")
        graphs, size = len(sizes), int(sizes.max())
        mask = torch.arange(size, device=sizes.device) < sizes[:, None]
        self.padded = CompleteGraphs(graphs, size, mask)
        self.exists = mask
        self.positions = mask.flatten().nonzero()[:, 0]
        self.num_nodes = len(self.positions)
        self.edge_shape = self.padded.edge_shape
        self.edges = self.padded.edges
        self._keep(self.edges, self.exists, self.positions)
        """(graphs, sender, receiver, 1): whether the sender exists and is not the receiver."""

    def pad(self, h: Tensor) -> Tensor:
        """(nodes, width) → (graphs, size, width), zeros where a graph has no node."""
        graphs, size, _ = self.edge_shape
        padded = h.new_zeros(graphs * size, h.shape[-1]).index_copy(0, self.positions, h)
        return padded.view(graphs, size, -1)

    def pack(self, padded: Tensor) -> Tensor:
        """(graphs, size, width) → (nodes, width)."""
        return padded.flatten(0, 1).index_select(0, self.positions)

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        return self.padded.pair(self.pad(source).flatten(0, 1), self.pad(target).flatten(0, 1))

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        return self.padded.collect(values, how).index_select(0, self.positions)

    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        return self.padded.weighted_sums(self.pad(source).flatten(0, 1), weights).index_select(0, self.positions)

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        senders, receivers, positions = self.padded.ends()
        packed = torch.full((self.padded.num_nodes,), -1, device=self.positions.device)
        packed[self.positions] = torch.arange(self.num_nodes, device=self.positions.device)
        exist = packed[receivers] >= 0
        return packed[senders[exist]], packed[receivers[exist]], positions[exist]

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> "tuple[PackedGraphs, Tensor | None]":
        selected = torch.zeros(len(self.exists), dtype=torch.bool, device=nodes.device)
        selected[self.graph_of_node(None)[nodes]] = True
        graphs = PackedGraphs(self.exists.sum(1)[selected])
        size = graphs.edge_shape[1]
        edge_attr = select_rows(edge_attr, selected)
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
        return joined, joined_edge_attr(padded) if padded else None

    def graph_of_node(self, batch: Tensor | None) -> Tensor:
        return self.exists.nonzero()[:, 0]

    def in_degree(self) -> Tensor:
        return self.padded.in_degree().index_select(0, self.positions)

    def sum_nodes(self, h: Tensor, batch: Tensor | None) -> Tensor:
        return self.pad(h).sum(1)
