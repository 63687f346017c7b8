"""Evaluation of age arithmetic: accuracy by distance and by steps on test trees."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from rrn.tasks import evaluation
from rrn.tasks.ages.data import AGES, Questions, held_out_questions, read_questions
from rrn.tasks.ages.predict import probabilities
from rrn.tasks.evaluation import EvaluateOptions, Progress, in_parts, no_progress, steps_table, summary
from rrn.training.presets import Preset
from rrn.viewing.plots import add_legend, plot_lines, save, subplots, transpose

QUESTIONS = 20_000
CHUNK = 500
Options = EvaluateOptions


def right_by_step(network: nn.Module, questions: Questions, steps: int, progress: Progress = no_progress) -> np.ndarray:
    """Whether the answer to each question is right after each step: (steps, n)."""

    def right(part: slice) -> np.ndarray:
        return probabilities(network, questions[part], steps).argmax(-1) == questions[part].answer

    return in_parts(right, len(questions), CHUNK, progress)


def evaluate(network: nn.Module, preset: Preset, options: EvaluateOptions, progress: Progress) -> dict[str, Any]:
    steps = evaluation.reported_steps(options, preset)
    questions = read_questions(options.data) if options.data else held_out_questions(options.limit or QUESTIONS)
    questions = questions[: options.limit]
    right = right_by_step(network, questions, steps[-1], progress)
    lengths, counts = np.unique(questions.length, return_counts=True)
    return {
        "n": len(questions),
        "data": options.data.name if options.data else "generated test questions",
        **evaluation.accuracies(right, steps, "length", questions.length),
        "meaning": evaluation.MEANING,
        "n_by_length": dict(zip(map(str, lengths.tolist()), counts.tolist(), strict=True)),
        "random": 1 / AGES,
        "steps": steps[-1],
        "training_steps": preset.steps,
    }


def tables(result: dict[str, Any]) -> list[Any]:
    table = steps_table("differences", result["accuracy_by_length_and_steps"], result["n_by_length"])
    return [table, "\n" + summary(result, "all lengths")]


def draw_result(result: dict[str, Any], path: Path) -> None:
    by_length = result["accuracy_by_length_and_steps"]
    figure, axes = subplots(figsize=(7, 4))
    plot_lines(axes, transpose(by_length, lambda t: f"RRN ({t})"))
    axes.axhline(result["random"], color="black", linestyle=":", label="random")
    add_legend(axes)
    axes.set(xlabel="differences between the age given and the age asked", ylabel="accuracy", ylim=(0, 1.02))
    axes.set_xticks([int(length) for length in by_length])
    axes.set_title(f"{result['preset']}: age arithmetic, {result['n']:,} questions on unseen trees", fontsize=10)
    save(figure, path)
