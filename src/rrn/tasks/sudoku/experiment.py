"""How Sudoku is trained: on puzzles made on the spot, each kept until the network has solved it."""

from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.losses import winners
from rrn.places import Places
from rrn.tasks.sudoku.data import add_givens, split_pool
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.model import CellSudoku, build
from rrn.tasks.sudoku.predict import solve
from rrn.tasks.sudoku.presets import SudokuPreset
from rrn.tasks.sudoku.puzzle_network import PuzzleNetwork
from rrn.tasks.sudoku.symmetry import fingerprints, random_symmetry
from rrn.training.experiment import Batch, Carry, Experiment, Shard, seeded
from rrn.tying import tie

VALIDATION = 256
VALIDATION_SEED = 7
FILLS = 64
"""Steps, and so digits filled in, of the convolutional network when it is validated; it is trained on one look."""
SHORTEST_LIFE = 8
"""With --lives: the fewest steps a puzzle stays."""
EASIER_UNTIL = 0.5
WINDOW = 12
"""With --lower-by: the number of extra digits is drawn from the most to so many fewer."""
LOWER_FROM = 0.7
SHARE_MEMORY = 0.005
OTHERS = 0.02
"""With --copies: how much a place counts that is not the best of its puzzle."""


class SudokuExperiment(Experiment[SudokuPreset]):
    """With slots, a batch is carried on from update to update: each of its places holds a puzzle, how many steps it
    has had and how many it may have, and gets a new puzzle as soon as the network solves it, or fails to in time."""

    def __init__(self, preset: SudokuPreset) -> None:
        super().__init__(preset)
        self.validation: tuple[np.ndarray, np.ndarray] | None = None
        self.pool: tuple[np.ndarray, np.ndarray] | None = None
        self.knows_empty = preset.network in ("paper", "rn-graph")
        """Whether the network has a tenth class, "empty", and so learns from given cells as well."""
        if preset.slot_steps is not None and preset.network not in ("candidates", "paper"):
            raise InputError("--slot-steps: only the networks that are called again on their state have slots")
        if preset.digit_units and (preset.network != "paper" or 9 * preset.digit_units > preset.hidden):
            raise InputError("--digit-units: only for the paper's network, and at most a ninth of --hidden")
        if preset.slot_steps is None and (preset.copies > 1 or preset.lives or preset.start_noise):
            raise InputError("--copies, --lives, --start-noise: only with --slot-steps")
        self.most_extra = float(preset.easier)
        """With --lower-by: so many digits are added at most."""
        self.solved_share = 0.0
        """The share of puzzles that leave their place solved, a running mean."""
        if preset.pool is not None:
            self.pool = _read_pool(preset.pool, preset.pool_skip, preset.pool_avoid)

    @cached_property
    def built(self) -> PuzzleNetwork:
        return build(self.preset)

    def network(self) -> nn.Module:
        if self.preset.digit_units:
            cast(CellSudoku, self.built).treat_digits_alike(self.preset.digit_units)
        return self.built

    def optimizer(self, network: nn.Module) -> torch.optim.Optimizer:
        optimizer = super().optimizer(network)
        if self.preset.digit_units:
            tie(optimizer, cast(CellSudoku, network).digit_ties(self.preset.digit_units))
        return optimizer

    def begin(self, rng: np.random.Generator, shard: Shard) -> Carry:
        if self.preset.batch_size % (self.preset.copies * shard.world):
            raise InputError(f"--batch-size: expected a multiple of --copies times {shard.world} processes")
        return super().begin(rng, shard)

    def sample(self, rng: np.random.Generator) -> Batch:
        return self._fresh(self.preset.batch_size, rng, torch.device("cpu"))

    def _fresh(self, count: int, rng: np.random.Generator, device: torch.device) -> Batch:
        puzzles, solutions = self.draw(count // self.preset.copies, rng)
        batch = {"puzzle": torch.from_numpy(puzzles).long(), "solution": torch.from_numpy(solutions).long()}
        if self.preset.slot_steps:
            limits = self._limits(len(puzzles), rng)
            batch |= {"age": torch.zeros_like(limits), "limit": limits}
        copied = {name: part.to(device).repeat_interleave(self.preset.copies, dim=0) for name, part in batch.items()}
        return self.built.prepare(copied)

    def draw(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Puzzles and solutions (count, 81): generated, and some from the pool if there is one."""
        from_pool = int(rng.binomial(count, self.preset.pool_share)) if self.pool else 0
        least, most = self.preset.extra_givens
        if self.preset.lower_by:
            most = max(most, round(self.most_extra))
            least = max(least, most - WINDOW)
        else:
            most += round(self.preset.easier * max(0.0, 1 - self.progress / EASIER_UNTIL))
        puzzles, solutions = generate(count - from_pool, rng, (least, most))
        if not self.pool or not from_pool:
            return puzzles, solutions
        rows = rng.integers(len(self.pool[0]), size=from_pool)
        low, high = (least, most) if self.preset.lower_by else self.preset.pool_extra_givens
        extra = rng.integers(low, high + 1, size=from_pool)
        pooled = add_givens(self.pool[0][rows], self.pool[1][rows], extra, rng)
        pooled, pooled_solutions = random_symmetry(pooled, self.pool[1][rows], rng)
        order = rng.permutation(count)
        return np.concatenate([puzzles, pooled])[order], np.concatenate([solutions, pooled_solutions])[order]

    def targets(self, batch: Batch) -> Tensor:
        return batch["solution"].flatten() - (0 if self.knows_empty else 1)

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        if self.preset.copies > 1:
            return self._loss_of_winners(outputs, batch)
        if self.knows_empty:
            return super().loss(outputs, batch)
        empty = (batch["puzzle"] == 0).flatten()
        targets = self.targets(batch)[empty]
        considered = outputs[:, empty] if self.preset.loss == "every" else outputs[-1:, empty]
        return F.cross_entropy(considered.flatten(0, 1), targets.repeat(len(considered)))

    def _loss_of_winners(self, outputs: Tensor, batch: Batch) -> Tensor:
        """A mean over the empty cells of the places that count; the others count a little, lest they go astray."""
        considered = outputs if self.preset.loss == "every" else outputs[-1:]
        targets = self.targets(batch).expand(len(considered), -1)
        losses = F.cross_entropy(considered.movedim(-1, 1), targets, reduction="none").mean(0).view(-1, 81)
        counts = torch.ones_like(losses) if self.knows_empty else (batch["puzzle"] == 0).to(losses)
        by_place = (losses * counts).sum(1) / counts.sum(1).clamp(min=1)
        weights = winners(by_place, self.preset.copies, OTHERS)[:, None] * counts
        return (losses * weights).sum() / weights.sum()

    def measure(self, outputs: Tensor, batch: Batch) -> dict[str, float]:
        right = (outputs[-1].argmax(-1) == self.targets(batch)).view(-1, 81)
        return {"cells": float(right.float().mean()), "solved": float(right.all(1).float().mean())}

    def steps_of(self, carry: Carry) -> int:
        return self.preset.segment or self.preset.steps if self.preset.slot_steps else super().steps_of(carry)

    def proceed(self, carry: Carry, outputs: Tensor, rng: np.random.Generator, shard: Shard) -> Carry | None:
        if not self.preset.slot_steps:
            return super().proceed(carry, outputs, rng, shard)
        assert carry.state is not None
        batch = dict(carry.batch)
        batch["age"] = batch["age"] + len(outputs)
        right = (outputs.argmax(-1) == self.targets(batch)).view(len(outputs), -1, 81).all(-1)
        solved, late = self._any_copy(right[0] & right[-1]), batch["age"] >= batch["limit"]
        if self.preset.lives:
            solved = torch.zeros_like(solved)
        elif self.preset.stay:
            goes = rng.random(len(solved) // self.preset.copies) >= self.preset.stay
            solved &= torch.from_numpy(goes).to(solved.device).repeat_interleave(self.preset.copies)
        finished = solved | late
        if self.preset.lower_by and bool(finished.any()):
            share = float(self._any_copy(right[-1])[finished].float().mean())
            self.solved_share += SHARE_MEMORY * int(finished.sum()) * (share - self.solved_share)
            if self.solved_share > LOWER_FROM:
                self.most_extra = max(float(self.preset.extra_givens[1]), self.most_extra - self.preset.lower_by)
        if shard.world > 1:
            rng = np.random.default_rng([int(rng.integers(2**31)), shard.rank])
        numbers = torch.arange(len(late), device=late.device)
        places = Places(numbers, late, self.rows_of(batch), batch["age"], carry.state)
        if self.preset.noise:
            which = torch.from_numpy((rng.random(len(late)) < self.preset.noise_share).astype(np.float32))
            generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
            places = places.noisy(self.built.noisy, self.preset.noise * which.to(late.device), generator)
        if not finished.any():
            return Carry(batch, places.state, carry.done)
        fresh = self._fresh(int(finished.sum()), rng, late.device)
        sizes = self.rows_of(fresh)
        entering = Places.enter(sizes, sizes, self.built.start(fresh))
        if self.preset.start_noise:
            amount = torch.full_like(sizes, self.preset.start_noise, dtype=torch.float32)
            entering = entering.noisy(self.built.noisy, amount, torch.Generator().manual_seed(int(rng.integers(2**31))))
        places = places.leave(finished).join(entering)
        batch = {name: torch.cat([batch[name][~finished], fresh[name]]) for name in batch}
        return Carry(batch, places.state.detach(), carry.done)

    def rows_of(self, batch: Batch) -> Tensor:
        return self.built.rows(batch)

    def _any_copy(self, of_place: Tensor) -> Tensor:
        """Whether it holds for any of the places that work on the same puzzle."""
        return of_place.view(-1, self.preset.copies).any(1).repeat_interleave(self.preset.copies)

    def _limits(self, count: int, rng: np.random.Generator) -> Tensor:
        """How many steps each of so many new puzzles may have."""
        assert self.preset.slot_steps is not None
        first, last = self.preset.slot_steps
        limit = first + (last - first) * min(self.progress, 1.0)
        if not self.preset.lives:
            return torch.full((count,), round(limit), device="cpu")
        drawn = np.exp(rng.uniform(np.log(min(SHORTEST_LIFE, limit)), np.log(limit), size=count))
        return torch.from_numpy(drawn.round().astype(np.int64))

    def position(self) -> dict[str, float]:
        return {"most_extra": self.most_extra, "solved_share": self.solved_share}

    def restore(self, position: dict[str, float]) -> None:
        self.most_extra, self.solved_share = position["most_extra"], position["solved_share"]

    def validate(self, network: nn.Module) -> dict[str, float]:
        """On puzzles made for this, as hard as training gets; where givens are not lowered, on the paper's mix."""
        if self.validation is None:
            mixed = (0, 17) if self.preset.network == "paper" and not self.preset.lower_by else self.preset.extra_givens
            self.validation = generate(VALIDATION, seeded(VALIDATION_SEED), mixed)
        puzzles, solutions = self.validation
        steps = FILLS if self.preset.network == "convolutional" else min(self.preset.steps, 64)
        solved = solve(puzzles, network=network, max_steps=steps, restarts=0)
        cells = float((solved.grids == solutions).mean())
        right = float((solved.grids == solutions).all(1).mean())
        figures = {"score": right + 0.01 * cells, "solved": right, "cells": cells}
        return figures | {"most_extra": self.most_extra} if self.preset.lower_by else figures


def _read_pool(path: Path, skip: int, avoid: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Puzzles and solutions of a file without its first ones, those to avoid, and all relatives of either."""
    read = read_puzzles(path, prove="unsolved")
    puzzles, solutions = read.puzzles, read.solutions
    if avoid is not None:
        kept_for_testing = fingerprints(read_puzzles(avoid, prove="unsolved").solutions)
        unrelated = ~np.isin(fingerprints(solutions), kept_for_testing)
        unrelated[:skip] = True
        puzzles, solutions = puzzles[unrelated], solutions[unrelated]
    rows = split_pool(solutions, test=skip, valid=0)[0]["train"]
    return puzzles[rows], solutions[rows]


make = SudokuExperiment
