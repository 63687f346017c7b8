"""Compiled steps: one program for all sizes, equal to plain steps. `torch._dynamo` counts what was compiled."""

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters

from rrn import RRN, InputError, State, engines
from rrn.nn.losses import every_step

SIZES = (7, 20, 33, 50, 64, 100, 3, 77, 81, 120)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def random_graph(nodes: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed + nodes)
    edges = torch.randint(nodes, (2, 4 * nodes + 1), generator=generator)
    return torch.randn(nodes, 5, generator=generator), edges


def gradients(network: RRN, x: Tensor, edge_index: Tensor, steps: int) -> list[Tensor]:
    network.zero_grad()
    outputs = network(x, edge_index, steps=steps)
    every_step(outputs, torch.arange(outputs.shape[1]) % 3).backward()
    return [outputs.detach(), *(weight.grad.clone() for weight in network.parameters())]


def check(backend: str, sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    plain = RRN(features=5, hidden=16, outputs=3, message_layers=2)
    network = copy.deepcopy(plain)
    network.compile(backend=backend)
    for number, nodes in enumerate(sizes):
        for steps in (2, 3, 6):
            with engines.only("plain"):
                expected = gradients(plain, *random_graph(nodes), steps)
            for found, wanted in zip(gradients(network, *random_graph(nodes), steps), expected, strict=True):
                torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
        if not number:
            programs = counters["stats"]["unique_graphs"]
    assert programs == 1, "the first step, whose memory is zero, runs the same program as all others"
    assert counters["stats"]["unique_graphs"] == programs, "no recompilation"
    assert not counters["graph_break"]


def test_one_program_for_ten_sizes_and_three_numbers_of_steps() -> None:
    check("aot_eager", SIZES)


@pytest.mark.slow
def test_the_default_compiler() -> None:
    check("inductor", SIZES[:3])


def test_a_graph_readout_and_edge_features() -> None:
    torch.manual_seed(0)
    network = RRN(features=5, hidden=8, outputs=3, edge_features=2, readout="graph", update="gru")
    x, edge_index = random_graph(12)
    given = x, edge_index, torch.randn(edge_index.shape[1], 2), torch.arange(12) // 6
    expected = network(*given, steps=3)
    network.compile(backend="aot_eager")
    torch.testing.assert_close(network(*given, steps=3), expected, atol=1e-5, rtol=1e-5)
    assert counters["stats"]["unique_graphs"] >= 1
    assert not counters["graph_break"]


@pytest.mark.parametrize("update", ["lstm", "gru", "mlp"])
def test_a_state_to_resume_from_needs_no_other_program(update: str) -> None:
    torch.manual_seed(0)
    network = RRN(features=5, hidden=8, outputs=3, update=update)
    x, edge_index = random_graph(12)
    with engines.only("plain"):
        expected, last = network.run(x, edge_index, steps=5)
    network.compile(backend="aot_eager")
    _, state = network.run(x, edge_index, steps=2)
    outputs, state = network.run(x, edge_index, steps=3, state=state.detach())
    torch.testing.assert_close(outputs, expected[2:], atol=1e-5, rtol=1e-5)
    for found, wanted in zip(state.parts(), last.parts(), strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1


def test_gradients_reach_a_state_that_is_given() -> None:
    torch.manual_seed(0)
    network = RRN(features=5, hidden=8, outputs=3)
    x, edge_index = random_graph(12)
    parts = [torch.randn(12, 8) for _ in range(3)]

    def found() -> tuple[Tensor, ...]:
        given = [part.clone().requires_grad_() for part in parts]
        network(x, edge_index, steps=2, state=State.of(given)).square().sum().backward()
        return tuple(part.grad for part in given)

    with engines.only("plain"):
        expected = found()
    network.compile(backend="aot_eager")
    torch.testing.assert_close(found(), expected, atol=1e-5, rtol=1e-5)


def test_options_are_passed_by_name() -> None:
    with pytest.raises(InputError, match="by name"):
        RRN(features=5, hidden=8, outputs=3).compile("reduce-overhead")
