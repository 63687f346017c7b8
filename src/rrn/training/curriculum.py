"""Curricula, easy problems first: over the length of questions, and over the number of extra givens."""

from abc import abstractmethod
from typing import Any, TypeVar

from torch import Tensor

from rrn.nn.readouts import answer_of
from rrn.training.experiment import Batch, Experiment, RunningBatch
from rrn.training.presets import CurriculumPreset

MEMORY = 0.95
"""Decay of the running accuracy per update."""


class Curriculum:
    """Questions of length ``longest`` at most; one more when the running accuracy on these exceeds ``pass_mark``."""

    def __init__(self, furthest: int, pass_mark: float, *, enabled: bool = True) -> None:
        self.furthest, self.pass_mark = furthest, pass_mark
        self.longest = 0 if enabled else furthest
        self.running = 0.0

    def observe(self, accuracy: float) -> None:
        """Add the accuracy of an update on questions of length ``longest``."""
        self.running = MEMORY * self.running + (1 - MEMORY) * accuracy
        if self.running > self.pass_mark and self.longest < self.furthest:
            self.longest, self.running = self.longest + 1, 0.0

    def open(self) -> None:
        """End the curriculum: questions of all lengths from now on."""
        self.longest = self.furthest

    def state(self) -> dict[str, float]:
        """For checkpoints; `restore` continues from it."""
        return {"longest": self.longest, "running": self.running}

    def restore(self, state: dict[str, float]) -> None:
        self.longest, self.running = int(state["longest"]), state["running"]


P = TypeVar("P", bound=CurriculumPreset)


class CurriculumExperiment(Experiment[P]):
    """New questions at every update, of length ``furthest`` at most. The network takes two steps more than the present
    length, but at most ``preset.steps``."""

    furthest: int

    def __init__(self, preset: P, whole: P | None = None) -> None:
        super().__init__(preset, whole)
        self.curriculum = Curriculum(self.furthest, preset.pass_mark, enabled=preset.curriculum)

    @abstractmethod
    def reach(self, batch: Batch) -> Tensor:
        """The length of each question: (n,)."""

    def steps_of(self, running: RunningBatch) -> int:
        return min(self.preset.steps, self.curriculum.longest + 2)

    def next_batch(self, *_: object) -> None:
        """A new batch at every update."""

    @property
    def validation_steps(self) -> list[int]:
        """The steps at which the score is measured; it is the mean over them."""
        steps = self.whole.steps
        return [steps, steps + self.whole.burn_in] if self.whole.burn_in else [steps]

    def measure(self, outputs: Any, batch: Batch) -> dict[str, float]:
        right = (answer_of(outputs)[-1].argmax(-1) == self.targets(batch)).float()
        furthest = self.reach(batch) == self.curriculum.longest
        at_furthest = float(right[furthest].mean()) if furthest.any() else self.curriculum.running
        return {"accuracy": float(right.mean()), "furthest": at_furthest, "longest": float(self.curriculum.longest)}

    def observe(self, measures: dict[str, float]) -> None:
        self.curriculum.observe(measures["furthest"])


ADVANCE_ABOVE = 0.7
"""The share of solved problems above which there are fewer extra givens."""


class GivensCurriculum:
    """The number of extra givens: from ``extra`` down to ``least``, by ``decrement`` at a time.

    ``solved_share`` is a running mean of the share of solved problems, with weight ``memory`` per finished problem.
    """

    def __init__(self, extra: float, least: float, decrement: float, memory: float) -> None:
        self.extra, self.least, self.decrement, self.memory = extra, least, decrement, memory
        self.solved_share = 0.0

    def observe(self, count: int, share: float) -> None:
        """Add ``count`` finished problems, of which a ``share`` was solved."""
        self.solved_share += self.memory * count * (share - self.solved_share)

    def advance(self) -> None:
        """Lower the number of extra givens if enough problems are solved."""
        if self.solved_share > ADVANCE_ABOVE:
            self.extra = max(self.least, self.extra - self.decrement)

    def state(self) -> dict[str, float]:
        """For checkpoints; `restore` continues from it."""
        return {"most_extra": self.extra, "solved_share": self.solved_share}

    def restore(self, state: dict[str, float]) -> None:
        self.extra, self.solved_share = state["most_extra"], state["solved_share"]
