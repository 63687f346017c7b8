"""The network for 9 × 9 on Sudokus of other sizes: it knows no digit, row or column by name, so it runs on them too."""

import numpy as np
import torch
from torch import nn

from rrn.errors import InputError
from rrn.tasks.sudoku.grid import Box, as_grids, size_of, solves
from rrn.tasks.sudoku.solving import NOISE, SHAKE_EVERY, Solved

CANDIDATES = 16 * 729
"""Candidates worked on at a time: few enough for the cache."""


def solve_other_size(
    puzzles: np.ndarray,
    box: Box,
    network: nn.Module,
    *,
    max_steps: int,
    restarts: int,
    seed: int = 0,
    trace: bool = False,
) -> Solved:
    """As `solve` does for 9 × 9: a clean start, then starts with noise on the way for those it did not solve."""
    if not hasattr(network, "shaken") or getattr(network, "first_digit", 1) != 0:
        raise InputError("Sudokus of other sizes: only the network on candidates (the preset 'sudoku') solves them")
    puzzles, cells, digits = as_grids(puzzles, box), size_of(box) ** 2, size_of(box)
    count = len(puzzles)
    found = Solved(
        np.zeros((count, cells), np.uint8),
        np.zeros(count, bool),
        np.full(count, max_steps, np.int64),
        np.ones(count, np.int64),
        np.zeros((count, cells), np.uint8),
        np.zeros(count),
        np.zeros((max_steps, count, cells, digits), np.float32) if trace else None,
    )
    places = max(1, CANDIDATES // digits**3)
    for start in range(1, restarts + 2):
        rows = np.flatnonzero(~found.valid)
        found.starts[rows] = start
        for part in (rows[low : low + places] for low in range(0, len(rows), places)):
            generator = torch.Generator().manual_seed((seed * 1009 + start) * 1_000_003 + int(part[0]))
            _run(network, puzzles, part, found, box, max_steps, NOISE if start > 1 else 0.0, generator)
        if start == 1:
            found.first_grids[:] = found.grids
        if found.valid.all():
            break
    return found


@torch.inference_mode()
def _run(
    network: nn.Module,
    puzzles: np.ndarray,
    rows: np.ndarray,
    found: Solved,
    box: Box,
    max_steps: int,
    noise: float,
    generator: torch.Generator,
) -> None:
    """One start of some puzzles, until all are solved or the steps are over; the end of the first is kept."""
    batch, state, asked = {"puzzle": torch.from_numpy(puzzles[rows]).long()}, None, puzzles[rows]
    done = np.zeros(len(rows), bool)
    for step in range(1, max_steps + 1):
        if noise and state is not None and (step - 1) % SHAKE_EVERY == 0 and 2 * step < max_steps:
            state = network.shaken(state, noise, generator)  # type: ignore[operator]
        outputs, state = network(batch, steps=1, state=state, box=box)
        chances = outputs.softmax(-1).view(len(rows), asked.shape[1], -1).numpy()
        answers = chances.argmax(-1).astype(np.uint8) + 1
        won = solves(answers, asked, box) & ~done
        ends = won | (~done & (step == max_steps) & (not noise))
        kept = rows[ends]
        found.grids[kept], found.valid[kept], found.steps[kept] = answers[ends], won[ends], step
        empty = asked[ends] == 0
        found.confidence[kept] = (chances[ends].max(-1) * empty).sum(1) / np.maximum(empty.sum(1), 1)
        if found.probabilities is not None and not noise:
            found.probabilities[step - 1 :, rows[~done]] = chances[~done]
        done |= won
        if done.all():
            return
