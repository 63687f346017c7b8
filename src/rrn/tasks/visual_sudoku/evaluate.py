"""How many puzzles are solved from images, by givens, and how many digits are read right.

A puzzle is solved if all empty cells are right *at* the last step of one attempt, or of up to --attempts.
``accuracy_whole_grid_by_givens`` also counts the digits that the network answers in the given cells. No label of an
image is used but to count.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from rich.table import Table
from torch import nn

from rrn.errors import InputError
from rrn.tasks.evaluation import EvaluateOptions, Progress, step_list
from rrn.tasks.sudoku.data import add_givens
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.predict import answers_by_step
from rrn.tasks.visual_sudoku.data import Digits, read_digits
from rrn.tasks.visual_sudoku.model import VisualSudoku
from rrn.tasks.visual_sudoku.predict import PUZZLES, digit_accuracy, last_answers, read_cells, reconsider
from rrn.tasks.visual_sudoku.presets import VisualSudokuPreset
from rrn.training.presets import Range
from rrn.viewing.plots import add_legend, save, subplots

MINIMAL, EXTRA = 24, (0, 8, 12, 17)
"""Givens of the minimal puzzles, and how many are added."""
PER_GIVENS, SEED, STEPS = 200, 2018, 64


@dataclass(frozen=True, kw_only=True)
class Options(EvaluateOptions):
    digits: Path | None = None
    """A file of images of digits (.npz with images uint8 (n, 28, 28) and labels (n,)). Unset: digits drawn from
    strokes."""
    part: Literal["auto", "valid", "test", "all"] = "auto"
    """Which of its images: auto takes the test part of the file that the weights were trained on, and all images of
    any other file."""
    attempts: Annotated[int, Range(least=1, most=1000)] = 8
    """Attempts per puzzle. Those after the first solve less likely readings of the digits, where these may contradict
    each other. The likeliest grid that breaks no rule counts."""


def make_puzzles(count: int, extra: int) -> tuple[np.ndarray, np.ndarray]:
    """Minimal puzzles with 24 givens, ``extra`` more added, and their solutions: (count, 81) each."""
    rng, kept = np.random.default_rng([SEED, extra]), list[np.ndarray]()
    while sum(len(part) for part in kept) < count:
        puzzles, solutions = generate(4 * count, rng)
        rows = (puzzles > 0).sum(1) == MINIMAL
        kept.append(np.stack([puzzles[rows], solutions[rows]], 1))
    puzzles, solutions = np.concatenate(kept)[:count].transpose(1, 0, 2)
    return add_givens(puzzles, solutions, extra, rng), solutions


def choose_images(options: Options, preset: VisualSudokuPreset) -> Digits:
    if options.digits and options.data:
        raise InputError("--digits and --data are mutually exclusive")
    digits = read_digits(options.digits or options.data)
    trained_on = digits.checksum == preset.digits_checksum or not (options.digits or options.data)
    return digits.part(options.part if options.part != "auto" else "test" if trained_on else "all")


def evaluate(network: nn.Module, preset: VisualSudokuPreset, options: Options, progress: Progress) -> dict[str, Any]:
    assert isinstance(network, VisualSudoku)
    steps = step_list(options.steps)[-1] if options.steps else STEPS
    images = choose_images(options, preset)
    each = PER_GIVENS if options.limit is None else -(-options.limit // len(EXTRA))
    total, result = min(options.limit or 10**9, len(EXTRA) * each), dict[str, dict[str, float]]()
    counts: dict[str, int] = {}
    for extra in EXTRA:
        count = min(each, total - sum(counts.values()))
        if count < 1:
            break
        puzzles, solutions = make_puzzles(count, extra)
        given, key = puzzles > 0, str(MINIMAL + extra)
        cells = images.draw_cells(puzzles, np.random.default_rng([SEED, extra, 1]))
        answers = last_answers(network, cells, steps)
        parts = [slice(low, low + PUZZLES) for low in range(0, count, PUZZLES)]
        symbols = np.concatenate([answers_by_step(network.reasoner, puzzles[part], steps)[-1] for part in parts])
        probabilities = read_cells(network, cells)
        read = probabilities.argmax(-1)
        reconsidered = reconsider(network, probabilities, answers, steps, options.attempts)
        figures = {
            "accuracy_by_givens": ((answers == solutions) | given).all(1),
            "accuracy_attempts_by_givens": ((reconsidered == solutions) | given).all(1),
            "accuracy_whole_grid_by_givens": (answers == solutions).all(1),
            "accuracy_by_givens_from_symbols": ((symbols == solutions) | given).all(1),
            "digits_all_read_by_givens": (read == puzzles).all(1),
        }
        for name, figure in figures.items():
            result.setdefault(name, {})[key] = float(figure.mean())
        counts[key] = count
        progress(sum(counts.values()), total)
    return {
        "n": sum(counts.values()),
        "n_by_givens": counts,
        **result,
        "digit_accuracy": digit_accuracy(network, images),
        "n_digits": len(images.images),
        "digits": images.name,
        "steps": steps,
        "attempts": options.attempts,
        "puzzles": f"generated minimal puzzles with {MINIMAL} givens, and some more, seed {SEED}",
    }


def tables(result: dict[str, Any]) -> list[Any]:
    columns = {
        "solved from images, one attempt": "accuracy_by_givens",
        f"{result['attempts']} attempts": "accuracy_attempts_by_givens",
        "from symbols": "accuracy_by_givens_from_symbols",
        "digits all read right": "digits_all_read_by_givens",
    }
    table = Table("givens", "n", *columns, box=None, header_style="bold")
    for givens, count in result["n_by_givens"].items():
        table.add_row(givens, f"{count:,}", *(f"{result[name][givens]:.1%}" for name in columns.values()))
    about = f"{result['digit_accuracy']:.2%} of {result['n_digits']:,} images of {result['digits']} are read right"
    return [table, f"\n{about}; right at step {result['steps']}"]


def draw_result(result: dict[str, Any], path: Path) -> None:
    figure, axes = subplots(figsize=(6, 4))
    of = {"accuracy_by_givens": "from images, one attempt", "accuracy_by_givens_from_symbols": "from symbols"}
    of["accuracy_attempts_by_givens"] = f"from images, up to {result['attempts']} attempts"
    for name, label in of.items():
        axes.plot([int(givens) for givens in result[name]], list(result[name].values()), marker="o", label=label)
    add_legend(axes)
    axes.set(xlabel="givens", ylabel="puzzles solved", ylim=(0, 1.02))
    axes.set_title(f"{result['preset']}: {result['n']:,} puzzles, {result['digits']}", fontsize=10)
    save(figure, path)
