"""The influence of groups on a cell: how its prediction after a step changes without the messages of a group."""

import numpy as np
import torch
from torch import Tensor, nn

from rrn.engines import only
from rrn.errors import InputError
from rrn.tasks.sudoku.export import Step
from rrn.tasks.sudoku.model import GROUP_TYPES

GROUPS = ("cell", "row", "column", "box")
TYPES_OF = {"cell": (0,), "row": (1, 4), "column": (2, 5), "box": (3,)}
"""The types of `candidate_groups` that connect a cell's nine digits, its row, its column and its box."""


@torch.no_grad()
def influence(network: nn.Module, puzzle: np.ndarray, step: int) -> np.ndarray:
    """How much the prediction of each cell after a step of the first attempt changes without the messages of that step
    from each of `GROUPS`: (81, 4), half the sum of the differences of its nine probabilities."""
    if step < 1:
        raise InputError(f"step: expected at least 1, got {step}")
    one_step = Step(network)
    cells = torch.from_numpy(puzzle).long().view(1, 81).to(one_step.network.device)
    state, variants = one_step.start(1), 1 + len(GROUPS)
    with only("plain"):
        for _ in range(step - 1):
            _, *parts = one_step(cells, state)
            state = tuple(parts)
        copies = tuple(part.expand(variants, -1, -1) for part in state)
        logits, *_ = one_step(cells.expand(variants, -1), copies, group_masks().to(cells.device))
    probability = logits.softmax(-1)
    changes: np.ndarray = (0.5 * (probability[1:] - probability[:1]).abs().sum(-1)).T.cpu().numpy()
    return changes


def group_masks() -> Tensor:
    """Masks of group types for five copies of a puzzle: one with all messages, and one without each of `GROUPS`."""
    mask = torch.ones(1 + len(GROUPS), GROUP_TYPES, device="cpu")
    for row, group in enumerate(GROUPS, start=1):
        mask[row, list(TYPES_OF[group])] = 0
    return mask
