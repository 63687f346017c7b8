"""Who a cell listens to: how its belief after a step would be another without what it heard from one of its groups."""

import numpy as np
import torch
from torch import Tensor, nn

from rrn.engines import only
from rrn.errors import InputError
from rrn.tasks.sudoku.export import Step
from rrn.tasks.sudoku.model import KINDS

GROUPS = ("cell", "row", "column", "box")
KINDS_OF = {"cell": (0,), "row": (1, 4), "column": (2, 5), "box": (3,)}
"""The kinds of `candidate_groups` that a cell means by its own nine digits, its row, its column and its box."""


@torch.no_grad()
def heard(network: nn.Module, puzzle: np.ndarray, step: int) -> np.ndarray:
    """How far the belief of each cell after a step of a clean start would be another without the messages that it
    got in that step from each of `GROUPS`: (81, 4), half the sum of the differences of its nine probabilities."""
    if step < 1:
        raise InputError(f"step: expected at least 1, got {step}")
    listen = Step(network)
    cells = torch.from_numpy(puzzle).long().view(1, 81).to(listen.network.device)
    state, variants = listen.start(1), 1 + len(GROUPS)
    with only("plain"):
        for _ in range(step - 1):
            _, *parts = listen(cells, state)
            state = tuple(parts)
        copies = tuple(part.expand(variants, -1, -1) for part in state)
        logits, *_ = listen(cells.expand(variants, -1), copies, silences().to(cells.device))
    belief = logits.softmax(-1)
    changes: np.ndarray = (0.5 * (belief[1:] - belief[:1]).abs().sum(-1)).T.cpu().numpy()
    return changes


def silences() -> Tensor:
    """``listening`` for five copies of a puzzle: one that hears all, and one that is deaf to each of `GROUPS`."""
    listening = torch.ones(1 + len(GROUPS), KINDS, device="cpu")
    for row, group in enumerate(GROUPS, start=1):
        listening[row, list(KINDS_OF[group])] = 0
    return listening
