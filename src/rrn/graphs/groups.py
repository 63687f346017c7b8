"""Groups: every node is in one group of each of several types."""

from collections.abc import Sequence

import torch
from torch import Tensor

from rrn.errors import InputError, shorten
from rrn.graphs.base import (
    Aggregate,
    Graph,
    Part,
    copied,
    describe,
    is_integers,
    joined_edge_attr,
    select_rows,
    with_offsets,
)
from rrn.graphs.layouts import EdgeList


class Groups(Graph):
    """Typed hyperedges: every node is in one group of each type and receives from all of its members, itself included.

    For graphs whose edges are cliques, such as "exactly one of these is true". A clique has far more edges than nodes,
    so each group is summed once for all its members (`sums`). Edges are listed only if a message function needs them.

    Args:
        member_of: (nodes, group types), the node's group of each type, numbered from 0 within its graph.
        counts: the largest number of groups of each type in a graph.
        stops: (graphs,), the index after the last node of each graph. By default there is one graph.
    """

    def __init__(self, member_of: Tensor, counts: Sequence[int], stops: Tensor | None = None) -> None:
        if not isinstance(counts, Sequence) or not all(isinstance(count, int) for count in counts):
            raise InputError(f"counts: expected one integer for each group type, got {shorten(repr(counts))}")
        types = len(counts)
        if not is_integers(member_of, 2, torch.int64) or member_of.shape[1] != types:
            found = describe(member_of)
            raise InputError(f"member_of: expected torch.int64 of shape (nodes, {types} group types), got {found}")
        if stops is not None and not is_integers(stops, 1, torch.int64):
            raise InputError(f"stops: expected torch.int64 of shape (graphs,), got {describe(stops)}")
        self.member_of, self.counts = copied(member_of), tuple(int(count) for count in counts)
        self.num_nodes = member_of.shape[0]
        self.stops = torch.full((1,), self.num_nodes, device=member_of.device) if stops is None else copied(stops)
        self._keep(self.member_of, self.stops)
        if self.num_nodes and not torch.compiler.is_compiling() and member_of.device.type != "meta":
            high = member_of.amax(0)
            if int(member_of.min()) < 0 or bool((high >= high.new_tensor(self.counts)).any()):
                raise InputError(f"member_of: expected groups from 0, below the counts {self.counts} of their types")
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
        """The groups of each node, numbered over all types and graphs: (nodes, group types)."""
        if self._rows is None:
            offsets = self.member_of.new_tensor([0, *self.counts[:-1]]).cumsum(0)
            self._rows = self.graph_of_node()[:, None] * sum(self.counts) + offsets + self.member_of
        return self._rows

    _rows: Tensor | None = None

    def sums(self, values: Tensor) -> Tensor:
        """(nodes, group types · width) → the same shape: part k of a row is summed over the node's group of type k."""
        index = self.rows().flatten()
        parts = values.reshape(len(index), -1)
        total = values.new_zeros(len(self.stops) * sum(self.counts), parts.shape[1]).index_add(0, index, parts)
        return total.index_select(0, index).view_as(values)

    def select(self, nodes: Tensor, edge_attr: Tensor | None = None) -> tuple["Groups", Tensor | None]:
        """Select any nodes, not only those of whole graphs; graphs without a selected node are dropped."""
        if edge_attr is not None:
            edge_attr = select_rows(edge_attr, torch.logical_and(*(nodes[end] for end in self.ends()[:2])))
        sizes = torch.zeros_like(self.stops).index_add(
            0, self.graph_of_node()[nodes], torch.ones_like(nodes).long()[nodes]
        )
        return Groups(self.member_of[nodes], self.counts, sizes[sizes > 0].cumsum(0)), edge_attr

    @classmethod
    def join(cls, parts: "Sequence[Part]") -> "tuple[Groups, Tensor | None]":
        counts = [max(sizes) for sizes in zip(*(graph.counts for graph, _ in parts), strict=True)]
        stops = [graph.stops + offset for graph, offset in with_offsets(parts)]
        joined = cls(torch.cat([graph.member_of for graph, _ in parts]), counts, torch.cat(stops))
        return joined, joined_edge_attr(parts)

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        """Edges by receiver, then by group type: from every member of the receiver's group."""
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
            by_type = torch.cat(found, dim=1)
            senders, receivers = by_type[:, by_type[1].argsort(stable=True)]
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
