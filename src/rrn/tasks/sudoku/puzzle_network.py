"""What every network for Sudoku answers to: the paper's, ours and the baselines."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from rrn.training.experiment import Batch
from rrn.updates import State


class PuzzleNetwork(nn.Module, ABC):
    """Called with a batch of puzzles ("puzzle": (n, 81) digits, 0 for empty), it returns logits of the digits of every
    cell after every step, (steps, n · 81, classes), and a state from which it goes on."""

    first_digit = 0
    """The class that is the digit 1."""
    keeps_device = True
    """Batches are put where it is, so states stay there: see `rrn.devices`."""
    any_size = False
    """Whether it also takes Sudokus of other sizes than 9 × 9: `prepare` and the network are then told the ``box``."""

    @property
    def device(self) -> torch.device:
        """Where its weights are; the CPU if it has none."""
        return next((weight.device for weight in self.parameters()), torch.device("cpu"))

    @abstractmethod
    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]: ...

    def prepare(self, batch: Batch) -> Batch:
        """The batch with all that follows from its puzzles alone, derived once however often it is called."""
        return batch

    def rows(self, batch: Batch) -> Tensor:
        """How many rows of the state each puzzle has: (n,)."""
        return torch.ones_like(batch["puzzle"][:, 0])

    @abstractmethod
    def start(self, batch: Batch) -> State:
        """The state before the first step."""

    def noisy(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        """The state with noise of a standard deviation (rows, 1) added."""
        return state
