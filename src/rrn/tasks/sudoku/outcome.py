"""What becomes of puzzles: solved by the network, solved before, impossible, or not solved, and why."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from torch import nn

from rrn.constraints.search import why_not
from rrn.tasks.sudoku.exact import count_solutions
from rrn.tasks.sudoku.grid import Box, box_of, is_solved
from rrn.tasks.sudoku.predict import RESTARTS, Solved, solve

GUESSES = 100_000
"""Guesses of the exact search that says whether what was not solved can be."""
FULL = "the grid is full and breaks no rule"

Status = Literal["solved", "already solved", "no solution", "not solved"]


@dataclass(frozen=True)
class Outcome:
    """What became of one puzzle.

    ``answer`` is the network's, right only if ``valid``; ``steps`` are those of the start that counts, ``chances``
    (steps, cells, digits) the probabilities after each of them, where asked for. ``starts`` is 0 where the network
    was not needed. ``reason`` says why a puzzle was not solved, or not by the network; ``handed_over`` that it was left
    to the stronger one.
    """

    puzzle: np.ndarray
    answer: np.ndarray
    status: Status
    steps: int = 0
    starts: int = 0
    confidence: float = 1.0
    reason: str | None = None
    chances: np.ndarray | None = None
    handed_over: bool = False

    @property
    def valid(self) -> bool:
        return self.status in ("solved", "already solved")

    @property
    def box(self) -> Box:
        return box_of(len(self.puzzle))


def work_out(
    puzzles: list[np.ndarray],
    network: nn.Module,
    *,
    max_steps: int = 128,
    restarts: int = RESTARTS,
    seed: int = 0,
    trace: bool = False,
    guesses: int = GUESSES,
    stronger: Callable[[], nn.Module] | None = None,
) -> list[Outcome]:
    """Solve puzzles, which may be of several sizes, in their order.

    Each gets one clean start. Of those it did not solve an exact search of so many ``guesses`` says whether they can
    be solved at all; only those that can, or may, get ``restarts``; and what these do not solve either gets as many
    starts, and one more, of a ``stronger`` network.
    """
    wanted: dict[str, Any] = {"network": network, "max_steps": max_steps, "seed": seed, "trace": trace}
    return [
        outcome
        for cells, some in itertools.groupby(puzzles, key=len)
        for outcome in _of_one_size(np.stack(list(some)), box_of(cells), restarts, guesses, wanted, stronger)
    ]


def _of_one_size(
    puzzles: np.ndarray,
    box: Box,
    restarts: int,
    guesses: int,
    wanted: dict[str, Any],
    stronger: Callable[[], nn.Module] | None,
) -> list[Outcome]:
    results = [Outcome(puzzle, puzzle, "already solved", reason=FULL) for puzzle in puzzles]

    def run(rows: np.ndarray, restarts: int, before: int = 0, **changed: Any) -> None:
        if len(rows):
            found = solve(puzzles[rows], box=box, restarts=restarts, **wanted | changed)
            for place, row in enumerate(rows):
                outcome = _outcome(puzzles[row], found, place)
                results[row] = replace(outcome, starts=before + outcome.starts, handed_over=before > 0)

    run(np.flatnonzero(~is_solved(puzzles, box)), 0)
    failed = np.array([row for row, outcome in enumerate(results) if not outcome.valid], dtype=np.int64)
    counts = count_solutions(puzzles[failed], box=box, most_tries=guesses)
    if restarts:
        run(failed[counts != 0], restarts)
    left = np.array([row for row in failed[counts != 0] if not results[row].valid], dtype=np.int64)
    if restarts and len(left) and stronger is not None:
        run(left, restarts, before=1 + restarts, network=stronger())
    for row, count in zip(failed, counts, strict=True):
        if not results[row].valid:
            status: Status = "not solved" if count else "no solution"
            results[row] = replace(results[row], status=status, reason=why_not("the puzzle", int(count)))
    return results


def _outcome(puzzle: np.ndarray, found: Solved, place: int) -> Outcome:
    return Outcome(
        puzzle,
        found.grids[place],
        "solved" if found.valid[place] else "not solved",
        int(found.steps[place]),
        int(found.starts[place]),
        float(found.confidence[place]),
        chances=None if found.probabilities is None else found.probabilities[: found.steps[place], place],
    )
