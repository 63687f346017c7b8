"""Forward, loss, gradients, `RRN.think` and the commands, on any device and with any default device."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rrn import RRN, CompleteGraphs, EdgeList, NeighbourTable, engines
from rrn.constraints.training import fit
from rrn.estimators import RRNClassifier
from rrn.graphs import Aggregate, Graph, Groups, PackedGraphs, neighbour_edges
from rrn.inference.convergence import Converged, Settled
from rrn.inference.devices import place
from rrn.nn.losses import accuracy_by_step, every_step
from rrn.nn.messages import GroupMessage
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.influence import influence
from rrn.tasks.sudoku.predict import answers_by_step, solve
from rrn.tasks.weights import from_pretrained
from rrn.viewing import record_steps
from tests.constraints.test_declare import queens
from tests.elsewhere import elsewhere

CPU = torch.device("cpu")


def layouts(device: torch.device) -> dict[str, Graph]:
    """Two graphs or three, on a device."""
    mask = torch.tensor([[True, True, False], [True, True, True]], device=device)
    groups = torch.tensor([[0, 1], [0, 0], [1, 1], [0, 0], [1, 0], [1, 1]], device=device)
    return {
        "edges": EdgeList(torch.tensor([[0, 1, 2, 4, 5], [1, 2, 0, 3, 4]], device=device), 6),
        "table": NeighbourTable(torch.tensor([[1, 2], [0, 0], [1, 0], [4, 5], [3, 3], [4, 4]], device=device)),
        "complete": CompleteGraphs(2, 3, device=device),
        "masked": CompleteGraphs(2, 3, mask),
        "packed": PackedGraphs(torch.tensor([2, 1, 3], device=device)),
        "groups": Groups(groups, (2, 2), torch.tensor([3, 6], device=device)),
    }


def everything(layout: str, readout: str, device: torch.device) -> list[Tensor]:
    """Outputs, state, loss, accuracy, gradients and results of `RRN.think`, from the same numbers."""
    graph, generator = layouts(device)[layout], torch.Generator(CPU).manual_seed(1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64, device=CPU).to(device)

    with CPU:
        torch.manual_seed(3)
        network = RRN(4, 6, 3, edge_features=2, aggregate=("sum", "mean", "max"), readout=readout).double()
    network = network.to(device)
    x, edge_attr = normal(6, 4), normal(*graph.edge_shape, 2)
    has_batch = not isinstance(graph, EdgeList | NeighbourTable)
    batch = None if has_batch else torch.tensor([0, 0, 0, 1, 1, 1], device=device)
    outputs, state = network.run(x, graph, edge_attr, batch, steps=3)
    targets = outputs[-1].detach().argmax(-1)
    loss = every_step(outputs, targets)
    gradients = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)
    found = [outputs, *state.parts(), loss, accuracy_by_step(outputs, targets)]
    found += [gradient for gradient in gradients if gradient is not None]

    def check(answer: Tensor, number: int) -> bool:
        return float(answer.sum()) > 1

    for until in (Settled(2), Converged(0.1), check):
        noise = torch.Generator(CPU).manual_seed(5)
        result = network.think(x, graph, edge_attr, batch, until=until, max_steps=4, attempts=3, generator=noise)
        figures = (result.steps, result.solved, result.attempts, result.confidence, result.details["residuals"])
        found += [result.answers, *map(torch.from_numpy, figures)]
    return [part.detach().cpu() for part in found]


@pytest.mark.parametrize("readout", ["node", "graph", "edge"])
@pytest.mark.parametrize("layout", layouts(CPU))
def test_a_network_is_where_its_input_is(layout: str, readout: str) -> None:
    here = everything(layout, readout, CPU)
    with torch.device("meta"):
        poisoned = everything(layout, readout, CPU)
    with elsewhere() as device:
        there = everything(layout, readout, device)
    for ours, default, others in zip(here, poisoned, there, strict=True):
        torch.testing.assert_close(default, ours)
        torch.testing.assert_close(others, ours)


def test_tensors_of_two_devices_do_not_mix() -> None:
    """That the device of these tests is one."""
    with elsewhere() as device:
        there, here = torch.arange(4.0, device=CPU).to(device), torch.arange(4.0, device=CPU)
        assert there.device != here.device
        assert torch.ones(2, device=device).sum().item() == 2
        assert (there + torch.tensor([1.0] * 4, device=device)).tolist() == [1, 2, 3, 4]
        assert there[here.long()].tolist() == [0, 1, 2, 3]
        with pytest.raises(RuntimeError, match="add: expected all tensors on one device"):
            there + here
        with pytest.raises(RuntimeError, match="index_select: expected all tensors on one device"):
            here.index_select(0, there.long())
        with pytest.raises(TypeError, match="copy it to the CPU first"):
            there.numpy()
        with pytest.raises(RuntimeError, match="expected all tensors on one device"):
            here[there > 1]


def learned() -> list[np.ndarray]:
    """What an estimator, a solver of declared problems and a trace make of small problems, trained a little."""
    rng = np.random.default_rng(0)
    ring = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    graphs = [(rng.standard_normal((4, 2)), ring) for _ in range(8)]
    labels = [(x[:, 0] > 0).tolist() for x, _ in graphs]
    classifier = RRNClassifier(hidden=4, steps=2, epochs=2, class_weight={True: 2.0}, validation_fraction=0.25)
    classifier.fit(graphs, labels)
    solver = fit(queens(4), lambda rng: queens(4).dig(rng), updates=3, slots=4, hidden=8)
    solutions = solver.solve([queens(5).dig(rng) for _ in range(3)], max_steps=9, attempts=2)
    x, edges = (torch.from_numpy(part) for part in (graphs[0][0].astype(np.float32), ring))
    record = record_steps(classifier.network_, x, edges, max_steps=3)
    accuracy = record.accuracy(np.array(labels[0]).astype(np.int64))
    found = [*classifier.predict_proba(graphs), solutions.solved, solutions.steps, record.probabilities, accuracy]
    return [np.asarray(part) for part in found]


def test_estimators_solvers_and_traces_do_not_mind_the_default_device() -> None:
    with torch.device("meta"):
        poisoned = learned()
    for ours, default in zip(learned(), poisoned, strict=True):
        np.testing.assert_array_equal(default, ours)


def without_numbers() -> dict[str, tuple[Graph, int, tuple[int, ...]]]:
    """Graphs of six nodes of which only the shape is known, how many there are, and the shape of their edges."""
    meta, member_of = torch.device("meta"), torch.zeros(6, 2, dtype=torch.long, device="meta")
    return {
        "edges": (EdgeList(torch.zeros(2, 5, dtype=torch.long, device=meta), 6), 1, (5,)),
        "table": (NeighbourTable(torch.zeros(6, 2, dtype=torch.long, device=meta)), 1, (6, 2)),
        "complete": (CompleteGraphs(2, 3, device=meta), 2, (2, 3, 3)),
        "masked": (CompleteGraphs(2, 3, torch.ones(2, 3, dtype=torch.bool, device=meta)), 2, (2, 3, 3)),
        "groups": (Groups(member_of, (2, 2), torch.zeros(2, dtype=torch.long, device=meta)), 2, ()),
    }


@pytest.mark.parametrize("layout", without_numbers())
def test_a_network_on_the_meta_device_gives_shapes(layout: str) -> None:
    """How many edges `Groups` have, and the width of `PackedGraphs`, is in the numbers; all else in the shapes."""
    graph, graphs, edges = without_numbers()[layout]
    x = torch.zeros(6, 4, device="meta")
    expected = {"node": (6,), "graph": (graphs,)} | ({"edge": edges} if edges else {})
    for readout, shape in expected.items():
        aggregate: tuple[Aggregate, ...] = ("sum", "mean", "max") if edges else ("sum",)
        message = None if edges else GroupMessage(2, 3)
        network = RRN(4, 6, 3, readout=readout, aggregate=aggregate, message=message).to("meta")
        outputs, state = network.run(x, graph, steps=2)
        assert outputs.shape == (2, *shape, 3)
        assert {part.device.type for part in (outputs, *state.parts())} == {"meta"}


def test_edges_of_a_table_are_where_the_table_is() -> None:
    with torch.device("meta"):
        edges = neighbour_edges(torch.tensor([[1], [0]], device="cpu"))
    assert edges.tolist() == [[1, 0], [0, 1]]


PUZZLES, _ = generate(3, np.random.default_rng(5), extra_givens=(0, 8))


def solved(device: torch.device) -> list[Any]:
    """Results of several attempts, answers by step and influences, of the network on candidates and the paper's."""
    with CPU:
        networks = [place(from_pretrained(name), device) for name in ("sudoku", "sudoku-rn-node")]
    found: list[Any] = [influence(networks[0], PUZZLES[0], 2)]
    for network in networks:
        answer = solve(PUZZLES, network=network, max_steps=6, attempts=3, record=True)
        found += [answer.answers, answer.solved, answer.steps, answer.attempts, *answer.record]
        found.append(answers_by_step(network, PUZZLES, 3))
    return found


def test_sudokus_are_solved_on_any_device() -> None:
    with engines.only("plain"):
        here = solved(CPU)
        with torch.device("meta"):
            poisoned = solved(CPU)
        with elsewhere() as device:
            there = solved(device)
    for ours, default, others in zip(here, poisoned, there, strict=True):
        np.testing.assert_array_equal(default, ours)
        np.testing.assert_allclose(others, ours, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("preset", ["sudoku", "babi", "pretty-clevr", "ages"])
def test_evaluate_on_another_device(preset: str, call: Callable[..., tuple[int, str, str]]) -> None:
    few = ["evaluate", preset, "--limit", "8", "--steps", "1,4", "--json"]
    code, here, _ = call(*few)
    assert code == 0
    with elsewhere() as device:
        code, there, _ = call(*few, "--device", device)
    assert code == 0
    assert close(json.loads(there), json.loads(here))


def close(there: Any, here: Any) -> bool:
    """The same figures; all but when and where."""
    if isinstance(here, dict):
        return all(close(there[name], here[name]) for name in here.keys() - {"seconds", "date", "device"})
    return bool(there == pytest.approx(here, rel=1e-3)) if isinstance(here, float) else bool(there == here)
