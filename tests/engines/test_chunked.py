"""The chunked sum over edges against autograd on the obvious form."""

import sys

import pytest
import torch

from rrn import EdgeList, NeighbourTable
from rrn.engines import chunked, threads
from rrn.graphs import Graph
from rrn.nn.messages import hidden_sums


@pytest.mark.parametrize("layers", [0, 1, 2])
@pytest.mark.parametrize("kind", ["edges", "table"])
def test_gradients_agree_with_finite_differences(kind: str, layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "CHUNK_FLOATS", 8)
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
    monkeypatch.setattr(threads, "CHUNK_FLOATS", 30)
    graph, nodes = EdgeList(torch.randint(9, (2, 23)), 9), torch.randn(9, 5)
    first = chunked._FirstLayer(nodes, nodes, None, graph)
    chunks, filled = zip(*((chunk, z.tensor.clone()) for chunk, (z, *_) in first.chunks(0)), strict=True)
    assert chunks == (slice(0, 6), slice(6, 12), slice(12, 18), slice(18, 23))
    torch.testing.assert_close(torch.cat(filled), graph.pair(nodes, nodes).relu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("terms", [True, False])
@pytest.mark.parametrize("layers", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["edges", "table"])
def test_values_and_gradients_are_those_of_the_plain_form(
    kind: str, layers: int, terms: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not the tensors lie in one piece."""
    monkeypatch.setattr(threads, "CHUNK_FLOATS", 300)
    graph: Graph = EdgeList(torch.randint(11, (2, 70)), 11)
    if kind == "table":
        graph = NeighbourTable(torch.randint(11, (11, 6)))
    both = torch.randn(11, 36, dtype=dtype, requires_grad=True)
    edge_term = torch.randn(*graph.edge_shape, 18, dtype=dtype, requires_grad=True) if terms else None
    pairs = [
        [torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in ((18, 18), (18,))] for _ in range(layers)
    ]
    leaves = [both, *(parameter for pair in pairs for parameter in pair), *([edge_term] if terms else [])]
    found = []
    for sums in (chunked.summed_hidden_layers, hidden_sums):
        total = sums(*both.split(18, dim=1), edge_term, graph, [(weight, bias) for weight, bias in pairs])
        found.append([total, *torch.autograd.grad((total * torch.linspace(-1, 1, 18, dtype=dtype)).sum(), leaves)])
        with torch.no_grad():
            found[-1].append(sums(*both.split(18, dim=1), edge_term, graph, [(weight, bias) for weight, bias in pairs]))
    for ours, plainly in zip(*found, strict=True):
        size = float(plainly.detach().abs().max())
        torch.testing.assert_close(ours, plainly, rtol=0, atol=size * (1e-5 if dtype == torch.float32 else 1e-13))


@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize("terms", [True, False])
def test_two_threads_give_what_the_plain_form_gives_and_the_same_bits_again(
    terms: bool, inference: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "CHUNK_FLOATS", 300)
    torch.set_num_threads(2)
    graph = EdgeList(torch.randint(11, (2, 70)), 11)
    edge_term = torch.randn(70, 18, requires_grad=True) if terms else None
    leaves = [torch.randn(*shape, requires_grad=True) for shape in 2 * [(11, 18)] + 2 * [(18, 18), (18,)]]
    assert chunked._FirstLayer(*leaves[:2], edge_term, graph).shares == threads.shares()
    found = []
    for sums in (chunked.summed_hidden_layers, chunked.summed_hidden_layers, hidden_sums):
        source, target, *flat = leaves
        with torch.inference_mode(inference):
            total = sums(source, target, edge_term, graph, list(zip(flat[::2], flat[1::2], strict=True)))
        wanted = leaves if edge_term is None else [*leaves, edge_term]
        found.append([total, *([] if inference else torch.autograd.grad(total.square().sum(), wanted))])
    for ours, again, plainly in zip(*found, strict=True):
        assert torch.equal(ours, again)
        torch.testing.assert_close(ours, plainly, rtol=0, atol=1e-5 * float(plainly.detach().abs().max()))


@pytest.mark.skipif(sys.platform != "linux", reason="torch has GNU's threads on Linux")
def test_what_fails_on_a_thread_fails_here() -> None:
    torch.set_num_threads(2)
    done = []

    def work(share: int) -> None:
        done.append(share)
        if share:
            raise KeyError("as expected")

    with pytest.raises(KeyError, match="as expected"):
        threads.run_shares(work, 2)
    assert sorted(done) == [0, 1]
    assert torch.get_num_threads() == 2
    assert torch.is_grad_enabled()


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
