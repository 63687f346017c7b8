"""What every network for Sudoku answers to: the paper's, ours and the baselines."""

from abc import abstractmethod

from torch import Tensor

from rrn.inference.places import Resumable
from rrn.nn.updates import State
from rrn.training.experiment import Batch


class PuzzleNetwork(Resumable):
    """Called with a batch of puzzles ("puzzle": (n, 81) digits, 0 for empty), it returns logits of the digits of every
    cell after every step, (steps, n · 81, classes), and a state from which it goes on."""

    first_digit = 0
    """The class that is the digit 1; where it is not the first, that is "empty"."""
    looks: int | None = None
    """Steps in which it is validated, if not as many as in training."""
    refutes = False
    """Whether it says "none" of cells that no digit fits (by the logits of all digits), so that guesses can be taken
    back."""
    any_size = False
    """Whether it also takes Sudokus of other sizes than 9 × 9: `prepare` and the network are then told the ``box``."""

    @abstractmethod
    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]: ...
