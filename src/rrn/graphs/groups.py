"""Groups: nodes are in groups of several types."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from rrn.errors import InputError, shorten
from rrn.graphs.base import (
    Aggregate,
    Graph,
    Part,
    describe,
    joined_edge_attr,
    select_rows,
    with_offsets,
)
from rrn.graphs.layouts import EdgeList


def _is_indices(value: object, dimensions: int) -> bool:
    return isinstance(value, Tensor) and value.dim() == dimensions and value.dtype == torch.int64


class Groups(Graph):
    """Typed hyperedges: a node receives from all members of its groups, itself included; groups of a type may overlap.

    For graphs whose edges are cliques, such as "exactly one of these is true". A clique has far more edges than nodes,
    so each group is summed once for all its members (`sums`). Edges are listed only if a message function needs them.

    Args:
        member_of: (nodes, columns), groups of each node, numbered from 0 within their type and graph; -1 for no group.
        counts: the largest number of groups of each type in a graph.
        stops: (graphs,), the index after the last node of each graph. By default there is one graph.
        column_types: (columns,), the group type of each column, ascending. By default column k has type k, so that a
            node is in at most one group of each type.
    """

    def __init__(
        self,
        member_of: Tensor,
        counts: Sequence[int],
        stops: Tensor | None = None,
        column_types: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(counts, Sequence) or not all(isinstance(count, int) for count in counts):
            raise InputError(f"counts: expected one integer for each group type, got {shorten(repr(counts))}")
        types = len(counts)
        self.column_types = tuple(range(types) if column_types is None else column_types)
        if list(self.column_types) != sorted(self.column_types) or set(self.column_types) != set(range(types)):
            raise InputError(f"column_types: expected each of {types} types, ascending, got {self.column_types}")
        columns, what = len(self.column_types), "group types" if column_types is None else "columns"
        if not _is_indices(member_of, 2) or member_of.shape[1] != columns:
            found = describe(member_of)
            raise InputError(f"member_of: expected torch.int64 of shape (nodes, {columns} {what}), got {found}")
        if stops is not None and not _is_indices(stops, 1):
            raise InputError(f"stops: expected torch.int64 of shape (graphs,), got {describe(stops)}")
        self.counts = tuple(int(count) for count in counts)
        self.one_group_each = columns == types
        """Whether every node is in exactly one group of each type."""
        self.num_nodes = member_of.shape[0]
        stops = torch.full((1,), self.num_nodes, device=member_of.device) if stops is None else stops
        self.member_of, self.stops = self._copy(member_of, stops)
        if self.num_nodes and not torch.compiler.is_compiling() and member_of.device.type != "meta":
            high, low = member_of.amax(0), int(member_of.min())
            if low < -1 or bool((high >= high.new_tensor([self.counts[t] for t in self.column_types])).any()):
                raise InputError(
                    f"member_of: expected groups from 0, below the counts {self.counts} of their types, or -1"
                )
            self.one_group_each = self.one_group_each and low == 0
            ends = self.stops.tolist()
            if not ends or ends[0] < 0 or ends != sorted(ends) or ends[-1] != self.num_nodes:
                raise InputError(f"stops: expected ascending numbers that end with {self.num_nodes}, the nodes")

    @property
    def group_types(self) -> int:
        return len(self.counts)

    def graph_of_node(self, batch: Tensor | None = None) -> Tensor:
        sizes = self.stops.diff(prepend=self.stops.new_zeros(1))
        return torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes, output_size=self.num_nodes)

    def rows(self) -> Tensor:
        """The groups of each node, numbered over all types and graphs: (nodes, columns).

        Where there is no group, it is one more than the last group of all graphs.
        """
        if self._rows is None:
            starts = self.member_of.new_tensor([0, *self.counts[:-1]]).cumsum(0)
            offsets = starts if self.one_group_each else starts[list(self.column_types)]
            self._rows = self.graph_of_node()[:, None] * sum(self.counts) + offsets + self.member_of
            if not self.one_group_each:
                self._rows = self._rows.where(self.member_of >= 0, len(self.stops) * sum(self.counts))
        return self._rows

    _rows: Tensor | None = None

    def sums(self, values: Tensor) -> Tensor:
        """(nodes, group types · width) → the same shape: part k of a row is summed over the node's groups of type k."""
        rows, groups = self.rows(), len(self.stops) * sum(self.counts)
        if self.one_group_each:
            index = rows.flatten()
            parts = values.reshape(len(index), -1)
            total = values.new_zeros(groups, parts.shape[1]).index_add(0, index, parts)
            return total.index_select(0, index).view_as(values)
        types = rows.new_tensor(self.column_types)
        parts = values.view(len(rows), self.group_types, -1)
        total = values.new_zeros(groups + 1, parts.shape[2])
        total = total.index_add(0, rows.flatten(), parts[:, types].flatten(0, 1))
        total = total.index_fill(0, rows.new_tensor([groups]), 0.0)  # nodes without a group
        return torch.zeros_like(parts).index_add(1, types, total[rows]).view_as(values)

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> tuple["Groups", Tensor | None]:
        """Select any nodes, not only those of whole graphs; graphs without a selected node are dropped."""
        if edge_attr is not None:
            edge_attr = select_rows(edge_attr, torch.logical_and(*(nodes[end] for end in self.ends()[:2])))
        sizes = torch.zeros_like(self.stops).index_add(
            0, self.graph_of_node()[nodes], torch.ones_like(nodes).long()[nodes]
        )
        stops = sizes[sizes > 0].cumsum(0)
        return Groups(self.member_of[nodes], self.counts, stops, self.column_types), edge_attr

    @classmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[Groups, Tensor | None]":
        counts = [max(sizes) for sizes in zip(*(graph.counts for graph, _ in parts), strict=True)]
        stops = [graph.stops + offset for graph, offset in with_offsets(parts)]
        types = range(len(counts))
        widths = [max(graph.column_types.count(t) for graph, _ in parts) for t in types]
        member_of = []
        for graph, _ in parts:
            of_type = graph.member_of.split([graph.column_types.count(t) for t in types], dim=1)
            padded = [
                pad(column, (0, width - column.shape[1]), value=-1)
                for column, width in zip(of_type, widths, strict=True)
            ]
            member_of.append(torch.cat(padded, dim=1))
        column_types = [t for t, width in zip(types, widths, strict=True) for _ in range(width)]
        joined = cls(torch.cat(member_of), counts, torch.cat(stops), column_types)
        return joined, joined_edge_attr(parts)

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        """Edges by receiver, then by its groups: from every member of the group."""
        if self._ends is None:
            node, column = (self.member_of >= 0).nonzero(as_tuple=True)
            group = self.rows()[node, column]
            order, size = group.argsort(stable=True), group.bincount()
            first, count = size.cumsum(0) - size, size[group]
            receivers = node.repeat_interleave(count)
            within = torch.arange(len(receivers), device=group.device) - (count.cumsum(0) - count).repeat_interleave(
                count
            )
            senders = node[order[first[group].repeat_interleave(count) + within]]
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

    def in_degree(self) -> Tensor:
        sizes = self.rows().flatten().bincount()
        return (sizes[self.rows()] * (self.member_of >= 0)).sum(1, keepdim=True).float()

    def sum_nodes(self, h: Tensor, batch: Tensor | None) -> Tensor:
        return h.new_zeros(len(self.stops), h.shape[-1]).index_add(0, self.graph_of_node(), h)
