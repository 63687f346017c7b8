"""Deeply learned messages, after Lin, Shen, Reid and van den Hengel (2015): belief propagation whose messages from a
unit to a cell come from a network instead of a sum over permutations::

    v_cu = softmax(Σ_{w ≠ u} β_wc)            from a cell to a unit; one-hot where the digit is given
    β_uc = MLP(v_au for the other a of u)     from a unit to a cell, nine logits
    p_c  = softmax(Σ_u β_uc)                  the marginal of a cell
"""

import torch
from torch import Tensor, nn

from rrn.nn.layers import MLP
from rrn.nn.updates import State, normal_like
from rrn.tasks.sudoku.baselines.factor_graph import SUDOKU, given_digits
from rrn.tasks.sudoku.model import PuzzleNetwork
from rrn.training.experiment import Batch

CERTAIN = 30.0
"""Added to the logit of a given digit."""


class LearnedMessages(PuzzleNetwork):
    """The state is β, (n, 243 · 9). One network serves rows, columns and boxes; a bias encodes the type of the unit and
    the receiving cell."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.heard = nn.Parameter(torch.randn(9, 9, hidden) * (8 * 9) ** -0.5)
        """The embedding of each cell of a unit, by digit."""
        self.spoken_to = nn.Parameter(torch.zeros(3, 1, 9, hidden))
        self.rest = MLP(hidden, hidden, 9, layers=1)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        puzzles = batch["puzzle"]
        count = len(puzzles)
        given = given_digits(puzzles)
        given_here, is_given = given[:, SUDOKU.cell_of], (puzzles > 0)[:, SUDOKU.cell_of, None]
        beta = (self.initial_state(batch) if state is None else state).h.view(count, SUDOKU.places, 9)
        outputs = []
        for _ in range(steps):
            to_units = torch.where(is_given, given_here, beta[:, SUDOKU.elsewhere].sum(2).softmax(-1))
            beta = self.messages(to_units)
            outputs.append(beta[:, SUDOKU.places_of].sum(2) + CERTAIN * given)
        return torch.stack(outputs).view(steps, count * 81, 9), State(beta.flatten(1))

    def messages(self, to_units: Tensor) -> Tensor:
        """Messages from units to cells, computed from the other eight cells: (n, 243, 9) → (n, 243, 9)."""
        each = torch.einsum("nucd,cdh->nuch", to_units.view(-1, 27, 9, 9), self.heard)
        others = (each.sum(2, keepdim=True) - each).view(-1, 3, 9, 9, each.shape[-1])
        return self.rest((others + self.spoken_to).relu()).view_as(to_units)

    def initial_state(self, batch: Batch) -> State:
        puzzles = batch["puzzle"]
        return State(self.heard.new_zeros(len(puzzles), SUDOKU.places * 9))

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return State(state.h + noise * normal_like(state.h, generator))
