"""What becomes of problems: solved by a network, solved before, impossible, or not solved, and why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rrn.constraints.search import why_not


@dataclass(frozen=True)
class Outcome:
    """What became of one problem.

    ``answer`` is the network's, right only if ``valid``; ``steps`` are those of the start that counts, ``chances``
    (steps, …) the probabilities after each of them, where asked for. ``starts`` is 0 where the network was not needed.
    ``reason`` says why a problem was not solved, or not by the network; ``handed_over`` that it was left to the
    stronger one.
    """

    problem: Any
    answer: Any
    status: Literal["solved", "already solved", "no solution", "not solved"] = "not solved"
    steps: int = 0
    starts: int = 0
    confidence: float = 1.0
    reason: str | None = None
    chances: np.ndarray | None = None
    handed_over: bool = False

    @property
    def valid(self) -> bool:
        return self.status in ("solved", "already solved")


def work_out(
    before: Sequence[Outcome],
    attempt: Callable[[np.ndarray, int, bool], Sequence[Outcome]],
    count_solutions: Callable[[np.ndarray], np.ndarray],
    *,
    restarts: int = 0,
    stronger: bool = False,
    what: str = "the problem",
) -> list[Outcome]:
    """Solve those problems that were not solved ``before``.

    Each gets one attempt without restarts. Of those that it left, an exact search counts the solutions, as
    `rrn.constraints.search.search` does; only those that have one, or may, get an attempt with ``restarts``; and what
    this leaves, too, gets another by a ``stronger`` network. ``attempt`` is told the rows of problems, their restarts,
    and whether it is the last; reasons call a problem ``what``.
    """
    results = list(before)

    def left() -> np.ndarray:
        return np.array([row for row, outcome in enumerate(results) if not outcome.valid], dtype=np.int64)

    def run(rows: np.ndarray, again: int, earlier: int = 0) -> None:
        if len(rows):
            for row, outcome in zip(rows, attempt(rows, again, earlier > 0), strict=True):
                results[row] = replace(outcome, starts=earlier + outcome.starts, handed_over=earlier > 0)

    run(left(), 0)
    failed = left()
    counts = count_solutions(failed)
    if restarts:
        run(failed[counts != 0], restarts)
    if restarts and stronger:
        run(np.intersect1d(left(), failed[counts != 0]), restarts, earlier=1 + restarts)
    for row, count in zip(failed, counts, strict=True):
        if not results[row].valid:
            status = "not solved" if count else "no solution"
            results[row] = replace(results[row], status=status, reason=why_not(what, int(count)))
    return results
