"""`RRN.think` runs each graph for as many steps as it needs, compared with separate runs of each graph."""

import pytest
import torch
from torch import Tensor

from rrn import RRN, CompleteGraphs, State
from rrn.graphs import Graph, Groups, PackedGraphs, union
from rrn.inference.attempts import STRIDE, Slots
from rrn.inference.convergence import Converged, Settled
from rrn.inference.result import Result, Status
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout, Outputs, Readout
from rrn.nn.updates import SharedLayerUpdate, Update


def mixed_graphs() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Five graphs of different sizes with edge features, as one."""
    generator = torch.Generator().manual_seed(5)
    graphs = []
    for nodes, edges in ((3, 5), (1, 0), (6, 14), (2, 2), (4, 4)):
        x = torch.randn(nodes, 4, generator=generator).double()
        edge_index = torch.randint(nodes, (2, edges), generator=generator)
        graphs.append((x, edge_index, torch.randn(edges, 2, generator=generator).double()))
    return union(graphs)


def network(**settings: object) -> RRN:
    torch.manual_seed(8)
    made = RRN(4, 8, 3, edge_features=2, update="gru", **settings).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight *= 1.5
    return made


def expected_stop(answers: Tensor, until: Settled | Converged, steps: int) -> tuple[bool, int, float]:
    """Whether and when one graph stops, and its last residual, from the answers before and after every step."""
    unchanged = 0
    for step in range(1, steps + 1):
        residual = float((answers[step].softmax(-1) - answers[step - 1].softmax(-1)).abs().max())
        same = bool((answers[step].argmax(-1) == answers[step - 1].argmax(-1)).all())
        unchanged = unchanged + 1 if same else 0
        if unchanged >= until.steps if isinstance(until, Settled) else residual < until.tolerance:
            return True, step, residual
    return False, steps, residual


@pytest.mark.parametrize("readout", ["node", "graph", "edge"])
@pytest.mark.parametrize("until", [Settled(3), Settled(6), Converged(0.05), Converged(0.01)], ids=str)
def test_each_graph_stops_where_a_separate_run_would(until: Settled | Converged, readout: str) -> None:
    made, (x, edges, edge_attr, batch) = network(readout=readout), mixed_graphs()
    result = made.think(x, edges, edge_attr, batch, until=until, max_steps=13)
    given = made.prepare(x, edges, edge_attr, batch)
    with torch.no_grad():
        before = made.read(given, made.initial_state(given))
        answers = torch.cat([before[None], made(given, steps=13)])
    row_of = {"node": batch, "graph": torch.arange(5), "edge": batch[edges[1]]}[readout]
    expected = []
    for graph in range(5):
        own = answers[:, row_of == graph]
        if own.numel():
            finished, steps, residual = expected_stop(own, until, 13)
        else:  # a graph without edges has no answer that could change
            finished, steps, residual = True, until.steps if isinstance(until, Settled) else 1, 0.0
        assert (bool(result.solved[graph]), int(result.steps[graph])) == (finished, steps), graph
        assert float(result.details["residuals"][graph]) == pytest.approx(residual, rel=1e-6, abs=1e-9)
        expected.append(own[steps])
    torch.testing.assert_close(result.answers, torch.cat(expected))
    assert result.attempts.tolist() == [1] * 5
    assert len(set(result.steps.tolist())) > 1, "all stop at once: this tests little"


def test_answers_of_edges_are_distinguished_from_answers_of_nodes() -> None:
    """A ring has as many edges as nodes; the edges of two rings may be in any order."""
    edges = torch.tensor([[3, 0, 4, 1, 5, 2], [4, 1, 5, 2, 3, 0]])
    made, x, batch = network(readout="edge"), torch.randn(6, 4).double(), torch.tensor([0, 0, 0, 1, 1, 1])
    edge_attr = torch.randn(6, 2).double()
    result = made.think(x, edges, edge_attr, batch, until=lambda answer, graph: False, max_steps=3)
    answers = made(x, edges, edge_attr, batch, steps=3)[-1]
    torch.testing.assert_close(result.answers, answers[[1, 3, 5, 0, 2, 4]])


def test_a_custom_check_accepts_answers() -> None:
    made, (x, edges, edge_attr, batch) = network(), mixed_graphs()
    answers = made(x, edges, edge_attr, batch, steps=20)
    wanted = [int(answers[8, batch == graph][0].argmax()) for graph in range(5)]
    checked = []

    def check(answer: Tensor, graph: int) -> bool:
        checked.append(graph)
        assert len(answer) == int((batch == graph).sum())
        return graph != 2 and int(answer[0].argmax()) == wanted[graph]

    result = made.think(x, edges, edge_attr, batch, until=check, max_steps=20)
    assert set(checked) == set(range(5))
    for graph in range(5):
        classes = answers[:, batch == graph][:, 0].argmax(-1).tolist()
        first = 20 if graph == 2 else classes.index(wanted[graph]) + 1
        assert int(result.steps[graph]) == first
        torch.testing.assert_close(result.answers[batch == graph], answers[first - 1, batch == graph])
    assert result.solved.tolist() == [True, True, False, True, True]


def test_a_single_logit_is_a_binary_class() -> None:
    torch.manual_seed(8)
    made = RRN(4, 8, 1, update="gru").double()
    x, edges, _, batch = mixed_graphs()
    result = made.think(x, edges, None, batch, until=Settled(2), max_steps=12)
    given = made.prepare(x, edges, None, batch)
    classes = torch.cat([made.read(given, made.initial_state(given))[None], made(x, edges, None, batch, steps=12)]) > 0
    for graph in range(5):
        same = (classes[1:] == classes[:-1])[:, batch == graph].flatten(1).all(1).tolist()
        first = next(step for step in range(2, 13) if same[step - 2] and same[step - 1])
        assert int(result.steps[graph]) == first


@pytest.mark.parametrize(
    "graph",
    [
        CompleteGraphs(3, 4),
        CompleteGraphs(3, 4, torch.tensor([[True, True, True, False], [True] * 4, [True, False, True, True]])),
        PackedGraphs(torch.tensor([4, 2, 5])),
        Groups(torch.tensor([[0, 1], [0, 0], [1, 1], [0, 0], [1, 0], [1, 1]]), (2, 2), torch.tensor([1, 4, 6])),
    ],
    ids=["complete", "masked", "packed", "groups"],
)
def test_graph_layouts_need_no_batch_vector(graph: Graph) -> None:
    made, x = network(readout="graph"), torch.randn(graph.num_nodes, 4).double()
    edge_attr = torch.randn(*graph.edge_shape, 2).double()
    result = made.think(x, graph, edge_attr, until=Converged(0.005), max_steps=24)
    answers = made(x, graph, edge_attr, steps=24)
    assert result.answers.shape == (3, 3)
    for number, steps in enumerate(result.steps.tolist()):
        torch.testing.assert_close(result.answers[number], answers[steps - 1, number])
    assert len(set(result.steps.tolist())) > 1, "all stop at once: this tests little"


class Constant(Update):
    """An update that changes nothing, and records the noise."""

    def __init__(self) -> None:
        super().__init__()
        self.noise: list[list[float]] = []

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        return state

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        self.noise.append(noise.flatten().tolist())
        return super().add_noise(state, noise, generator)


class Total(Readout):
    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Outputs:
        return Outputs(graph.sum_nodes(h, batch), {"all": h})


def constant_network() -> RRN:
    return RRN(2, 2, encoder_layers=None, message_layers=1, update=Constant(), readout=Total())


X, EDGES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]), torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize("batch", [torch.tensor([0, 0, 1]), None], ids=["two graphs", "one graph"])
def test_noisy_attempts_end_differently(batch: Tensor | None) -> None:
    """Attempts side by side are separate graphs: the sum over one has no part of another."""
    made, seen = constant_network(), []

    def check(answer: Tensor, graph: int) -> bool:
        seen.append((graph, tuple(answer[0].tolist())))
        return False

    result = made.think(X, EDGES, batch=batch, until=check, max_steps=8, attempts=3, noise=0.01)
    graphs = 1 if batch is None else 2
    assert result.solved.tolist() == [False] * graphs
    assert result.attempts.tolist() == [3] * graphs
    first = [(3.0, 3.0)] if batch is None else [(1.0, 1.0), (2.0, 2.0)]
    assert result.answers.tolist() == [list(answer) for answer in first], "those of the first attempt"
    for graph, expected in enumerate(first):
        found = {answer for number, answer in seen if number == graph}
        assert len(found) == 3, "the first attempt and two others"
        assert all(answer == pytest.approx(expected, abs=0.1) for answer in found)
    assert [n for amounts in made.update.noise for n in amounts] == [pytest.approx(0.01)] * (2 * 3)


def test_the_accepted_attempt_is_returned() -> None:
    def check(answer: Tensor, graph: int) -> bool:
        return graph == 1 or float(answer[0, 0]) > 1.05

    found = [
        constant_network().think(
            X,
            EDGES,
            batch=torch.tensor([0, 0, 1]),
            until=check,
            max_steps=8,
            attempts=50,
            noise=0.1,
            generator=torch.Generator().manual_seed(1),
        )
        for _ in range(2)
    ]
    result = found[0]
    assert result.solved.tolist() == [True, True]
    assert int(result.attempts[0]) > 1
    assert int(result.attempts[1]) == 1
    assert float(result.answers[0, 0]) > 1.05
    assert result.answers[1].tolist() == [2, 2]
    assert torch.equal(result.answers, found[1].answers), "the same noise from the same generator"


def test_the_callback_is_called_after_every_stride() -> None:
    made, (x, edges, edge_attr, batch) = network(), mixed_graphs()
    seen: list[tuple[list[int], int]] = []

    def callback(slots: Slots, outputs: object) -> None:
        assert isinstance(outputs, Tensor)
        seen.append((slots.problems.tolist(), len(outputs)))

    made.think(x, edges, edge_attr, batch, until=lambda answer, graph: graph % 2 == 0, max_steps=12, callback=callback)
    assert seen == [([0, 1, 2, 3, 4], STRIDE), ([1, 3], 12 - STRIDE)]


def test_think_has_no_gradients_and_accepts_prepared_inputs() -> None:
    made, (x, edges, edge_attr, batch) = network(), mixed_graphs()
    result = made.think(made.prepare(x, edges, edge_attr, batch), max_steps=4)
    assert not result.answers.requires_grad
    torch.testing.assert_close(result.answers, made.think(x, edges, edge_attr, batch, max_steps=4).answers)


def test_a_network_on_groups_runs_until_it_converges() -> None:
    torch.manual_seed(2)
    parts = {"message": GroupMessage(2, 4), "update": SharedLayerUpdate(6, 8, 12), "readout": DotReadout(6)}
    made = RRN(1, 8, encoder_layers=None, **parts)
    graph = Groups(torch.randint(3, (14, 2)), (3, 3), torch.tensor([5, 6, 14]))
    x = torch.ones(14, 1)
    result = made.think(x, graph, until=Converged(0.02), max_steps=40)
    answers = made(x, graph, steps=40)
    for number, steps in enumerate(result.steps.tolist()):
        own = graph.graph_of_node() == number
        torch.testing.assert_close(result.answers[own], answers[steps - 1, own], atol=1e-4, rtol=1e-4)


def test_think_returns_one_result_per_graph() -> None:
    made, (x, edges, edge_attr, batch) = network(), mixed_graphs()
    result = made.think(x, edges, edge_attr, batch, until=lambda answer, graph: graph != 3, max_steps=4, attempts=2)
    assert isinstance(result, Result)
    assert result.status == [Status.SOLVED] * 3 + [Status.UNSOLVED, Status.SOLVED]
    assert len(result) == len(result.confidence) == len(result.details["residuals"]) == 5
    assert result.attempts.tolist() == [1, 1, 1, 2, 1]
    probability = result.answers.softmax(-1).amax(-1)
    for graph in range(5):
        assert result.confidence[graph] == pytest.approx(float(probability[batch == graph].mean()))


def test_an_answer_that_is_not_finite_is_never_accepted() -> None:
    """Classes of logits that are not a number do not change, which must not count as settled."""
    made = RRN(2, 2, encoder_layers=None, message_layers=1, update=Constant(), readout=Total())
    given = made.prepare(X, EDGES, batch=torch.tensor([0, 0, 1]))
    broken = given._replace(x=torch.tensor([[1.0, 0.0], [0.0, 1.0], [float("nan"), 2.0]]))
    for until in (Settled(2), Converged(0.1), lambda answer, graph: True):
        result = made.think(broken, until=until, max_steps=6)
        assert result.status == [Status.SOLVED, Status.UNSOLVED]
