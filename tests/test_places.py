"""Batches that problems leave and enter; thinking for as long as each graph needs, against plain runs of each."""

import pytest
import torch
from torch import Tensor

from rrn import RRN, CompleteGraphs, InputError, State
from rrn.graphs import Graph, Groups, PackedGraphs, union
from rrn.inference.places import NOISE_EVERY, STRIDE, Converged, Places, Settled, think_through
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout, Outputs, Readout
from rrn.nn.updates import SharedLayerUpdate, Update

NEVER = 10**6


def places_of(numbers: list[int], sizes: list[int]) -> Places:
    """Problems whose rows of the state are their number, and ten times that in memory."""
    rows = torch.tensor(numbers).repeat_interleave(torch.tensor(sizes))[:, None].float()
    return Places.enter(torch.tensor(numbers), torch.tensor(sizes), State(rows, (10 * rows,)))


def test_places_enter_leave_and_join() -> None:
    here = places_of([4, 7, 5], [2, 1, 3])
    assert here.starts.tolist() == [1, 1, 1]
    assert here.age.tolist() == [0, 0, 0]
    here = here.after(here.state, 8).leave(torch.tensor([False, True, False]))
    assert here.numbers.tolist() == [4, 5]
    assert here.state.h.flatten().tolist() == [4, 4, 5, 5, 5]
    assert here.leave(torch.tensor([False, False])) is here
    joined = here.join(places_of([9], [2]))
    assert (joined.numbers.tolist(), joined.sizes.tolist()) == ([4, 5, 9], [2, 3, 2])
    assert joined.age.tolist() == [8, 8, 0]
    assert joined.state.h.flatten().tolist() == [4, 4, 5, 5, 5, 9, 9]
    assert joined.state.memory[0].flatten().tolist() == [40, 40, 50, 50, 50, 90, 90]


def test_noise_goes_to_the_rows_of_those_who_get_it() -> None:
    here = places_of([4, 7, 5], [2, 1, 3])
    noisy = here.noisy(lambda state, noise, _: State(state.h + noise, state.memory), torch.tensor([0.0, 0.5, 0.25]))
    assert (noisy.state.h - here.state.h).flatten().tolist() == [0, 0, 0.5, 0.25, 0.25, 0.25]
    assert noisy.state.memory is here.state.memory


class Timed:
    """Problems that are finished at given steps, one per start; their state shows who they are and how old."""

    guide = None

    def __init__(self, *finish: list[int]) -> None:
        self.finish = finish
        self.here: list[list[tuple[int, int]]] = []
        self.doses: list[tuple[int, int, float]] = []

    def __len__(self) -> int:
        return len(self.finish)

    def begin(self, numbers: Tensor) -> tuple[Tensor, State]:
        sizes = numbers % 3 + 1
        return sizes, State((100 * numbers).repeat_interleave(sizes)[:, None].float())

    def run(self, places: Places, steps: int) -> tuple[Tensor, State]:
        expected = (100 * places.numbers + places.age).repeat_interleave(places.sizes)
        assert places.state.h.flatten().tolist() == expected.tolist()
        self.here.append(list(zip(places.numbers.tolist(), places.starts.tolist(), strict=True)))
        return places.age + torch.arange(1, steps + 1)[:, None], State(places.state.h + steps)

    def finished(self, places: Places, outputs: Tensor) -> Tensor:
        ends = [self.finish[n][s - 1] for n, s in self.here[-1]]
        return outputs >= torch.tensor(ends)

    def answer(self, places: Places, outputs: Tensor, place: int, step: int) -> tuple[int, int, int]:
        return (*self.here[-1][place], int(outputs[step, place]))

    def noisy(self, state: State, noise: Tensor, generator: torch.Generator | None) -> State:
        rows = state.h.flatten()
        self.doses += [(int(row) // 100, int(row) % 100, float(n)) for row, n in zip(rows, noise, strict=True)]
        return state


def test_each_problem_takes_the_steps_it_needs() -> None:
    work, done = Timed([3], [20], [8], [NEVER], [9]), []
    found = think_through(work, max_steps=24, progress=done.append)
    assert found.steps.tolist() == [3, 20, 8, 24, 9]
    assert found.finished.tolist() == [True, True, True, False, True]
    assert found.answers == [(0, 1, 3), (1, 1, 20), (2, 1, 8), (3, 1, 24), (4, 1, 9)]
    assert found.starts.tolist() == [1] * 5
    assert found.first_answers == found.answers
    assert sum(done) == 5
    present = [[number for number, _ in here] for here in work.here]
    assert present == [[0, 1, 2, 3, 4], [1, 3, 4], [1, 3]], "who is finished leaves"


def test_new_problems_enter_where_others_left() -> None:
    work = Timed([3], [20], [8], [NEVER], [9])
    found = think_through(work, max_steps=24, places=2)
    assert found.steps.tolist() == [3, 20, 8, 24, 9]
    present = [[number for number, _ in here] for here in work.here]
    assert present == [[0, 1], [1, 2], [1, 3], [3, 4], [3, 4]]


def test_the_last_stride_ends_with_the_last_step() -> None:
    work = Timed([NEVER], [STRIDE + 2])
    found = think_through(work, max_steps=STRIDE + 3)
    assert found.steps.tolist() == [STRIDE + 3, STRIDE + 2]


def test_what_the_clean_start_does_not_finish_is_begun_again() -> None:
    work, done = Timed([5, 1, 1], [NEVER, 12, NEVER], [NEVER, NEVER, NEVER]), []
    found = think_through(work, max_steps=16, starts=3, places=1, progress=done.append)
    assert found.finished.tolist() == [True, True, False]
    assert found.starts.tolist() == [1, 2, 3]
    assert found.answers == [(0, 1, 5), (1, 2, 12), (2, 1, 16)]
    assert found.first_answers == [(0, 1, 5), (1, 1, 16), (2, 1, 16)]
    assert sum(done) == 3
    assert not any(number == 0 and start > 1 for here in work.here for number, start in here)


def test_a_start_that_finishes_sends_the_others_home() -> None:
    work = Timed([NEVER, NEVER, 2])
    found = think_through(work, max_steps=32, starts=3)
    assert (found.starts.tolist(), found.steps.tolist()) == ([3], [2])
    assert work.here == 4 * [[(0, 1)]] + [[(0, 2), (0, 3)]], "further starts stand side by side"


def test_noise_comes_in_the_first_half_of_further_starts() -> None:
    work = Timed([NEVER, NEVER])
    think_through(work, max_steps=4 * NOISE_EVERY, starts=2, noise=0.5)
    assert [(age, n) for _, age, n in work.doses if n] == [(0, 0.5), (NOISE_EVERY, 0.5)]
    work = Timed([NEVER, NEVER])
    think_through(work, max_steps=4 * NOISE_EVERY, starts=2, noise=0.0)
    assert work.doses == []


@pytest.mark.parametrize("name", ["max_steps", "starts", "places"])
def test_numbers_below_one_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: expected at least 1, got 0"):
        think_through(Timed([1]), **{"max_steps": 4, name: 0})


def test_nothing_to_think_about() -> None:
    found = think_through(Timed(), max_steps=4)
    assert (found.answers, found.steps.tolist()) == ([], [])


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


def by_hand(answers: Tensor, until: Settled | Converged, steps: int) -> tuple[bool, int, float]:
    """Of one graph, from the answers before the first step and after each: whether, when, and the last residual."""
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
def test_thinking_stops_each_graph_where_a_plain_run_would(until: Settled | Converged, readout: str) -> None:
    made, (x, edges, edge_attr, batch) = network(readout=readout), mixed_graphs()
    thought = made.think(x, edges, edge_attr, batch, until=until, max_steps=13)
    given = made.prepare(x, edges, edge_attr, batch)
    with torch.no_grad():
        before = made.read(given, made.initial_state(given))
        answers = torch.cat([before[None], made(given, steps=13)])
    row_of = {"node": batch, "graph": torch.arange(5), "edge": batch[edges[1]]}[readout]
    expected = []
    for graph in range(5):
        mine = answers[:, row_of == graph]
        if mine.numel():
            finished, steps, residual = by_hand(mine, until, 13)
        else:  # no edge, no answer, nothing that changes
            finished, steps, residual = True, until.steps if isinstance(until, Settled) else 1, 0.0
        assert (bool(thought.finished[graph]), int(thought.steps[graph])) == (finished, steps), graph
        assert float(thought.residuals[graph]) == pytest.approx(residual, rel=1e-6, abs=1e-9)
        expected.append(mine[steps])
    torch.testing.assert_close(thought.answers, torch.cat(expected))
    assert thought.starts.tolist() == [1] * 5
    assert len(set(thought.steps.tolist())) > 1, "all stop at once: this tests little"


def test_answers_about_edges_are_told_from_answers_about_nodes() -> None:
    """A ring has as many edges as nodes; those of two rings may stand in any order."""
    edges = torch.tensor([[3, 0, 4, 1, 5, 2], [4, 1, 5, 2, 3, 0]])
    made, x, batch = network(readout="edge"), torch.randn(6, 4).double(), torch.tensor([0, 0, 0, 1, 1, 1])
    edge_attr = torch.randn(6, 2).double()
    thought = made.think(x, edges, edge_attr, batch, until=lambda answer, graph: False, max_steps=3)
    answers = made(x, edges, edge_attr, batch, steps=3)[-1]
    torch.testing.assert_close(thought.answers, answers[[1, 3, 5, 0, 2, 4]])


def test_a_check_of_your_own_accepts_answers() -> None:
    made, (x, edges, edge_attr, batch) = network(), mixed_graphs()
    answers = made(x, edges, edge_attr, batch, steps=20)
    wanted = [int(answers[8, batch == graph][0].argmax()) for graph in range(5)]
    asked = []

    def check(answer: Tensor, graph: int) -> bool:
        asked.append(graph)
        assert len(answer) == int((batch == graph).sum())
        return graph != 2 and int(answer[0].argmax()) == wanted[graph]

    thought = made.think(x, edges, edge_attr, batch, until=check, max_steps=20)
    assert set(asked) == set(range(5))
    for graph in range(5):
        said = answers[:, batch == graph][:, 0].argmax(-1).tolist()
        first = 20 if graph == 2 else said.index(wanted[graph]) + 1
        assert int(thought.steps[graph]) == first
        torch.testing.assert_close(thought.answers[batch == graph], answers[first - 1, batch == graph])
    assert thought.finished.tolist() == [True, True, False, True, True]


def test_one_logit_is_a_yes_or_a_no() -> None:
    torch.manual_seed(8)
    made = RRN(4, 8, 1, update="gru").double()
    x, edges, _, batch = mixed_graphs()
    thought = made.think(x, edges, None, batch, until=Settled(2), max_steps=12)
    given = made.prepare(x, edges, None, batch)
    said = torch.cat([made.read(given, made.initial_state(given))[None], made(x, edges, None, batch, steps=12)]) > 0
    for graph in range(5):
        same = (said[1:] == said[:-1])[:, batch == graph].flatten(1).all(1).tolist()
        first = next(step for step in range(2, 13) if same[step - 2] and same[step - 1])
        assert int(thought.steps[graph]) == first


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
def test_layouts_that_know_their_graphs_need_no_batch(graph: Graph) -> None:
    made, x = network(readout="graph"), torch.randn(graph.num_nodes, 4).double()
    edge_attr = torch.randn(*graph.edge_shape, 2).double()
    thought = made.think(x, graph, edge_attr, until=Converged(0.005), max_steps=24)
    answers = made(x, graph, edge_attr, steps=24)
    assert thought.answers.shape == (3, 3)
    for number, steps in enumerate(thought.steps.tolist()):
        torch.testing.assert_close(thought.answers[number], answers[steps - 1, number])
    assert len(set(thought.steps.tolist())) > 1, "all stop at once: this tests little"


class Stay(Update):
    """Nothing happens unless there is noise. What it got is written down."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[list[float]] = []

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        return state

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        self.got.append(noise.flatten().tolist())
        return super().add_noise(state, noise, generator)


class Total(Readout):
    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Outputs:
        return Outputs(graph.sum_nodes(h, batch), {"all": h})


def stubborn() -> RRN:
    return RRN(2, 2, encoder_layers=None, message_layers=1, update=Stay(), readout=Total())


X, EDGES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]), torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize("batch", [torch.tensor([0, 0, 1]), None], ids=["two graphs", "one graph"])
def test_starts_from_noise_end_differently(batch: Tensor | None) -> None:
    """Two of them side by side, each an own graph: the sum of one has nothing of the other's."""
    made, seen = stubborn(), []

    def check(answer: Tensor, graph: int) -> bool:
        seen.append((graph, tuple(answer[0].tolist())))
        return False

    thought = made.think(X, EDGES, batch=batch, until=check, max_steps=8, starts=3, noise=0.01)
    graphs = 1 if batch is None else 2
    assert thought.finished.tolist() == [False] * graphs
    assert thought.starts.tolist() == [3] * graphs
    clean = [(3.0, 3.0)] if batch is None else [(1.0, 1.0), (2.0, 2.0)]
    assert thought.answers.tolist() == [list(answer) for answer in clean], "that of the clean start"
    for graph, expected in enumerate(clean):
        found = {answer for number, answer in seen if number == graph}
        assert len(found) == 3, "the clean start and two others"
        assert all(answer == pytest.approx(expected, abs=0.1) for answer in found)
    assert [n for amounts in made.update.got for n in amounts] == [pytest.approx(0.01)] * (2 * 3)


def test_the_start_that_is_accepted_counts() -> None:
    def check(answer: Tensor, graph: int) -> bool:
        return graph == 1 or float(answer[0, 0]) > 1.05

    found = [
        stubborn().think(
            X,
            EDGES,
            batch=torch.tensor([0, 0, 1]),
            until=check,
            max_steps=8,
            starts=50,
            noise=0.1,
            generator=torch.Generator().manual_seed(1),
        )
        for _ in range(2)
    ]
    thought = found[0]
    assert thought.finished.tolist() == [True, True]
    assert int(thought.starts[0]) > 1
    assert int(thought.starts[1]) == 1
    assert float(thought.answers[0, 0]) > 1.05
    assert thought.answers[1].tolist() == [2, 2]
    assert torch.equal(thought.answers, found[1].answers), "the same noise from the same generator"


def test_who_watches_sees_every_stride() -> None:
    made, (x, edges, edge_attr, batch) = network(), mixed_graphs()
    seen: list[tuple[list[int], int]] = []

    def watch(places: Places, outputs: object) -> None:
        assert isinstance(outputs, Tensor)
        seen.append((places.numbers.tolist(), len(outputs)))

    made.think(x, edges, edge_attr, batch, until=lambda answer, graph: graph % 2 == 0, max_steps=12, watch=watch)
    assert seen == [([0, 1, 2, 3, 4], STRIDE), ([1, 3], 12 - STRIDE)]


def test_thinking_keeps_no_gradients_and_takes_prepared_input() -> None:
    made, (x, edges, edge_attr, batch) = network(), mixed_graphs()
    thought = made.think(made.prepare(x, edges, edge_attr, batch), max_steps=4)
    assert not thought.answers.requires_grad
    torch.testing.assert_close(thought.answers, made.think(x, edges, edge_attr, batch, max_steps=4).answers)


def test_a_network_on_groups_thinks() -> None:
    torch.manual_seed(2)
    parts = {"message": GroupMessage(2, 4), "update": SharedLayerUpdate(6, 8, 12), "readout": DotReadout(6)}
    made = RRN(1, 8, encoder_layers=None, **parts)
    graph = Groups(torch.randint(3, (14, 2)), (3, 3), torch.tensor([5, 6, 14]))
    x = torch.ones(14, 1)
    thought = made.think(x, graph, until=Converged(0.02), max_steps=40)
    answers = made(x, graph, steps=40)
    for number, steps in enumerate(thought.steps.tolist()):
        mine = graph.graph_of_node() == number
        torch.testing.assert_close(thought.answers[mine], answers[steps - 1, mine], atol=1e-4, rtol=1e-4)
