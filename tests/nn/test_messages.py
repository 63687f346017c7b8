"""The rewrite of f is exact: values and gradients of the plain form, on every layout."""

import pytest
import torch
from torch import Tensor

from rrn import CompleteGraphs, EdgeList, InputError, NeighbourTable
from rrn.graphs import Graph, PackedGraphs
from rrn.nn.messages import AttentionMessage, GatedMessage, MLPMessage

HIDDEN, TOLERANCE = 6, {"atol": 1e-10, "rtol": 1e-10}


def layouts() -> dict[str, Graph]:
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(3, 4, generator=generator) < 0.7
    return {
        "edges": EdgeList(torch.randint(11, (2, 37), generator=generator), 11),
        "no edges": EdgeList(torch.zeros(2, 0).long(), 3),
        "table": NeighbourTable(torch.randint(11, (11, 3), generator=generator)),
        "complete": CompleteGraphs(3, 4),
        "masked": CompleteGraphs(3, 4, mask),
    }


def gradients(output: Tensor, *inputs: Tensor) -> list[Tensor]:
    weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output)
    found = torch.autograd.grad((output * weights).sum(), inputs, allow_unused=True)
    return [torch.zeros_like(i) if g is None else g for g, i in zip(found, inputs, strict=True)]


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("edge_features", [0, 2])
@pytest.mark.parametrize("layout", layouts())
def test_the_rewrite_is_the_plain_form(layout: str, edge_features: int, layers: int) -> None:
    graph = layouts()[layout]
    message = MLPMessage(HIDDEN, edge_features, layers).double()
    h = torch.randn(graph.num_nodes, HIDDEN, dtype=torch.float64, requires_grad=True)
    edge_attr = None
    inputs = [h, *message.parameters()]
    if edge_features:
        edge_attr = torch.randn(*graph.edge_shape, edge_features, dtype=torch.float64, requires_grad=True)
        inputs.append(edge_attr)
    fast = message(h, graph, message.encode_edges(edge_attr))
    plain = message.plain(h, graph, edge_attr)
    torch.testing.assert_close(fast, plain, **TOLERANCE)
    for ours, theirs in zip(gradients(fast, *inputs), gradients(plain, *inputs), strict=True):
        torch.testing.assert_close(ours, theirs, **TOLERANCE)
    if graph.edge_shape[0]:
        assert plain.abs().max() > 0.01


@pytest.mark.parametrize("how", ["mean", "max"])
def test_other_aggregates_by_hand(how: str) -> None:
    """The last layer follows what is collected: W·mean(z) + b, and W·max(z) + b."""
    message = MLPMessage(HIDDEN, 0, 2, (how,)).double()
    graph = layouts()["edges"]
    h = torch.randn(11, HIDDEN).double()
    expected = []
    first, second, last = message.mlp.linears
    for j in range(11):
        senders = [int(i) for i, t in zip(graph.source, graph.target, strict=True) if t == j]
        z = [second(first(torch.cat([h[i], h[j]])).relu()).relu() for i in senders]
        together = torch.stack(z) if z else torch.zeros(1, HIDDEN).double()
        expected.append(last(together.mean(0) if how == "mean" else together.amax(0)))
    torch.testing.assert_close(message(h, graph, None), torch.stack(expected), **TOLERANCE)


def test_aggregates_side_by_side() -> None:
    message = MLPMessage(HIDDEN, 0, 1, ("sum", "max")).double()
    assert message.mlp.linears[-1].weight.shape == (HIDDEN, 2 * HIDDEN)
    graph, h = layouts()["table"], torch.randn(11, HIDDEN).double()
    z = graph.pair(h, torch.zeros_like(h)), graph.pair(torch.zeros_like(h), h)
    z = message.mlp.linears[0](torch.cat(z, dim=-1)).relu()
    expected = message.mlp.linears[-1](torch.cat([z.sum(1), z.amax(1)], dim=-1))
    torch.testing.assert_close(message(h, graph, None), expected, **TOLERANCE)


@pytest.mark.parametrize("layout", ["edges", "table", "complete"])
def test_the_gated_message_is_its_formula(layout: str) -> None:
    graph = layouts()[layout]
    message = GatedMessage(HIDDEN, 2, width=5).double()
    h = torch.randn(graph.num_nodes, HIDDEN).double()
    edge_attr = torch.randn(*graph.edge_shape, 2).double()
    if isinstance(graph, EdgeList):
        edges = zip(graph.source.tolist(), graph.target.tolist(), edge_attr, strict=True)
    elif isinstance(graph, NeighbourTable):
        edges = ((int(i), j, e) for j in range(11) for i, e in zip(graph.table[j], edge_attr[j], strict=True))
    else:
        edges = (
            (4 * g + i, 4 * g + j, edge_attr[g, i, j]) for g in range(3) for i in range(4) for j in range(4) if i != j
        )
    total = torch.zeros(graph.num_nodes, 5).double()
    for i, j, e in edges:
        total[j] += message.gate(e) * (message.source(h[i]) + message.target(h[j]))
    expected = message.norm(message.out(total))
    torch.testing.assert_close(message(h, graph, message.encode_edges(edge_attr)), expected, **TOLERANCE)


def test_the_gated_message_needs_edge_features() -> None:
    with pytest.raises(InputError, match="edge_attr: a GatedMessage needs edge features, got None"):
        GatedMessage(HIDDEN, 2).encode_edges(None)


def test_the_attention_message_is_its_formula() -> None:
    sizes, features, heads, width = [3, 1, 4], 5, 2, 3
    message = AttentionMessage(HIDDEN, features, heads, width).double()
    with torch.no_grad():
        message.no_sender.copy_(torch.tensor([0.5, -1.0]))
    h, edge_attr = torch.randn(8, HIDDEN).double(), torch.randn(3, 4, 4, features).double()
    ours = message(h, PackedGraphs(torch.tensor(sizes)), message.encode_edges(edge_attr))
    query, key, value = message.project(h).view(8, 3, heads, width).unbind(1)
    expected = []
    for graph, size in enumerate(sizes):
        first = sum(sizes[:graph])
        for j in range(size):
            senders = [i for i in range(size) if i != j]
            parts = []
            for k in range(heads):
                logits = [
                    query[first + j, k] @ key[first + i, k] / width**0.5
                    + message.prefer.weight[k] @ edge_attr[graph, i, j]
                    for i in senders
                ]
                share = torch.stack([*logits, message.no_sender[k]]).softmax(0)[:-1]
                said = [torch.cat([value[first + i, k], edge_attr[graph, i, j]]) for i in senders]
                parts.append(
                    sum((s * v for s, v in zip(share, said, strict=True)), torch.zeros(width + features).double())
                )
            values, noticed = zip(*[part.split([width, features]) for part in parts], strict=True)
            expected.append(message.norm(message.out(torch.cat([*values, *noticed]))))
    torch.testing.assert_close(ours, torch.stack(expected))


def test_the_attention_message_needs_edge_features_and_packed_graphs() -> None:
    message = AttentionMessage(HIDDEN, 2, 1, 4)
    with pytest.raises(InputError, match="edge_attr"):
        message.encode_edges(None)
    with pytest.raises(InputError, match="PackedGraphs"):
        message(torch.randn(4, HIDDEN), CompleteGraphs(1, 4), torch.randn(1, 4, 3, 4))
