"""Training in slots: a problem keeps its slot in the batch until it is solved, or has reached its limit of steps.

The batch and its state continue from update to update. So the network learns from deep states at the cost of one
segment per update. The settings are in `rrn.training.presets.SlotPreset`; without ``slot_steps`` an experiment trains
on a new batch every ``steps``.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from rrn.inference.attempts import RecurrentNetwork, Slots
from rrn.nn.losses import IGNORE
from rrn.training.curriculum import GivensCurriculum
from rrn.training.experiment import Batch, Experiment, RunningBatch, Shard
from rrn.training.presets import SlotPreset
from rrn.training.tying import Ties

P = TypeVar("P", bound=SlotPreset)


class SlotExperiment(Experiment[P]):
    """A problem in a slot has an "age", its steps so far, and a "limit", the most steps it may have."""

    curriculum: GivensCurriculum | None = None
    """The number of extra givens, if it depends on the share of solved problems."""

    @property
    @abstractmethod
    def built(self) -> RecurrentNetwork:
        """The network."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Batch:
        """Draw ``count`` new problems."""

    def network(self) -> nn.Module:
        self.built.tie_weights()
        return self.built

    def ties(self, network: nn.Module) -> list[Ties]:
        return network.ties() if isinstance(network, RecurrentNetwork) else []

    def start_from(self, network: nn.Module, weights: Mapping[str, Tensor]) -> None:
        super().start_from(network, network.widened(weights) if isinstance(network, RecurrentNetwork) else weights)

    def logits(self, outputs: Tensor) -> Tensor:
        """Outputs (steps, n, classes), with logits of classes that the network does not compute."""
        return outputs

    def right(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Whether each problem's answers are right after each step: (steps, slots)."""
        targets, slots = self.targets(batch), len(next(iter(batch.values())))
        right = (self.logits(outputs).argmax(-1) == targets) | (targets == IGNORE)
        return right.view(len(outputs), slots, -1).all(-1)

    def sample(self, rng: np.random.Generator) -> Batch:
        return self._new_problems(self.preset.batch_size, rng, torch.device("cpu"))

    def _new_problems(self, count: int, rng: np.random.Generator, device: torch.device) -> Batch:
        batch = self.draw(count, rng)
        if self.preset.slot_steps:
            first, last = self.preset.slot_steps
            limit = round(first + (last - first) * min(self.progress, 1.0))
            limits = torch.full((count,), limit, device="cpu")
            batch |= {"age": torch.zeros_like(limits), "limit": limits}
        return self.built.prepare({name: part.to(device) for name, part in batch.items()})

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        return super().loss(self.logits(outputs), batch)

    def steps_of(self, running: RunningBatch) -> int:
        return self.preset.segment or self.preset.steps if self.preset.slot_steps else super().steps_of(running)

    def rows_of(self, batch: Batch) -> Tensor:
        return self.built.rows(batch)

    def next_batch(
        self, running: RunningBatch, outputs: Any, rng: np.random.Generator, shard: Shard
    ) -> RunningBatch | None:
        if not self.preset.slot_steps:
            return super().next_batch(running, outputs, rng, shard)
        assert running.state is not None
        batch = dict(running.batch)
        batch["age"] = batch["age"] + len(outputs)
        finished = self._finished(outputs, batch, rng)
        if shard.world > 1:
            rng = np.random.default_rng([int(rng.integers(2**31)), shard.rank])
        slots = Slots.enter(torch.arange(len(finished), device=finished.device), self.rows_of(batch), running.state)
        if self.preset.noise:
            which = torch.from_numpy((rng.random(len(finished)) < self.preset.noise_share).astype(np.float32))
            generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
            slots = slots.with_noise(self.built.add_noise, self.preset.noise * which.to(finished.device), generator)
        if not finished.any():
            return RunningBatch(batch, slots.state, running.done)
        new = self._new_problems(int(finished.sum()), rng, finished.device)
        rows = self.rows_of(new)
        slots = slots.release(finished).join(Slots.enter(rows, rows, self.built.initial_state(new)))
        batch = {name: torch.cat([batch[name][~finished], new[name]]) for name in batch}
        return RunningBatch(batch, slots.state.detach(), running.done)

    def _finished(self, outputs: Tensor, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Which slots to free (slots,): at the limit, or solved at the start and at the end of the segment.

        A share ``stay`` of the solved problems keeps its slot.
        """
        right = self.right(outputs, batch)
        solved = right[0] & right[-1]
        if self.preset.stay:
            solved &= torch.from_numpy(rng.random(len(solved)) >= self.preset.stay).to(solved.device)
        finished = solved | (batch["age"] >= batch["limit"])
        if self.curriculum and bool(finished.any()):
            self.curriculum.observe(int(finished.sum()), float(right[-1][finished].float().mean()))
            self.curriculum.advance()
        return finished


def draw_from(pools: Sequence[Sequence[np.ndarray]], count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw ``count`` problems from pools that are equally likely. A pool is arrays with one row per problem."""
    shares = rng.multinomial(count, [1 / len(pools)] * len(pools)) if len(pools) > 1 else [count]
    rows = [rng.integers(len(pool[0]), size=share) for pool, share in zip(pools, shares, strict=True)]
    drawn = [[part[of] for part in pool] for pool, of in zip(pools, rows, strict=True)]
    return [np.concatenate(parts) for parts in zip(*drawn, strict=True)]
