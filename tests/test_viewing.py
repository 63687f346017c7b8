"""What is seen of a network is what it computes; pictures hold it."""

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
from rrn.inference.places import Converged
from rrn.nn.messages import AttentionMessage, GatedMessage
from rrn.viewing import Trace, animate, layout, plot_convergence, trace
from rrn.viewing.viewing import _Followed

SVG = "{http://www.w3.org/2000/svg}"


def chains(*sizes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes in a row, both ways, the first one marked."""
    graphs = []
    for size in sizes:
        one_way = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        graphs.append((torch.eye(size)[:, :1], torch.cat([one_way, one_way.flip(0)], dim=1)))
    return union(graphs)


@pytest.fixture(scope="module")
def seen() -> Trace:
    torch.manual_seed(1)
    x, edge_index, batch = chains(4, 6)
    return trace(RRN(1, 8, 3), x, edge_index, batch=batch, max_steps=7, until=Converged(1e-9))


@pytest.mark.parametrize("readout", ["node", "graph", "edge"])
@pytest.mark.parametrize("messages", [True, False])
def test_beliefs_and_residuals_are_those_of_the_network(readout: Any, messages: bool) -> None:
    x, edge_index, batch = chains(4, 6)
    network = RRN(1, 8, 3, readout=readout, update="gru")
    found = trace(network, x, edge_index, batch=batch, max_steps=20, until=Converged(0.02), messages=messages)
    thought = network.think(x, edge_index, batch=batch, max_steps=20, until=Converged(0.02))
    assert torch.equal(found.steps, thought.steps)
    assert torch.equal(found.finished, thought.finished)
    outputs = network(x, edge_index, batch=batch, steps=int(found.steps.max())).softmax(-1)
    torch.testing.assert_close(found.beliefs, outputs.detach(), atol=1e-5, rtol=0)
    last = found.residuals[found.steps - 1, torch.arange(2)]
    torch.testing.assert_close(last, thought.residuals, atol=1e-5, rtol=0)
    assert found.asked == readout
    assert found.answer_of.bincount().tolist() == {"node": [4, 6], "graph": [1, 1], "edge": [6, 10]}[readout]
    assert (found.effects is not None) == messages
    assert all(parameter.grad is None for parameter in network.parameters())


def graphs_with_edges() -> list[tuple[Graph, Tensor]]:
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    return [(EdgeList(edges, 4), torch.randn(5, 2).double()), (CompleteGraphs(1, 4), torch.randn(1, 4, 4, 2).double())]


@pytest.mark.parametrize("which", [0, 1], ids=["edge list", "complete"])
@pytest.mark.parametrize("gated", [True, False])
def test_an_effect_is_what_a_receiver_would_lack_without_the_news(which: int, gated: bool) -> None:
    """One edge at a time, the sender is set back a little, for that receiver alone."""
    graph, edge_attr = graphs_with_edges()[which]
    message = GatedMessage(8, 2) if gated else None
    network = RRN(3, 8, 3, edge_features=2, message=message).double()
    x = torch.randn(4, 3).double()
    given = network.prepare(x, graph, edge_attr)
    _, state = network.step(network.initial_state(given), given)
    state = state.detach()
    earlier = state.h - 1e-5 * torch.randn_like(state.h)
    senders, receivers, places = graph.ends()
    after, effects = _Followed(network, given).step(state, earlier, places)
    outputs, plain = network.step(state, given)
    torch.testing.assert_close(after.h, plain.h)
    said = outputs.softmax(-1).amax(-1)
    flat = edge_attr.flatten(0, -2)[places]
    for edge, (sender, receiver) in enumerate(zip(senders.tolist(), receivers.tolist(), strict=True)):
        copied = torch.stack([senders, receivers])
        copied[0, edge] = 4  # a fifth node: the sender as it was before
        changed = network.prepare(torch.cat([x, x[sender : sender + 1]]), EdgeList(copied, 5), flat)
        parts = [torch.cat([part, part[sender : sender + 1]]) for part in state.parts()]
        set_back = type(state).of(parts)
        set_back.h[4] = earlier[sender]
        without = network.step(set_back, changed)[0].softmax(-1)[receiver, outputs[receiver].argmax()]
        assert float((said[receiver] - without).detach()) == pytest.approx(float(effects[edge]), abs=1e-9)


@pytest.mark.parametrize("which", [0, 1], ids=["edge list", "complete"])
def test_the_effects_of_all_messages_to_a_node_are_the_whole_change(which: int) -> None:
    """Even where beliefs jump from one certainty to another, and a gradient at either end would be zero."""
    graph, edge_attr = graphs_with_edges()[which]
    network = RRN(3, 8, 3, edge_features=2).double()
    with torch.no_grad():
        network.readout.mlp.linears[-1].weight *= 25
        given = network.prepare(torch.randn(4, 3).double(), graph, edge_attr)
        _, state = network.step(network.initial_state(given), given)
        senders, receivers, places = graph.ends()
        earlier = 2 * torch.randn_like(state.h)
        followed = _Followed(network, given)
        after, effects = followed.step(state, earlier, places)
        (now, plain), (_, then) = network.step(state, given), followed._after(state, earlier[senders], places)
    torch.testing.assert_close(after.h, plain.h)
    chances, said = now.softmax(-1), now.argmax(-1, keepdim=True)
    moved = (chances - then).gather(-1, said)[:, 0]
    assert moved.max() > 0.5
    total = torch.zeros(4).double().index_add(0, receivers, effects)
    torch.testing.assert_close(total, moved, atol=0.05, rtol=0)


def test_who_has_nothing_new_to_say_changes_nothing() -> None:
    """Nobody sends to node 0, and with no update what arrives is the state: after the first step it stays as it is."""
    network = RRN(1, 8, 2, update="none")
    edges = torch.tensor([[0, 1, 2], [1, 2, 1]])
    found = trace(network, torch.randn(3, 1), edges, max_steps=5, until=Converged(1e-9))
    assert found.effects is not None
    assert found.effects[0].abs().min() > 0
    assert not found.effects[2:, 0].any()
    assert found.effects[2:, 1:].any()


def test_message_functions_that_take_no_edge_lists_are_named() -> None:
    network = RRN(2, 8, 3, edge_features=1, message=AttentionMessage(8, 1, 2, 4))
    graph, x = PackedGraphs(torch.tensor([2, 3])), torch.randn(5, 2)
    arguments = (network, x, graph, torch.randn(2, 3, 3, 1))
    with pytest.raises(InputError, match=r"messages: those of AttentionMessage cannot .*trace\(…, messages=False\)"):
        trace(*arguments, max_steps=3)
    assert trace(*arguments, max_steps=3, messages=False).beliefs.shape == (3, 5, 3)


def test_one_logit_is_no_or_yes() -> None:
    x, edge_index, _ = chains(3)
    found = trace(RRN(1, 8, 1), x, edge_index, max_steps=2)
    assert found.beliefs.shape == (2, 3, 2)
    torch.testing.assert_close(found.beliefs.sum(-1), torch.ones(2, 3))


def test_one_graph_of_a_trace(seen: Trace) -> None:
    one = seen._replace(steps=torch.tensor([7, 5])).only(1)
    assert seen.effects is not None
    assert one.effects is not None
    assert one.beliefs.shape == (5, 6, 3)
    torch.testing.assert_close(one.beliefs, seen.beliefs[:5, 4:])
    torch.testing.assert_close(one.effects, seen.effects[:5, 6:])
    assert one.edge_index.tolist() == [[0, 1, 2, 3, 4, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0, 1, 2, 3, 4]]
    with pytest.raises(InputError, match="graph: expected 0 to 1, got 2"):
        seen.only(2)


def test_accuracy_by_step_and_graph() -> None:
    beliefs = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]])
    made = Trace(
        beliefs,
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


def test_a_gif_has_a_frame_for_every_step_and_shows_what_changes(seen: Trace, tmp_path: Path) -> None:
    shown = animate(seen, tmp_path / "thinking.gif", 1)._repr_mimebundle_()
    assert base64.b64decode(shown["image/gif"]) == (tmp_path / "thinking.gif").read_bytes()
    with Image.open(tmp_path / "thinking.gif") as image:
        assert image.n_frames == 7
        frames = []
        for step in range(7):
            image.seek(step)
            frames.append(np.asarray(image.convert("RGB")).astype(int))
    assert all(np.abs(a - b)[:560].max() > 20 for a, b in pairwise(frames[:3]))


def test_an_svg_moves_and_is_well_formed(seen: Trace, tmp_path: Path) -> None:
    names = ["a", "b", "c", "<d>", "e", "f"]
    places = {node: (node, node % 2) for node in range(6)}
    animate(seen, tmp_path / "thinking.svg", 1, places=places, classes=["x", "y&z", "w"], names=names)
    root = ElementTree.parse(tmp_path / "thinking.svg").getroot()
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
    found = trace(RRN(1, 8, 2, readout=readout), x, edge_index, batch=batch, max_steps=3)
    path = tmp_path / f"thinking.{ending}"
    animate(found, path, 1, classes=["no", "yes"])
    assert path.stat().st_size > 1000
    if ending == "svg":
        drawn = path.read_text()
        assert ("step 3: no" in drawn or "step 3: yes" in drawn) == (readout == "graph")
        assert ('attributeName="stroke" ' in drawn) == (readout == "edge")


def test_convergence_is_plotted_and_a_graph_that_is_done_counts_as_it_ended(seen: Trace, tmp_path: Path) -> None:
    from rrn.viewing import _held

    values = torch.tensor([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    assert _held(values, torch.tensor([3, 1])).tolist() == [[1, 5], [2, 5], [3, 5]]
    for name, targets in (("residuals.png", None), ("both.png", torch.zeros(10).long())):
        plot_convergence(seen, tmp_path / name, targets)
    with Image.open(tmp_path / "residuals.png") as one, Image.open(tmp_path / "both.png") as two:
        assert two.width > 1.6 * one.width


def test_layouts_keep_neighbours_together() -> None:
    _, edge_index, _ = chains(12)
    places = layout(edge_index, 12)
    assert places.shape == (12, 2)
    assert np.linalg.norm(places[0] - places[1]) < 0.5 * np.linalg.norm(places[0] - places[11])
    np.testing.assert_array_equal(places, layout(edge_index, 12))
    with pytest.raises(InputError, match="places: a graph of 401 nodes; beyond 400 give places of your own"):
        layout(edge_index, 401)


@pytest.mark.parametrize(
    ("path", "settings", "message"),
    [
        ("x.png", {}, r"x\.png: expected a name that ends in \.gif or \.svg"),
        ("x.svg", {"graph": 5}, "graph: expected 0 to 1, got 5"),
        ("x.svg", {"classes": ["a"]}, "classes: expected 3 of them, got 1"),
        ("x.svg", {"names": ["a"]}, "names: expected 4 of them, got 1"),
        ("x.svg", {"places": {0: (0, 0)}}, "places: expected two numbers for every node, 0 to 3"),
        ("x.svg", {"places": np.zeros((4, 3))}, r"places: expected finite numbers of shape \(4, 2\), got \(4, 3\)"),
        ("x.svg", {"places": np.full((4, 2), math.nan)}, "places: expected finite numbers"),
    ],
)
def test_what_cannot_be_drawn_is_named(seen: Trace, path: str, settings: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        animate(seen, tmp_path / path, **settings)
    assert not list(tmp_path.iterdir())
