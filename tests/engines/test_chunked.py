"""The chunked sum over edges against autograd on the obvious form."""

import pytest
import torch

from rrn import EdgeList, NeighbourTable
from rrn.engines import chunked
from rrn.graphs import Graph


@pytest.mark.parametrize("layers", [0, 1, 2])
@pytest.mark.parametrize("kind", ["edges", "table"])
def test_gradients_agree_with_finite_differences(kind: str, layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "CHUNK_FLOATS", 8)
    torch.manual_seed(3)
    table = torch.tensor([[1, 2], [0, 0], [2, 1]])
    graph: Graph = NeighbourTable(table) if kind == "table" else EdgeList(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 2]]), 3)
    parameters = [
        torch.randn(4, 4).double() if index % 2 == 0 else torch.randn(4).double() for index in range(2 * layers)
    ]
    inputs = [torch.randn(3, 4).double(), torch.randn(3, 4).double(), torch.randn(*graph.edge_shape, 4).double()]

    def total(source: torch.Tensor, target: torch.Tensor, edges: torch.Tensor, *flat: torch.Tensor) -> torch.Tensor:
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
        return chunked.summed_hidden_layers(source, target, edges, graph, pairs)

    assert torch.autograd.gradcheck(total, [value.requires_grad_() for value in (*inputs, *parameters)])


def test_chunks_cover_every_edge_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "CHUNK_FLOATS", 30)
    edges = torch.randint(9, (2, 23))
    chunks = chunked._chunks(EdgeList(edges, 9), 5)
    assert [len(chunk.senders) for chunk in chunks] == [6, 6, 6, 5]
    assert torch.cat([chunk.senders for chunk in chunks]).tolist() == edges[0].tolist()
    table = torch.randint(9, (9, 2))
    chunks = chunked._chunks(NeighbourTable(table), 5)
    assert torch.cat([chunk.senders for chunk in chunks]).tolist() == table.flatten().tolist()
    assert [chunk.edges for chunk in chunks] == [slice(0, 3), slice(3, 6), slice(6, 9)]


@pytest.mark.parametrize("products", [0, 1, 2])
def test_of_an_edge_only_products_are_kept_for_the_backward_pass(products: int) -> None:
    nodes, edges, width = 10, 4_000, 8
    saved = 0

    def count(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal saved
        saved += tensor.numel()
        return tensor

    graph = EdgeList(torch.randint(nodes, (2, edges)), nodes)
    source, target = torch.randn(nodes, width, requires_grad=True), torch.randn(nodes, width, requires_grad=True)
    layers = [(torch.randn(width, width, requires_grad=True), torch.randn(width, requires_grad=True))] * products
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        chunked.summed_hidden_layers(source, target, None, graph, layers)
    assert 0 < saved - products * edges * width < edges
