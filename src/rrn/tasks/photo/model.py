"""The digit reader: images of cells → "empty" or a digit."""

import torch
from torch import Tensor, nn

from rrn.nn.updates import State
from rrn.tasks.photo.presets import DigitReaderPreset
from rrn.tasks.visual_sudoku.model import image_encoder
from rrn.training.experiment import Batch


class DigitReader(nn.Module):
    """Called with a batch of images ("cells": float32 (n, 28, 28), 1 is ink), it returns logits (steps, n, 10), the
    same for every step; class 0 is an empty cell. The state is empty."""

    def __init__(self, preset: DigitReaderPreset) -> None:
        super().__init__()
        self.encoder = image_encoder(preset.filters, preset.dropout, classes=10)

    def forward(self, batch: Batch, *, steps: int = 1, state: State | None = None) -> tuple[Tensor, State]:
        logits = self.encoder(batch["cells"][:, None])
        return logits.expand(steps, -1, -1), State(torch.zeros(len(logits), 0, device=logits.device))


build = DigitReader
