"""Mazes: a network trained on mazes of at most 13 × 13 cells, measured on Maze-Unique (30 × 30) and on 60 × 60 cells.

python -m benchmarks.peers mazes --data FILE.npz --json     # cells (n, rows, columns): 0 wall, 1 open, 2 start, 3 goal;
                                                            # path (n, rows, columns): true on the path

A maze counts if every cell is right: after some numbers of steps, and with `RRN.think`, which stops when the marked
cells are one path from start to goal. A path of n moves needs 2 n + 2 steps. Maze-Unique has no cycles: filling dead
ends solves all of it. Mazes of our own have cycles and one shortest path; ``filling_dead_ends`` is the share that
filling dead ends solves.
"""

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from examples.mazes import GOAL, MOVES, PHASES, START, Problem, all_right, draw_problem, join

from rrn import RRN, InputError
from rrn.errors import as_input_error

WEIGHTS = Path(__file__).parent / "weights" / "mazes"
STEPS, MOST_STEPS = (128, 256, 512), 4096
NODES, AT_STEPS = 8_000, 100
"""Nodes per batch, and the number of mazes that also run without stopping."""
OWN = {"30x30": (14, (30, 150)), "60x60": (29, (60, 300))}
"""Rooms per side and moves of the shortest path of mazes with cycles of our own making."""
LOOPS = 0.1


def own_mazes(name: str, count: int, seed: int = 1) -> list[Problem]:
    """Mazes with cycles; a tenth of the walls between rooms is opened."""
    (rooms, moves), rng = OWN[name], random.Random(seed)
    return [draw_problem(rooms, LOOPS, moves, rng) for _ in range(count)]


def read(path: Path, limit: int | None) -> list[Problem]:
    """The mazes of a file."""
    with as_input_error(f"{path}: not a file of mazes"), np.load(path, allow_pickle=False) as arrays:
        cells, paths = arrays["cells"][:limit], arrays["path"][:limit].astype(bool)
    if cells.ndim != 3 or cells.shape != paths.shape or not len(cells):
        raise InputError(f"{path}: expected cells and path of one shape (n, rows, columns)")
    return list(zip(cells, paths, strict=True))


def neighbours(marked: np.ndarray) -> np.ndarray:
    """The number of marked cells beside each cell."""
    padded = np.pad(marked.astype(int), 1)
    return sum(np.roll(padded, move, (0, 1)) for move in MOVES)[1:-1, 1:-1]


def is_path(cells: np.ndarray, marked: np.ndarray) -> bool:
    """Whether the marked cells are a path from the start to the goal: two marked neighbours each, one at the ends."""
    ends = (cells == START) | (cells == GOAL)
    return bool(marked[ends].all() and (neighbours(marked) == np.where(ends, 1, 2))[marked].all())


def fill_dead_ends(cells: np.ndarray) -> np.ndarray:
    """What is left of the open cells when all dead ends are filled."""
    left, ends = cells > 0, (cells == START) | (cells == GOAL)
    while (dead := left & ~ends & (neighbours(left) < 2)).any():
        left = left & ~dead
    return left


@torch.inference_mode()
def solved(network: RRN, problems: list[Problem]) -> dict[str, Any]:
    """The share of mazes with every cell right: at some numbers of steps, and with `RRN.think`."""
    at, thought, steps, seconds, at_steps = dict.fromkeys(STEPS, 0), 0, [], 0.0, 0
    size = max(1, NODES // int((problems[0][0] > 0).sum()))
    for first in range(0, len(problems), size):
        some = problems[first : first + size]
        inputs, batch, target = join(some)
        given, state, done = network.prepare(*inputs, batch=batch), None, 0
        for count in STEPS if first < AT_STEPS else ():
            outputs, state = network.run(given, steps=count - done, state=state)
            done = count
            at[count] += int(all_right(outputs[-1], batch, target).sum())
        at_steps += len(some) if first < AT_STEPS else 0

        def accept(answer: torch.Tensor, number: int, some: list[Problem] = some) -> bool:
            cells = some[number][0]
            marked = np.zeros(cells.shape, dtype=bool)
            marked[cells > 0] = (answer.argmax(-1) > PHASES).numpy()
            return is_path(cells, marked)

        started = time.perf_counter()
        result = network.think(given, until=accept, max_steps=MOST_STEPS)
        seconds += time.perf_counter() - started
        thought += int(all_right(result.answers, batch, target).sum())
        steps += list(result.steps)
    count = len(problems)
    return {
        "exact_at_step": {str(step): round(right / at_steps, 4) for step, right in at.items()},
        "n_at_step": at_steps,
        "exact_think": round(thought / count, 4),
        "mean_steps_think": round(float(np.mean(steps)), 1),
        "seconds_per_maze_think": round(seconds / count, 4),
        "filling_dead_ends": round(float(np.mean([(fill_dead_ends(c) == p).all() for c, p in problems])), 4),
        "moves": [int(f(path.sum() - 1 for _, path in problems)) for f in (min, max)],
        "n": count,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--own", type=int, default=100, metavar="N", help="mazes of our own making of each size")


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """The kept network on a file, or on Maze-Unique and on mazes with cycles."""
    path = arguments.data or (arguments.public and arguments.public / "mazes" / "maze_unique_test.npz")
    if path is None:
        raise InputError("expected --public FOLDER or --data FILE.npz")
    sets = {path.stem: read(path, arguments.limit)}
    if arguments.data is None:
        own = min(arguments.own, arguments.limit or arguments.own)
        sets |= {f"cycles {name}, seed 1": own_mazes(name, own) for name in OWN}
    network, about = RRN.from_pretrained(WEIGHTS), json.loads((WEIGHTS / "about.json").read_text())
    return {name: solved(network, problems) | {"trained": about} for name, problems in sets.items()}
