"""Evaluation of age arithmetic: accuracy by distance and by steps on test trees."""

from typing import Any

import numpy as np
from torch import nn

from rrn.tasks.ages.data import AGES, PERSONS, Questions, held_out_questions, read_questions
from rrn.tasks.ages.predict import probabilities
from rrn.tasks.evaluation import (
    MEANING,
    EvaluateOptions,
    Progress,
    at_and_within,
    in_parts,
    no_progress,
    reported_steps,
    steps_table,
    summary,
)
from rrn.training.presets import Preset

QUESTIONS = 20_000
CHUNK = 500
Options = EvaluateOptions


def right_by_step(network: nn.Module, questions: Questions, steps: int, progress: Progress = no_progress) -> np.ndarray:
    """Whether the answer to each question is right after each step: (steps, n)."""

    def right(part: slice) -> np.ndarray:
        return probabilities(network, questions[part], steps).argmax(-1) == questions[part].answer

    return in_parts(right, len(questions), CHUNK, progress)


def evaluate(network: nn.Module, preset: Preset, options: EvaluateOptions, progress: Progress) -> dict[str, Any]:
    steps = reported_steps(options, preset)
    questions = read_questions(options.data) if options.data else held_out_questions(options.limit or QUESTIONS)
    questions = questions[: options.limit]
    right = right_by_step(network, questions, steps[-1], progress)
    lengths = [length for length in range(PERSONS) if (questions.length == length).any()]
    by_length = {length: right[:, questions.length == length].mean(1) for length in lengths}
    return {
        "n": len(questions),
        "accuracy": float(right[-1].mean()),
        **at_and_within(right, steps),
        "meaning": {"accuracy": "right at the last step", **MEANING},
        "accuracy_by_length": {str(length): float(figures[-1]) for length, figures in by_length.items()},
        "n_by_length": {str(length): int((questions.length == length).sum()) for length in lengths},
        "accuracy_by_length_and_steps": {
            str(length): {str(t): float(figures[t - 1]) for t in steps} for length, figures in by_length.items()
        },
        "random": 1 / AGES,
        "steps": steps[-1],
        "training_steps": preset.steps,
    }


def tables(result: dict[str, Any]) -> list[Any]:
    table = steps_table("differences", result["accuracy_by_length_and_steps"], result["n_by_length"])
    return [table, "\n" + summary(result, "all lengths")]
