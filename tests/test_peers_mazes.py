"""Mazes of our own making, and the measurement of the kept weights on a file."""

import json
import random
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from benchmarks.peers import mazes, page
from examples.mazes import GOAL, START, as_graph, draw_problem, search_steps


@pytest.mark.parametrize("loops", [0.0, 0.3])
def test_the_path_is_the_only_shortest_one(loops: float) -> None:
    rng = random.Random(0)
    for _ in range(20):
        cells, path = draw_problem(5, loops, (3, 40), rng)
        x, edge_index = as_graph(cells)
        graph = nx.Graph(edge_index.T.tolist())
        start, goal = (int(x[:, column].argmax()) for column in (0, 1))
        (only,) = nx.all_shortest_paths(graph, start, goal)
        assert sorted(only) == np.flatnonzero(path[cells > 0]).tolist()
        assert nx.is_connected(graph)
        assert nx.is_tree(graph) == (len(graph.edges) == len(graph) - 1)
        assert (loops > 0) or nx.is_tree(graph)
        assert mazes.is_path(cells, path)
        if not loops:
            assert (mazes.fill_dead_ends(cells) == path).all()


def test_what_breadth_first_search_knows_at_each_step() -> None:
    cells = np.array([[0, 0, 0, 0, 0], [1, START, 1, GOAL, 0], [0, 0, 1, 0, 0]], dtype=np.uint8)
    path = np.isin(cells, (START, GOAL)) | (np.indices(cells.shape) == np.array([1, 2])[:, None, None]).all(0)
    assert as_graph(cells)[0].tolist() == [[0, 0], [1, 0], [0, 0], [0, 1], [0, 0]]
    by_step = search_steps(cells, path, range(8)).tolist()  # left, start, middle, goal, below the middle
    assert by_step[0] == [0, 0, 0, 0, 0]
    assert by_step[1] == [0, 1, 0, 0, 0]
    assert by_step[2] == [2, 1, 2, 0, 0]
    assert by_step[3] == [2, 1, 2, 3, 3]
    assert by_step[4] == [2, 1, 2, 6, 3]
    assert by_step[5] == [2, 1, 5, 6, 3]
    assert by_step[6] == by_step[7] == [2, 4, 5, 6, 3]


def test_half_a_path_is_no_path() -> None:
    cells = np.array([[START, 1, 1, GOAL]], dtype=np.uint8)
    assert mazes.is_path(cells, np.array([[True, True, True, True]]))
    assert not mazes.is_path(cells, np.array([[True, True, False, True]]))
    assert not mazes.is_path(cells, np.array([[False, True, True, True]]))


def test_the_command_measures_another_file(tmp_path: Path) -> None:
    rng = random.Random(5)
    problems = [draw_problem(8, 0.1, (10, 60), rng) for _ in range(12)]
    cells, paths = (np.stack(part) for part in zip(*problems, strict=True))
    np.savez(tmp_path / "few.npz", cells=cells, path=paths)
    command = [sys.executable, "-m", "benchmarks.peers", "mazes", "--data", str(tmp_path / "few.npz"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    result = json.loads(done.stdout)
    assert result["few"]["n"] == 12
    assert result["few"]["exact_think"] == 1
    assert result["few"]["exact_at_step"]["512"] == 1


def test_the_table_has_a_row_for_each_set_and_the_published_ones() -> None:
    row = {"exact_at_step": {"128": 0.5, "256": 1.0}, "exact_think": 0.995, "filling_dead_ends": 1.0, "n": 1000}
    about = {"cells_of_training_mazes": 13, "processor_minutes": 12.5, "parameters": 12345}
    lines = page.mazes({"maze_unique_test": row | {"trained": about}, "date": "today"}).splitlines()
    assert len(lines) == 2 + 1 + len(page.PUBLISHED_MAZES)
    assert lines[2].startswith("| **ours**, maze unique test | **99.5** | 50.0 | 100.0 | 100.0 | 12,345 |")
