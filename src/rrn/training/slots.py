"""Training in slots: each place of the batch holds a problem until the network has solved it, or has failed to in time.

So a batch, and the state it has reached, are carried on from update to update, and the network learns from deep states
at the cost of a segment per update. What can be set is in `rrn.training.presets.SlotPreset`; without ``slot_steps`` an
experiment of this kind trains on a new batch every ``steps``, as any other.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.inference.attempts import RecurrentNetwork, Slots
from rrn.nn.losses import IGNORE, step_losses, winners
from rrn.training.curriculum import Easing
from rrn.training.experiment import Batch, Experiment, RunningBatch, Shard
from rrn.training.presets import SlotPreset
from rrn.training.tying import Ties

SHORTEST_LIFE = 8
"""With --lives: the fewest steps a problem stays."""
OTHERS = 0.02
"""With --copies: how much a place counts that is not the best of its problem."""

P = TypeVar("P", bound=SlotPreset)


class SlotExperiment(Experiment[P]):
    """Each place of the batch has an "age", the steps its problem has had, and a "limit", the steps it may have."""

    easing: Easing | None = None
    """How much easier problems are made than asked for; None: nothing depends on how many are solved."""

    @property
    @abstractmethod
    def built(self) -> RecurrentNetwork:
        """The network."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Batch:
        """So many new problems."""

    def network(self) -> nn.Module:
        self.built.tie_weights()
        return self.built

    def ties(self, network: nn.Module) -> list[Ties]:
        return network.ties() if isinstance(network, RecurrentNetwork) else []

    def start_from(self, network: nn.Module, weights: Mapping[str, Tensor]) -> None:
        super().start_from(network, network.widened(weights) if isinstance(network, RecurrentNetwork) else weights)

    def logits(self, outputs: Tensor) -> Tensor:
        """Outputs (steps, n, classes) with classes that the network does not name."""
        return outputs

    def right(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Whether each problem's answers are right after each step: (steps, places)."""
        targets, places = self.targets(batch), len(next(iter(batch.values())))
        right = (self.logits(outputs).argmax(-1) == targets) | (targets == IGNORE)
        return right.view(len(outputs), places, -1).all(-1)

    def begin(self, rng: np.random.Generator, shard: Shard) -> RunningBatch:
        if self.preset.batch_size % (self.preset.copies * shard.world):
            raise InputError(f"--batch-size: expected a multiple of --copies times {shard.world} processes")
        return super().begin(rng, shard)

    def sample(self, rng: np.random.Generator) -> Batch:
        return self._fresh(self.preset.batch_size, rng, torch.device("cpu"))

    def _fresh(self, places: int, rng: np.random.Generator, device: torch.device) -> Batch:
        """New problems for so many places."""
        count = places // self.preset.copies
        batch = self.draw(count, rng)
        if self.preset.slot_steps:
            limits = self._limits(count, self.preset.slot_steps, rng)
            batch |= {"age": torch.zeros_like(limits), "limit": limits}
        copied = {name: part.to(device).repeat_interleave(self.preset.copies, dim=0) for name, part in batch.items()}
        return self.built.prepare(copied)

    def _limits(self, count: int, slot_steps: tuple[int, int], rng: np.random.Generator) -> Tensor:
        """How many steps each of so many new problems may have."""
        first, last = slot_steps
        limit = first + (last - first) * min(self.progress, 1.0)
        if not self.preset.lives:
            return torch.full((count,), round(limit), device="cpu")
        drawn = np.exp(rng.uniform(np.log(min(SHORTEST_LIFE, limit)), np.log(limit), size=count))
        return torch.from_numpy(drawn.round().astype(np.int64))

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        outputs, targets, weights = self.logits(outputs), self.targets(batch), None
        considered = outputs if self.preset.loss == "every" else outputs[-1:]
        if self.preset.copies > 1:
            weights = self._weights_of_winners(considered.detach(), targets, len(next(iter(batch.values()))))
        return step_losses(considered, targets, weights=weights).mean()

    def _weights_of_winners(self, outputs: Tensor, targets: Tensor, places: int) -> Tensor:
        """1 for the targets of the best place of each problem; the others count a little, lest they go astray."""
        every = F.cross_entropy(outputs.movedim(-1, 1), targets.expand(len(outputs), -1), reduction="none")
        known = (targets != IGNORE).view(places, -1).sum(1).clamp(min=1)
        won = winners(every.mean(0).view(places, -1).sum(1) / known, self.preset.copies, OTHERS)
        return won.repeat_interleave(len(targets) // places)

    def steps_of(self, running: RunningBatch) -> int:
        return self.preset.segment or self.preset.steps if self.preset.slot_steps else super().steps_of(running)

    def rows_of(self, batch: Batch) -> Tensor:
        return self.built.rows(batch)

    def proceed(
        self, running: RunningBatch, outputs: Any, rng: np.random.Generator, shard: Shard
    ) -> RunningBatch | None:
        if not self.preset.slot_steps:
            return super().proceed(running, outputs, rng, shard)
        assert running.state is not None
        batch = dict(running.batch)
        batch["age"] = batch["age"] + len(outputs)
        finished = self._finished(outputs, batch, rng)
        if shard.world > 1:
            rng = np.random.default_rng([int(rng.integers(2**31)), shard.rank])
        places = Slots.enter(torch.arange(len(finished), device=finished.device), self.rows_of(batch), running.state)
        if self.preset.noise:
            which = torch.from_numpy((rng.random(len(finished)) < self.preset.noise_share).astype(np.float32))
            places = self._noisy(places, self.preset.noise * which.to(finished.device), rng)
        if not finished.any():
            return RunningBatch(batch, places.state, running.done)
        fresh = self._fresh(int(finished.sum()), rng, finished.device)
        sizes = self.rows_of(fresh)
        entering = Slots.enter(sizes, sizes, self.built.initial_state(fresh))
        if self.preset.start_noise:
            amount = torch.full_like(sizes, self.preset.start_noise, dtype=torch.float32)
            entering = self._noisy(entering, amount, rng)
        places = places.release(finished).join(entering)
        batch = {name: torch.cat([batch[name][~finished], fresh[name]]) for name in batch}
        return RunningBatch(batch, places.state.detach(), running.done)

    def _finished(self, outputs: Tensor, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Who leaves: whoever is late, or solved at the start and at the end of the segment."""
        copies, right = self.preset.copies, self.right(outputs, batch)
        solved, finished = self._any_copy(right[0] & right[-1]), batch["age"] >= batch["limit"]
        if self.preset.stay:
            goes = rng.random(len(solved) // copies) >= self.preset.stay
            solved &= torch.from_numpy(goes).to(solved.device).repeat_interleave(copies)
        if not self.preset.lives:
            finished = finished | solved
        if self.easing and bool(finished.any()):
            self.easing.leave(int(finished.sum()), float(self._any_copy(right[-1])[finished].float().mean()))
            self.easing.lower()
        return finished

    def _any_copy(self, of_place: Tensor) -> Tensor:
        """Whether it holds for any of the places that work on the same problem."""
        return of_place.view(-1, self.preset.copies).any(1).repeat_interleave(self.preset.copies)

    def _noisy(self, places: Slots, amount: Tensor, rng: np.random.Generator) -> Slots:
        return places.with_noise(self.built.add_noise, amount, torch.Generator().manual_seed(int(rng.integers(2**31))))

    def position(self) -> dict[str, float]:
        return self.easing.position() if self.easing else {}

    def restore(self, position: dict[str, float]) -> None:
        if self.easing:
            self.easing.restore(position)


def draw_from(pools: Sequence[Sequence[np.ndarray]], count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """So many problems out of some pools, each of them as likely as the others; a pool is arrays of as many rows."""
    shares = rng.multinomial(count, [1 / len(pools)] * len(pools)) if len(pools) > 1 else [count]
    rows = [rng.integers(len(pool[0]), size=share) for pool, share in zip(pools, shares, strict=True)]
    drawn = [[part[of] for part in pool] for pool, of in zip(pools, rows, strict=True)]
    return [np.concatenate(parts) for parts in zip(*drawn, strict=True)]
