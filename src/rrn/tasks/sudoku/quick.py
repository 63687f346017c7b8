"""The first, clean start of the candidate network without detours: open candidates only, looked at in compiled code.

What `solving` does with any network, several times as fast. It takes numba.
"""

from collections.abc import Callable
from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from rrn.tasks.sudoku import fast
from rrn.tasks.sudoku.model import CandidateReadout, CandidateSudoku, CandidateUpdate, what_givens_say

PLACES = 8
"""Puzzles worked on at a time: few enough for the cache."""
STRIDE = 8
"""Steps between looks at the grids."""


def fits(network: nn.Module) -> TypeGuard[CandidateSudoku]:
    return isinstance(network, CandidateSudoku) and fast.fits(next(network.parameters()), (3, 3))


def solve_part(
    network: CandidateSudoku, puzzles: np.ndarray, max_steps: int, report: Callable[[int], None]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Grids (n, 81), whether each is a solution, the step it is of, and its confidence: (n,) each."""
    update, readout = network.rrn.update, network.rrn.readout
    assert isinstance(update, CandidateUpdate)
    assert isinstance(readout, CandidateReadout)
    weights = fast.Weights.of(update.first, update.second, readout.weight)
    is_open = what_givens_say(torch.from_numpy(puzzles).long())[1].view(-1, fast.NODES).numpy()
    count, width = len(puzzles), update.hidden + update.messages
    grids, valid = np.zeros((count, 81), np.uint8), np.zeros(count, bool)
    steps, confidence = np.zeros(count, np.int64), np.zeros(count)
    queue, places = list(range(count))[::-1], np.zeros(0, np.int64)
    age, inputs = np.zeros(0, np.int64), torch.zeros(0, width)
    while queue or len(places):
        fresh = np.array([queue.pop() for _ in range(min(PLACES - len(places), len(queue)))], np.int64)
        places, age = np.concatenate([places, fresh]), np.concatenate([age, np.zeros_like(fresh)])
        inputs = torch.cat([inputs, torch.zeros(int(is_open[fresh].sum()), width)])
        nodes = is_open[places].nonzero()[1]
        ends = is_open[places].sum(1).cumsum()
        groups = fast.GROUP_OF[nodes]
        over = np.zeros(len(places), bool)
        while not over.any():
            stride = min(STRIDE, int((max_steps - age).min()))
            logits, inputs = _advance(inputs, groups, ends, weights, stride)
            answers, won, sure = np.empty((len(places), 81), np.uint8), np.zeros_like(places), np.empty(len(places))
            _look(logits, nodes, ends, puzzles[places], answers, won, sure)
            age += stride
            over = (won > 0) | (age == max_steps)
        rows = places[over]
        grids[rows], valid[rows], confidence[rows] = answers[over], won[over] > 0, sure[over]
        steps[rows] = np.where(won > 0, age - stride + won, age)[over]
        report(len(rows))
        inputs = inputs[torch.from_numpy(np.repeat(~over, np.diff(ends, prepend=0)))]
        places, age = places[~over], age[~over]
    return grids, valid, steps, confidence


def _advance(
    inputs: Tensor, groups: np.ndarray, ends: np.ndarray, weights: fast.Weights, steps: int
) -> tuple[np.ndarray, Tensor]:
    """Logits (steps, nodes) and [s, m] after some steps."""
    nodes, layer, hidden = len(inputs), weights.first.shape[1], weights.second.shape[1]
    after, z, changed = torch.empty_like(inputs), torch.empty(nodes, layer), torch.empty(nodes, hidden)
    scales, logits = torch.empty(nodes), torch.empty(steps, nodes)
    for t in range(steps):
        fast.step(inputs, after, z, changed, scales, logits[t], weights, groups, ends)
        inputs, after = after, inputs
    return logits.numpy(), inputs


@fast.compiled
def _look(
    logits: np.ndarray,
    nodes: np.ndarray,
    ends: np.ndarray,
    puzzles: np.ndarray,
    answers: np.ndarray,
    won: np.ndarray,
    sure: np.ndarray,
) -> None:
    """For each puzzle the grid of the first step that breaks no rule, and that step from 1 on in ``won``; else that of
    the last step. ``sure`` is the mean probability of its digits in empty cells."""
    best, total = np.empty(81, np.float32), np.empty(81, np.float32)
    units = np.empty(27, np.int64)
    low = 0
    for p in range(len(ends)):
        high = ends[p]
        for t in range(logits.shape[0]):
            for cell in range(81):
                answers[p, cell] = puzzles[p, cell]
                best[cell] = -np.inf
            for n in range(low, high):
                cell = nodes[n] // 9
                if logits[t, n] > best[cell]:
                    best[cell] = logits[t, n]
                    answers[p, cell] = nodes[n] % 9 + 1
            units[:] = 0
            filled = 0
            for cell in range(81):
                digit = answers[p, cell]
                if digit > 0:
                    row, column = cell // 9, cell % 9
                    box = row // 3 * 3 + column // 3
                    units[row] |= 1 << digit
                    units[9 + column] |= 1 << digit
                    units[18 + box] |= 1 << digit
                    filled += 1
                else:  # the givens rule out every digit of this cell
                    answers[p, cell] = 1
            right = filled == 81
            for unit in range(27):
                right = right and units[unit] == 1022
            if right:
                won[p] = t + 1
            if right or t == logits.shape[0] - 1:
                total[:] = 0
                for n in range(low, high):
                    total[nodes[n] // 9] += np.exp(logits[t, n] - best[nodes[n] // 9])
                empty, mean = 0, 0.0
                for cell in range(81):
                    if puzzles[p, cell] == 0:
                        empty += 1
                        mean += 1 / total[cell] if total[cell] > 0 else 1 / 9
                sure[p] = mean / max(empty, 1)
            if right:
                break
        low = high
