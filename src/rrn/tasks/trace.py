"""What a network said to one question, step by step: read by ``rrn ask``, by the page and by the pictures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Trace:
    """A question as it was understood, and the probability of each of ``choices`` after each step.

    ``probabilities`` is (steps, choices). ``truth`` is the right answer, where the question itself decides it.
    ``facts`` are those the network was given, and ``importance`` (facts,) how far the probability of its answer falls
    without each of them; both empty where a task has no such facts.
    """

    question: str
    choices: Sequence[str]
    probabilities: np.ndarray
    truth: str | None = None
    facts: tuple[str, ...] = ()
    importance: tuple[float, ...] = ()

    @property
    def answer(self) -> str:
        """The most probable choice after the last step."""
        return self.guesses(1)[-1][0][0]

    @property
    def right(self) -> bool | None:
        """Whether the answer is the truth; None where nobody knows."""
        return None if self.truth is None else self.answer == self.truth

    def guesses(self, count: int) -> list[list[tuple[str, float]]]:
        """After each step the ``count`` most probable choices and their probabilities, the most probable first."""
        order = np.argsort(-self.probabilities, axis=1, kind="stable")[:, :count]
        return [
            [(self.choices[index], float(row[index])) for index in best]
            for row, best in zip(self.probabilities, order, strict=True)
        ]

    def mattered(self, count: int, least: float = 0.01) -> list[tuple[str, float]]:
        """The ``count`` facts that mattered most, with their importance, where it is more than ``least``."""
        ranked = sorted(zip(self.facts, self.importance, strict=True), key=lambda pair: -pair[1])
        return [(fact, importance) for fact, importance in ranked[:count] if importance > least]
