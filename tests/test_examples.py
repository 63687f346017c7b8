"""The examples, trained for seconds instead of minutes: what they claim shows already."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from examples import algorithms, graph_colouring, latin_squares, mazes, queens, shortest_paths, sudoku_sizes, timetable

from rrn import RRN
from rrn.constraints import Solver
from rrn.inference.candidates import make_network
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.weights import from_pretrained

RESULTS = Path(__file__).parent.parent / "results"


def test_more_steps_answer_longer_paths(tmp_path: Path) -> None:
    network = shortest_paths.train(200, batch_size=8, seed=1)
    accuracy = shortest_paths.evaluate(network, graphs=20, nodes=100, steps=[8, 32])
    assert accuracy["8 steps"]["0-8"] > 0.9
    assert accuracy["8 steps"]["17-32"] < 0.7
    assert accuracy["32 steps"]["17-32"] > 0.85
    shortest_paths.view(network, tmp_path / "thinking.svg")
    assert "step 6" in (tmp_path / "thinking.svg").read_text()


def test_every_example_that_trains_uses_one_thread_when_it_is_run() -> None:
    for path in (Path(__file__).parent.parent / "examples").glob("*.py"):
        text, _, block = path.read_text().partition('if __name__ == "__main__":')
        trains = ".backward()" in text or ".fit(" in text
        assert not block or not trains or "torch.set_num_threads(1)" in block + text, path.name


def test_distances_by_hand() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    path = torch.tensor([[0, 1, 2, 2], [1, 2, 3, 4]])
    far = shortest_paths.distances(x, torch.cat([path, path.flip(0)], dim=1))
    assert far.tolist() == [[0, 3], [1, 2], [2, 1], [3, 0], [3, 2]]
    assert shortest_paths.answers(far).tolist() == [0, 0, 1, 1, 1]


def test_small_mazes_are_learned_and_need_several_steps() -> None:
    network, rng = mazes.train(updates=250, most_rooms=2), random.Random(1)
    inputs, batch, path = mazes.join([mazes.draw_problem(4, 0.1, (4, 12), rng) for _ in range(60)])
    with torch.inference_mode():
        outputs = network(*inputs, steps=30)
    few, many = (mazes.all_right(outputs[step], batch, path).float().mean() for step in (7, -1))
    assert few < 0.1
    assert many > 0.8


def test_breadth_first_search_by_hand_and_learned() -> None:
    x = torch.tensor([[0.0, 0.0], [0.2, 0.0], [0.4, 1.0], [0.6, 0.0], [0.8, 0.0]])
    edges = torch.tensor([[2, 2, 1, 3, 0], [1, 3, 0, 0, 4]])
    edge_index = torch.cat([edges, edges.flip(0), torch.arange(5).expand(2, -1)], dim=1)
    target, steps = algorithms.breadth_first(x, edge_index)
    assert target.tolist() == [1, 2, 2, 2, 0]
    assert steps == 3
    network = algorithms.train(120, batch_size=8)
    assert algorithms.evaluate(network, graphs=10, nodes=16) > 0.7


def test_colouring_is_learned_without_labels() -> None:
    torch.manual_seed(0)
    untrained = graph_colouring.evaluate(RRN(graph_colouring.NOISE, 48, 3), graphs=50, nodes=12, steps=32, tries=4)
    network = graph_colouring.train(120, steps=8, batch_size=8)
    trained = graph_colouring.evaluate(network, graphs=50, nodes=12, steps=32, tries=4)
    assert trained[-1] > max(0.25, 2 * untrained[-1])


def test_graphs_to_colour_can_be_coloured_and_have_both_directions() -> None:
    generator = torch.Generator().manual_seed(0)
    _, edge_index = graph_colouring.random_graph(12, generator)
    assert edge_index.shape == (2, 48)
    pairs = set(map(tuple, edge_index.T.tolist()))
    assert {(b, a) for a, b in pairs} == pairs
    assert all(a != b for a, b in pairs)


def test_digits_are_read_and_sudokus_solved_without_a_label_of_an_image() -> None:
    digit_sudoku = pytest.importorskip("examples.digit_sudoku")
    network = digit_sudoku.train(300, steps=3, batch_size=24, extra=range(6, 10))
    assert digit_sudoku.evaluate(network, count=500, extra=9)["solved"] > 0.4


def test_test_images_and_test_solutions_are_never_trained_on() -> None:
    digit_sudoku = pytest.importorskip("examples.digit_sudoku")
    for training, testing in zip(digit_sudoku.load_images(False), digit_sudoku.load_images(True), strict=True):
        assert len(testing) > 30
        assert len(training) > 3 * len(testing)
    (_, training), (_, testing) = (
        digit_sudoku.make_puzzles(400, 0, test, seed) for test, seed in [(False, 0), (True, 1)]
    )
    assert len(testing) > 50
    assert not set(map(tuple, training.tolist())) & set(map(tuple, testing.tolist()))


def test_latin_squares_are_learned_and_read_as_sudokus() -> None:
    solver = latin_squares.train(150, sizes=(4, 5))
    problems = latin_squares.unseen(5, 30)
    assert solver.solve(problems).solved.mean() > 0.8
    for problem in problems:
        same = latin_squares.as_sudoku(problem, 5)
        assert same.open.tolist() == problem.open.tolist()
        assert same.count_solutions() == 1


def test_queens_are_learned_and_mirror_images_are_kept_apart() -> None:
    solver = queens.train(200, sizes=(7, 8))
    rng = np.random.default_rng(1)
    problems = [queens.draw(8, rng, testing=True) for _ in range(40)]
    untrained = Solver(make_network(4), solver.group_types).solve(problems, attempts=1).solved.mean()
    assert solver.solve(problems, attempts=1).solved.mean() >= max(untrained, 0.9)
    for problem in problems[:5]:
        assert problem.answer is not None
        for image in (problem.answer.reshape(8, 8)[::-1], np.rot90(problem.answer.reshape(8, 8))):
            of_image = queens.queens(8).problem(answer=[(int(r), int(c)) for r, c in np.argwhere(image)])
            assert queens.for_testing(of_image, 8)


def test_timetables_are_learned_for_schools_that_were_never_seen() -> None:
    solver = timetable.train(150, classes=3, slots=4)
    rng = np.random.default_rng(1)
    problems = [timetable.school(3, 4, rng) for _ in range(30)]
    assert all(problem.count_solutions() == 1 for problem in problems)
    assert solver.solve(problems).solved.mean() > 0.8


def test_weights_trained_on_nine_by_nine_solve_four_by_four() -> None:
    network = from_pretrained("sudoku")
    puzzles, solutions = generate(20, np.random.default_rng(0), box=(2, 2))
    first, cells = sudoku_sizes.solved_by_step(network, puzzles, solutions, (2, 2), steps=16)
    assert (first <= 16).mean() > 0.9
    assert first.min() >= 1
    assert 0.9 < cells.mean() <= 1


def test_published_results_hold_what_the_guide_claims() -> None:
    examples = json.loads((RESULTS / "examples.json").read_text())
    assert {"latin_squares", "queens", "timetable"} <= set(examples)
    assert {"graph_colouring", "shortest_paths", "digit_sudoku"} <= set(examples)
    assert all(example["processor_minutes"] < 3 for example in examples.values())
    for constraints in ("latin_squares", "queens", "timetable"):
        for kind in examples[constraints]["result"].values():
            assert kind["solved_by_attempts"][-1] >= 0.95
    for square in examples["latin_squares"]["result"].values():
        assert square["sudoku_weights_untrained"]["solved_by_attempts"][-1] >= 0.95
    assert examples["digit_sudoku"]["result"]["0 extra givens"]["solved"] >= 0.95
    assert examples["graph_colouring"]["result"]["graphs_of_40_8_tries"] > 0.9
    assert examples["shortest_paths"]["result"]["32 steps"]["17-32"] > 0.99
    sizes = json.loads((RESULTS / "sudoku_sizes.json").read_text())["sizes"]
    assert set(sizes) == {"4x4", "6x6", "9x9", "16x16"}
