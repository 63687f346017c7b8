"""Experiments: what a task defines for training, and the objective of the training loop made of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
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
from rrn.training.loop import Objective, part_of
from rrn.training.presets import Preset
from rrn.training.processes import Processes
from rrn.training.tying import Ties, tie

P = TypeVar("P", bound=Preset)
Batch = dict[str, Tensor]
"""Tensors by name; the first dimension of each is the graphs of the batch."""


@dataclass(frozen=True)
class Shard:
    """The part of every batch that this process computes."""

    rank: int = 0
    world: int = 1

    def take(self, batch: Batch) -> Batch:
        if self.world == 1:
            return batch
        return {name: tensor.tensor_split(self.world)[self.rank] for name, tensor in batch.items()}

    def take_rows(self, parts: list[Tensor], rows: Tensor) -> list[Tensor]:
        """This process's part of the state of all processes. Graph i has ``rows[i]`` rows, or a multiple of that."""
        shares = torch.stack([part.sum() for part in rows.tensor_split(self.world)])
        return [part.split((shares * len(part) // shares.sum()).tolist())[self.rank] for part in parts]


class RunningBatch(NamedTuple):
    """The batch of the next update, and its state after ``done`` steps; None: the initial state."""

    batch: Batch
    state: State | None = None
    done: int = 0


class Experiment(ABC, Generic[P]):
    """Data, network, loss and validation of a task.

    The network is called as ``network(batch, steps=…, state=…)`` and returns the logits of every step,
    (steps, n, classes), and the state after the last. A batch is drawn from the random generator of its update
    alone, so a resumed run sees what an uninterrupted one would.
    """

    curriculum: Any = None
    """A curriculum of `rrn.training.curriculum`, if there is one."""
    progress = 0.0
    """The share of the training budget that is spent; set before every update."""
    burned_in: int = 0
    """Steps without gradient before the first step of the batch; set before it is sampled."""
    named_preset: Preset | None = None
    """The preset of this name with its default settings, for the command in the model card."""
    preparation: str = ""
    """What takes long before the first update; shown when training starts."""
    report: Callable[[str], None] = staticmethod(lambda text: None)
    """Shows what is done now and how far it is, while no updates are shown."""

    def __init__(self, preset: P, whole: P | None = None) -> None:
        self.preset = preset
        self.whole = preset if whole is None else whole
        """The preset with all its stages. Validation depends on it alone, so that scores of all stages compare."""

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
    """The flag that disables `ties`."""

    def ties(self, network: nn.Module) -> list[Ties]:
        """Weight tying: the weights that stay equal in training. See `rrn.training.tying`."""
        return []

    def prepare(self) -> None:
        """Called before the first update, for work that takes long; a signal interrupts it."""

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
        outputs = answer_of(outputs)
        return step_losses(outputs if self.preset.loss == "every" else outputs[-1:], self.targets(batch)).mean()

    def measure(self, outputs: Any, batch: Batch) -> dict[str, float]:
        """Figures of a training batch, averaged over processes before `observe` sees them."""
        right = answer_of(outputs)[-1].argmax(-1) == self.targets(batch)
        return {"accuracy": float(right.float().mean())}

    def observe(self, measures: dict[str, float]) -> None:
        """Called after every update with its measures; a curriculum advances here."""

    def first_batch(self, rng: np.random.Generator, shard: Shard) -> RunningBatch:
        """A new batch, in its initial state."""
        return RunningBatch(shard.take(self.sample(rng)))

    def steps_of(self, running: RunningBatch) -> int:
        """How many steps the next update runs."""
        return min(self.preset.segment or self.preset.steps, self.preset.steps - running.done)

    def next_batch(
        self, running: RunningBatch, outputs: Any, rng: np.random.Generator, shard: Shard
    ) -> RunningBatch | None:
        """The batch that follows an update, whose state ``running`` holds. None: a new batch."""
        return running if running.done < self.preset.steps else None

    def rows_of(self, batch: Batch) -> Tensor:
        """How many rows of a state belong to each graph of a batch: (graphs,). By default equally many."""
        first = next(iter(batch.values()))
        return first.new_ones(len(first), dtype=torch.long)

    def curriculum_state(self) -> dict[str, float]:
        """The state of the curriculum, for checkpoints."""
        return self.curriculum.state() if self.curriculum else {}

    def restore(self, state: dict[str, float]) -> None:
        """Continue from what `curriculum_state` returned."""
        if self.curriculum:
            self.curriculum.restore(state)


def check_divisible(preset: Preset, world: int) -> None:
    """Refuse a batch size that does not divide among the processes."""
    if preset.batch_size % world:
        raise InputError(f"--batch-size {preset.batch_size} does not divide among {world} processes")


def seeded(seed: int, *path: int) -> np.random.Generator:
    """The random generator of one purpose, the same on every machine: ``seeded(0, 1, 7)`` for update 7 of seed 0."""
    return np.random.default_rng([seed, *path])


def make_optimizer(network: nn.Module, preset: Preset) -> torch.optim.Optimizer:
    """Adam or AdamW. Weight decay and L2 act on weight matrices only."""
    matrices = [p for p in network.parameters() if p.dim() >= 2]
    others = [p for p in network.parameters() if p.dim() < 2]
    decay = preset.weight_decay if preset.optimizer == "adamw" else preset.l2
    kind = torch.optim.AdamW if preset.optimizer == "adamw" else torch.optim.Adam
    groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
    return kind([group for group in groups if group["params"]], lr=preset.lr, betas=(0.9, preset.beta2))


class ExperimentObjective(Objective):
    """An experiment as the objective of the training loop; ``forward`` calls its network."""

    def __init__(self, experiment: Experiment[Any], forward: Callable[..., Any], processes: Processes) -> None:
        self.experiment, self.forward, self.processes = experiment, forward, processes
        self.shard = Shard(processes.rank, processes.world)
        self.running: RunningBatch | None = None

    def prepare(self) -> None:
        self.experiment.prepare()

    def loss(self, update: int, progress: float) -> Tensor:
        self.experiment.progress = progress
        self.rng = seeded(self.experiment.preset.seed, 1, update)
        if self.running is None:
            self._report(update, "drawing a batch")
            self.experiment.burned_in = self._draw_burn_in()
            self.running = self._on_device(self.experiment.first_batch(self.rng, self.shard))
        batch, state, done = self.running
        steps = self.experiment.steps_of(self.running)
        self._report(update, f"forward pass, steps: {steps}")
        if state is None and self.experiment.burned_in:
            with torch.no_grad():
                _, state = self.forward(batch, steps=self.experiment.burned_in, state=None)
        self.outputs, state = self.forward(batch, steps=steps, state=state)
        self.reached = RunningBatch(batch, state.detach(), done + steps)
        loss = self.experiment.loss(self.outputs, batch)
        self._report(update, "backward pass")
        return loss

    def _report(self, update: int, doing: str) -> None:
        self.experiment.report(f"update {update + 1}: {doing}")

    def _draw_burn_in(self) -> int:
        preset = self.experiment.preset
        drawn = preset.burn_in and self.rng.random() < preset.burn_in_share
        return int(self.rng.integers(preset.burn_in + 1)) if drawn else 0

    def after_update(self, loss: float) -> dict[str, float]:
        measures = self.experiment.measure(self.outputs, self.reached.batch)
        if self.shard.world > 1:
            measures = self.processes.mean(measures)
        self.running = self.experiment.next_batch(self.reached, self.outputs, self.rng, self.shard)
        del self.outputs, self.reached
        self.experiment.observe(measures)
        return measures

    def inputs_are_finite(self) -> bool:
        return self.running is not None and all(bool(part.isfinite().all()) for part in self.running.batch.values())

    def validate(self, network: nn.Module) -> dict[str, float]:
        self.experiment.report("validating")
        return self.experiment.validate(network)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The batch and the state of the next update, gathered from all processes."""
        facts: dict[str, Any] = {"position": self.experiment.curriculum_state()}
        if self.running is None:
            return {}, facts
        state = self.running.state
        mine = {f"batch.{name}": value for name, value in self.running.batch.items()}
        mine |= {f"state.{index}": part for index, part in enumerate([] if state is None else state.parts())}
        tensors = {name: self.processes.gather(tensor) for name, tensor in sorted(mine.items())}
        return tensors, facts | {"done": self.running.done}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.experiment.restore(facts["position"])
        if "done" in facts:
            batch, parts = part_of(tensors, "batch."), [part for _, part in sorted(part_of(tensors, "state.").items())]
            state = State.of(self.shard.take_rows(parts, self.experiment.rows_of(batch))) if parts else None
            self.running = self._on_device(RunningBatch(self.shard.take(batch), state, facts["done"]))

    def _on_device(self, running: RunningBatch) -> RunningBatch:
        device, state = self.processes.device, running.state
        batch = {name: tensor.to(device) for name, tensor in running.batch.items()}
        return RunningBatch(batch, state and state.map(lambda part: part.to(device)), running.done)
