"""Easy problems first: a curriculum over how far a question reaches, and one over how much of an answer is given."""

from abc import abstractmethod
from typing import Any, TypeVar

from torch import Tensor

from rrn.nn.readouts import answer_of
from rrn.training.experiment import Batch, Experiment, RunningBatch
from rrn.training.presets import CurriculumPreset

MEMORY = 0.95
"""Share of the running accuracy that an update leaves unchanged."""


class Curriculum:
    """Asks for at most ``longest``, one more whenever the running accuracy on the furthest questions passes a mark."""

    def __init__(self, furthest: int, pass_mark: float, *, enabled: bool = True) -> None:
        self.furthest, self.pass_mark = furthest, pass_mark
        self.longest = 0 if enabled else furthest
        self.running = 0.0

    def observe(self, accuracy: float) -> None:
        """The accuracy of an update on questions of ``longest``."""
        self.running = MEMORY * self.running + (1 - MEMORY) * accuracy
        if self.running > self.pass_mark and self.longest < self.furthest:
            self.longest, self.running = self.longest + 1, 0.0

    def open(self) -> None:
        """Ask for everything from now on, passed or not."""
        self.longest = self.furthest

    def position(self) -> dict[str, float]:
        return {"longest": self.longest, "running": self.running}

    def restore(self, position: dict[str, float]) -> None:
        self.longest, self.running = int(position["longest"]), position["running"]


P = TypeVar("P", bound=CurriculumPreset)


class CurriculumExperiment(Experiment[P]):
    """New questions at every update, which reach ``furthest`` at most; the network takes two steps more than the
    curriculum has come to, and no more than its preset says."""

    furthest: int

    def __init__(self, preset: P) -> None:
        super().__init__(preset)
        self.curriculum = Curriculum(self.furthest, preset.pass_mark, enabled=preset.curriculum)

    @abstractmethod
    def reach(self, batch: Batch) -> Tensor:
        """How far each question reaches: (n,)."""

    def steps_of(self, running: RunningBatch) -> int:
        return min(self.preset.steps, self.curriculum.longest + 2)

    def proceed(self, *_: object) -> None:
        """A new batch at every update."""

    def measure(self, outputs: Any, batch: Batch) -> dict[str, float]:
        right = (answer_of(outputs)[-1].argmax(-1) == self.targets(batch)).float()
        furthest = self.reach(batch) == self.curriculum.longest
        at_furthest = float(right[furthest].mean()) if furthest.any() else self.curriculum.running
        return {"accuracy": float(right.mean()), "furthest": at_furthest, "longest": float(self.curriculum.longest)}

    def observe(self, measures: dict[str, float]) -> None:
        self.curriculum.observe(measures["furthest"])

    def position(self) -> dict[str, float]:
        return self.curriculum.position()

    def restore(self, position: dict[str, float]) -> None:
        self.curriculum.restore(position)


LOWER_FROM = 0.7


class Easing:
    """Makes problems easier by up to ``most``, which falls by ``by`` at a time, down to ``least``, while more than 7 of
    10 problems that leave are solved: ``solved_share``, a running mean that forgets by ``memory`` per problem."""

    def __init__(self, most: float, least: float, by: float, memory: float) -> None:
        self.most, self.least, self.by, self.memory = most, least, by, memory
        self.solved_share = 0.0

    def leave(self, count: int, share: float) -> None:
        """So many problems have left, this share of them solved."""
        self.solved_share += self.memory * count * (share - self.solved_share)

    def lower(self) -> None:
        if self.solved_share > LOWER_FROM:
            self.most = max(self.least, self.most - self.by)

    def position(self) -> dict[str, float]:
        return {"most_extra": self.most, "solved_share": self.solved_share}

    def restore(self, position: dict[str, float]) -> None:
        self.most, self.solved_share = position["most_extra"], position["solved_share"]
