"""f, the message function (eq. 1), and the aggregation at each node (eq. 2).

A message module maps the hidden states and the graph to the aggregated message of every node::

    m_ij = f(h_i, h_j, e_ij)          eq. 1
    m_j  = Σ_{i ∈ N(j)} m_ij          eq. 2
"""

from abc import ABC, abstractmethod
from typing import get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError, shorten
from rrn.graphs import Aggregate, Graph, Groups, PackedGraphs
from rrn.nn.layers import MLP, Linear, Resettable


class Message(Resettable, ABC):
    """Messages and their aggregation, eq. 1 and 2. Subclass it and implement `forward`."""

    outputs: int
    """Width of an aggregated message."""

    def encode_edges(self, edge_attr: Tensor | None) -> Tensor | None:
        """Compute ``edge_term`` from the edge features, once before all steps. By default the features themselves."""
        return edge_attr

    @abstractmethod
    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        """Hidden states (nodes, hidden) → aggregated messages (nodes, outputs)."""


class MLPMessage(Message):
    """f as a multi-layer perceptron on [h_i; h_j; e_ij], computed without building that concatenation.

    The first layer is W₁h_i + W₂h_j + W₃e_ij: two products per *node* instead of one per *edge*. The last layer is
    linear, so it follows the sum: W·Σz + degree·b. Both rewrites are exact; only the ``layers`` - 1 products in
    between run on the edges. `plain` is the paper's form, for comparison.

    With an ``aggregate`` other than "sum", f's last layer still follows the aggregation. With several, it reads their
    concatenation.
    """

    def __init__(
        self, hidden: int, edge_features: int = 0, layers: int = 1, aggregate: tuple[Aggregate, ...] = ("sum",)
    ) -> None:
        super().__init__()
        if (
            not isinstance(aggregate, tuple | list)
            or not aggregate
            or any(k not in get_args(Aggregate) for k in aggregate)
        ):
            known, found = list(get_args(Aggregate)), shorten(repr(aggregate))
            raise InputError(f"aggregate: expected a tuple of some of {known}, got {found}")
        self.hidden, self.edge_features, self.outputs = hidden, edge_features, hidden
        self.aggregate = tuple(aggregate)
        self.layers = layers
        self.mlp = MLP(2 * hidden + edge_features, hidden, hidden, layers)
        if len(aggregate) > 1:
            self.mlp.linears[-1] = Linear(len(aggregate) * hidden, hidden)

    def encode_edges(self, edge_attr: Tensor | None) -> Tensor | None:
        if edge_attr is None:
            return None
        return edge_attr @ self.mlp.weights()[0][0][:, 2 * self.hidden :].T

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        weight, bias, edge_term, middle, _ = self.split_layers(edge_term)
        source, target = torch.addmm(bias, h, weight).split(self.hidden, dim=1)
        z = _hidden_layers(source, target, edge_term, graph, middle)
        return self.last_layer(torch.cat([graph.collect(z, how) for how in self.aggregate], dim=-1), graph)

    def split_layers(
        self, edge_term: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None, "Layers", tuple[Tensor, Tensor]]:
        """Weight (hidden, 2 · hidden) and bias of both nodes' part of the first layer, and the edges' part, if any;
        the further ReLU layers; the last layer."""
        (weight, bias), *middle, last = self.mlp.weights()
        if edge_term is not None and edge_term.numel() == self.hidden:  # the same on every edge
            bias, edge_term = bias + edge_term.flatten(), None
        both = torch.cat(weight[:, : 2 * self.hidden].split(self.hidden, dim=1)).T
        return both, torch.cat([torch.zeros_like(bias), bias]), edge_term, middle, last

    def last_layer(self, collected: Tensor, graph: Graph) -> Tensor:
        """Σ(W·z + b) = W·Σz + degree·b."""
        last, bias = self.mlp.weights()[-1]
        if self.aggregate == ("sum",):
            return torch.addmm(graph.in_degree().to(collected) * bias, collected, last.T)
        return F.linear(collected, last, bias)

    def plain(self, h: Tensor, graph: Graph, edge_attr: Tensor | None) -> Tensor:
        """Eq. 1 and 2 literally: one concatenation and one MLP per edge, then the sum."""
        zeros = torch.zeros_like(h)
        ends = [graph.pair(h, zeros), graph.pair(zeros, h)]
        if edge_attr is not None:
            ends.append(edge_attr.expand(*graph.edge_shape, -1))
        return graph.collect(self.mlp(torch.cat(ends, dim=-1)), "sum")


Layers = list[tuple[Tensor, Tensor]]


def hidden_sums(source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, layers: Layers) -> Tensor:
    """Σ_i z_ij with z_ij = relu(… relu(source_i + target_j + edge_term_ij) …): (nodes, hidden).

    ``layers`` are the weights and biases of the further ReLU layers.
    """
    return graph.collect(_hidden_layers(source, target, edge_term, graph, layers), "sum")


def _hidden_layers(source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, layers: Layers) -> Tensor:
    z = graph.pair(source, target)
    z = (z if edge_term is None else z + edge_term).relu()
    for weight, bias in layers:
        z = F.linear(z, weight, bias).relu()
    return z


class GatedMessage(Message):
    """f(h_i, h_j, e_ij) = W·(ψ(e_ij) ⊙ (U h_i + V h_j)): the edge features gate the sum of both end nodes.

    The gate ψ is linear in e, so messages are summed one feature at a time, without a vector on any edge:
    Σ_i ψ(e_ij) ⊙ U h_i = b ⊙ Σ_i U h_i + Σ_k ψ_k ⊙ (Σ_i e_ijk U h_i). The sum is layer-normalised.
    """

    def __init__(self, hidden: int, edge_features: int, width: int | None = None) -> None:
        super().__init__()
        self.outputs, width = hidden, width or hidden
        self.source = nn.Linear(hidden, width)
        self.target = nn.Linear(hidden, width, bias=False)
        self.gate = nn.Linear(edge_features, width)
        self.out = nn.Linear(width, hidden)
        self.norm = nn.LayerNorm(hidden)

    def encode_edges(self, edge_attr: Tensor | None) -> Tensor | None:
        """Append a constant feature for the gate's bias."""
        if edge_attr is None:
            raise InputError("edge_attr: a GatedMessage needs edge features, got None")
        return torch.cat([edge_attr, torch.ones_like(edge_attr[..., :1])], dim=-1)

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        assert edge_term is not None
        gates = torch.cat([self.gate.weight.T, self.gate.bias[None]])  # (features + 1, width)
        from_sources = (graph.weighted_sums(self.source(h), edge_term) * gates).sum(1)
        gate_sum = graph.collect(edge_term.expand(*graph.edge_shape, -1), "sum") @ gates
        return self.norm(self.out(from_sources + gate_sum * self.target(h)))


class AttentionMessage(Message):
    """Attention over senders: m_j = W·[Σ_i a_ij U h_i; Σ_i a_ij e_ij], a_ij a softmax over i, for each head.

    The logit of a_ij is q(h_j)·k(h_i) plus a linear function of the edge features. One more learned logit takes the
    weight that no sender gets. The sum is layer-normalised. Needs `PackedGraphs`.
    """

    def __init__(self, hidden: int, edge_features: int, heads: int, width: int) -> None:
        super().__init__()
        self.outputs, self.heads, self.width, self.edge_features = hidden, heads, width, edge_features
        self.project = nn.Linear(hidden, 3 * heads * width)
        self.prefer = nn.Linear(edge_features, heads, bias=False)
        self.no_sender = nn.Parameter(torch.zeros(heads))
        self.out = nn.Linear(heads * (width + edge_features), hidden)
        self.norm = nn.LayerNorm(hidden)

    def reset_parameters(self) -> None:
        for layer in (self.project, self.prefer, self.out, self.norm):
            layer.reset_parameters()
        nn.init.zeros_(self.no_sender)

    def encode_edges(self, edge_attr: Tensor | None) -> Tensor | None:
        """(graphs, sender, receiver, features) → (graphs, receiver, heads + features, sender), the logits first."""
        if edge_attr is None:
            raise InputError("edge_attr: an AttentionMessage needs edge features, got None")
        features = edge_attr.permute(0, 2, 3, 1)
        return torch.cat([self.prefer.weight @ features, features], dim=2)

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        assert edge_term is not None
        if not isinstance(graph, PackedGraphs):
            raise InputError(f"edge_index: an AttentionMessage needs PackedGraphs, got {type(graph).__name__}")
        graphs, size, _ = graph.edge_shape
        shape = (graphs, size, self.heads, self.width)
        query, key, value = (part.reshape(shape) for part in graph.pad(self.project(h)).chunk(3, dim=-1))
        scores = (query.transpose(1, 2) @ key.permute(0, 2, 3, 1)).transpose(1, 2) * self.width**-0.5
        prefer, features = edge_term.split([self.heads, self.edge_features], dim=2)
        scores = (scores + prefer).masked_fill(~graph.edges.permute(0, 2, 3, 1), float("-inf"))
        no_sender = self.no_sender[:, None].expand(graphs, size, -1, 1)
        share = torch.cat([scores, no_sender], dim=-1).softmax(-1)[..., :-1]  # (graphs, receiver, heads, sender)
        values = (share.transpose(1, 2) @ value.transpose(1, 2)).transpose(1, 2)
        received = torch.cat([values.flatten(2), (share @ features.transpose(2, 3)).flatten(2)], dim=-1)
        return self.norm(self.out(graph.pack(received)))


class GroupMessage(Message):
    """Group sums: part k of h is summed over the node's group of type k. Needs `Groups`."""

    def __init__(self, group_types: int, width: int) -> None:
        super().__init__()
        self.group_types, self.outputs = group_types, group_types * width

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        if not isinstance(graph, Groups) or graph.group_types != self.group_types:
            found = f"{graph.group_types}" if isinstance(graph, Groups) else type(graph).__name__
            raise InputError(f"edge_index: expected Groups of {self.group_types} group types, got {found}")
        return graph.sums(h)
