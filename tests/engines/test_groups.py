"""The engine for groups in inference: a few graphs at a time."""

import pytest
import torch

from rrn import engines
from rrn._compat import COMPILED
from rrn.errors import InputError
from rrn.graphs import Groups
from rrn.network import RRN
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout
from rrn.nn.updates import SharedLayerUpdate

pytestmark = pytest.mark.skipif(not COMPILED, reason="needs numba")


def network_and_graph() -> tuple[RRN, torch.Tensor, Groups]:
    """Five graphs of 1 to 9 nodes, one of them without any."""
    torch.manual_seed(0)
    network = RRN(
        features=1,
        hidden=6,
        encoder_layers=None,
        message=GroupMessage(2, 3),
        update=SharedLayerUpdate(4, 6, 8),
        readout=DotReadout(4),
    )
    stops = torch.tensor([5, 6, 6, 15, 18])
    graph = Groups(torch.stack([torch.arange(18) % 3, torch.arange(18) % 2], dim=1), (3, 2), stops)
    return network, torch.ones(18, 1), graph


@pytest.mark.parametrize("rows", [1, 4, 7, 100])
def test_parts_of_any_size_give_what_the_plain_loop_gives(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrn.engines.groups.ROWS", rows)
    network, x, graph = network_and_graph()
    with torch.no_grad():
        for steps in (1, 4):
            start = network.update.add_noise(
                network.initial_state(x), torch.ones(18, 1), torch.Generator().manual_seed(1)
            )
            with engines.only("plain"):
                expected, after = network.run(x, graph, steps=steps, state=start)
            with engines.only("groups"):
                outputs, state = network.run(x, graph, steps=steps, state=start)
            torch.testing.assert_close(outputs, expected)
            for part, other in zip(state.parts(), after.parts(), strict=True):
                torch.testing.assert_close(part, other)


def test_nothing_is_saved_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving every step in inference would cost a fifth of the speed."""

    def refuse(*_: object) -> None:
        raise AssertionError("saved")

    network, x, graph = network_and_graph()
    monkeypatch.setattr("rrn.engines.groups._Steps.apply", refuse)
    with torch.no_grad(), engines.only("groups"):
        network.run(x, graph, steps=2)
    with engines.only("groups"), pytest.raises(AssertionError, match="saved"):
        network.run(x, graph, steps=2)


def test_overlapping_groups_and_features_give_what_the_plain_loop_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and gradients of the weights; features that require gradients run plain."""
    monkeypatch.setattr("rrn.engines.groups.ROWS", 4)
    torch.manual_seed(1)
    network = RRN(
        features=3,
        hidden=6,
        encoder_layers=None,
        message=GroupMessage(2, 3),
        update=SharedLayerUpdate(4, 6, 8, features=3),
        readout=DotReadout(4),
    )
    member_of = torch.tensor([[0, 1, 0], [0, -1, 1], [1, 2, -1], [2, -1, 1], [-1, -1, 0], [0, 2, 0], [0, 1, -1]])
    graph = Groups(member_of, (3, 2), torch.tensor([4, 7]), (0, 0, 1))
    features = torch.randn(7, 2)
    given = network.prepare(torch.cat([features, torch.ones(7, 1)], dim=1).requires_grad_(), graph)
    assert not engines.ENGINES["groups"].fits(network, given, network.initial_state(given))
    weight, found = torch.randn(4, 7, 1), {}
    for name in ("plain", "groups"):
        x = torch.cat([features, torch.ones(7, 1)], dim=1)
        with engines.only(name):
            outputs, _ = network.run(x, graph, steps=4)
            gradients = torch.autograd.grad((outputs * weight).sum(), list(network.parameters()))
            with torch.no_grad():
                inferred, _ = network.run(x, graph, steps=4)
        torch.testing.assert_close(inferred, outputs)
        found[name] = outputs, *gradients
    for part, other in zip(found["groups"], found["plain"], strict=True):
        torch.testing.assert_close(part, other)
    assert bool(found["plain"][1].any())


def test_groups_of_another_number_of_types_are_refused() -> None:
    network, x, _ = network_and_graph()
    for types in (1, 3):
        graph = Groups(torch.zeros(18, types).long(), (1,) * types)
        with pytest.raises(InputError, match=f"expected Groups of 2 group types, got {types}"):
            network(x, graph, steps=2)
