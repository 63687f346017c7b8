"""Training of the digit reader on rendered cells."""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from rrn.tasks.photo.model import build
from rrn.tasks.photo.presets import DigitReaderPreset
from rrn.tasks.photo.render import render_cells
from rrn.tasks.visual_sudoku.data import Digits, read_digits
from rrn.training.experiment import Batch, Experiment, seeded

VALIDATION, VALIDATION_SEED = 40, 7
"""Grids of 81 cells."""


class DigitReaderExperiment(Experiment[DigitReaderPreset]):
    def __init__(self, preset: DigitReaderPreset, whole: DigitReaderPreset | None = None) -> None:
        super().__init__(preset, whole)
        digits = read_digits(preset.handwriting) if preset.handwriting else None
        self.handwriting: dict[str, Digits | None] = {part: digits and digits.part(part) for part in ("train", "valid")}

    def network(self) -> nn.Module:
        return build(self.preset)

    def sample(self, rng: np.random.Generator) -> Batch:
        return self._grids(-(-self.preset.batch_size // 81), "train", rng, self.preset.batch_size)

    def _grids(self, count: int, part: str, rng: np.random.Generator, most: int | None = None) -> Batch:
        made = [render_cells(rng, self.handwriting[part], self.preset.fonts) for _ in range(count)]
        cells, labels = (np.concatenate(parts)[:most] for parts in zip(*made, strict=True))
        return {"cells": torch.from_numpy(cells), "labels": torch.from_numpy(labels).long()}

    def targets(self, batch: Batch) -> Tensor:
        return batch["labels"]

    @cached_property
    def validation(self) -> Batch:
        return self._grids(VALIDATION, "valid", seeded(VALIDATION_SEED))

    def validate(self, network: nn.Module) -> dict[str, float]:
        device = next(network.parameters()).device
        with torch.inference_mode():
            logits = network({"cells": self.validation["cells"].to(device)})[0][-1]
        right = logits.argmax(-1).cpu() == self.validation["labels"]
        return {"score": float(right.float().mean()), "cells": float(right.float().mean())}


make = DigitReaderExperiment
