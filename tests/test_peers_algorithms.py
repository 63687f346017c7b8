"""Graphs of SALSA-CLRS, their measurement, and the baselines; the files are made here."""

from pathlib import Path

import numpy as np
import pytest
import torch
from examples.algorithms import breadth_first, random_graph

from rrn import InputError

pytest.importorskip("torch_geometric")

from benchmarks.peers import algorithms, page
from benchmarks.peers.baselines import KINDS, Baseline
from benchmarks.peers.salsa import Salsa


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
    import random

    data = Salsa(write(tmp_path / "bfs_test.npz", (9, 9)))
    drawn = data.batch([0, 1], redraw=1.0, rng=random.Random(0)).x[:, 0].view(2, 9)
    assert (drawn.diff(dim=1) > 0).all()
    assert not torch.equal(drawn[0], data.batch([0]).x[:, 0])


def test_each_graph_is_read_at_its_own_number_of_steps(tmp_path: Path) -> None:
    torch.manual_seed(0)
    data = Salsa(write(tmp_path / "bfs_test.npz", (4, 16, 12)))
    network = algorithms.make_network("bfs", hidden=8).eval()
    with torch.inference_mode():
        together = algorithms.at_length(network, data.batch([0, 1, 2]), edges=True)
        apart = [network(*data.batch([row])[:4], steps=int(data.length[row]))[-1] for row in range(3)]
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
