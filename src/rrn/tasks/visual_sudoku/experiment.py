"""Training on visual Sudoku: puzzles whose givens are images, without labels of images.

The loss is on empty cells; or on the network's own answers in given cells, of solved grids (--own-answers).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.nn.losses import IGNORE
from rrn.tasks.sudoku.experiment import SudokuExperiment
from rrn.tasks.sudoku.grid import breaks_a_rule
from rrn.tasks.visual_sudoku.data import Digits, distorted, read_digits
from rrn.tasks.visual_sudoku.model import VisualSudoku, build
from rrn.tasks.visual_sudoku.predict import digit_accuracy, last_answers
from rrn.tasks.visual_sudoku.presets import VisualSudokuPreset
from rrn.training.experiment import Batch, seeded

VALIDATION = 240
VALIDATION_SEED = 7
REASONER = "reasoner."
SAMPLED = 512
"""With --own-answers: images that an update draws from the labelled ones, each distorted. Their number is fixed:
torch keeps memory for every number of images that it has seen."""


class VisualSudokuExperiment(SudokuExperiment):
    preset: VisualSudokuPreset

    def __init__(self, preset: VisualSudokuPreset, whole: VisualSudokuPreset | None = None) -> None:
        self.digits = read_digits(preset.digits)
        checksum = self.digits.checksum if preset.digits else ""
        super().__init__(*(replace(part, digits_checksum=checksum) for part in (preset, whole or preset)))

    @cached_property
    def built(self) -> Any:
        return build(self.preset)

    @cached_property
    def training_digits(self) -> Digits:
        return self.digits.part("train")

    def start_from(self, network: nn.Module, weights: Mapping[str, Tensor]) -> None:
        """Weights of the whole network, or of the reasoner alone."""
        assert isinstance(network, VisualSudoku)
        whole = any(name.startswith(REASONER) for name in weights)
        super().start_from(network if whole else network.reasoner, weights)

    def draw(self, count: int, rng: np.random.Generator) -> Batch:
        batch = super().draw(count, rng)
        distort = not self.preset.own_answers  # there its copies are, after they are read
        cells = self.training_digits.draw_cells(batch["puzzle"].numpy(), rng, distort)
        return batch | {"cells": torch.from_numpy(cells)}

    def targets(self, batch: Batch) -> Tensor:
        """Classes (n · 81,) of the empty cells; those of the images are ignored, unless --labels."""
        classes = self._classes(batch)
        return classes if self.preset.labels else classes.where(batch["puzzle"].flatten() == 0, IGNORE)

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        return (
            self._loss_of_own_answers(outputs[-1], batch) if self.preset.own_answers else super().loss(outputs, batch)
        )

    def _loss_of_own_answers(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Cross entropy of the image encoder with the answers in the given cells of solved grids that break no rule.

        With --labels it is the cross entropy with the digits in all given cells.
        """
        answers, given = outputs[:, 1:].argmax(-1).view(-1, 81) + 1, batch["puzzle"] > 0
        if self.preset.labels:
            answers = batch["solution"]
        keeps_rules = torch.from_numpy(~breaks_a_rule(answers.cpu().numpy())).to(given.device)
        solved = keeps_rules & (given | (answers == batch["solution"])).all(1)
        labelled = given & solved[:, None]
        if not labelled.any():
            return 0 * self.built.encode(batch["cells"][:, 0]).sum()
        images, digits = batch["cells"][labelled], answers[labelled] - 1
        rng = seeded(self.preset.seed, int(images.sum()))  # of the images alone, so a resumed run draws the same
        rows = torch.from_numpy(rng.integers(len(images), size=SAMPLED)).to(images.device)
        moved = torch.from_numpy(distorted(images[rows].cpu().numpy(), rng)).to(images.device)
        return F.cross_entropy(self.built.encode(moved), digits[rows])

    def validate(self, network: nn.Module) -> dict[str, float]:
        """The score uses no label of an image. ``digits`` is the share of validation images read right."""
        assert isinstance(network, VisualSudoku)
        puzzles, solutions = (part[:VALIDATION] for part in self.validation)
        images = self.digits.part("valid")
        cells = images.draw_cells(puzzles, seeded(VALIDATION_SEED))
        right = (last_answers(network, cells, min(self.whole.steps, 64)) == solutions) | (puzzles > 0)
        figures = {"solved": float(right.all(1).mean()), "cells": float(right[puzzles == 0].mean())}
        figures |= {"score": figures["solved"] + 0.01 * figures["cells"], "digits": digit_accuracy(network, images)}
        return figures | {"most_extra": self.curriculum.extra} if self.curriculum else figures


make = VisualSudokuExperiment
