"""A record holds what the network computes; pictures show the record."""

import base64
import math
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from rrn import RRN, CompleteGraphs, EdgeList, InputError
from rrn.graphs import Graph, PackedGraphs, union
from rrn.inference.convergence import Converged
from rrn.nn.messages import AttentionMessage, GatedMessage
from rrn.viewing import Record, animate, layout, plot_convergence, record_steps
from rrn.viewing.plots import _fill_forward
from rrn.viewing.trace import _MessageEffects

SVG = "{http://www.w3.org/2000/svg}"


def chains(*sizes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes in a row, both ways, the first one marked."""
    graphs = []
    for size in sizes:
        one_way = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        graphs.append((torch.eye(size)[:, :1], torch.cat([one_way, one_way.flip(0)], dim=1)))
    return union(graphs)


@pytest.fixture(scope="module")
def record() -> Record:
    torch.manual_seed(1)
    x, edge_index, batch = chains(4, 6)
    return record_steps(RRN(1, 8, 3), x, edge_index, batch=batch, max_steps=7, until=Converged(1e-9))


@pytest.mark.parametrize("readout", ["node", "graph", "edge"])
@pytest.mark.parametrize("messages", [True, False])
def test_probabilities_and_residuals_are_those_of_the_network(readout: Any, messages: bool) -> None:
    x, edge_index, batch = chains(4, 6)
    network = RRN(1, 8, 3, readout=readout, update="gru")
    found = record_steps(network, x, edge_index, batch=batch, max_steps=20, until=Converged(0.02), messages=messages)
    result = network.think(x, edge_index, batch=batch, max_steps=20, until=Converged(0.02))
    assert found.steps.tolist() == result.steps.tolist()
    assert found.finished.tolist() == result.solved.tolist()
    outputs = network(x, edge_index, batch=batch, steps=int(found.steps.max())).softmax(-1)
    torch.testing.assert_close(found.probabilities, outputs.detach(), atol=1e-5, rtol=0)
    last = found.residuals[found.steps - 1, torch.arange(2)]
    np.testing.assert_allclose(last, result.details["residuals"], atol=1e-5)
    assert found.readout == readout
    assert found.graph_of_answer.bincount().tolist() == {"node": [4, 6], "graph": [1, 1], "edge": [6, 10]}[readout]
    assert (found.effects is not None) == messages
    assert all(parameter.grad is None for parameter in network.parameters())


def graphs_with_edges() -> list[tuple[Graph, Tensor]]:
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    return [(EdgeList(edges, 4), torch.randn(5, 2).double()), (CompleteGraphs(1, 4), torch.randn(1, 4, 4, 2).double())]


@pytest.mark.parametrize("which", [0, 1], ids=["edge list", "complete"])
@pytest.mark.parametrize("gated", [True, False])
def test_an_effect_is_the_difference_without_the_senders_change(which: int, gated: bool) -> None:
    """One edge at a time, the sender gets its previous state, for that receiver only."""
    graph, edge_attr = graphs_with_edges()[which]
    message = GatedMessage(8, 2) if gated else None
    network = RRN(3, 8, 3, edge_features=2, message=message).double()
    x = torch.randn(4, 3).double()
    given = network.prepare(x, graph, edge_attr)
    _, state = network.step(network.initial_state(given), given)
    state = state.detach()
    earlier = state.h - 1e-5 * torch.randn_like(state.h)
    senders, receivers, order = graph.ends()
    after, effects = _MessageEffects(network, given).step(state, earlier, order)
    outputs, plain = network.step(state, given)
    torch.testing.assert_close(after.h, plain.h)
    predicted = outputs.softmax(-1).amax(-1)
    flat = edge_attr.flatten(0, -2)[order]
    for edge, (sender, receiver) in enumerate(zip(senders.tolist(), receivers.tolist(), strict=True)):
        copied = torch.stack([senders, receivers])
        copied[0, edge] = 4  # a fifth node: the sender as it was before
        changed = network.prepare(torch.cat([x, x[sender : sender + 1]]), EdgeList(copied, 5), flat)
        parts = [torch.cat([part, part[sender : sender + 1]]) for part in state.parts()]
        set_back = type(state).of(parts)
        set_back.h[4] = earlier[sender]
        without = network.step(set_back, changed)[0].softmax(-1)[receiver, outputs[receiver].argmax()]
        assert float((predicted[receiver] - without).detach()) == pytest.approx(float(effects[edge]), abs=1e-9)


@pytest.mark.parametrize("which", [0, 1], ids=["edge list", "complete"])
def test_the_effects_of_all_messages_to_a_node_are_the_whole_change(which: int) -> None:
    """Even if a probability jumps from 0 to 1, so that the gradient at either end is zero."""
    graph, edge_attr = graphs_with_edges()[which]
    network = RRN(3, 8, 3, edge_features=2).double()
    with torch.no_grad():
        network.readout.mlp.linears[-1].weight *= 25
        given = network.prepare(torch.randn(4, 3).double(), graph, edge_attr)
        _, state = network.step(network.initial_state(given), given)
        senders, receivers, order = graph.ends()
        earlier = 2 * torch.randn_like(state.h)
        effects_of = _MessageEffects(network, given)
        after, effects = effects_of.step(state, earlier, order)
        (now, plain), (_, then) = network.step(state, given), effects_of._after(state, earlier[senders], order)
    torch.testing.assert_close(after.h, plain.h)
    probabilities, predicted = now.softmax(-1), now.argmax(-1, keepdim=True)
    moved = (probabilities - then).gather(-1, predicted)[:, 0]
    assert moved.max() > 0.5
    total = torch.zeros(4).double().index_add(0, receivers, effects)
    torch.testing.assert_close(total, moved, atol=0.05, rtol=0)


def test_an_unchanged_sender_has_no_effect() -> None:
    """Node 0 receives no message and has no update, so its state is constant after the first step."""
    network = RRN(1, 8, 2, update="none")
    edges = torch.tensor([[0, 1, 2], [1, 2, 1]])
    found = record_steps(network, torch.randn(3, 1), edges, max_steps=5, until=Converged(1e-9))
    assert found.effects is not None
    assert found.effects[0].abs().min() > 0
    assert not found.effects[2:, 0].any()
    assert found.effects[2:, 1:].any()


def test_message_functions_that_accept_no_edge_list_are_refused() -> None:
    network = RRN(2, 8, 3, edge_features=1, message=AttentionMessage(8, 1, 2, 4))
    graph, x = PackedGraphs(torch.tensor([2, 3])), torch.randn(5, 2)
    arguments = (network, x, graph, torch.randn(2, 3, 3, 1))
    with pytest.raises(
        InputError, match=r"messages: AttentionMessage does not accept an edge list .*record_steps\(…, messages=False\)"
    ):
        record_steps(*arguments, max_steps=3)
    assert record_steps(*arguments, max_steps=3, messages=False).probabilities.shape == (3, 5, 3)


def test_one_logit_is_no_or_yes() -> None:
    x, edge_index, _ = chains(3)
    found = record_steps(RRN(1, 8, 1), x, edge_index, max_steps=2)
    assert found.probabilities.shape == (2, 3, 2)
    torch.testing.assert_close(found.probabilities.sum(-1), torch.ones(2, 3))


def test_one_graph_of_a_record(record: Record) -> None:
    one = record._replace(steps=torch.tensor([7, 5])).select(1)
    assert record.effects is not None
    assert one.effects is not None
    assert one.probabilities.shape == (5, 6, 3)
    torch.testing.assert_close(one.probabilities, record.probabilities[:5, 4:])
    torch.testing.assert_close(one.effects, record.effects[:5, 6:])
    assert one.edge_index.tolist() == [[0, 1, 2, 3, 4, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0, 1, 2, 3, 4]]
    with pytest.raises(InputError, match="graph: expected 0 to 1, got 2"):
        record.select(2)


def test_accuracy_by_step_and_graph() -> None:
    probabilities = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]])
    made = Record(
        probabilities,
        torch.ones(2, 3),
        None,
        torch.zeros(2, 0).long(),
        torch.tensor([0, 0, 1, 2]),
        torch.tensor([0, 0, 1]),
        "node",
        torch.tensor([2, 2, 2]),
        torch.ones(3).bool(),
    )
    accuracy = made.accuracy(torch.tensor([1, 0, -100]))
    assert accuracy[:, 0].tolist() == [0.5, 1.0]
    assert accuracy[:, 1].isnan().all()
    assert made.accuracy(torch.tensor([1, 0, 1]))[:, 1].tolist() == [1, 1]
    with pytest.raises(InputError, match=r"targets: expected shape \(3,\), got \(2,\)"):
        made.accuracy(torch.tensor([1, 0]))


def test_a_gif_has_a_frame_for_every_step_and_shows_what_changes(record: Record, tmp_path: Path) -> None:
    shown = animate(record, tmp_path / "steps.gif", 1)._repr_mimebundle_()
    assert base64.b64decode(shown["image/gif"]) == (tmp_path / "steps.gif").read_bytes()
    with Image.open(tmp_path / "steps.gif") as image:
        assert image.n_frames == 7
        frames = []
        for step in range(7):
            image.seek(step)
            frames.append(np.asarray(image.convert("RGB")).astype(int))
    assert all(np.abs(a - b)[:560].max() > 20 for a, b in pairwise(frames[:3]))


def test_an_svg_is_animated_and_well_formed(record: Record, tmp_path: Path) -> None:
    names = ["a", "b", "c", "<d>", "e", "f"]
    positions = {node: (node, node % 2) for node in range(6)}
    animate(record, tmp_path / "steps.svg", 1, positions=positions, classes=["x", "y&z", "w"], names=names)
    root = ElementTree.parse(tmp_path / "steps.svg").getroot()
    circles = root.findall(f"{SVG}circle")
    assert len(circles) == 6
    assert [float(circle.get("cx", 0)) for circle in circles] == pytest.approx(np.linspace(40, 520, 6), abs=0.1)
    fills = circles[0].find(f"{SVG}animate")
    assert fills is not None
    assert len(set(fills.get("values", "").split(";"))) > 1
    texts = [text.text for text in root.findall(f"{SVG}text")]
    assert {"<d>", "step 1", "step 7"} <= set(texts)
    lines = root.findall(f"{SVG}line")
    moving = [line for line in lines if line.find(f"{SVG}animate") is not None]
    widest = [float(width) for line in moving for width in line[0].get("values", "").split(";")]
    assert max(widest) == 6
    assert len(lines) - len(moving) == 10


@pytest.mark.parametrize("readout", ["graph", "edge"])
@pytest.mark.parametrize("ending", ["gif", "svg"])
def test_answers_of_graphs_and_edges_are_drawn(readout: Any, ending: str, tmp_path: Path) -> None:
    x, edge_index, batch = chains(3, 5)
    found = record_steps(RRN(1, 8, 2, readout=readout), x, edge_index, batch=batch, max_steps=3)
    path = tmp_path / f"steps.{ending}"
    animate(found, path, 1, classes=["no", "yes"])
    assert path.stat().st_size > 1000
    if ending == "svg":
        drawn = path.read_text()
        assert ("step 3: no" in drawn or "step 3: yes" in drawn) == (readout == "graph")
        assert ('attributeName="stroke" ' in drawn) == (readout == "edge")


def test_convergence_is_plotted_with_the_last_value_of_ended_graphs(record: Record, tmp_path: Path) -> None:
    values = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    assert _fill_forward(values, np.array([3, 1])).tolist() == [[1, 5], [2, 5], [3, 5]]
    for name, targets in (("residuals.png", None), ("both.png", torch.zeros(10).long())):
        plot_convergence(record, tmp_path / name, targets)
    with Image.open(tmp_path / "residuals.png") as one, Image.open(tmp_path / "both.png") as two:
        assert two.width > 1.6 * one.width


def test_layouts_keep_neighbours_together() -> None:
    _, edge_index, _ = chains(12)
    positions = layout(edge_index, 12)
    assert positions.shape == (12, 2)
    assert np.linalg.norm(positions[0] - positions[1]) < 0.5 * np.linalg.norm(positions[0] - positions[11])
    np.testing.assert_array_equal(positions, layout(edge_index, 12))
    with pytest.raises(
        InputError, match="positions: needed for a graph of 401 nodes; a layout is found up to 400 nodes"
    ):
        layout(edge_index, 401)


@pytest.mark.parametrize(
    ("path", "settings", "message"),
    [
        ("x.png", {}, r"x\.png: expected a name that ends in \.gif or \.svg"),
        ("x.svg", {"graph": 5}, "graph: expected 0 to 1, got 5"),
        ("x.svg", {"classes": ["a"]}, "classes: expected 3 of them, got 1"),
        ("x.svg", {"names": ["a"]}, "names: expected 4 of them, got 1"),
        ("x.svg", {"positions": {0: (0, 0)}}, "positions: expected two numbers for every node, 0 to 3"),
        (
            "x.svg",
            {"positions": np.zeros((4, 3))},
            r"positions: expected finite numbers of shape \(4, 2\), got \(4, 3\)",
        ),
        ("x.svg", {"positions": np.full((4, 2), math.nan)}, "positions: expected finite numbers"),
    ],
)
def test_bad_arguments_are_refused(record: Record, path: str, settings: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        animate(record, tmp_path / path, **settings)
    assert not list(tmp_path.iterdir())
