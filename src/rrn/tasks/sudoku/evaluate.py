"""How many puzzles are solved, by givens and by steps: in one attempt, and in several.

A puzzle is solved *within* t steps if, at one of the first t steps, the grid is filled, breaks no rule and is the right
one: the network stops there, as `rrn solve` does. The paper counts grids that are right *at* step t, without stopping.
Both are reported; ``--no-never-stop`` leaves out the second, which runs all steps of all puzzles.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from rich.table import Table
from torch import nn

from rrn.errors import InputError, plural
from rrn.tasks.evaluation import MEANING, EvaluateOptions, at_and_within, by_attempts, in_parts, step_list
from rrn.tasks.sudoku.data import read_sets
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.model import CellSudoku, PuzzleNetwork
from rrn.tasks.sudoku.predict import SLOTS, answers_by_step, solve
from rrn.training.presets import Preset, Range
from rrn.viewing.plots import add_legend, mark, plot_lines, save, subplots

PER_GIVENS = 100
OWN_SEED = 2018
STEPS = [1, 2, 4, 8, 16, 32, 64, 128]


@dataclass(frozen=True, kw_only=True)
class Options(EvaluateOptions):
    """``--data`` is a file of puzzles (text or CSV, with or without solutions) or a folder of ``rrn data sudoku``."""

    attempts: Annotated[int, Range(least=1, most=10_000)] = 1
    """Attempts per puzzle; all but the first add noise. Reported separately from the first attempt."""
    search: bool = True
    """Use best-first search if the network was trained for it (--contradiction-share)."""
    never_stop: bool = True
    """Also report the share that is right at each step, without stopping at a valid grid. This runs all steps."""
    split: str = "test"
    """Of a folder of several sets: the one to measure on."""
    zero_positions: bool = False
    """Set the row and column embeddings of the paper's network to zero, as its ablation does."""


def evaluate(
    network: nn.Module, preset: Preset, options: Options, progress: Callable[[int, int], Any]
) -> dict[str, Any]:
    steps = step_list(options.steps) if options.steps else [t for t in STEPS if t <= 2 * preset.steps]
    if options.zero_positions:
        _zero_positions(network)
    puzzles, solutions, source = _puzzles(options)
    found = solve(
        puzzles,
        network=network,
        max_steps=steps[-1],
        attempts=options.attempts,
        search=options.search,
        progress=progress,
    )
    right = (found.answers == solutions).all(1)
    first_attempt = right & (found.attempts == 1)
    first = np.where(first_attempt, found.steps, steps[-1] + 1)
    givens = (puzzles > 0).sum(1)
    rows = {int(g): givens == g for g in np.unique(givens)}

    def by_givens(solved: np.ndarray) -> dict[str, float]:
        return {str(g): float(solved[row].mean()) for g, row in rows.items()}

    result: dict[str, Any] = {
        "n": len(puzzles),
        "data": source,
        "accuracy": {str(t): float((first <= t).mean()) for t in steps},
        "meaning": {"accuracy": "solved within t steps, stopping at a filled grid that breaks no rule"},
        "cell_accuracy": float((found.details["first_answers"] == solutions).mean()),
        "n_by_givens": {str(g): int(row.sum()) for g, row in rows.items()},
        "accuracy_by_givens": by_givens(first_attempt),
        "accuracy_by_givens_and_steps": {
            str(g): {str(t): float((first[row] <= t).mean()) for t in range(1, steps[-1] + 1)}
            for g, row in rows.items()
        },
        "steps": steps,
        "training_steps": preset.steps,
    }
    if options.attempts > 1:
        shared = options.search and isinstance(network, PuzzleNetwork) and network.detects_contradictions
        result |= {
            "attempts": options.attempts,
            "accuracy_attempts": float(right.mean()),
            "accuracy_attempts_by_givens": by_givens(right),
            **by_attempts(right, found.attempts, found.steps, options.attempts, steps[-1], shared),
        }
    if options.never_stop:

        def right_at(part: slice) -> np.ndarray:
            return (answers_by_step(network, puzzles[part], steps[-1]) == solutions[part]).all(-1)

        at = in_parts(right_at, len(puzzles), SLOTS, progress)
        result["accuracy_at_step"] = at_and_within(at, steps)["accuracy_at_step"]
        result["meaning"]["accuracy_at_step"] = MEANING["accuracy_at_step"]
    if options.zero_positions:
        result["zero_positions"] = True
    return result


def _puzzles(options: Options) -> tuple[np.ndarray, np.ndarray, str]:
    if options.data is None:
        generated = [generate(PER_GIVENS, np.random.default_rng([OWN_SEED, extra]), extra) for extra in range(18)]
        puzzles, solutions = (np.concatenate(parts) for parts in zip(*generated, strict=True))
        about = f"{PER_GIVENS} generated minimal puzzles with each of 0-17 extra givens, seed {OWN_SEED}"
    elif options.data.is_dir():
        sets, _ = read_sets(options.data)
        name = options.split if options.split in sets else next(iter(sets))
        puzzles, solutions = sets[name].puzzles, sets[name].solutions
        about = f"{options.data.name}/{name}"
    else:
        read = read_puzzles(options.data, prove="unsolved", limit=options.limit)
        puzzles, solutions = read.puzzles, read.solutions
        about = options.data.name
    if options.limit is not None and options.data is None:
        chosen = np.linspace(0, len(puzzles) - 1, min(options.limit, len(puzzles))).round().astype(int)
        return puzzles[chosen], solutions[chosen], about
    return puzzles[: options.limit], solutions[: options.limit], about


def _zero_positions(network: nn.Module) -> None:
    if not isinstance(network, CellSudoku):
        raise InputError("--zero-positions: only the paper's network has row and column embeddings")
    with torch.no_grad():
        network.row.weight.zero_()
        network.column.weight.zero_()


def tables(result: dict[str, Any]) -> list[Any]:
    steps = [str(t) for t in result["steps"]]
    table = Table(
        "givens", "n", *steps, title="solved within so many steps, one attempt", box=None, header_style="bold"
    )
    for givens, figures in result["accuracy_by_givens_and_steps"].items():
        table.add_row(givens, f"{result['n_by_givens'][givens]:,}", *[f"{figures[t]:.1%}" for t in steps])
    table.add_row("solved within", f"{result['n']:,}", *[f"{result['accuracy'][t]:.1%}" for t in steps], style="bold")
    lines: list[Any] = [table, f"\ncells right: {result['cell_accuracy']:.2%}"]
    if "attempts" in result:
        lines.append(f"within {plural(result['attempts'], 'attempt')}: {result['accuracy_attempts']:.2%}")
    if "accuracy_at_step" in result:
        table.add_row("right at", f"{result['n']:,}", *[f"{result['accuracy_at_step'][t]:.1%}" for t in steps])
        lines.append("Last row: grids that are right at that step, without stopping.")
    return lines


def draw_result(result: dict[str, Any], path: Path) -> None:
    """The paper's figure: the fraction solved against steps, a line for each number of givens.

    Where there were several attempts: the fraction solved against the steps of all attempts, a single line.
    """
    name = f"{result['preset']}: {result['n']:,} Sudokus"
    if "accuracy_by_total_steps" in result:
        figure, axes = subplots(figsize=(6, 4))
        plot_lines(axes, {"": result["accuracy_by_total_steps"]})
        mark(axes, result["steps"][-1], "end of the first attempt")
        axes.set_xscale("log", base=2)
        axes.set_xlabel("steps of all attempts, per puzzle")
        name = f"{name}, {result['attempts']} attempts"
    else:
        figure, axes = subplots(figsize=(7.5, 4.5))
        plot_lines(axes, result["accuracy_by_givens_and_steps"])
        add_legend(axes, "givens")
        mark(axes, result["training_steps"], "steps in training")
        axes.set_xlabel("steps")
    axes.set(ylabel="fraction solved", ylim=(0, 1.02))
    axes.set_title(name, fontsize=10, pad=20)
    save(figure, path)
