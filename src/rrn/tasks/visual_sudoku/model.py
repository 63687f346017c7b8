"""An image encoder in front of the paper's network for Sudoku."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.inference.attempts import RecurrentNetwork
from rrn.nn.updates import State
from rrn.tasks.sudoku.model import CellSudoku
from rrn.tasks.visual_sudoku.presets import VisualSudokuPreset
from rrn.training.experiment import Batch
from rrn.training.tying import Ties

SHIFTS = (1, 1), (0, 1), (2, 1), (1, 0), (1, 2)
"""The first row and column of each reading of an image that is framed by one pixel."""


def image_encoder(filters: int, dropout: float, classes: int = 9) -> nn.Sequential:
    """Images (n, 1, 28, 28) → logits of the digits (n, classes)."""
    return nn.Sequential(
        nn.Conv2d(1, filters, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(filters, 2 * filters, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(2 * filters, 2 * filters, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(9 * 2 * filters, classes),
    )


class VisualSudoku(RecurrentNetwork):
    """Called with a batch of images ("cells": uint8 (n, 81, 28, 28), zeros where a cell is empty), it returns logits
    of the digits of every cell after every step, (steps, n · 81, 10), and the state after the last step."""

    first_class = 1

    def __init__(self, preset: VisualSudokuPreset) -> None:
        super().__init__()
        self.encoder = image_encoder(preset.filters, preset.encoder_dropout)
        self.reasoner = CellSudoku(preset)
        self.reasoner.requires_grad_(preset.train_reasoner)
        self.own_answers = preset.own_answers

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.own_answers):
            return self.reasoner(batch | {"puzzle": self.read(batch["cells"])}, steps=steps, state=state)

    def read(self, cells: Tensor) -> Tensor:
        """Probabilities of "empty" and of the nine digits in every cell: (n, 81, 10)."""
        given = cells.flatten(2).amax(-1) > 0
        digits = torch.zeros(*given.shape, 10, device=cells.device)
        digits[..., 0] = (~given).float()
        if given.any():
            training = self.encoder.training
            self.encoder.train(training and not self.own_answers)  # its own answers are better without dropout
            digits[given] = F.pad(self.encode(cells[given]).softmax(-1), (1, 0))
            self.encoder.train(training)
        return digits

    def encode(self, images: Tensor) -> Tensor:
        """Logits of the nine digits: uint8 (n, 28, 28) → (n, 9). Outside of training, the mean over five readings: of
        the image, and of the image shifted by one pixel to each side."""
        pixels = images[:, None].float() / 255
        if self.training:
            return self.encoder(pixels)
        high, wide = images.shape[1:]
        framed = F.pad(pixels, (1, 1, 1, 1))
        shifted = [framed[:, :, top : top + high, left : left + wide] for top, left in SHIFTS]
        return torch.stack([self.encoder(part) for part in shifted]).mean(0)

    def rows(self, batch: Batch) -> Tensor:
        return torch.full((len(batch["cells"]),), 81, device=batch["cells"].device)

    def initial_state(self, batch: Batch) -> State:
        return self.reasoner.initial_state({"puzzle": self.read(batch["cells"])})

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return self.reasoner.add_noise(state, noise, generator)

    def ties(self) -> list[Ties]:
        return self.reasoner.ties()

    def tie_weights(self) -> None:
        self.reasoner.tie_weights()


build = VisualSudoku
