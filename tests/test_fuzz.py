"""The public API with arguments of random types and shapes: an `InputError`, or the result of the plain engine.

A signal ends the whole test run, so it cannot be missed.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

import rrn
from rrn import RRN, CompleteGraphs, EdgeList, Groups, InputError, NeighbourTable, PackedGraphs, engines
from rrn.nn.updates import State

bounded = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
DTYPES = [torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.bool, torch.complex64]


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5]), max_size=4))
    dtype = draw(st.sampled_from(DTYPES))
    low, high = draw(st.sampled_from([(0, 2), (0, 5), (-3, 3), (0, 10**6)]))
    values = torch.randint(low, high, shape).to(dtype)
    if dtype.is_floating_point and values.numel() and draw(st.integers(0, 4)) == 0:
        values.view(-1)[0] = draw(st.sampled_from([float("nan"), float("inf")]))
    return values.to("meta") if draw(st.integers(0, 9)) == 0 else values


def anything() -> st.SearchStrategy[Any]:
    plain = st.sampled_from(
        [None, 0, 1, 2, -1, 10**9, 0.5, float("nan"), "", "x", "sum", True, b"x", (), [], {}, object()]
    )
    lists = st.lists(st.integers(-2, 6), max_size=4)
    return st.one_of(plain, tensors(), lists, lists.map(tuple), lists.map(np.array), st.just(State(torch.zeros(5, 4))))


def attempt(call: Callable[[], Any]) -> Any:
    """The result, or None if the arguments are refused by our error."""
    with suppress(InputError):
        return call()
    return None


def with_one_changed(draw: st.DrawFn, valid: dict[str, Any]) -> dict[str, Any]:
    """Valid arguments, of which one or two are replaced by anything."""
    names = draw(st.lists(st.sampled_from(sorted(valid)), max_size=2, unique=True))
    return valid | {name: draw(anything()) for name in names}


def input_of_five_nodes() -> dict[str, Any]:
    return {
        "x": torch.randn(5, 3),
        "edge_index": torch.randint(5, (2, 7)),
        "edge_attr": torch.randn(7, 2),
        "batch": torch.tensor([0, 0, 1, 1, 1]),
    }


@bounded
@given(st.data())
def test_runs_of_a_network(data: st.DataObject) -> None:
    torch.manual_seed(0)
    layers = data.draw(st.sampled_from([1, 2]))
    network = RRN(3, 4, 2, edge_features=2, message_layers=layers, readout=data.draw(st.sampled_from(["node", "edge"])))
    valid = input_of_five_nodes() | {"steps": 2, "checkpoint": None, "state": None}
    arguments = data.draw(st.composite(with_one_changed)(valid))
    chosen = attempt(lambda: network(**arguments))
    with engines.only("plain"):
        plain = attempt(lambda: network(**arguments))
    assert (chosen is None) == (plain is None)
    if chosen is not None and chosen.device.type != "meta":
        torch.testing.assert_close(chosen, plain, equal_nan=True)


@bounded
@given(st.data())
def test_steps_and_thoughts_of_a_network(data: st.DataObject) -> None:
    torch.manual_seed(0)
    network = RRN(3, 4, 2, edge_features=2)
    valid = input_of_five_nodes()
    changed = data.draw(st.composite(with_one_changed)(valid | {"state": network.initial_state(valid["x"])}))
    attempt(lambda: network.step(**changed))
    options = {"max_steps": 2, "attempts": 1, "noise": 0.1}
    attempt(lambda: network.think(**data.draw(st.composite(with_one_changed)(valid | options))))


@bounded
@given(st.data())
def test_settings_of_a_network(data: st.DataObject) -> None:
    valid: dict[str, Any] = {
        "features": 3,
        "hidden": 4,
        "outputs": 2,
        "edge_features": 0,
        "encoder_layers": 1,
        "message_layers": 1,
        "update": "lstm",
        "update_layers": 1,
        "update_inputs": "xm",
        "readout": "node",
        "readout_layers": 0,
        "dropout": 0.0,
        "dropout_layers": 1,
        "aggregate": ("sum",),
    }
    settings_ = {
        name: value if not isinstance(value, int) or value < 10**6 else 2
        for name, value in data.draw(st.composite(with_one_changed)(valid)).items()
    }
    network = attempt(lambda: RRN(**settings_))
    if network is not None:
        x = torch.randn(3, network.features)
        edge_attr = torch.randn(2, network.edge_features) if network.edge_features else None
        attempt(lambda: network(x, torch.tensor([[0, 1], [1, 2]]), edge_attr, steps=1))


GRAPHS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (EdgeList, {"edge_index": torch.tensor([[0, 1], [1, 2]]), "num_nodes": 3}),
    (NeighbourTable, {"table": torch.tensor([[1, 2], [0, 2], [0, 1]])}),
    (NeighbourTable.repeat, {"table": torch.tensor([[1], [0]]), "graphs": 2}),
    (CompleteGraphs, {"graphs": 2, "size": 3, "mask": None}),
    (PackedGraphs, {"sizes": torch.tensor([1, 3])}),
    (Groups, {"member_of": torch.tensor([[0, 1], [1, 1]]), "counts": (2, 2), "stops": torch.tensor([1, 2])}),
    (rrn.union, {"graphs": [(torch.randn(2, 3), torch.tensor([[0], [1]]))]}),
]


@pytest.mark.parametrize(("make", "valid"), GRAPHS, ids=[make.__qualname__ for make, _ in GRAPHS])
@bounded
@given(data=st.data())
def test_graphs(make: Callable[..., Any], valid: dict[str, Any], data: st.DataObject) -> None:
    arguments = data.draw(st.composite(with_one_changed)(valid))
    if max((value for value in arguments.values() if isinstance(value, int)), default=0) > 100:
        return  # memory that the caller asks for
    if make is PackedGraphs and getattr(arguments["sizes"], "is_meta", False):
        return  # the sizes must be readable
    graph = attempt(lambda: make(**arguments))
    if not isinstance(graph, rrn.Graph) or graph.num_nodes == 0:
        return
    network = RRN(3, 4, 2)
    x = torch.randn(graph.num_nodes, 3)
    chosen = attempt(lambda: network(x, graph, steps=2))
    with engines.only("plain"):
        plain = attempt(lambda: network(x, graph, steps=2))
    assert (chosen is None) == (plain is None)
    if chosen is not None and chosen.device.type != "meta":
        torch.testing.assert_close(chosen, plain)


LOSSES: list[Callable[..., Any]] = [rrn.step_losses, rrn.every_step, rrn.last_step, rrn.accuracy_by_step]


@pytest.mark.parametrize("loss", LOSSES, ids=[loss.__name__ for loss in LOSSES])
@bounded
@given(data=st.data())
def test_losses(loss: Callable[..., Any], data: st.DataObject) -> None:
    valid = {"outputs": torch.randn(2, 5, 3), "targets": torch.tensor([0, 1, 2, 0, -100])}
    attempt(lambda: loss(**data.draw(st.composite(with_one_changed)(valid))))


@bounded
@given(name=anything())
def test_names_of_weights(name: Any) -> None:
    attempt(lambda: RRN.from_pretrained(name))
    attempt(lambda: rrn.from_pretrained(name))
