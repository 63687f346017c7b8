"""Options and tables of all evaluations, and the provenance of a published number. Imports no torch."""

import shlex
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from rrn.errors import InputError, plural, quote
from rrn.io.machine import machine
from rrn.training.presets import Count, Device, Json, Preset

ACCURACY = {
    "sudoku": "Of 10,000 puzzles with 17 givens that it never saw, it solves 98.5 % in the first attempt and 99.8 % "
    "within 9 attempts.",
    "babi": "Of 20,002 questions of the official bAbI files, it answers 99.98 % right; of 10,074 whose answer is not "
    "in the story, it detects that for 99.97 %.",
    "pretty-clevr": "Of 128,000 questions about scenes that it never saw, it answers 100.0 % right.",
    "ages": "Of 20,000 questions that it never saw, it answers 100.0 % right.",
}
"""The accuracy of the shipped networks, for the demo and the page, by the name of the panel; tests compare it with
results/."""

LOSE_ANSWERS = frozenset(
    {
        "ages-paper",
        "babi-memn2n",
        "babi-paper",
        "babi-paper-apart",
        "pretty-clevr-pixels",
    }
)
"""Shipped networks whose accuracy at 2, 4 or 8 times the steps of training is more than 0.5 points lower than at the
steps of training: ``results/staying.json``, by ``python -m benchmarks.staying``."""
MOST_STEPS = 100_000
Progress = Callable[[int, int], Any]
"""Called with the number done and the total."""


def no_progress(done: int, total: int) -> None:
    """The default `Progress`."""


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """The flags of ``rrn evaluate``; a task may add its own."""

    weights: str | None = None
    """A folder of weights, shipped weights by name, or a hub id. Unset: the shipped weights of the preset."""
    data: Path | None = None
    """What to measure on instead of the task's own test set."""
    limit: Count | None = None
    """Measure on this many only, the first."""
    steps: str | None = None
    """Steps to report at, such as 8,16,32. The last is the one that counts. Beyond the steps of training, some networks
    lose right answers; a warning names them."""
    device: Device = "auto"
    json: Json = False
    out: Path | None = None
    """Also write the JSON to this file."""
    figure: Path | None = None
    """Draw the paper's figure to this file (.png, .svg, .pdf)."""


def reported_steps(options: EvaluateOptions, preset: Preset) -> list[int]:
    """The steps of ``--steps``, or all steps of training."""
    return step_list(options.steps) if options.steps else list(range(1, preset.steps + 1))


def step_list(text: str) -> list[int]:
    """ "1,8,64" → [1, 8, 64]."""
    try:
        steps = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--steps: expected numbers such as 32,64, got {quote(text)}") from None
    if min(steps) < 1 or max(steps) > MOST_STEPS:
        raise InputError(f"--steps: expected numbers of at least 1 and at most {MOST_STEPS:,}, got {quote(text)}")
    return sorted(set(steps))


def in_parts(of: Callable[[slice], np.ndarray], count: int, size: int, progress: Progress) -> np.ndarray:
    """Figures (steps, count), made by ``of`` for so many columns at a time."""
    parts = []
    for low in range(0, count, size):
        parts.append(of(slice(low, low + size)))
        progress(min(low + size, count), count)
    return np.concatenate(parts, axis=1)


MEANING = {
    "accuracy": "right at the last step",
    "accuracy_at_step": "right at step t, without stopping",
    "accuracy_within_step": "right at one of the first t steps",
}
"""What figures of t steps mean, for the JSON of an evaluation."""


def at_and_within(right: np.ndarray, steps: list[int]) -> dict[str, dict[str, float]]:
    """Accuracy *at* and *within* each of some steps; ``right`` (steps, n) is whether each answer is right."""
    within = np.logical_or.accumulate(right)
    return {
        "accuracy_at_step": {str(t): float(right[t - 1].mean()) for t in steps},
        "accuracy_within_step": {str(t): float(within[t - 1].mean()) for t in steps},
    }


def accuracies(right: np.ndarray, steps: list[int], name: str, groups: np.ndarray) -> dict[str, Any]:
    """Accuracy overall, *at* and *within* each of some steps, and by the group (n,) of each question."""
    by_group = {
        str(group): {str(t): float(right[t - 1, groups == group].mean()) for t in steps}
        for group in np.unique(groups).tolist()
    }
    return {
        "accuracy": float(right[-1].mean()),
        **at_and_within(right, steps),
        f"accuracy_by_{name}": {group: figures[str(steps[-1])] for group, figures in by_group.items()},
        f"accuracy_by_{name}_and_steps": by_group,
    }


def loses_answers(preset: Preset, source: str, shipped: Collection[str]) -> bool:
    """Whether a network may lose right answers when it runs for more steps than in training.

    For shipped weights this is measured (``results/staying.json``). Others keep them if training saw longer runs.
    """
    if source in shipped:
        return source in LOSE_ANSWERS
    return preset.steps > 1 and not (preset.burn_in or getattr(preset, "stay", 0))


def steps_table(heading: str, rows: dict[str, dict[str, float]], counts: dict[str, int] | None = None) -> Table:
    """Accuracy at each step (columns) by group (rows); ``counts`` is the size of each group."""
    steps = list(next(iter(rows.values())))
    columns = [heading, *(["n"] if counts else []), *(plural(int(t), "step") for t in steps)]
    table = Table(*columns, title=f"right at the step, by {heading}", box=None, header_style="bold")
    for name, figures in rows.items():
        table.add_row(name, *([f"{counts[name]:,}"] if counts else []), *(f"{figures[t]:.1%}" for t in steps))
    return table


def summary(result: dict[str, Any], group: str) -> str:
    """The accuracy at and within the last step, as a sentence."""
    last, questions = str(result["steps"]), plural(result["n"], "question")
    within = result["accuracy_within_step"][last]
    return f"{group}: {result['accuracy']:.2%} of {questions} at step {last}, {within:.2%} within {last}"


def by_attempts(
    right: np.ndarray, taken: np.ndarray, steps: np.ndarray, attempts: int, max_steps: int, shared: bool
) -> dict[str, dict[str, float]]:
    """Accuracy against compute: the share solved within so many attempts, and within so many steps of all attempts.

    Args:
        right: (n,) whether the problem was solved.
        taken: (n,) the attempt that solved it.
        steps: (n,) the steps of that attempt.
        attempts: how many each problem got.
        max_steps: steps of one attempt.
        shared: whether all attempts but the first share one search, side by side, instead of following each other.
    """
    total = (taken - 1) * max_steps + steps
    if shared:
        total[taken > 1] = (max_steps + (attempts - 1) * steps)[taken > 1]
    doubled = [2**power for power in range((max_steps * attempts).bit_length())]
    listed = [1, attempts] if shared else range(1, attempts + 1)
    return {
        "accuracy_by_attempts": {str(k): float((right & (taken <= k)).mean()) for k in listed},
        "accuracy_by_total_steps": {
            str(t): float((right & (total <= t)).mean()) for t in [*doubled, max_steps * attempts]
        },
    }


def provenance(config: dict[str, Any]) -> dict[str, Any]:
    """Where a result comes from: the command, the weights and the machine."""
    return {
        "command": "rrn " + shlex.join(sys.argv[1:]),
        "date": date.today().isoformat(),
        "preset": config["preset"]["name"],
        "parameters": config["parameters"],
        "seed": {**config["preset"], **next(iter(config["preset"].get("stages", ())), {})}["seed"],
        "trained": config["trained"],
        "machine": machine(),
    }
