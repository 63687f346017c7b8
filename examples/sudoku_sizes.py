"""The shipped Sudoku network, trained on 9 × 9 alone, on Sudokus of other sizes; writes results/sudoku_sizes.json.

It knows no digit, row or column by name, only which candidates share a cell, row, column or box: so it runs on
Sudokus of any size. Whether what it learned carries over is what this measures.

    python examples/sudoku_sizes.py
"""

import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
import torch

from rrn import from_pretrained
from rrn.io.files import write_json
from rrn.tasks.evaluation import machine
from rrn.tasks.sudoku.exact.cover import generate
from rrn.tasks.sudoku.grid import Box, size_of
from rrn.tasks.sudoku.model import CandidateSudoku, group_table

OUT = Path(__file__).parent.parent / "results" / "sudoku_sizes.json"
SIZES = {"4x4": (2, 2), "6x6": (2, 3), "9x9": (3, 3), "16x16": (4, 4)}
COUNTS = {"4x4": 500, "6x6": 500, "9x9": 200, "16x16": 24}
EXTRA_GIVENS = {"4x4": (0,), "6x6": (0,), "9x9": (0, 5), "16x16": (0, 20, 40, 80)}
STEPS = (16, 32, 64, 128)


def measure(network: CandidateSudoku, name: str, count: int, seed: int = 0) -> list[dict[str, object]]:
    """The share solved within so many steps of one attempt, at each number of extra givens."""
    box, rows = SIZES[name], []
    puzzles, solutions = generate(count, box, np.random.default_rng([seed, *box]))
    shuffle = np.random.default_rng(seed).random(puzzles.shape)
    for extra in EXTRA_GIVENS[name]:
        rank = np.where(puzzles == 0, shuffle, 2.0).argsort(1).argsort(1)
        given = np.where(rank < extra, solutions, puzzles)
        first, cells = solved_by_step(network, given, solutions, box, STEPS[-1])
        rows.append(
            {
                "extra_givens": extra,
                "n": count,
                "givens": float((given > 0).sum(1).mean()),
                "solved": {str(steps): float((first <= steps).mean()) for steps in STEPS},
                "empty_cells_right": float(cells.mean()),
            }
        )
        print(name, rows[-1], flush=True)
    return rows


def solved_by_step(
    network: CandidateSudoku, puzzles: np.ndarray, solutions: np.ndarray, box: Box, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The step at which each grid was first right, steps + 1 where it never was; and the share of its empty cells
    that are right after the last step: (puzzles,) each."""
    first, cells = np.full(len(puzzles), steps + 1), np.zeros(len(puzzles))
    at_a_time = max(1, 16 * 729 // size_of(box) ** 3)
    with torch.inference_mode():
        for low in range(0, len(puzzles), at_a_time):
            part = slice(low, low + at_a_time)
            batch = network.prepare({"puzzle": torch.from_numpy(puzzles[part]).long()}, box)
            given = network.open_candidates(batch, group_table(box, network.device))
            outputs, _ = network(batch, steps=steps, candidates=given)
            right = outputs.argmax(-1).view(steps, -1, puzzles.shape[1]).numpy() + 1 == solutions[part]
            solved, empty = right.all(-1), puzzles[part] == 0
            first[part] = np.where(solved.any(0), solved.argmax(0) + 1, steps + 1)
            cells[part] = (right[-1] & empty).sum(1) / np.maximum(empty.sum(1), 1)
    return first, cells


def main(weights: str = "sudoku") -> None:
    started = time.monotonic()
    network = from_pretrained(weights)
    config = network.config
    result = {
        "about": "share of puzzles solved within so many steps, one attempt, by weights trained on 9x9 alone; minimal "
        "puzzles (16x16: dug as far as the solution was proved unique) with extra givens",
        "sizes": {name: measure(network, name, COUNTS[name]) for name in SIZES},
        "weights": {"preset": config["preset"]["name"], "trained": config["trained"]},
        "command": "python examples/sudoku_sizes.py",
        "seed": 0,
        "date": date.today().isoformat(),
        "machine": machine(),
    }
    write_json(OUT, result | {"minutes": round((time.monotonic() - started) / 60, 1)})


if __name__ == "__main__":
    main(*sys.argv[1:2])
