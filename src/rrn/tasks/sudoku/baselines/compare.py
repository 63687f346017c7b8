"""The systems of the paper's Sudoku table, measured on the same puzzles.

A puzzle is solved when all 81 digits are right at one of the steps, as in `rrn.tasks.sudoku.evaluate`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from torch import nn

from rrn.errors import InputError, plural
from rrn.tasks.sudoku.baselines.belief_propagation import BeliefPropagation, ModifiedBeliefPropagation
from rrn.tasks.sudoku.data import add_givens
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.predict import solve
from rrn.tasks.weights import from_pretrained
from rrn.viewing.plots import save, subplots

PUZZLES, SEED = 1000, 2018
STEPS = (1, 8, 16, 32, 64, 128, 250)


@dataclass(frozen=True)
class System:
    """A row of the table. The name of a trained system is a preset; its shipped weights are measured."""

    name: str
    title: str
    paper: float
    steps: int
    givens: tuple[int, int] | None = None
    """Digits are added to every puzzle until it has a number of givens drawn from this range."""
    make: Callable[[], nn.Module] | None = None
    """For systems without training."""


SYSTEMS = (
    System("sudoku", "recurrent relational network", 0.966, 64),
    System("modified", "loopy BP, modified (Khan 2014)", 0.925, 250, make=ModifiedBeliefPropagation),
    System("random", "loopy BP, random (Bauke 2008)", 0.617, 64, make=lambda: BeliefPropagation("random")),
    System("parallel", "loopy BP, parallel (Bauke 2008)", 0.532, 64, make=BeliefPropagation),
    System("sudoku-learned-messages", "deeply learned messages (Lin 2015)", 0.0, 32),
    System("sudoku-learned-messages-last", "deeply learned messages, a loss at the last step", 0.0, 32),
    System("sudoku-learned-messages-one", "deeply learned messages, one step", 0.0, 1),
    System("sudoku-rn-node", "relational network, node (Santoro 2017)", 0.0, 1),
    System("sudoku-rn-graph", "relational network, graph (Santoro 2017)", 0.0, 1),
    System("sudoku-convolutional", "deep convolutional network (Park 2016)", 0.7, 64, givens=(24, 36)),
)


def find_systems(names: str | None) -> tuple[System, ...]:
    """The systems of a list such as "parallel,random"; None: all."""
    if names is None:
        return SYSTEMS
    known = {system.name: system for system in SYSTEMS}
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        raise InputError(f"--systems: no system {unknown[0]!r}; there are {', '.join(known)}")
    return tuple(known[name] for name in names.split(","))


def puzzles_to_compare_on(data: Path | None, limit: int | None) -> tuple[np.ndarray, np.ndarray, str]:
    """Puzzles, solutions and a description: the first of a file, or generated ones."""
    if data is None:
        puzzles, solutions = generate(limit or PUZZLES, np.random.default_rng(SEED))
        return puzzles, solutions, f"generated minimal puzzles, seed {SEED}"
    read = read_puzzles(data, prove="unsolved", limit=limit)
    return read.puzzles, read.solutions, data.name


def measure(
    system: System,
    puzzles: np.ndarray,
    solutions: np.ndarray,
    progress: Callable[[int, int], Any] = lambda done, of: None,
) -> dict[str, Any]:
    """One row: the share of puzzles (n, 81) solved, by steps, with the number of givens."""
    about: dict[str, Any] = {}
    if system.make is not None:
        network = system.make()
    else:
        network = pretrained = from_pretrained(system.name)
        config = pretrained.config
        about = {"parameters": config["parameters"], "minutes": config["trained"].get("minutes")}
    if system.givens is not None:
        puzzles = _with_givens(puzzles, solutions, system.givens)
    givens = (puzzles > 0).sum(1)
    started = time.perf_counter()
    found = solve(puzzles, network=network, max_steps=system.steps, attempts=1, progress=progress)
    right = (found.answers == solutions).all(1)
    empty = puzzles == 0
    return {
        "title": system.title,
        "paper": system.paper,
        "accuracy": float(right.mean()),
        "cells": float((found.answers == solutions)[empty].mean()),
        "n": len(puzzles),
        "givens": [int(givens.min()), int(givens.max())],
        "steps": system.steps,
        "accuracy_by_steps": {str(t): float((right & (found.steps <= t)).mean()) for t in STEPS if t <= system.steps},
        **about,
        "seconds": round(time.perf_counter() - started, 1),
    }


def _with_givens(puzzles: np.ndarray, solutions: np.ndarray, givens: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(SEED)
    wanted = rng.integers(givens[0], givens[1] + 1, size=len(puzzles))
    return add_givens(puzzles, solutions, np.maximum(wanted - (puzzles > 0).sum(1), 0), rng)


def table(result: dict[str, Any]) -> Table:
    rows = result["systems"]
    shown = Table("system", "the paper", "ours", "givens", "steps", box=None, header_style="bold")
    shown.title = f"Sudokus solved, of {result['n']:,} ({result['data']})"
    for system in SYSTEMS:
        if system.name in rows:
            row = rows[system.name]
            shown.add_row(
                system.title, f"{row['paper']:.1%}", f"{row['accuracy']:.1%}", _span(row["givens"]), str(row["steps"])
            )
    return shown


def _span(givens: list[int]) -> str:
    low, high = givens
    return str(low) if low == high else f"{low}-{high}"


def draw(result: dict[str, Any], path: Path) -> None:
    """Two bars per system: the paper's figure and ours."""
    rows = [result["systems"][system.name] for system in reversed(SYSTEMS) if system.name in result["systems"]]
    positions = np.arange(len(rows))
    figure, axes = subplots(figsize=(8, 0.55 * len(rows) + 1.2))
    for offset, key, colour, label in ((0.2, "paper", "#b8bcc6", "the paper"), (-0.2, "accuracy", "#145aaa", "ours")):
        shares = [100 * row[key] for row in rows]
        axes.barh(positions + offset, shares, 0.38, color=colour, label=label)
        for position, share in zip(positions, shares, strict=True):
            axes.text(share + 0.8, position + offset, f"{share:.1f}", va="center", fontsize=8)
    labels = [f"{row['title']}\n{_span(row['givens'])} givens, {plural(row['steps'], 'step')}" for row in rows]
    axes.set_yticks(positions, labels, fontsize=8)
    axes.set(xlabel=f"% solved of {result['n']:,} Sudokus", xlim=(0, 108))
    axes.grid(False, axis="y")
    axes.legend(loc="lower right", frameon=False)
    save(figure, path)
