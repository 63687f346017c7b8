"""How Sudoku is trained: on puzzles made on the spot, each kept until the network has solved it."""

import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn._compat import COMPILED
from rrn.errors import InputError, needs_extra
from rrn.nn.losses import IGNORE
from rrn.tasks.sudoku.baselines.presets import ConvolutionalPreset
from rrn.tasks.sudoku.data import PuzzleSet, add_givens
from rrn.tasks.sudoku.exact import generate, generate_thin
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.model import build, what_givens_say
from rrn.tasks.sudoku.predict import solve
from rrn.tasks.sudoku.puzzle_network import PuzzleNetwork
from rrn.tasks.sudoku.settings import CandidatesPreset, PaperPreset, SudokuPreset
from rrn.tasks.sudoku.symmetry import fingerprints, random_symmetry
from rrn.training.curriculum import Easing
from rrn.training.experiment import Batch, seeded
from rrn.training.slots import SlotExperiment, draw_from

VALIDATION = 256
"""Puzzles; four times as many for the network on candidates, which is quick."""
VALIDATION_SEED, THIN_SEED = 7, 8
NONE = 9
"""With --wrong: the class of a cell that no digit fits."""
EASIER_UNTIL = 0.5
WINDOW = 12
"""With --lower-by: the number of extra digits is drawn from the most to so many fewer."""
SHARE_MEMORY = 0.005
"""With --lower-by: see `Easing`."""


class SudokuExperiment(SlotExperiment[SudokuPreset]):
    def __init__(self, preset: SudokuPreset) -> None:
        super().__init__(preset)
        self.wrong = preset.wrong if isinstance(preset, CandidatesPreset) else 0.0
        if isinstance(preset, PaperPreset | ConvolutionalPreset) and 9 * preset.digit_units > preset.hidden:
            raise InputError("--digit-units: at most a ninth of --hidden")
        if preset.lower_by:
            self.easing = Easing(preset.easier, preset.extra_givens[1], preset.lower_by, SHARE_MEMORY)
        self.files = _read_pools(preset.pool, preset.pool_skip, preset.pool_avoid)

    @cached_property
    def pools(self) -> list[PuzzleSet]:
        """The puzzles of --pool and --thin. The latter are made when first asked for: it counts as training."""
        if not self.preset.thin:
            return self.files
        if not COMPILED:
            missing = needs_extra("--thin: making puzzles with few givens", "fast")
            warnings.warn(f"{missing}; training goes on without them", stacklevel=1)
            return self.files
        return [*self.files, PuzzleSet(*generate_thin(self.preset.thin, seeded(self.preset.seed, THIN_SEED)))]

    @cached_property
    def built(self) -> PuzzleNetwork:
        return build(self.preset)

    without_ties = "--digit-units 0 or --no-lines-alike"

    def draw(self, count: int, rng: np.random.Generator) -> Batch:
        """Puzzles and solutions: generated, and some from the pools if there are any."""
        from_pool = int(rng.binomial(count, self.preset.pool_share)) if self.pools else 0
        least, most = self.preset.extra_givens
        if self.easing:
            most = max(most, round(self.easing.most))
            least = max(least, most - WINDOW)
        else:
            most += round(self.preset.easier * max(0.0, 1 - self.progress / EASIER_UNTIL))
        grids: Sequence[np.ndarray] = generate(count - from_pool, rng, (least, most))
        if from_pool:
            puzzles, solutions = draw_from(self.pools, from_pool, rng)
            low, high = (least, most) if self.easing else self.preset.pool_extra_givens
            puzzles = add_givens(puzzles, solutions, rng.integers(low, high + 1, size=from_pool), rng)
            pooled, order = random_symmetry(puzzles, solutions, rng), rng.permutation(count)
            grids = [np.concatenate(parts)[order] for parts in zip(grids, pooled, strict=True)]
        batch = {name: torch.from_numpy(part).long() for name, part in zip(("puzzle", "solution"), grids, strict=True)}
        return self._with_wrong_digits(batch, rng) if self.wrong else batch

    def _with_wrong_digits(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Some of the puzzles with a digit that no given rules out, but the solution does; "wrong" says which."""
        puzzles = batch["puzzle"].clone()
        others = what_givens_say(puzzles)[1] & ~F.one_hot(batch["solution"] - 1, 9).flatten(1).bool()
        wrong = torch.from_numpy(rng.random(len(puzzles)) < self.wrong) & others.any(1)
        for row in wrong.nonzero()[:, 0].tolist():
            candidate = int(rng.choice(others[row].nonzero()[:, 0].numpy()))
            puzzles[row, candidate // 9] = candidate % 9 + 1
        return batch | {"puzzle": puzzles, "wrong": wrong}

    def targets(self, batch: Batch) -> Tensor:
        """Of cells that are not given, unless the network says "empty" too, and so learns from given ones as well."""
        classes = self._classes(batch)
        return classes if self.built.first_digit else classes.where(batch["puzzle"].flatten() == 0, IGNORE)

    def logits(self, outputs: Tensor) -> Tensor:
        return F.pad(outputs, (0, 1)) if self.wrong else outputs

    def _classes(self, batch: Batch) -> Tensor:
        classes = batch["solution"].flatten() - 1 + self.built.first_digit
        return classes.where(~batch["wrong"].repeat_interleave(81), NONE) if self.wrong else classes

    def measure(self, outputs: Tensor, batch: Batch) -> dict[str, float]:
        cells = outputs[-1].argmax(-1) == self._classes(batch)
        return {"cells": float(cells.float().mean()), "solved": float(self.right(outputs[-1:], batch).float().mean())}

    @cached_property
    def validation(self) -> PuzzleSet:
        """As hard as training gets; for the paper's network, where givens are not lowered, the paper's mix."""
        mixed = isinstance(self.preset, PaperPreset) and not self.preset.lower_by
        givens = (0, 17) if mixed else self.preset.extra_givens
        count = 4 * VALIDATION if isinstance(self.preset, CandidatesPreset) else VALIDATION
        return PuzzleSet(*generate(count, seeded(VALIDATION_SEED), givens))

    def validate(self, network: nn.Module) -> dict[str, float]:
        steps = self.built.looks or min(self.preset.steps, 64)
        solved = solve(self.validation.puzzles, network=network, max_steps=steps, restarts=0)
        cells = solved.grids == self.validation.solutions
        figures = {"solved": float(cells.all(1).mean()), "cells": float(cells.mean())}
        figures["score"] = figures["solved"] + 0.01 * figures["cells"]
        return figures | {"most_extra": self.easing.most} if self.easing else figures


def _read_pools(paths: Sequence[Path], skip: int, avoid: Sequence[Path]) -> list[PuzzleSet]:
    """The puzzles of some files without the first ones of the first, those to avoid, and all relatives of either."""
    files = [read_puzzles(path, prove="unsolved") for path in paths]
    tests = [read_puzzles(path, prove="unsolved").solutions for path in avoid]
    tests += [file.solutions[:skip] for file in files[:1]]
    if not files:
        return []
    kept_for_testing, pools = fingerprints(np.concatenate(tests)), []
    for path, file in zip(paths, files, strict=True):
        rows = ~np.isin(fingerprints(file.solutions), kept_for_testing)
        if not rows.any():
            raise InputError(f"{path}: nothing is left to train on without what is kept for testing and its relatives")
        pools.append(PuzzleSet(file.puzzles[rows], file.solutions[rows]))
    return pools


make = SudokuExperiment
