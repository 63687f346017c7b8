"""Graphs of SALSA-CLRS, their measurement, and the baselines; the files are made here."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from examples.algorithms import breadth_first, random_graph

from rrn import InputError
from rrn.nn.updates import State

pytest.importorskip("torch_geometric")

from benchmarks.peers import algorithms, page, recipes, steps, validation
from benchmarks.peers.baselines import KINDS, Baseline
from benchmarks.peers.salsa import ALGORITHMS, Batch, Salsa

WEIGHTS = np.random.default_rng(0).uniform(0.1, 0.9, 100_000)
"""So many that no two edges of a graph have the same one: with equal weights an answer is not unique."""


def write(path: Path, sizes: tuple[int, ...], seed: int = 0, weights: bool = False) -> Path:
    """A file of breadth-first searches as SALSA-CLRS has it."""
    generator = torch.Generator().manual_seed(seed)
    graphs = [random_graph(size, generator) for size in sizes]
    answers = [breadth_first(x, edge_index) for x, edge_index, _ in graphs]
    arrays = {
        "node_ptr": np.cumsum([0, *sizes]),
        "edge_ptr": np.cumsum([0, *(edge_index.shape[1] for _, edge_index, _ in graphs)]),
        "edge_index": np.concatenate([edge_index.numpy() for _, edge_index, _ in graphs], axis=1).astype(np.uint16),
        "pos": np.concatenate([np.arange(size, dtype=np.float32) / size for size in sizes]),
        "s": np.concatenate([x[:, 1].numpy().astype(np.uint8) for x, _, _ in graphs]),
        "pi": np.concatenate([target.numpy().astype(np.uint16) for target, _ in answers]),
        "length": np.array([steps + 1 for _, steps in answers]),
    }
    if weights:
        arrays["A"] = np.linspace(0, 1, arrays["edge_index"].shape[1], dtype=np.float32)
    np.savez(path, **arrays)
    return path


def test_graphs_are_joined_with_their_answers(tmp_path: Path) -> None:
    data = Salsa(write(tmp_path / "bfs_test.npz", (5, 9, 7), weights=True))
    graphs = data.batch([2, 0])
    assert graphs.batch.tolist() == [0] * 7 + [1] * 5
    assert graphs.edge_attr.shape == (graphs.edge_index.shape[1], 2)
    assert (graphs.batch[graphs.answer] == graphs.batch).all()
    alone = data.batch([0])
    assert torch.equal(graphs.answer[7:], alone.answer + 7)
    pairs = set(map(tuple, graphs.edge_index.T.tolist()))
    assert {(node, int(to)) for node, to in enumerate(graphs.answer)} <= pairs


def test_redrawn_positions_keep_their_order(tmp_path: Path) -> None:
    data = Salsa(write(tmp_path / "bfs_test.npz", (9, 9)))
    drawn = data.batch([0, 1], redraw=1.0, rng=random.Random(0)).x[:, 0].view(2, 9)
    assert (drawn.diff(dim=1) > 0).all()
    assert not torch.equal(drawn[0], data.batch([0]).x[:, 0])


def test_each_graph_is_read_at_its_own_number_of_steps(tmp_path: Path) -> None:
    torch.manual_seed(0)
    data = Salsa(write(tmp_path / "bfs_test.npz", (4, 16, 12)))
    network = algorithms.make_network("bfs", hidden=8).eval()
    with torch.inference_mode():
        together = algorithms.at_length(network, "bfs", data.batch([0, 1, 2]))
        inputs = [algorithms.inputs(data.batch([row]), "bfs") for row in range(3)]
        apart = [network(*inputs[row], steps=int(data.length[row]))[-1] for row in range(3)]
    torch.testing.assert_close(together, torch.cat(apart))


@pytest.mark.parametrize("kind", KINDS)
def test_baselines_run_for_exactly_the_given_steps_and_load_without_pickle(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    data = Salsa(write(tmp_path / "bfs_test.npz", (4, 16)))
    for pointers in (True, False):
        model = Baseline(kind, 1, pointers).eval()
        model.save(tmp_path / kind)
        with torch.inference_mode():
            together = Baseline.load(tmp_path / kind)(data.batch([0, 1]))
            apart = torch.cat([model(data.batch([row])) for row in (0, 1)])
        torch.testing.assert_close(together, apart)


def test_accuracy_by_node_and_by_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Salsa(write(tmp_path / "bfs_test.npz", (4, 8)))

    def one_wrong(model: object, algorithm: str, graphs: algorithms.Batch, given: bool) -> tuple[object, object]:
        answer = graphs.answer.clone()
        answer[0] = -1
        return answer, graphs.length

    monkeypatch.setattr(algorithms, "predict", one_wrong)
    measured = algorithms.accuracy(torch.nn.Identity(), "bfs", data, given=True)
    assert measured["node_accuracy"] == pytest.approx((0.75 + 1) / 2)
    assert measured["graph_accuracy"] == 0.5
    assert measured["n"] == 2


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "bfs_test.npz", cells=np.zeros(3))
    with pytest.raises(InputError, match="not a file of SALSA-CLRS"):
        Salsa(tmp_path / "bfs_test.npz")


def test_the_table_averages_over_graph_families() -> None:
    splits = {f"{family}_160": {"node_accuracy": value} for family, value in (("er", 0.9), ("ws", 1.0))}
    row = {"parameters": 1000, "processor_minutes": 10.0, "given": splits, "think": {}}
    lines = page.algorithms({"algorithms": {"bfs": {"bfs_rrn": row}}}).splitlines()
    assert lines[0].startswith("| network | steps | BFS, 160 | BFS, 1,600 | Dijkstra, 160 |")
    assert lines[2] == "| rrn | given | 95.0 | – | – | – | – | – | – | – |"
    assert len(lines) == 3


def path_graph(weights: list[float]) -> Batch:
    """Nodes 0 – 1 – 2 – …, from which the start is node 0."""
    count = len(weights)
    ends = torch.stack([torch.arange(count), torch.arange(1, count + 1)])
    loops = torch.arange(count + 1).expand(2, -1)
    edge_index = torch.cat([ends, ends.flip(0), loops], dim=1)
    edge_attr = torch.stack(
        [(edge_index[0] == edge_index[1]).float(), torch.tensor([*weights * 2, *[1.0] * (count + 1)])]
    )
    x = torch.stack([torch.arange(count + 1) / (count + 1), (torch.arange(count + 1) == 0).float()], dim=1)
    batch, length = torch.zeros(count + 1, dtype=torch.long), torch.tensor([count + 1])
    return Batch(x, edge_index, edge_attr.T, batch, length, torch.arange(count + 1))


def test_what_is_known_after_each_step_of_a_path_by_hand() -> None:
    graphs = path_graph([0.5, 0.25, 1.0])
    search = steps.breadth_first(graphs, range(1, 4))
    assert search.pointers is not None
    assert search.pointers.tolist() == [[0, 0, 2, 3], [0, 0, 1, 3], [0, 0, 1, 2]]
    assert search.classes is not None
    assert search.classes.tolist() == [[1, 2, 0, 0], [1, 2, 3, 0], [1, 2, 3, 1]]
    relaxed = steps.dijkstra(graphs, range(1, 3))
    assert relaxed.pointers is not None
    assert relaxed.pointers.tolist() == [[0, 0, 1, 3], [0, 0, 1, 2]]
    assert relaxed.numbers is not None
    assert relaxed.numbers.nan_to_num(-1).tolist() == [[0, 0.5, -1, -1], [0, 0.5, 0.75, -1]]
    reached = steps.eccentricity(graphs, range(1, 3)).classes
    assert reached is not None
    assert reached.tolist() == [[1, 1, 0, 0], [1, 1, 1, 0]]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_validation_graphs_have_the_answers_that_the_last_step_knows(algorithm: str, tmp_path: Path) -> None:
    weights = None if algorithm in ("bfs", "eccentricity") else WEIGHTS
    for family in ("er", "ws", "delaunay"):
        path = tmp_path / f"{algorithm}_val_{family}_24.npz"
        validation.write(path, algorithm, family, 24, 3, weights)
        graphs = Salsa(path).batch([0, 1, 2])
        known = steps.KNOWN[algorithm](graphs, range(1, 26))
        if algorithm == "eccentricity":
            assert known.classes is not None
            assert (1 - known.classes).amax(1).sum() + 1 == graphs.answer.max()
        else:
            assert known.pointers is not None
            assert torch.equal(known.pointers[-1], graphs.answer)


def test_thinned_graphs_stay_connected_and_lose_edges_in_both_directions(tmp_path: Path) -> None:
    data = Salsa(write(tmp_path / "bfs_test.npz", (9, 16, 12), weights=True))
    graphs = data.batch([0, 1, 2])
    for seed in range(5):
        thinned = recipes.thin(graphs, random.Random(seed))
        pairs = set(map(tuple, thinned.edge_index.T.tolist()))
        assert pairs <= set(map(tuple, graphs.edge_index.T.tolist()))
        assert pairs == {(b, a) for a, b in pairs}
        assert thinned.edge_attr.shape == (thinned.edge_index.shape[1], 2)
        assert ((thinned.edge_index[0] == thinned.edge_index[1]).float() == thinned.edge_attr[:, 0]).all()
        assert (steps.depths(thinned) <= 16).all()
        assert torch.zeros(3).index_add(0, graphs.batch, thinned.x[:, 1]).tolist() == [1, 1, 1]
    assert len(pairs) < graphs.edge_index.shape[1]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_recipe_gives_a_loss_with_gradients(algorithm: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    weights = None if algorithm in ("bfs", "eccentricity") else WEIGHTS
    validation.write(tmp_path / "few.npz", algorithm, "er", 12, 4, weights)
    graphs = Salsa(tmp_path / "few.npz").batch([0, 1, 2, 3])
    network = algorithms.make_network(algorithm, hidden=8)
    for seed in range(4):
        network.zero_grad()
        loss = recipes.loss(network, algorithm, graphs, random.Random(seed))
        loss.backward()
        assert loss.isfinite()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_the_spanning_tree_stays_if_weights_are_replaced_in_the_same_order(tmp_path: Path) -> None:
    validation.write(tmp_path / "few.npz", "mst_prim", "er", 14, 3, WEIGHTS)
    graphs = Salsa(tmp_path / "few.npz").batch([0, 1, 2])
    replaced = recipes.respread(graphs, random.Random(0))
    assert not torch.equal(replaced.edge_attr, graphs.edge_attr)
    assert torch.equal(replaced.edge_attr[:, 0], graphs.edge_attr[:, 0])
    known = steps.prim(replaced, range(1, 15))
    assert known.pointers is not None
    assert torch.equal(known.pointers[-1], graphs.answer)


def test_prim_joins_one_node_of_each_graph_in_each_step(tmp_path: Path) -> None:
    validation.write(tmp_path / "few.npz", "mst_prim", "er", 12, 3, WEIGHTS)
    graphs = Salsa(tmp_path / "few.npz").batch([0, 1, 2])
    classes = steps.prim(graphs, range(14)).classes
    assert classes is not None
    assert classes.sum(1).tolist() == [3 * min(step, 12) for step in range(14)]
    assert (classes[1] > 0).equal(graphs.x[:, 1] > 0)


def test_scores_are_compared_within_each_graph(tmp_path: Path) -> None:
    torch.manual_seed(0)
    validation.write(tmp_path / "few.npz", "mst_prim", "er", 12, 3, WEIGHTS)
    data = Salsa(tmp_path / "few.npz")
    network = algorithms.make_network("mst_prim", hidden=8).eval()
    with torch.inference_mode():
        together = network(*algorithms.inputs(data.batch([2, 0, 1]), "mst_prim"), steps=5)
        apart = [network(*algorithms.inputs(data.batch([row]), "mst_prim"), steps=5) for row in (2, 0, 1)]
    torch.testing.assert_close(together, torch.cat(apart, dim=1))


def test_the_pointer_of_the_step_in_which_a_node_joins_is_kept() -> None:
    edge_index = torch.tensor([[0, 0, 1, 1, 1, 2, 2], [0, 1, 0, 1, 2, 1, 2]])
    outputs = torch.zeros(3, 7, 3)
    loops = torch.nonzero(edge_index[0] == edge_index[1]).flatten()
    outputs[:, loops, 2] = torch.tensor([[1.0, -1.0, -1.0], [1.0, 1.0, -1.0], [1.0, 1.0, -1.0]])  # in the tree
    outputs[0, [0, 3, 6], 0] = 1.0  # each node points to itself
    outputs[1, [1, 2, 5], 0] = 1.0  # 0 → 1, 1 → 0, 2 → 1
    outputs[2, [1, 4, 6], 0] = 1.0  # 0 → 1, 1 → 2, 2 → 2
    tree = algorithms.Tree(edge_index, 3)
    assert tree.update(outputs[:1]).tolist() == [0, 1, 2]
    assert tree.update(outputs[1:]).tolist() == [0, 0, 2]
    assert tree.joined.tolist() == [True, True, False]


def test_a_partial_measurement_keeps_what_was_not_measured() -> None:
    known = {
        "bfs": {
            "bfs_rrn": {"seed": 0, "given": {"er_16": 1, "er_80": 2}},
            "bfs_gin": {"seed": 0, "given": {"er_16": 3}},
        },
        "dijkstra": {"dijkstra_rrn": {"seed": 0, "given": {"er_16": 4}}},
    }
    results = {"bfs": {"bfs_rrn": {"seed": 0, "given": {"er_80": 5}}}}
    algorithms.keep_unmeasured(results, known)
    assert results["bfs"]["bfs_rrn"]["given"] == {"er_16": 1, "er_80": 5}
    assert results["bfs"]["bfs_gin"] == known["bfs"]["bfs_gin"]
    assert results["dijkstra"] == known["dijkstra"]
    retrained = {"bfs": {"bfs_rrn": {"seed": 0, "updates": 7, "given": {"er_80": 5}}}}
    algorithms.keep_unmeasured(retrained, known)
    assert retrained["bfs"]["bfs_rrn"]["given"] == {"er_80": 5}


class Flood:
    """Stands for a trained network: after t steps the nodes within t edges of the start are reached."""

    def __init__(self, graphs: Batch) -> None:
        self.depth = steps.depths(graphs)

    def prepare(self, *inputs: torch.Tensor) -> None:
        return None

    def initial_state(self, prepared: None) -> State:
        return State(torch.zeros(1, 1))

    def run(self, prepared: None, steps: int, state: State) -> tuple[torch.Tensor, State]:
        done = int(state.h)
        reached = torch.arange(done + 1, done + steps + 1)[:, None] >= self.depth
        return torch.stack([~reached, reached], dim=-1).float(), State(state.h + steps)


def test_the_eccentricity_is_the_number_of_steps_that_reach_a_node(tmp_path: Path) -> None:
    validation.write(tmp_path / "few.npz", "eccentricity", "delaunay", 40, 4, None)
    graphs = Salsa(tmp_path / "few.npz").batch([0, 1, 2, 3])
    assert len(set(graphs.answer.tolist())) > 1
    flood = Flood(graphs)
    assert torch.equal(algorithms.at_length(flood, "eccentricity", graphs)[:, 0], graphs.answer)  # type: ignore[arg-type]
    until, outputs = algorithms.Unchanged("eccentricity", graphs), flood.run(None, 40, State(torch.zeros(1, 1)))[0]
    for number in range(4):
        stopped = [until(output[graphs.batch == number], number) for output in outputs]
        assert stopped.index(True) + 1 == graphs.answer[number] + until.steps
    assert torch.equal(until.changes, graphs.answer.float())
