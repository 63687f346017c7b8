"""Digits that contradict each other are read again."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from rrn.tasks.sudoku.exact import generate, solve_exactly
from rrn.tasks.visual_sudoku.predict import likeliest_readings, reconsider


def test_readings_come_in_order_of_their_probability() -> None:
    rng, given = np.random.default_rng(0), np.array([True, False, True, True])
    logs = np.log(rng.dirichlet(np.ones(9), 4))
    readings = likeliest_readings(logs, given)
    found = [next(readings) for _ in range(9**3)]
    expected = sorted((logs[0, a] + logs[2, b] + logs[3, c] for a, b, c in product(range(9), repeat=3)), reverse=True)
    np.testing.assert_allclose([likelihood for _, likelihood in found], expected)
    for reading, likelihood in found[:20]:
        assert reading[1] == 0
        assert logs[[0, 2, 3], reading[[0, 2, 3]]].sum() == pytest.approx(likelihood)
    with pytest.raises(StopIteration):
        next(readings)


class Exact:
    """Stands in for a network: it solves what is read, and repeats the ones where that has no solution."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.asked = 0

    def reasoner(self, batch: dict[str, torch.Tensor], steps: int) -> tuple[torch.Tensor, None]:
        puzzles = batch["puzzle"].argmax(-1).numpy().astype(np.uint8)
        self.asked += len(puzzles)
        grids = np.stack([np.ones(81, np.uint8) if grid is None else grid for grid in map(solved, puzzles)])
        return torch.nn.functional.one_hot(torch.from_numpy(grids).long(), 10)[None].flatten(1, 2), None


def solved(puzzle: np.ndarray) -> np.ndarray | None:
    (found,), (count,) = solve_exactly(puzzle[None])
    return found if count else None


@pytest.fixture
def misread() -> tuple[Any, ...]:
    """A puzzle, its solution, probabilities in which a wrong digit is likeliest in its first given, and that cell."""
    puzzles, solutions = generate(1, np.random.default_rng(3), extra_givens=12)
    cell = int(np.flatnonzero(puzzles[0])[0])
    probabilities = np.eye(10)[puzzles[0]] * 0.999 + 0.0001
    probabilities[puzzles[0] == 0] = np.eye(10)[0]
    probabilities[:, 0] = puzzles[0] == 0
    clash = next(d for d in range(1, 10) if solved(np.where(np.arange(81) == cell, d, puzzles[0])) is None)
    probabilities[cell, clash], probabilities[cell, puzzles[0, cell]] = 0.6, 0.4
    return puzzles, solutions, probabilities[None]


def test_a_contradiction_is_solved_by_the_next_reading(misread: tuple[Any, ...]) -> None:
    _, solutions, probabilities = misread
    network, first = Exact(), np.ones((1, 81), np.uint8)  # breaks rules
    assert (reconsider(network, probabilities, first, steps=4, attempts=8) == solutions).all()  # type: ignore[arg-type]
    assert network.asked == 2, "the likeliest reading, which has no solution, and the next one"
    assert (reconsider(network, probabilities, first, steps=4, attempts=2) == first).all()  # type: ignore[arg-type]


def test_an_answer_that_agrees_with_its_reading_is_not_tried_again(misread: tuple[Any, ...]) -> None:
    puzzles, solutions, _ = misread
    probabilities, network = np.eye(10)[puzzles] * 0.9 + 0.01, Exact()
    probabilities[..., 0] = puzzles == 0
    assert (reconsider(network, probabilities, solutions, steps=4, attempts=8) == solutions).all()  # type: ignore[arg-type]
    assert network.asked == 0


def test_a_puzzle_without_givens_has_one_reading() -> None:
    probabilities = np.zeros((1, 81, 10))
    probabilities[..., 0] = 1
    network, first = Exact(), np.ones((1, 81), np.uint8)
    assert reconsider(network, probabilities, first, steps=4, attempts=8).shape == (1, 81)  # type: ignore[arg-type]
    assert network.asked == 1
