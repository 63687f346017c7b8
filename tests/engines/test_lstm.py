"""f's last layer and the LSTM update with multiplied matrices equal the plain engine."""

from typing import Any

import pytest
import torch
from torch import Tensor

from rrn import RRN, EdgeList, State, engines
from rrn._compat import COMPILED
from rrn.engines import edges

pytestmark = pytest.mark.skipif(not COMPILED, reason="numba is not installed")
NODES = 13


def case(hidden: int = 7, layers: int = 1, inputs: str = "xm", edge_features: int = 0) -> tuple[RRN, list[Any]]:
    generator = torch.Generator().manual_seed(3)
    network = RRN(
        3,
        hidden,
        2,
        message_layers=layers,
        update_layers=layers,
        update_inputs=inputs,
        edge_features=edge_features,
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) / 10)
    graph = EdgeList(torch.randint(NODES, (2, 40), generator=generator), NODES)
    given: list[Any] = [torch.randn(NODES, 3, generator=generator), graph]
    return network, given + ([torch.randn(40, edge_features, generator=generator)] if edge_features else [])


def everything(network: RRN, given: list[Any], steps: int = 3, state: State | None = None) -> list[Tensor]:
    """Outputs, the last state, and the gradients of x, all parameters and the first state, where it requires one."""
    x = given[0].clone().requires_grad_()
    outputs, last = network.run(x, *given[1:], steps=steps, state=state)
    total = (outputs * torch.linspace(-1, 1, outputs.numel(), dtype=x.dtype).view_as(outputs)).sum()
    total = total + sum(part.square().sum() for part in last.parts())
    started = [] if state is None else [part for part in state.parts() if part.requires_grad]
    return [outputs, *last.parts(), *torch.autograd.grad(total, [x, *network.parameters(), *started])]


def check(network: RRN, given: list[Any], **more: Any) -> None:
    ours = everything(network, given, **more)
    with engines.only("plain"):
        expected = everything(network, given, **more)
    for found, wanted in zip(ours, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5 * float(1 + wanted.detach().abs().max()))


@pytest.mark.parametrize("edge_features", [0, 2])
@pytest.mark.parametrize("inputs", ["xm", "hxm"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("hidden", [1, 7, 16])
def test_from_the_first_step_in_32_bits(hidden: int, layers: int, inputs: str, edge_features: int) -> None:
    check(*case(hidden, layers, inputs, edge_features))


@pytest.mark.parametrize("steps", [1, 4])
def test_a_hidden_state_of_zeros_is_not_multiplied(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network, given = case()
    read: list[bool] = []
    real = edges._Cell.apply
    monkeypatch.setattr(
        edges._Cell, "apply", lambda z, hidden, *more: read.append(hidden is not None) or real(z, hidden, *more)
    )
    everything(network, given, steps)
    assert read == [False] + [True] * (steps - 1)
    check(network, given, steps=steps)


def test_zeros_that_require_a_gradient_get_one() -> None:
    network, given = case()
    zeros = network.initial_state(given[0]).detach()
    check(network, given, state=zeros.map(lambda part: part.clone().requires_grad_()))
    check(network, given, state=State.of([zeros.h.requires_grad_(), *(torch.randn(NODES, 7) for _ in range(2))]))


def test_zeros_times_weights_that_are_not_finite() -> None:
    network, given = case()
    with torch.no_grad():
        network.update.gates.weight[0, -1] = float("inf")
        chosen = network(*given, steps=1)
        with engines.only("plain"):
            torch.testing.assert_close(chosen, network(*given, steps=1), equal_nan=True)
    assert chosen.isnan().any()


@pytest.mark.parametrize("steps", [1, 3])
def test_second_derivatives(steps: int) -> None:
    network, given = case()
    found = []
    for name in ("edges", "plain"):
        with engines.only(name):
            loss = network(*given, steps=steps).square().sum()
        gradients = torch.autograd.grad(loss, list(network.parameters()), create_graph=True)
        norm = sum(gradient.square().sum() for gradient in gradients)
        found.append(torch.autograd.grad(norm, list(network.parameters())))
    for ours, plainly in zip(*found, strict=True):
        torch.testing.assert_close(ours, plainly, rtol=1e-3, atol=1e-3 * float(plainly.abs().max()))


def test_in_64_bits() -> None:
    network, given = case()
    check(network.double(), [given[0].double(), *given[1:]])


def test_weights_that_are_not_contiguous() -> None:
    network, given = case(hidden=8)
    with torch.no_grad():
        for linear in (*network.message.mlp.linears, *network.update.reader.mlp.linears, network.update.gates):
            linear.weight.set_(linear.weight.T.contiguous().T)
    check(network, given)
