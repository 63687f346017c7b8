"""Sudoku as a factor graph: 81 variables (cells), 27 factors (units), and 243 edges between them."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rrn.tasks.sudoku.grid import units


class FactorGraph:
    """Cells, and units of equally many cells each. Place ``cells_per_unit · u + i`` is that of unit u's i-th cell.

    Attributes:
        cell_of: (places,) the cell of each place.
        places_of: (cells, most) the places of each cell, filled up with the number of places.
        elsewhere: (places, most - 1) the same cell's places in its other units, filled up likewise.
    """

    def __init__(self, units: np.ndarray) -> None:
        flat = np.asarray(units).flatten()
        self.units, self.cells_per_unit = np.shape(units)
        self.places = len(flat)
        self.cell_of = torch.from_numpy(flat)
        places_of = [np.flatnonzero(flat == cell).tolist() for cell in range(flat.max() + 1)]
        most = max(map(len, places_of))
        self.places_of = self._filled_up(places_of, most)
        self.elsewhere = self._filled_up([[o for o in places_of[c] if o != p] for p, c in enumerate(flat)], most - 1)

    def _filled_up(self, rows: list[list[int]], width: int) -> Tensor:
        return torch.from_numpy(np.array([row + [self.places] * (width - len(row)) for row in rows], dtype=np.int64))

    def sum_at(self, messages: Tensor, places: Tensor) -> Tensor:
        """Messages (n, places, digits) summed over the last dimension of ``places``, where missing ones count 0."""
        return F.pad(messages, (0, 0, 0, 1))[:, places].sum(-2)


SUDOKU = FactorGraph(units())


def given_digits(puzzles: Tensor) -> Tensor:
    """(n, 81) → (n, 81, 9): one-hot for given digits, zeros elsewhere."""
    return F.one_hot(puzzles, 10)[..., 1:].float()


def fill_most_probable(grids: Tensor, logits: Tensor) -> Tensor:
    """Grids (n, 81) with the most probable digit of all empty cells filled in; full grids are unchanged."""
    best, digits = logits.detach().softmax(-1).max(-1)
    cell = best.masked_fill(grids > 0, -1).argmax(1, keepdim=True)
    filled = grids.scatter(1, cell, digits.gather(1, cell) + 1)
    return torch.where((grids == 0).any(1, keepdim=True), filled, grids)
