"""What the trainer asks of a task."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.nn.losses import step_losses
from rrn.nn.readouts import answer_of
from rrn.nn.updates import State
from rrn.training.growing import grow_into
from rrn.training.optimizing import make_optimizer
from rrn.training.presets import Preset
from rrn.training.tying import Ties, tie

P = TypeVar("P", bound=Preset)
Batch = dict[str, Tensor]
"""Tensors by name; the first dimension of each is the graphs of the batch."""


@dataclass(frozen=True)
class Shard:
    """Which part of every batch this process works on."""

    rank: int = 0
    world: int = 1

    def take(self, batch: Batch) -> Batch:
        if self.world == 1:
            return batch
        return {name: tensor.tensor_split(self.world)[self.rank] for name, tensor in batch.items()}

    def take_rows(self, parts: list[Tensor], rows: Tensor) -> list[Tensor]:
        """This process's part of a state of all, in which each graph has so many rows, or as many times as that."""
        shares = torch.stack([part.sum() for part in rows.tensor_split(self.world)])
        return [part.split((shares * len(part) // shares.sum()).tolist())[self.rank] for part in parts]


class Carry(NamedTuple):
    """What the next update works on: a batch, and the state it has reached after ``done`` steps (None: the start)."""

    batch: Batch
    state: State | None = None
    done: int = 0


class Experiment(ABC, Generic[P]):
    """A task, as the trainer sees it.

    The network is called as ``network(batch, steps=…, state=…)`` and returns the logits of every step,
    (steps, n, classes), and the state after the last. A batch is drawn from the random generator of its update
    alone, so a resumed run sees what an uninterrupted one would.
    """

    progress = 0.0
    """The share of the training budget that is spent; the trainer keeps it up to date."""

    def __init__(self, preset: P) -> None:
        self.preset = preset

    @abstractmethod
    def network(self) -> nn.Module:
        """A new network, initialised from torch's global random generator."""

    def optimizer(self, network: nn.Module) -> torch.optim.Optimizer:
        optimizer = make_optimizer(network, self.preset)
        if ties := self.ties(network):
            tie(optimizer, ties)
        return optimizer

    def start_from(self, network: nn.Module, weights: Mapping[str, Tensor]) -> None:
        """Put the weights of --start-from into a new network; it may be larger (`rrn.training.growing`)."""
        grow_into(network, weights)

    without_ties = ""
    """The flag that leaves `ties` out."""

    def ties(self, network: nn.Module) -> list[Ties]:
        """Which of its weights training keeps equal: see `rrn.training.tying`."""
        return []

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Batch:
        """A training batch of ``preset.batch_size`` graphs."""

    @abstractmethod
    def targets(self, batch: Batch) -> Tensor:
        """The right classes (n,) of a batch."""

    @abstractmethod
    def validate(self, network: nn.Module) -> dict[str, float]:
        """Figures on unseen data. ``score`` decides which weights are best: the higher the better."""

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        """``outputs`` are what the network returned: a tensor, or `Outputs` with extras by name."""
        losses = step_losses(answer_of(outputs), self.targets(batch))
        return losses.mean() if self.preset.loss == "every" else losses[-1]

    def measure(self, outputs: Any, batch: Batch) -> dict[str, float]:
        """Figures of a training batch, averaged over processes before `observe` sees them."""
        right = answer_of(outputs)[-1].argmax(-1) == self.targets(batch)
        return {"accuracy": float(right.float().mean())}

    def observe(self, measures: dict[str, float]) -> None:
        """Told after every update; a curriculum moves on here."""

    def begin(self, rng: np.random.Generator, shard: Shard) -> Carry:
        return Carry(shard.take(self.sample(rng)))

    def steps_of(self, carry: Carry) -> int:
        """How many steps the next update runs."""
        return min(self.preset.segment or self.preset.steps, self.preset.steps - carry.done)

    def proceed(self, carry: Carry, outputs: Any, rng: np.random.Generator, shard: Shard) -> Carry | None:
        """What comes after an update that brought ``carry`` forward. None: a new batch."""
        return carry if carry.done < self.preset.steps else None

    def rows_of(self, batch: Batch) -> Tensor:
        """How many rows of a carried state belong to each graph of a batch: (graphs,). By default equally many."""
        first = next(iter(batch.values()))
        return first.new_ones(len(first), dtype=torch.long)

    def position(self) -> dict[str, float]:
        """Where a curriculum stands, to be kept in checkpoints."""
        return {}

    def restore(self, position: dict[str, float]) -> None:
        """Take up what `position` gave."""


def whole_batches(preset: Preset, world: int) -> None:
    if preset.batch_size % world:
        raise InputError(f"--batch-size {preset.batch_size} does not divide among {world} processes")


def seeded(seed: int, *path: int) -> np.random.Generator:
    """The random generator of one purpose, the same on every machine: e.g. of update 7 of the run with seed 0."""
    return np.random.default_rng([seed, *path])
