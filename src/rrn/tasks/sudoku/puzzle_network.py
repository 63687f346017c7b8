"""The interface of every network for Sudoku: the paper's, ours and the baselines."""

from abc import abstractmethod

from torch import Tensor

from rrn.inference.attempts import RecurrentNetwork
from rrn.nn.updates import State
from rrn.training.experiment import Batch


class PuzzleNetwork(RecurrentNetwork):
    """Called with a batch of puzzles ("puzzle": (n, 81) digits, 0 for empty), it returns logits of the digits of every
    cell after every step, (steps, n · 81, classes), and the state after the last step."""

    validation_steps: int | None = None
    """Steps of validation, if they differ from those of training."""
    detects_contradictions = False
    """Whether the logits of a cell also predict that no digit fits, which best-first search needs."""

    @abstractmethod
    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]: ...
