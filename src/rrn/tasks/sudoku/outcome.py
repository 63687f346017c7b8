"""What becomes of puzzles, which may be of several sizes."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from rrn.constraints import outcome
from rrn.constraints.outcome import Outcome
from rrn.tasks.sudoku.exact import count_solutions
from rrn.tasks.sudoku.grid import box_of, is_solved
from rrn.tasks.sudoku.predict import RESTARTS, solve

GUESSES = 100_000
"""Guesses of the exact search that says whether what was not solved can be."""
FULL = "the grid is full and breaks no rule"


def work_out(
    puzzles: list[np.ndarray],
    network: nn.Module,
    *,
    restarts: int = RESTARTS,
    guesses: int = GUESSES,
    stronger: Callable[[], nn.Module] | None = None,
    **wanted: Any,
) -> list[Outcome]:
    """Solve puzzles in their order, as `rrn.constraints.outcome.work_out` does; the exact search makes so many
    ``guesses``, and what is ``wanted`` goes to `solve`."""
    networks = (lambda: network), stronger
    sizes = [np.stack(list(some)) for _, some in itertools.groupby(puzzles, key=len)]
    return [result for grids in sizes for result in _of_one_size(grids, networks, restarts, guesses, wanted)]


def _of_one_size(puzzles: np.ndarray, networks: Any, restarts: int, guesses: int, wanted: Any) -> list[Outcome]:
    box = box_of(puzzles.shape[1])

    def attempt(rows: np.ndarray, again: int, by_stronger: bool) -> list[Outcome]:
        found = solve(puzzles[rows], box=box, network=networks[by_stronger](), restarts=again, **wanted)
        return [
            Outcome(
                puzzles[row],
                found.grids[place],
                "solved" if found.valid[place] else "not solved",
                int(found.steps[place]),
                int(found.starts[place]),
                float(found.confidence[place]),
                chances=None if found.probabilities is None else found.probabilities[: found.steps[place], place],
            )
            for place, row in enumerate(rows)
        ]

    def count(rows: np.ndarray) -> np.ndarray:
        return count_solutions(puzzles[rows], box=box, most_tries=guesses)

    before = [
        Outcome(puzzle, puzzle, "already solved", reason=FULL) if full else Outcome(puzzle, None)
        for puzzle, full in zip(puzzles, is_solved(puzzles, box), strict=True)
    ]
    return outcome.work_out(
        before, attempt, count, restarts=restarts, stronger=networks[1] is not None, what="the puzzle"
    )
