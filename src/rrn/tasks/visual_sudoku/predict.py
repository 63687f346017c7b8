"""Solving Sudokus from images of their cells; digits that contradict each other are read again."""

import heapq
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F

from rrn.tasks.sudoku.grid import breaks_a_rule
from rrn.tasks.visual_sudoku.data import Digits
from rrn.tasks.visual_sudoku.model import VisualSudoku

PUZZLES, IMAGES = 32, 512
"""Puzzles solved and images read together."""
ROUNDING = 1e-6
"""Likelihoods that differ by less are equal: they are sums in another order."""


def last_answers(network: VisualSudoku, cells: np.ndarray, steps: int) -> np.ndarray:
    """The most probable digits at the last step: uint8 (n, 81, 28, 28) → (n, 81)."""
    parts = []
    with torch.inference_mode():
        for low in range(0, len(cells), PUZZLES):
            some = torch.from_numpy(cells[low : low + PUZZLES]).to(network.device)
            outputs, _ = network({"cells": some}, steps=steps)
            parts.append(outputs[-1].view(len(some), 81, -1)[..., 1:].argmax(-1).cpu().numpy() + 1)
    return np.concatenate(parts).astype(np.uint8)


def read_cells(network: VisualSudoku, cells: np.ndarray) -> np.ndarray:
    """Probabilities of "empty" and of the nine digits: uint8 (n, 81, 28, 28) → (n, 81, 10)."""
    with torch.inference_mode():
        parts = torch.from_numpy(cells).to(network.device).split(PUZZLES)
        return torch.cat([network.read(part) for part in parts]).cpu().numpy()


def reconsider(
    network: VisualSudoku, probabilities: np.ndarray, answers: np.ndarray, steps: int, attempts: int
) -> np.ndarray:
    """The answers (n, 81) of up to ``attempts`` attempts, the first of which gave ``answers``.

    A grid that breaks no rule is as likely as its digits in the given cells are, by the ``probabilities`` (n, 81, 10)
    of `read_cells`. Each further attempt solves the next likeliest reading, where that can give a likelier grid. The
    likeliest grid is the answer; without one, it is that of the first attempt.
    """
    answers, given = answers.copy(), probabilities[..., 0] == 0
    logs = np.log(np.maximum(probabilities.astype(np.float64), 1e-12))
    best = _likelihood(answers, logs, given)
    waiting = {row: likeliest_readings(logs[row], given[row]) for row in range(len(answers))}
    for _ in range(attempts - 1):
        chosen = {}
        for row, readings in list(waiting.items()):
            reading, likelihood = next(readings, (answers[row], -np.inf))
            if likelihood > best[row] + ROUNDING:
                chosen[row] = reading
            else:
                del waiting[row]
        if not chosen:
            break
        rows, found = list(chosen), []
        with torch.inference_mode():
            for part in torch.from_numpy(np.stack(list(chosen.values()))).to(network.device).split(PUZZLES):
                outputs, _ = network.reasoner({"puzzle": F.one_hot(part.long(), 10).float()}, steps=steps)
                found.append(outputs[-1].view(len(part), 81, -1)[..., 1:].argmax(-1).cpu().numpy() + 1)
        grids = np.concatenate(found).astype(np.uint8)
        for row, grid, likelihood in zip(rows, grids, _likelihood(grids, logs[rows], given[rows]), strict=True):
            if likelihood > best[row]:
                answers[row], best[row] = grid, likelihood
    return answers


def _likelihood(grids: np.ndarray, logs: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The logarithm of the probability of each grid's digits in the given cells; minus infinity if it breaks a rule."""
    of_digits = np.take_along_axis(logs, grids[..., None].astype(np.int64), 2)[..., 0]
    return np.where(breaks_a_rule(grids), -np.inf, (of_digits * given).sum(1))


def likeliest_readings(logs: np.ndarray, given: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Readings (81,) of a puzzle and the logarithms of their probabilities, the likeliest first."""
    cells, order = np.flatnonzero(given), (-logs).argsort(1)
    costs = -np.take_along_axis(logs, order, 1)
    heap = [(float(costs[cells, 0].sum()), (0,) * len(cells))]
    seen = {heap[0][1]}
    while heap:
        cost, ranks = heapq.heappop(heap)
        reading = np.zeros(len(given), np.uint8)
        reading[cells] = order[cells, ranks]
        yield reading, -cost
        for at, (cell, rank) in enumerate(zip(cells, ranks, strict=True)):
            changed = (*ranks[:at], rank + 1, *ranks[at + 1 :])
            if rank < 8 and changed not in seen:
                seen.add(changed)
                heapq.heappush(heap, (cost + float(costs[cell, rank + 1] - costs[cell, rank]), changed))


def read_images(network: VisualSudoku, images: np.ndarray) -> np.ndarray:
    """Probabilities of the digits 1 to 9: uint8 (n, 28, 28) → (n, 9)."""
    with torch.inference_mode():
        parts = torch.from_numpy(images).split(IMAGES)
        return torch.cat([network.encode(part.to(network.device)).softmax(-1).cpu() for part in parts]).numpy()


def digit_accuracy(network: VisualSudoku, digits: Digits) -> float:
    """The share of images whose most probable digit is right."""
    return float((read_images(network, digits.images).argmax(-1) + 1 == digits.labels).mean())
