"""Whole graphs on several threads give the values of the plain engine."""

import gc
import sys
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Literal

import pytest
import torch
from tests.engines.test_engines import FEATURES, everything, network_for
from torch import Tensor

from rrn import RRN, NeighbourTable, RRNClassifier, engines
from rrn._compat import COMPILED
from rrn.engines import plain, threads
from rrn.nn.updates import State

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="torch has GNU's threads on Linux"),
    pytest.mark.skipif(not COMPILED, reason="needs numba"),
    pytest.mark.skipif(
        not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"), reason="torch before 2.8: one thread"
    ),
]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Parts for two threads, however small; yields how many there were."""
    used = []
    run = threads.run_graphs

    def counted(graphs: list[NeighbourTable], *more: object) -> object:
        used.append(len(graphs))
        return run(graphs, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(threads, "run_graphs", counted)
    monkeypatch.setattr(threads, "CHUNK_FLOATS", 8)
    monkeypatch.setattr("rrn.network.SMALL", 0)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield used
    torch.set_num_threads(before)


def batch_of_graphs() -> NeighbourTable:
    """Graphs of 2, 4, 3 and 2 nodes: cut in two at the sixth."""
    tables = [torch.randint(size, (size, 3)) for size in (2, 4, 3, 2)]
    return NeighbourTable.join([(NeighbourTable(table), None) for table in tables])[0]


@pytest.mark.parametrize("update", ["lstm", "gru", "mlp"])
@pytest.mark.parametrize("edges", ["none", "each", "same"])
@pytest.mark.parametrize("layers", [1, 3])
def test_outputs_states_and_gradients_are_the_plain_ones_and_the_same_bits_again(
    layers: int, edges: str, update: str, two_threads: list[int]
) -> None:
    graph = batch_of_graphs()
    network = network_for(layers, 0 if edges == "none" else 2, update, "xm")
    x = torch.randn(11, FEATURES).double().requires_grad_()
    shape = {"none": None, "each": (11, 3, 2), "same": (1, 1, 2)}[edges]
    edge_attr = None if shape is None else torch.randn(*shape).double().requires_grad_()
    state = State.of(torch.randn_like(part).requires_grad_() for part in network.initial_state(x.detach()).parts())
    engine = "edges" if layers == 1 else "chunked"
    names = (engine, engine, "plain")
    ours, again, plain = (everything(network, name, x, graph, edge_attr, state) for name in names)
    assert two_threads == [2, 2]
    for one, other, plainly in zip(ours, again, plain, strict=True):
        assert torch.equal(one, other)
        torch.testing.assert_close(one, plainly)


def loss_of(network: RRN, x: Tensor, graph: NeighbourTable, **more: int) -> Tensor:
    return network(x, graph, steps=3, **more).square().sum()


def test_second_derivatives_are_those_of_the_plain_form(two_threads: list[int]) -> None:
    graph, network = batch_of_graphs(), network_for(2, 0, "lstm", "xm")
    x = torch.randn(11, FEATURES).double().requires_grad_()
    found = []
    for name in ("chunked", "plain"):
        with engines.only(name):
            inputs = [x, *network.parameters()]
            first = torch.autograd.grad(loss_of(network, x, graph), inputs, create_graph=True)
            second = torch.autograd.grad(sum(part.square().sum() for part in first), inputs, allow_unused=True)
            found.append([part for part in second if part is not None])
    assert two_threads == [2]
    for ours, plainly in zip(*found, strict=True):
        torch.testing.assert_close(ours, plainly)


def test_saved_tensors_are_freed_by_the_backward_pass_unless_the_graph_is_retained() -> None:
    graph, network = batch_of_graphs(), network_for(2, 0, "lstm", "xm")
    loss = loss_of(network, torch.randn(11, FEATURES).double(), graph)
    function = loss.grad_fn
    while "_SplitGraphs" not in type(function).__name__:
        function = next(node for node, _ in function.next_functions if node is not None)  # type: ignore[union-attr]
    saved = weakref.ref(function.saved_tensors[-1].grad_fn)  # type: ignore[union-attr]
    loss.backward(retain_graph=True)
    once = [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]
    loss.backward()
    for twice, first in zip((p.grad for p in network.parameters() if p.grad is not None), once, strict=True):
        torch.testing.assert_close(twice, 2 * first)
    gc.collect()
    assert saved() is None
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_weights_that_are_not_trained_get_no_gradients(two_threads: list[int]) -> None:
    graph, network = batch_of_graphs(), network_for(2, 0, "lstm", "xm")
    network.message.requires_grad_(False)
    loss_of(network, torch.randn(11, FEATURES).double(), graph).backward()
    assert two_threads == [2]
    assert all(parameter.grad is None for parameter in network.message.parameters())
    assert all(parameter.grad is not None for parameter in network.update.parameters())


def test_hooks_of_parameters_run_once() -> None:
    graph, network = batch_of_graphs(), network_for(2, 0, "lstm", "xm")
    x = torch.randn(11, FEATURES).double()
    weight = network.message.mlp.linears[0].weight
    weight.register_hook(lambda gradient: 0.5 * gradient)
    gradients = []
    for name in ("chunked", "plain"):
        network.zero_grad()
        with engines.only(name):
            loss_of(network, x, graph).backward()
        gradients.append(weight.grad)
    torch.testing.assert_close(*gradients)


def test_a_loss_of_the_state_gives_the_readout_no_gradient(two_threads: list[int]) -> None:
    graph, network = batch_of_graphs(), network_for(2, 0, "lstm", "xm")
    _, state = network.run(torch.randn(11, FEATURES).double(), graph, steps=2)
    state.h.sum().backward()
    assert two_threads == [2]
    assert all(parameter.grad is None for parameter in network.readout.parameters())
    assert all(parameter.grad is not None for parameter in network.update.parameters())


class Interrupted:
    """Raises a KeyboardInterrupt when the calling thread enters the function that OpenMP calls, as a signal may."""

    def __init__(self) -> None:
        self.raised = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and not self.raised and frame.f_code.co_qualname == "run_on_openmp_threads.<locals>.call":
            self.raised = True
            raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_the_start_of_a_pass_is_not_lost() -> None:
    before, interrupted = sys.getprofile(), Interrupted()
    sys.setprofile(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            threads.run_shares(lambda share: None, 2)
    finally:
        sys.setprofile(before)
    assert interrupted.raised
    assert not threads.within_share()
    threads.run_shares(lambda share: None, 2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_nothing_is_recorded_without_gradients(mode: type, two_threads: list[int]) -> None:
    graph, network = batch_of_graphs(), network_for(3, 0, "lstm", "xm")
    x = torch.randn(11, FEATURES).double()
    with mode():
        outputs = network(x, graph, steps=3)
    assert two_threads == [2]
    assert outputs.grad_fn is None
    torch.testing.assert_close(outputs, network(x, graph, steps=3).detach())


def test_graphs_are_not_split_under_checkpointing(two_threads: list[int]) -> None:
    graph, network = batch_of_graphs(), network_for(2, 0, "lstm", "xm")
    x = torch.randn(11, FEATURES).double()
    gradients = []
    for more in ({"checkpoint": 2}, {}):
        network.zero_grad()
        loss_of(network, x, graph, **more).backward()
        gradients.append([parameter.grad for parameter in network.parameters()])
        assert two_threads == [2] * (not more)
    for ours, plainly in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, plainly)


def test_graphs_are_not_split_with_dropout_in_the_readout(two_threads: list[int]) -> None:
    network = RRN(FEATURES, 6, 2, message_layers=2, readout_layers=1, dropout=0.5)
    graph, x = batch_of_graphs(), torch.randn(11, FEATURES)
    network(x, graph, steps=1)
    assert two_threads == []
    network.eval()(x, graph, steps=1)
    assert two_threads == [2]


def test_one_graph_is_not_split(two_threads: list[int]) -> None:
    ring = NeighbourTable(torch.stack([torch.arange(11).roll(1), torch.arange(11).roll(-1)], dim=1))
    assert len(ring.parts(2)) == 1
    network_for(2, 0, "lstm", "xm")(torch.randn(11, FEATURES).double(), ring, steps=1)
    assert two_threads == []


def test_parts_are_whole_graphs_of_similar_size() -> None:
    whole = NeighbourTable.repeat(torch.tensor([[1, 2], [2, 0], [0, 1]]), 5)
    assert [part.num_nodes for part in whole.parts(2)] == [6, 9]
    assert [part.num_nodes for part in whole.parts(9)] == [3] * 5
    joined, _ = NeighbourTable.join([(part, None) for part in whole.parts(3)])
    assert torch.equal(joined.table, whole.table)


def test_nested_shares_run_on_one_thread() -> None:
    seen = []
    threads.run_shares(lambda _: seen.append(threads.shares()), 2)
    assert seen == [1, 1]
    assert threads.shares() == 2


@pytest.mark.parametrize("nodes", [10, 20_000])
def test_small_work_runs_on_one_thread(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    network, seen = RRN(3, 8, 2), []
    network.update.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    edges = torch.stack([torch.arange(nodes), torch.arange(nodes).roll(1)])
    network(torch.randn(nodes, 3), edges, steps=2)
    assert seen == [1 if nodes == 10 else 2] * 2
    assert torch.get_num_threads() == 2
    with pytest.raises(ZeroDivisionError), plain.threads_for(1):
        torch.ones(1).fill_(1 // (torch.get_num_threads() - 1))
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("nodes", [10, 20_000])
@pytest.mark.parametrize("update", ["lstm", "gru"])
def test_the_backward_pass_of_small_work_runs_on_one_thread(
    update: Literal["lstm", "gru"], nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    expected, seen = (1 if nodes == 10 else 2), []
    network, before = RRN(3, 8, 2, update=update), torch.nn.Linear(3, 3)
    edges = torch.stack([torch.arange(nodes), torch.arange(nodes).roll(1)])
    features = before(torch.randn(nodes, 3))
    before.weight.register_hook(lambda _: seen.append(("features", torch.get_num_threads())))
    for parameter in (network.update.reader.mlp.linears[0].weight, network.encoder.linears[0].weight):  # type: ignore
        parameter.register_hook(lambda _: seen.append(("network", torch.get_num_threads())))
    outputs, state = network.run(features, edges, steps=2)
    for results in (outputs, state.h):
        seen.clear()
        torch.autograd.grad(results.sum(), list(network.parameters()), retain_graph=True, allow_unused=True)
        assert seen == [("network", expected)] * 2
        assert torch.get_num_threads() == 2
    seen.clear()
    outputs.sum().backward()
    assert seen == [("network", expected)] * 2 + [("features", 2)]
    assert torch.get_num_threads() == 2


def test_a_failed_backward_pass_leaves_the_threads_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    network, seen = RRN(3, 8, 2), []

    def fail(_: torch.Tensor) -> None:
        seen.append(torch.get_num_threads())
        raise ZeroDivisionError

    network.message.mlp.linears[0].weight.register_hook(fail)  # type: ignore[union-attr]
    loss = network(torch.randn(4, 3), torch.tensor([[0, 1], [1, 2]]), steps=2).sum()
    with pytest.raises(ZeroDivisionError):
        loss.backward()
    assert (seen, torch.get_num_threads()) == ([1], 2)


def test_an_estimator_trains_small_graphs_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    seen = set()
    step = torch.optim.AdamW.step

    def observed(self: torch.optim.AdamW) -> None:
        seen.add(torch.get_num_threads())
        step(self)

    monkeypatch.setattr(torch.optim.AdamW, "step", observed)
    graphs = [(torch.randn(4, 2), torch.tensor([[0, 1], [1, 2]])) for _ in range(4)]
    RRNClassifier(epochs=1, validation_fraction=0, progress=False).fit(graphs, [0, 1, 0, 1])
    assert seen == {1}
    assert torch.get_num_threads() == 2
