"""The deep convolutional network of Park (2016): the puzzle as an image of 9 × 9 pixels.

Ten layers of 3 × 3 filters compute the digit probabilities of each cell from the current grid. A step evaluates the
network and fills in the most probable digit of all empty cells.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.nn.updates import State
from rrn.tasks.sudoku.baselines.factor_graph import fill_most_probable, given_digits
from rrn.tasks.sudoku.model import PuzzleNetwork
from rrn.training.experiment import Batch
from rrn.training.tying import Axis, Ties, draw_tied, ties_of

LAYERS = 10
FILLED = 30.0
"""Added to the logit of a digit that is given or has been filled in."""


class ConvolutionalSudoku(PuzzleNetwork):
    """The state is the current grid, (n, 81), 0 for an empty cell. The original has 512 ``filters``."""

    validation_steps = 64  # as many digits are filled in; it is trained on one

    def __init__(self, filters: int, tied_digit_units: int = 0) -> None:
        super().__init__()
        widths = [10, *[filters] * LAYERS]
        self.layers = nn.Sequential(
            *[
                nn.Sequential(
                    nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)
                )
                for before, after in pairwise(widths)
            ]
        )
        self.digits = nn.Conv2d(filters, 9, 1)
        self.filters, self.tied_digit_units = filters, tied_digit_units

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        puzzles = batch["puzzle"]
        grids = puzzles if state is None else state.h.long()
        outputs = []
        for _ in range(steps):
            logits = self.evaluate(grids)
            outputs.append(logits + FILLED * given_digits(grids))
            grids = fill_most_probable(grids, logits)
        return torch.stack(outputs).flatten(1, 2), State(grids.float())

    def evaluate(self, grids: Tensor) -> Tensor:
        """Logits of every cell's digits, (n, 81) → (n, 81, 9)."""
        image = F.one_hot(grids, 10).to(self.digits.weight.dtype).view(-1, 9, 9, 10).permute(0, 3, 1, 2)
        return self.digits(self.layers(image)).permute(0, 2, 3, 1).flatten(1, 2)

    def ties(self) -> list[Ties]:
        """The weight tying: each digit has ``tied_digit_units`` filters of every layer."""
        if not (units := self.tied_digit_units):
            return []
        empty, digits = Axis.of(0, 0, 1), Axis.of(9, 1, 0)
        hidden = Axis.of(9, units, self.filters - 9 * units)
        convolutions = {f"layers.{number}.0": hidden.times(9) for number in range(1, LAYERS)}
        inputs = {"layers.0.0": (empty + digits).times(9)} | convolutions
        return ties_of(self, hidden, outputs={"digits": digits}, inputs=inputs)

    def tie_weights(self) -> None:
        draw_tied(self.ties(), own=2.0, rest=0.5)

    def initial_state(self, batch: Batch) -> State:
        """Noise changes nothing: a grid cannot be a little different."""
        return State(batch["puzzle"].float())
