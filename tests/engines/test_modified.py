"""Modified parts run on the plain engine: subclasses, hooks, parametrisations and replaced layers are never ignored."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import parametrizations

from rrn import RRN, EdgeList, NeighbourTable, engines
from rrn.engines import threads
from rrn.graphs import Graph, Groups
from rrn.nn.messages import GroupMessage, MLPMessage
from rrn.nn.readouts import DotReadout, NodeReadout
from rrn.nn.updates import LSTMUpdate, SharedLayerUpdate, State


class DoubledMessage(MLPMessage):
    def forward(self, *arguments: Any) -> Tensor:
        return 2 * super().forward(*arguments)


class DoubledUpdate(LSTMUpdate):
    def forward(self, *arguments: Any) -> State:
        return super().forward(*arguments).map(lambda part: 2 * part)


class DoubledSharedLayer(SharedLayerUpdate):
    def forward(self, *arguments: Any) -> State:
        return super().forward(*arguments).map(lambda part: 2 * part)


class DoubledRRN(RRN):
    def read(self, *arguments: Any) -> Any:
        return 2 * super().read(*arguments)


class CentredReadout(NodeReadout):
    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        return super().forward(h - h.mean(0), graph, batch)


def doubled(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return 2 * output


def doubled_input(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(2 * part if isinstance(part, Tensor) else part for part in inputs)


def hook_message(network: RRN) -> None:
    network.message.register_forward_hook(doubled)


def hook_message_input(network: RRN) -> None:
    network.message.register_forward_pre_hook(doubled_input)


def hook_gates(network: RRN) -> None:
    network.update.gates.register_forward_hook(doubled)


def parametrise_gates(network: RRN) -> None:
    parametrizations.weight_norm(network.update.gates)


def replace_gates(network: RRN) -> None:
    network.update.gates = nn.Linear(*network.update.gates.weight.shape[::-1], bias=False)


def replace_forward(network: RRN) -> None:
    forward = network.message.forward
    network.message.forward = lambda *arguments: 2 * forward(*arguments)


MODIFICATIONS: dict[str, Callable[[RRN], None]] = {
    "hook on f": hook_message,
    "pre-hook on f": hook_message_input,
    "hook in g": hook_gates,
    "parametrisation in g": parametrise_gates,
    "layer without bias in g": replace_gates,
    "forward of f replaced": replace_forward,
}


def outputs_of(network: nn.Module, x: Tensor, graph: Graph) -> list[Tensor]:
    """By the chosen engine and by the plain engine."""
    chosen = network(x, graph, steps=3)
    with engines.only("plain"):
        return [chosen, network(x, graph, steps=3)]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", MODIFICATIONS)
def test_modified_parts_are_used(name: str, layers: int) -> None:
    network, graph = RRN(3, 8, 2, message_layers=layers), EdgeList(torch.randint(9, (2, 30)), 9)
    x = torch.randn(9, 3)
    before = network(x, graph, steps=3)
    MODIFICATIONS[name](network)
    chosen, plain = outputs_of(network, x, graph)
    torch.testing.assert_close(chosen, plain)
    if "parametrisation" not in name:
        assert not torch.allclose(plain, before)


@pytest.mark.parametrize("parts", [{"message": DoubledMessage(8)}, {"update": DoubledUpdate(8)}], ids=["f", "g"])
def test_subclasses_are_used(parts: dict[str, Any]) -> None:
    network, graph = RRN(3, 8, 2, **parts), EdgeList(torch.randint(9, (2, 30)), 9)
    torch.testing.assert_close(*outputs_of(network, torch.randn(9, 3), graph))


@pytest.mark.parametrize("layers", [1, 2])
def test_an_overridden_read_is_used(layers: int) -> None:
    network, graph = DoubledRRN(3, 8, 2, message_layers=layers), EdgeList(torch.randint(9, (2, 30)), 9)
    torch.testing.assert_close(*outputs_of(network, torch.randn(9, 3), graph))


class DoubledEdges(EdgeList):
    def collect(self, values: Tensor, how: Any) -> Tensor:
        return 2 * super().collect(values, how)


class DoubledGroups(Groups):
    def sums(self, values: Tensor) -> Tensor:
        return 2 * super().sums(values)


def group_network(update: type[SharedLayerUpdate] = SharedLayerUpdate) -> RRN:
    parts: dict[str, Any] = {"message": GroupMessage(3, 4), "update": update(6, 12, 20), "readout": DotReadout(6)}
    return RRN(1, 12, encoder_layers=None, **parts)


@pytest.mark.parametrize("layers", [1, 2])
def test_subclasses_of_graphs_are_used(layers: int) -> None:
    network = RRN(3, 8, 2, message_layers=layers)
    torch.testing.assert_close(*outputs_of(network, torch.randn(9, 3), DoubledEdges(torch.randint(9, (2, 30)), 9)))
    groups = DoubledGroups(torch.randint(4, (9, 3)), (4, 4, 4))
    torch.testing.assert_close(*outputs_of(group_network(), torch.ones(9, 1), groups))


@pytest.mark.parametrize("layers", [1, 2])
def test_hooks_of_all_modules_are_called(layers: int) -> None:
    network, graph = RRN(3, 8, 2, message_layers=layers), EdgeList(torch.randint(9, (2, 30)), 9)
    called: list[nn.Module] = []
    hook = register_module_forward_hook(lambda module, *_: called.append(module))
    try:
        network(torch.randn(9, 3), graph, steps=1)
    finally:
        hook.remove()
    assert network.message in called
    assert network.update in called


def test_a_hidden_layer_of_another_width_is_used() -> None:
    network, graph = RRN(3, 8, 2, message_layers=2), EdgeList(torch.randint(9, (2, 30)), 9)
    network.message.mlp.linears[1], network.message.mlp.linears[2] = nn.Linear(8, 20), nn.Linear(20, 8)
    torch.testing.assert_close(*outputs_of(network, torch.randn(9, 3), graph))


def test_weights_of_other_shapes_are_refused_as_plain_refuses_them() -> None:
    x, graph = torch.ones(9, 1), Groups(torch.randint(4, (9, 3)), (4, 4, 4))
    network = group_network()
    network.readout.weight = nn.Parameter(torch.ones(5))
    with pytest.raises(RuntimeError, match="size mismatch"):
        network(x, graph, steps=2)
    mixed, edges = RRN(3, 8, 2, message_layers=2), EdgeList(torch.randint(9, (2, 30)), 9)
    mixed.message.mlp.linears[1].bias = nn.Parameter(torch.zeros(8).double())
    with pytest.raises(RuntimeError, match="dtype"):
        mixed(torch.randn(9, 3), edges, steps=2)


def test_subclasses_and_hooks_are_used_on_groups() -> None:
    x, graph = torch.ones(9, 1), Groups(torch.randint(4, (9, 3)), (4, 4, 4))
    torch.testing.assert_close(*outputs_of(group_network(DoubledSharedLayer), x, graph))
    hooked = group_network()
    hooked.readout.register_forward_hook(doubled)
    torch.testing.assert_close(*outputs_of(hooked, x, graph), rtol=1e-4, atol=1e-5)


def test_a_readout_that_mixes_nodes_is_not_split_over_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "CHUNK_FLOATS", 8)
    monkeypatch.setattr("rrn.network.SMALL", 0)
    torch.set_num_threads(2)
    tables = [torch.randint(size, (size, 3)) for size in (2, 4, 3, 2)]
    graph = NeighbourTable.join([(NeighbourTable(table), None) for table in tables])[0]
    network = RRN(3, 8, message_layers=2, readout=CentredReadout(8, 2))
    torch.testing.assert_close(*outputs_of(network, torch.randn(11, 3), graph))
