"""Shares with 95 % intervals, and the public files of Sudokus."""

import json
import math
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np

from rrn.errors import InputError
from rrn.tasks.sudoku.files import read_puzzles

Z = 1.959964


def wilson(right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson's formula."""
    share = right / n
    centre, half = share + Z * Z / 2 / n, Z * math.sqrt(share * (1 - share) / n + (Z / 2 / n) ** 2)
    return max((centre - half) / (1 + Z * Z / n), 0.0), min((centre + half) / (1 + Z * Z / n), 1.0)


def share(right: np.ndarray) -> dict[str, Any]:
    """How many of (n,) bool are true: accuracy with its 95 % interval."""
    low, high = wilson(int(right.sum()), len(right))
    return {"accuracy": round(float(right.mean()), 6), "interval": [round(low, 4), round(high, 4)]}


def add_timing(parser: ArgumentParser) -> None:
    text = "measure times with the rest (both), alone (only) or not (none); they need a quiet machine"
    parser.add_argument("--timing", choices=("both", "only", "none"), default="both", help=text)


def public_file(arguments: Namespace, path: str) -> Path:
    """A file of ``--public``."""
    if arguments.public is None:
        raise InputError(f"--public FOLDER is missing; it must hold {path}")
    return Path(arguments.public) / path


def shuffled_puzzles(path: Path, limit: int | None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Puzzles and solutions (n, 81) in random order, so that any first part is a random sample."""
    read = read_puzzles(path, prove="unsolved")
    order = np.random.default_rng(seed).permutation(len(read.puzzles))[:limit]
    return read.puzzles[order], read.solutions[order]


def previous(arguments: Namespace, problem: str) -> dict[str, Any]:
    """The result of a problem in ``--out``, of which a run may renew a part; none with ``--data``."""
    if arguments.data is not None or not arguments.out.exists():
        return {}
    known: dict[str, Any] = json.loads(arguments.out.read_text()).get(problem, {})
    return known
