"""Every engine gives the values, states and gradients of the plain one, on every layout it fits."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from rrn import RRN, CompleteGraphs, EdgeList, InputError, NeighbourTable, engines
from rrn._compat import COMPILED
from rrn.graphs import Aggregate, Graph, Groups, PackedGraphs
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout
from rrn.nn.updates import SharedLayerUpdate, State

needs_numba = pytest.mark.skipif(not COMPILED, reason="numba is not installed")
FEATURES, HIDDEN = 3, 6


def layouts() -> dict[str, Graph]:
    generator = torch.Generator().manual_seed(1)
    groups = [Groups(torch.randint(4, (n, 3), generator=generator), (4, 4, 4)) for n in (9, 5, 12)]
    return {
        "edges": EdgeList(torch.randint(11, (2, 37), generator=generator), 11),
        "no edges": EdgeList(torch.zeros(2, 0).long(), 3),
        "table": NeighbourTable(torch.randint(11, (11, 3), generator=generator)),
        "complete": CompleteGraphs(3, 4),
        "masked": CompleteGraphs(3, 4, torch.tensor([[1, 1, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1]]).bool()),
        "packed": PackedGraphs(torch.tensor([3, 1, 4])),
        "groups": Groups.join([(graph, None) for graph in groups])[0],
    }


def network_for(layers: int, edge_features: int, update: str, inputs: str) -> RRN:
    return RRN(
        FEATURES,
        HIDDEN,
        2,
        message_layers=layers,
        edge_features=edge_features,
        update=update,
        update_layers=layers,
        update_inputs=inputs,
    ).double()


def everything(
    network: RRN, engine: str, x: Tensor, graph: Graph, edge_attr: Tensor | None, state: State
) -> list[Tensor]:
    """Outputs, the last state, and the gradients of parameters, features and the first state."""
    leaves = [*([x] if x.requires_grad else []), *state.parts(), *network.parameters()]
    leaves += [] if edge_attr is None else [edge_attr]
    with engines.only(engine):
        outputs, last = network.run(x, graph, edge_attr, steps=3, state=state)
    total = (outputs * torch.linspace(-1, 1, outputs.numel(), dtype=x.dtype).view_as(outputs)).sum()
    total = total + sum(part.square().sum() for part in last.parts())
    gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    return [outputs, *last.parts(), *(g for g in gradients if g is not None)]


def fitting(network: RRN, x: Tensor, graph: Graph, edge_attr: Tensor | None, state: State) -> Iterator[str]:
    given = network.prepare(x, graph, edge_attr)
    for name, engine in engines.ENGINES.items():
        if name != "plain" and engine.fits(network, given, state):
            yield name


@pytest.mark.parametrize("update", ["lstm", "gru"])
@pytest.mark.parametrize("inputs", ["xm", "hxm"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("edge_features", [0, 2])
@pytest.mark.parametrize("layout", layouts())
def test_engines_agree(layout: str, edge_features: int, layers: int, inputs: str, update: str) -> None:
    graph = layouts()[layout]
    torch.manual_seed(4)
    network = network_for(layers, edge_features, update, inputs)
    x = torch.randn(graph.num_nodes, FEATURES).double().requires_grad_()
    edge_attr = torch.randn(*graph.edge_shape, edge_features).double().requires_grad_() if edge_features else None
    start = network.initial_state(x.detach())
    state = State.of(torch.randn_like(part).requires_grad_() for part in start.parts())
    plain = everything(network, "plain", x, graph, edge_attr, state)
    found = list(fitting(network, x, graph, edge_attr, state))
    for engine in found:
        for ours, plainly in zip(everything(network, engine, x, graph, edge_attr, state), plain, strict=True):
            torch.testing.assert_close(ours, plainly, atol=1e-10, rtol=1e-10)
    expected = (["edges"] if layers == 1 else []) + (["chunked"] if layout in ("edges", "no edges", "table") else [])
    assert found == (expected if COMPILED else [])
    if layout != "no edges":
        assert plain[0].std() > 1e-3


def group_network(dtype: torch.dtype = torch.float32) -> RRN:
    torch.manual_seed(2)
    return RRN(
        1,
        12,
        encoder_layers=None,
        message=GroupMessage(3, 4),
        update=SharedLayerUpdate(6, 12, 20),
        readout=DotReadout(6),
    ).to(dtype)


@pytest.mark.parametrize("readout", ["node", "graph", "edge"])
@pytest.mark.parametrize("update", ["mlp", "none"])
@pytest.mark.parametrize("layout", layouts())
def test_engines_agree_on_other_parts(layout: str, update: str, readout: str) -> None:
    """Other updates, every readout, no encoder, one edge feature that all edges share; and without gradients."""
    graph = layouts()[layout]
    torch.manual_seed(4)
    parts = {"encoder_layers": None, "edge_features": 2, "update": update, "readout": readout, "readout_layers": 1}
    network = RRN(HIDDEN, HIDDEN, 2, **parts).double()
    x = torch.randn(graph.num_nodes, HIDDEN).double().requires_grad_()
    edge_attr = torch.randn(*[1] * len(graph.edge_shape), 2).double().requires_grad_()
    state = State.of(torch.randn_like(part).requires_grad_() for part in network.initial_state(x.detach()).parts())
    plain = everything(network, "plain", x, graph, edge_attr, state)
    found = list(fitting(network, x, graph, edge_attr, state))
    assert ("edges" in found) == COMPILED
    for engine in found:
        for ours, plainly in zip(everything(network, engine, x, graph, edge_attr, state), plain, strict=True):
            torch.testing.assert_close(ours, plainly, atol=1e-10, rtol=1e-10)
        with torch.inference_mode(), engines.only(engine):
            outputs, last = network.run(x, graph, edge_attr, steps=3, state=state)
        for ours, plainly in zip([outputs, *last.parts()], plain, strict=False):
            torch.testing.assert_close(ours, plainly, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("aggregate", [("mean",), ("max",), ("sum", "max")])
@pytest.mark.parametrize("layout", layouts())
def test_other_aggregations_run_plain(layout: str, aggregate: tuple[Aggregate, ...]) -> None:
    graph, network = layouts()[layout], RRN(FEATURES, HIDDEN, 2, aggregate=aggregate)
    x = torch.randn(graph.num_nodes, FEATURES)
    assert not list(fitting(network, x, graph, None, network.initial_state(x)))


def groups() -> dict[str, Groups]:
    """One graph; several; a selection of several; an empty group and a graph of one node."""
    several = layouts()["groups"]
    assert isinstance(several, Groups)
    left, _ = several.select(several.graph_of_node() != 1, None)
    assert isinstance(left, Groups)
    return {
        "one": Groups(torch.tensor([[0, 1, 2], [0, 0, 2], [1, 1, 0]]), (2, 2, 3)),
        "several": several,
        "left": left,
        "empty group": Groups(torch.tensor([[3, 0, 1], [3, 1, 1], [0, 0, 0]]), (5, 4, 2), torch.tensor([2, 3])),
    }


@needs_numba
@pytest.mark.parametrize("layout", groups())
def test_the_engine_of_groups_agrees(layout: str) -> None:
    graph, network = groups()[layout], group_network()
    x = torch.ones(graph.num_nodes, 1)
    state = State(
        torch.rand(graph.num_nodes, 12, requires_grad=True), (torch.randn(graph.num_nodes, 6, requires_grad=True),)
    )
    plain = everything(network, "plain", x, graph, None, state)
    ours = everything(network, "groups", x, graph, None, state)
    for mine, plainly in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, plainly, rtol=1e-4, atol=1e-5 * float(plainly.detach().abs().max() + 1))
    with torch.inference_mode():
        outputs, last = network.run(x, graph, steps=3, state=state)
    for mine, plainly in zip([outputs, *last.parts()], plain, strict=False):
        torch.testing.assert_close(mine, plainly, rtol=1e-4, atol=1e-5)


@needs_numba
def test_engines_refuse_what_they_do_not_support() -> None:
    graph, network = layouts()["groups"], group_network()
    x = torch.ones(graph.num_nodes, 1)
    state = network.initial_state(x)
    fits = engines.ENGINES["groups"].fits
    assert fits(network, network.prepare(x, graph), state)
    masked = x.clone()
    masked[3] = 0
    assert not fits(network, network.prepare(masked, graph), state)
    assert not fits(network, network.prepare(x.clone().requires_grad_(), graph), state)
    two_types = Groups(torch.zeros(graph.num_nodes, 2).long(), (1, 1))
    assert not fits(network, network.prepare(x, graph)._replace(graph=two_types), state)
    assert not fits(group_network(torch.float64), network.prepare(x, graph), state)
    plain = RRN(3, 6, 2)
    given = plain.prepare(torch.randn(4, 3), torch.tensor([[0], [1]]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not engines.ENGINES["edges"].fits(plain, given, plain.initial_state(given))
        assert not engines.ENGINES["chunked"].fits(plain, given, plain.initial_state(given))


@pytest.mark.parametrize("layers", [1, 2])
def test_half_precision_runs_plain(layers: int) -> None:
    network = RRN(3, 6, 2, message_layers=layers, update_layers=layers).bfloat16()
    x = torch.randn(4, 3).bfloat16()
    assert not list(fitting(network, x, EdgeList(torch.tensor([[0], [1]]), 4), None, network.initial_state(x)))
    network(x, torch.tensor([[0], [1]]), steps=2).sum().backward()


def test_the_fastest_that_fits_is_chosen() -> None:
    network = RRN(3, 6, 2)
    given = network.prepare(torch.randn(4, 3), torch.tensor([[0], [1]]))
    state = network.initial_state(given)
    fastest = "edges" if COMPILED else "plain"
    assert engines.choose(network, given, state).name == fastest
    with engines.only("plain"):
        assert engines.choose(network, given, state).name == "plain"
        with engines.only(fastest):
            assert engines.choose(network, given, state).name == fastest
        assert engines.choose(network, given, state).name == "plain"


def test_an_unknown_or_unfit_engine_is_refused() -> None:
    with (
        pytest.raises(InputError, match="no engine 'warp'; there are groups, edges, chunked, plain"),
        engines.only("warp"),
    ):
        pass
    with (
        pytest.raises(InputError, match=r"engines\.only\('groups'\): this engine does not fit"),
        engines.only("groups"),
    ):
        RRN(3, 6, 2)(torch.randn(4, 3), torch.tensor([[0], [1]]), steps=1)


def networks() -> dict[str, tuple[nn.Module, Tensor, Graph]]:
    edges = EdgeList(torch.randint(9, (2, 30), generator=torch.Generator().manual_seed(0)), 9)
    x = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    return {
        "edges": (RRN(3, 6, 2), x, edges),
        "chunked": (RRN(3, 6, 2, message_layers=2, update_layers=2), x, edges),
        "groups": (group_network(), torch.ones(26, 1), layouts()["groups"]),
    }


@pytest.mark.parametrize("engine", ["edges", "chunked", "groups"])
def test_second_derivatives(engine: str) -> None:
    """Of the squared norm of the gradient, as in a gradient penalty."""
    if not COMPILED:
        pytest.skip("numba is not installed")
    network, x, graph = networks()[engine]
    found = []
    for name in (engine, "plain"):
        with engines.only(name):
            loss = network(x, graph, steps=3).square().sum()
        gradients = torch.autograd.grad(loss, list(network.parameters()), create_graph=True)
        norm = sum(gradient.square().sum() for gradient in gradients)
        found.append(torch.autograd.grad(norm, list(network.parameters())))
    for ours, plainly in zip(*found, strict=True):
        torch.testing.assert_close(ours, plainly, rtol=1e-3, atol=1e-3 * float(plainly.abs().max()))


@pytest.mark.parametrize("engine", ["edges", "chunked", "groups"])
def test_transforms_of_torch_func(engine: str) -> None:
    network, x, graph = networks()[engine]
    parameters = {name: value.detach() for name, value in network.named_parameters()}

    def loss(values: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(network, values, (x, graph), {"steps": 2}).square().sum()

    by_transform = torch.func.grad(loss)(parameters)
    with engines.only("plain"):
        network(x, graph, steps=2).square().sum().backward()
    for name, value in network.named_parameters():
        torch.testing.assert_close(by_transform[name], value.grad, rtol=1e-4, atol=1e-5 * float(value.grad.abs().max()))
    doubled = {name: 2 * value for name, value in parameters.items()}
    assert not torch.isclose(loss(doubled), loss(parameters))


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("engine", ["edges", "chunked", "groups"])
def test_tangents_of_forward_mode(engine: str, gradients: bool) -> None:
    network, x, graph = networks()[engine]
    directions = {name: torch.randn_like(value) for name, value in network.named_parameters()}

    def tangent() -> Tensor | None:
        with forward_ad.dual_level():
            dual = {
                name: forward_ad.make_dual(value.detach(), directions[name])
                for name, value in network.named_parameters()
            }
            outputs = torch.func.functional_call(network, dual, (x, graph), {"steps": 2})
            return forward_ad.unpack_dual(outputs).tangent

    with torch.set_grad_enabled(gradients):
        chosen = tangent()
        with engines.only("plain"):
            torch.testing.assert_close(chosen, tangent())
    assert chosen is not None


@needs_numba
def test_a_loss_of_the_state_gives_the_readout_of_groups_no_gradient() -> None:
    network, x, graph = networks()["groups"]
    with engines.only("groups"):
        _, state = network.run(x, graph, steps=2)
    state.memory[0].sum().backward()
    assert network.readout.weight.grad is None
    assert network.update.first.grad is not None


@pytest.mark.parametrize("engine", ["edges", "chunked", "groups"])
def test_weights_that_are_not_numbers_give_no_numbers(engine: str) -> None:
    network, x, graph = networks()[engine]
    weight = network.update.first if engine == "groups" else network.message.mlp.linears[0].weight
    with torch.no_grad():
        weight[0, 0] = float("nan")
        chosen = network(x, graph, steps=3)
        with engines.only("plain"):
            torch.testing.assert_close(chosen, network(x, graph, steps=3), equal_nan=True, rtol=1e-3, atol=1e-3)
    assert chosen.isnan().any()
