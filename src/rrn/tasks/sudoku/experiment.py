"""Training on Sudoku: generated puzzles, each of which keeps its slot until it is solved."""

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
from rrn.tasks.sudoku.exact import generate, generate_few_givens, generate_hard
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.grid import candidates_of
from rrn.tasks.sudoku.model import PuzzleNetwork, build
from rrn.tasks.sudoku.predict import SLOTS, answers_by_step, solve
from rrn.tasks.sudoku.settings import CandidatesPreset, PaperPreset, SudokuPreset
from rrn.tasks.sudoku.symmetry import fingerprints, random_symmetry
from rrn.training.curriculum import GivensCurriculum
from rrn.training.experiment import Batch, seeded
from rrn.training.slots import SlotExperiment, draw_from

VALIDATION = 256
"""Number of puzzles; four times as many for the network on candidates, which is fast."""
LONG_RUN, LONG_RUN_PUZZLES = 8, 64
"""With --stay, validation runs some of the puzzles for this many times the steps."""
VALIDATION_SEED, FEW_GIVENS_SEED = 7, 8
LEAST_GUESSES = 12
"""Of the puzzles of --hard-pool: guesses of the exact solver."""
NONE = 9
"""With --contradiction-share: the class of every cell of a puzzle without a solution."""
CURRICULUM_END = 0.5
"""Without --extra-givens-decrement: the share of training at which the curriculum ends."""
WINDOW = 12
"""With --extra-givens-decrement: the width of the range from which the number of extra givens is drawn."""
SHARE_MEMORY = 0.005
"""With --extra-givens-decrement: see `GivensCurriculum`."""


class SudokuExperiment(SlotExperiment[SudokuPreset]):
    def __init__(self, preset: SudokuPreset, whole: SudokuPreset | None = None) -> None:
        super().__init__(preset, whole)
        self.contradiction_share = preset.contradiction_share if isinstance(preset, CandidatesPreset) else 0.0
        if isinstance(preset, PaperPreset | ConvolutionalPreset) and 9 * preset.tied_digit_units > preset.hidden:
            raise InputError("--tied-digit-units: at most a ninth of --hidden")
        if preset.extra_givens_decrement:
            self.curriculum = GivensCurriculum(
                preset.extra_givens_start, preset.extra_givens[1], preset.extra_givens_decrement, SHARE_MEMORY
            )
        self.pool_files = _read_pools(preset.pool, preset.pool_skip, preset.pool_avoid)
        if COMPILED and preset.few_givens_pool:
            seconds = preset.few_givens_pool / 100 + preset.hard_pool / 5
            self.preparation = f"before the first update, difficult puzzles are generated: about {seconds:.0f} s"

    @cached_property
    def pools(self) -> list[PuzzleSet]:
        """The puzzles of --pool, --few-givens-pool and --hard-pool. The latter are generated at first use."""
        if not self.preset.few_givens_pool:
            return self.pool_files
        if not COMPILED:
            missing = needs_extra("--few-givens-pool: generating puzzles with few givens", "fast")
            warnings.warn(f"{missing}; training continues without them", stacklevel=1)
            return self.pool_files
        rng = seeded(self.preset.seed, FEW_GIVENS_SEED)
        few_givens, hard = self.preset.few_givens_pool, self.preset.hard_pool

        def progress(made: int) -> None:
            self.report(f"generated {made:,} of {few_givens + hard:,} difficult puzzles")

        self.report("preparing difficult puzzles")
        progress(0)  # the first of them may take long: numba compiles the generator once
        pools = [*self.pool_files, PuzzleSet(*generate_few_givens(few_givens, rng, progress))]
        if not hard:
            return pools
        puzzles, solutions, _ = generate_hard(
            hard, rng, LEAST_GUESSES, progress=lambda made: progress(few_givens + made)
        )
        return [*pools, PuzzleSet(puzzles, solutions)]

    def prepare(self) -> None:
        """Generate the difficult puzzles."""
        _ = self.pools

    @cached_property
    def built(self) -> PuzzleNetwork:
        return build(self.preset)

    without_ties = "--tied-digit-units 0 or --no-tie-rows-and-columns"

    def draw(self, count: int, rng: np.random.Generator) -> Batch:
        """Puzzles and solutions: generated ones, and a share of --pool-share from the pools."""
        from_pool = int(rng.binomial(count, self.preset.pool_share)) if self.pools else 0
        least, most = self.preset.extra_givens
        if self.curriculum:
            most = max(most, round(self.curriculum.extra))
            least = max(least, most - WINDOW)
        else:
            most += round(self.preset.extra_givens_start * max(0.0, 1 - self.progress / CURRICULUM_END))
        grids: Sequence[np.ndarray] = self._with_easy(*generate(count - from_pool, rng, (least, most)), rng)
        if from_pool:
            puzzles, solutions = draw_from(self.pools, from_pool, rng)
            low, high = (least, most) if self.curriculum else self.preset.pool_extra_givens
            puzzles = add_givens(puzzles, solutions, rng.integers(low, high + 1, size=from_pool), rng)
            pooled, order = random_symmetry(puzzles, solutions, rng), rng.permutation(count)
            grids = [np.concatenate(parts)[order] for parts in zip(grids, pooled, strict=True)]
        batch = {name: torch.from_numpy(part).long() for name, part in zip(("puzzle", "solution"), grids, strict=True)}
        return self._with_contradictions(batch, rng) if self.contradiction_share else batch

    def _with_easy(
        self, puzzles: np.ndarray, solutions: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add further givens to a share of --easy-share of the puzzles (n, 81)."""
        if not self.preset.easy_share:
            return puzzles, solutions
        easy = rng.random(len(puzzles)) < self.preset.easy_share
        most = max(self.preset.extra_givens_start, 1)
        extra = rng.integers(self.preset.extra_givens[0], most + 1, size=len(puzzles))
        extra = np.minimum(np.where(easy, extra, 0), (puzzles == 0).sum(1))
        return add_givens(puzzles, solutions, extra, rng), solutions

    def _with_contradictions(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Give some puzzles a digit that the solution excludes, but no given does; "contradictory" (n,) marks them."""
        puzzles = batch["puzzle"].clone()
        others = candidates_of(puzzles)[1] & ~F.one_hot(batch["solution"] - 1, 9).flatten(1).bool()
        contradictory = torch.from_numpy(rng.random(len(puzzles)) < self.contradiction_share) & others.any(1)
        for row in contradictory.nonzero()[:, 0].tolist():
            candidate = int(rng.choice(others[row].nonzero()[:, 0].numpy()))
            puzzles[row, candidate // 9] = candidate % 9 + 1
        return batch | {"puzzle": puzzles, "contradictory": contradictory}

    def targets(self, batch: Batch) -> Tensor:
        """Classes (n · 81,): those of given cells are ignored, unless the network has a class "empty"."""
        classes = self._classes(batch)
        return classes if self.built.first_class else classes.where(batch["puzzle"].flatten() == 0, IGNORE)

    def logits(self, outputs: Tensor) -> Tensor:
        return F.pad(outputs, (0, 1)) if self.contradiction_share else outputs

    def _classes(self, batch: Batch) -> Tensor:
        classes = batch["solution"].flatten() - 1 + self.built.first_class
        if not self.contradiction_share:
            return classes
        return classes.where(~batch["contradictory"].repeat_interleave(81), NONE)

    def measure(self, outputs: Tensor, batch: Batch) -> dict[str, float]:
        cells = outputs[-1].argmax(-1) == self._classes(batch)
        return {"cells": float(cells.float().mean()), "solved": float(self.right(outputs[-1:], batch).float().mean())}

    @cached_property
    def validation(self) -> PuzzleSet:
        """Puzzles of the final --extra-givens; half of those of the paper's network have 0 to 17 more, as in the
        paper."""
        count = 4 * VALIDATION if isinstance(self.whole, CandidatesPreset) else VALIDATION
        rng, mixed = seeded(VALIDATION_SEED), isinstance(self.whole, PaperPreset)
        few = count if not mixed else count // 2 if self.whole.extra_givens_decrement else 0
        parts = [generate(few, rng, self.whole.extra_givens), generate(count - few, rng, (0, 17))]
        return PuzzleSet(*(np.concatenate(grids) for grids in zip(*parts, strict=True)))

    def validate(self, network: nn.Module) -> dict[str, float]:
        """The score counts grids that are solved *within* all steps.

        With --stay it is the mean of those right *at* half of the steps and *at* the last step, less the share that is
        lost by `LONG_RUN` times the steps.
        """
        steps = self.built.validation_steps or min(self.whole.steps, 64)
        puzzles, solutions = self.validation.puzzles, self.validation.solutions
        if self.whole.stay:
            answers = _answers_at(network, puzzles, [max(steps // 2, 1), steps])
        else:
            answers = solve(puzzles, network=network, max_steps=steps, attempts=1).answers[None]
        cells = answers == solutions
        solved = cells.all(-1).mean(1)
        figures = {"solved": float(solved[-1]), "cells": float(cells[-1].mean())}
        if self.whole.stay:
            figures["solved_at_half"] = float(solved[0])
            figures["lost"] = _share_lost(network, puzzles, solutions, steps)
        figures["score"] = float(solved.mean()) + 0.01 * figures["cells"] - figures.get("lost", 0.0)
        return figures | {"most_extra": self.curriculum.extra} if self.curriculum else figures


def _answers_at(network: nn.Module, puzzles: np.ndarray, steps: Sequence[int]) -> np.ndarray:
    """The answers after each of the steps, in ascending order: (len(steps), n, 81)."""
    at = [step - 1 for step in steps]
    parts = [puzzles[low : low + SLOTS] for low in range(0, len(puzzles), SLOTS)]
    return np.concatenate([answers_by_step(network, part, steps[-1])[at] for part in parts], axis=1)


def _share_lost(network: nn.Module, puzzles: np.ndarray, solutions: np.ndarray, steps: int) -> float:
    """The share of `LONG_RUN_PUZZLES` that is right at the last step, and wrong at `LONG_RUN` times the steps."""
    every = len(puzzles) // LONG_RUN_PUZZLES or 1
    answers = _answers_at(network, puzzles[::every], [steps, LONG_RUN * steps])
    right, still_right = (answers == solutions[::every]).all(-1)
    return float((right & ~still_right).mean())


def _read_pools(paths: Sequence[Path], skip: int, avoid: Sequence[Path]) -> list[PuzzleSet]:
    """Puzzles of the files, without the first ``skip`` of the first file, those to avoid, and all relatives of both."""
    files = [read_puzzles(path, prove="unsolved") for path in paths]
    tests = [read_puzzles(path, prove="unsolved").solutions for path in avoid]
    tests += [file.solutions[:skip] for file in files[:1]]
    if not files:
        return []
    for_testing, pools = fingerprints(np.concatenate(tests)), []
    for path, file in zip(paths, files, strict=True):
        rows = ~np.isin(fingerprints(file.solutions), for_testing)
        if not rows.any():
            raise InputError(f"{path}: nothing is left to train on: all puzzles are for testing, or relatives of those")
        pools.append(PuzzleSet(file.puzzles[rows], file.solutions[rows]))
    return pools


make = SudokuExperiment
