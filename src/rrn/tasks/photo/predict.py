"""From a photo to a puzzle: find the grid, read its cells, reconsider doubtful digits that contradict each other."""

import heapq
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from rrn.errors import InputError
from rrn.tasks.photo.image import read_image
from rrn.tasks.sudoku.exact import count_solutions
from rrn.tasks.sudoku.grid import clashing_pair

READER = "photo"
SURE = 0.98
"""Digits below this probability are doubtful."""
FARTHEST = 14.0
"""How much less likely, as a difference of logarithms, a reading may be than the likeliest."""
MOST_READINGS, MOST_SEARCHES = 3_000, 300
"""Readings that are compared with the rules, and those of them that are searched for a solution."""
Changes = tuple[tuple[int, int], ...]
"""Cells that are not read as their likeliest digit, and the rank of what is read instead."""
GUESSES = 20_000
"""Guesses of one search."""
TURNED_BELOW = 0.98
"""Mean probability of the digits below which the photo may be turned."""


@dataclass(frozen=True)
class Reading:
    """What was read in a photo."""

    puzzle: np.ndarray
    """The digits (81,), 0 for empty."""
    probabilities: np.ndarray
    """Of "empty" and the nine digits in each cell: (81, 10)."""
    corners: np.ndarray
    """The corners of the grid in pixels (4, 2): x and y, from the grid's top left clockwise."""

    @property
    def doubtful(self) -> list[int]:
        """Cells whose reading has a probability below `SURE`."""
        return np.flatnonzero(self.probabilities.max(1) < SURE).tolist()

    @property
    def reconsidered(self) -> list[int]:
        """Cells in which the likeliest digit contradicts the others, so that another one is read."""
        return np.flatnonzero(self.puzzle != self.probabilities.argmax(1)).tolist()


def read_photo(source: str | Path | bytes, network: nn.Module | None = None) -> Reading:
    """Read the Sudoku in an image file, or in its bytes. Refuses what shows none, several, or an empty one."""
    gray = read_image(source)
    from rrn.tasks.photo.grid import cut_cells, find_grid

    grid = find_grid(gray)
    cells, corners = cut_cells(gray, grid), grid.corners
    network = load_reader() if network is None else network
    probabilities = read_cells(network, cells)
    if _confidence(probabilities) < TURNED_BELOW:
        turned = [np.rot90(cells.reshape(9, 9, 28, 28), turns, (0, 1)) for turns in range(4)]
        turned = [np.rot90(part, turns, (2, 3)).reshape(81, 28, 28) for turns, part in enumerate(turned)]
        read = [probabilities, *(read_cells(network, np.ascontiguousarray(part)) for part in turned[1:])]
        best = int(np.argmax([_confidence(part) for part in read]))
        probabilities, corners = read[best], np.roll(corners, -best, axis=0)
    if not probabilities.argmax(1).any():
        raise InputError("the grid in the photo is empty: no digit was read in it")
    return Reading(likeliest_puzzle(probabilities), probabilities, corners)


@cache
def load_reader() -> nn.Module:
    from rrn.tasks.weights import from_pretrained

    return from_pretrained(READER, task="photo")


def read_cells(network: nn.Module, cells: np.ndarray) -> np.ndarray:
    """Probabilities of "empty" and the nine digits: float32 (n, 28, 28) → (n, 10)."""
    with torch.inference_mode():
        device = next(network.parameters()).device
        logits = network({"cells": torch.from_numpy(cells).to(device)})[0][-1]
        return logits.double().softmax(-1).cpu().numpy()


def _confidence(probabilities: np.ndarray) -> float:
    """The mean probability of the cells that are read as digits."""
    likeliest = probabilities.max(1)[probabilities.argmax(1) > 0]
    return float(likeliest.mean()) if len(likeliest) else 1.0


def likeliest_puzzle(probabilities: np.ndarray) -> np.ndarray:
    """The likeliest digits (81,) that make up a puzzle with exactly one solution; else with one; else the likeliest.

    Readings are tried in order of falling probability. Where two digits clash, one of the two is read differently.
    Where a reading has no solution, or several, a doubtful digit is.
    """
    costs = -np.log(np.maximum(probabilities, 1e-12))
    order = costs.argsort(1)
    extra = np.take_along_axis(costs, order, 1) - costs.min(1, keepdims=True)
    doubtful = np.flatnonzero(extra[:, 1] < FARTHEST).tolist()
    likeliest, solvable = order[:, 0].astype(np.uint8), None
    heap: list[tuple[float, Changes]] = [(0.0, ())]
    seen, searches = {heap[0][1]}, 0
    for _ in range(MOST_READINGS):
        if not heap or searches == MOST_SEARCHES:
            break
        _, changes = heapq.heappop(heap)
        puzzle, ranks = likeliest.copy(), dict(changes)
        for cell, rank in changes:
            puzzle[cell] = order[cell, rank]
        cells = clashing_pair(puzzle)
        if not cells:
            searches += 1
            count = int(count_solutions(puzzle, most_tries=GUESSES)[0])
            if count == 1:
                return puzzle
            solvable, cells = puzzle if count and solvable is None else solvable, doubtful
        for cell, rank in [(at, rank) for at in cells for rank in range(ranks.get(at, 0) + 1, 10)]:
            new = tuple(sorted((ranks | {cell: rank}).items()))
            total = float(sum(extra[place] for place in new))
            if total < FARTHEST and new not in seen:
                seen.add(new)
                heapq.heappush(heap, (total, new))
    return likeliest if solvable is None else solvable
