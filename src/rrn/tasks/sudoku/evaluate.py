"""How many puzzles are solved, by givens and by steps; from one start, and apart from that with restarts.

A puzzle counts as solved *within* t steps if, at one of the first t steps, the grid is filled and breaks no rule and
is the right one: the network stops there, as `rrn solve` does. The share whose grid is right *at* step t, stopped or
not, which is what the paper counts, is reported beside it on demand (``--never-stop``): it takes all the steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from rich.table import Table
from torch import nn

from rrn.errors import InputError, counted
from rrn.tasks.evaluation import EvaluateOptions, by_starts, in_parts, restarts_of, step_list
from rrn.tasks.sudoku.data import read_sets
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.model import CellSudoku
from rrn.tasks.sudoku.predict import PLACES, answers_by_step, solve
from rrn.tasks.sudoku.puzzle_network import PuzzleNetwork
from rrn.training.presets import Preset, Range

PER_GIVENS = 100
OWN_SEED = 2018
STEPS = [1, 2, 4, 8, 16, 32, 64, 128]


@dataclass(frozen=True, kw_only=True)
class Options(EvaluateOptions):
    """``--data`` is a file of puzzles (text or CSV, with or without solutions) or a folder of ``rrn data sudoku``."""

    restarts: Annotated[int, Range(least=0, most=10_000)] = 0
    """Also solve with this many starts from noise after the clean one; reported apart."""
    starts: Annotated[int, Range(least=1, most=10_001)] | None = None
    """The same, counted with the clean start: --starts 9 is --restarts 8."""
    guess: bool = True
    """Let a network that was trained to (--contradiction-share) guess after some steps, and take guesses back."""
    never_stop: bool = False
    """Also report the share that is right at exactly each step, without stopping at a valid grid."""
    split: str = "test"
    """Of a folder of several sets: the one to measure on."""
    zero_positions: bool = False
    """Set the row and column embeddings of the paper's network to zero, as its ablation does."""


def evaluate(
    network: nn.Module, preset: Preset, options: Options, progress: Callable[[int, int], Any]
) -> dict[str, Any]:
    steps = step_list(options.steps) if options.steps else [t for t in STEPS if t <= 2 * preset.steps]
    restarts = restarts_of(options.restarts or None, options.starts, 0)
    if options.zero_positions:
        _zero_positions(network)
    puzzles, solutions, source = _puzzles(options)
    found = solve(
        puzzles, network=network, max_steps=steps[-1], restarts=restarts, guess=options.guess, progress=progress
    )
    right = (found.grids == solutions).all(1)
    one_start = right & (found.starts == 1)
    first = np.where(one_start, found.steps, steps[-1] + 1)
    givens = (puzzles > 0).sum(1)
    rows = {int(g): givens == g for g in np.unique(givens)}

    def by_givens(solved: np.ndarray) -> dict[str, float]:
        return {str(g): float(solved[row].mean()) for g, row in rows.items()}

    result = {
        "n": len(puzzles),
        "data": source,
        "accuracy": {str(t): float((first <= t).mean()) for t in steps},
        "cell_accuracy": float((found.first_grids == solutions).mean()),
        "n_by_givens": {str(g): int(row.sum()) for g, row in rows.items()},
        "accuracy_by_givens": by_givens(one_start),
        "accuracy_by_givens_and_steps": {
            str(g): {str(t): float((first[row] <= t).mean()) for t in range(1, steps[-1] + 1)}
            for g, row in rows.items()
        },
        "steps": steps,
        "training_steps": preset.steps,
    }
    if restarts:
        shared = options.guess and isinstance(network, PuzzleNetwork) and network.refutes
        result |= {
            "restarts": restarts,
            "starts": 1 + restarts,
            "accuracy_restarts": float(right.mean()),
            "accuracy_restarts_by_givens": by_givens(right),
            **by_starts(right, found.starts, found.steps, 1 + restarts, steps[-1], shared),
        }
    if options.never_stop:

        def right_at(part: slice) -> np.ndarray:
            return (answers_by_step(network, puzzles[part], steps[-1]) == solutions[part]).all(-1)

        at = in_parts(right_at, len(puzzles), PLACES, progress)
        result["accuracy_at_step"] = {str(t): float(at[t - 1].mean()) for t in steps}
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
    table = Table("givens", "n", *steps, title="solved within so many steps, one start", box=None, header_style="bold")
    for givens, figures in result["accuracy_by_givens_and_steps"].items():
        table.add_row(givens, f"{result['n_by_givens'][givens]:,}", *[f"{figures[t]:.1%}" for t in steps])
    table.add_row("all", f"{result['n']:,}", *[f"{result['accuracy'][t]:.1%}" for t in steps], style="bold")
    lines: list[Any] = [table, f"\ncells right: {result['cell_accuracy']:.2%}"]
    if "restarts" in result:
        lines.append(f"with up to {counted(result['restarts'], 'restart')}: {result['accuracy_restarts']:.2%}")
    return lines
