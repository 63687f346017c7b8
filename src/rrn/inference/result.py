"""The result of inference: the same type for `RRN.think`, declared constraints, Sudoku, ``rrn ask`` and the page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

import numpy as np


class Status(StrEnum):
    """What is known about the answer to a problem."""

    SOLVED = "solved"
    """The answer passed its check: it breaks no rule, or the stopping rule accepted it."""
    UNSOLVED = "unsolved"
    """No attempt found an answer that passed its check."""
    IMPOSSIBLE = "impossible"
    """The problem has no solution."""
    AMBIGUOUS = "ambiguous"
    """The problem has several solutions, and no attempt found one of them."""
    ALREADY_SOLVED = "already solved"
    """The problem was complete and valid as given; the network did not run."""


SUCCESS = (Status.SOLVED, Status.ALREADY_SOLVED)


@dataclass(frozen=True, eq=False)
class Result:
    """Answers to n problems. ``result[i]`` is the `Result` of one problem, with one value per field instead of n.

    Attributes:
        status: (n,) a `Status` each.
        answers: (n, …) the answer of the attempt that solved the problem, else of the first attempt.
        steps: (n,) message-passing steps of that attempt.
        attempts: (n,) the attempt that solved the problem, counted from 1; if none did, how many were made.
        confidence: (n,) mean probability of the predicted values.
        message: (n,) explanation for a person; empty where there is nothing to explain.
        record: (n, …) what was recorded at every step, or None.
        details: further values of each problem by name: (n, …) each.
    """

    status: Any
    answers: Any
    steps: Any
    attempts: Any
    confidence: Any
    message: Any
    record: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def solved(self) -> Any:
        """Whether the answer is a checked solution: (n,) bool."""
        if isinstance(self.status, Status):
            return self.status in SUCCESS
        return np.array([status in SUCCESS for status in self.status], dtype=bool)

    def solved_by_attempts(self) -> list[float]:
        """The share solved within 1, 2, … attempts, up to the most that any problem took."""
        most = int(max(self.attempts, default=0))
        return [float((self.solved & (self.attempts <= attempts)).mean()) for attempts in range(1, most + 1)]

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, row: int) -> "Result":
        def one(values: Any) -> Any:
            return values[row].item() if isinstance(values, np.ndarray) and values.ndim == 1 else values[row]

        plain = {name: one(value) for name, value in self._columns().items()}
        return Result(**plain, details={name: one(values) for name, values in self.details.items()})

    def __iter__(self) -> Iterator["Result"]:
        return (self[row] for row in range(len(self)))

    def _columns(self) -> dict[str, Any]:
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "details"}
        return {name: value for name, value in named.items() if value is not None}

    @classmethod
    def concatenate(cls, parts: Sequence["Result"]) -> "Result":
        """The results of several batches as one."""
        columns = {name: _join([getattr(part, name) for part in parts]) for name in parts[0]._columns()}
        details = {name: _join([part.details[name] for part in parts]) for name in parts[0].details}
        return cls(**columns, details=details)


def _join(values: Sequence[Any]) -> Any:
    if isinstance(values[0], np.ndarray):
        return np.concatenate(values)
    return [item for value in values for item in value]
