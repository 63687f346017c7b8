"""Evaluation of Pretty-CLEVR: accuracy by jumps and by steps on test scenes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from torch import nn

from rrn.errors import InputError, plural
from rrn.tasks import evaluation
from rrn.tasks.evaluation import EvaluateOptions, Progress, in_parts, no_progress, steps_table, summary
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.predict import probabilities
from rrn.tasks.weights import from_pretrained, read_config
from rrn.training.presets import Preset

CHUNK = 1_000


@dataclass(frozen=True, kw_only=True)
class Options(EvaluateOptions):
    beside: tuple[str, ...] = ()
    """More weights of this task to evaluate on the same questions, such as those of the paper's networks."""


def right_by_step(
    network: nn.Module, scenes: data.Scenes, numbers: np.ndarray, steps: int, progress: Progress = no_progress
) -> np.ndarray:
    """Whether the answer to each question is right after each step: (steps, n)."""

    def right(part: slice) -> np.ndarray:
        answers = data.questions(scenes, *np.divmod(numbers[part], data.QUESTIONS)).answer
        return probabilities(network, scenes, numbers[part], steps).argmax(-1) == answers

    return in_parts(right, len(numbers), CHUNK, progress)


def evaluate(network: nn.Module, preset: Preset, options: EvaluateOptions, progress: Progress) -> dict[str, Any]:
    assert isinstance(options, Options)
    steps = evaluation.reported_steps(options, preset)
    scenes = data.read(options.data, "test") if options.data else data.scenes("test")
    numbers = np.arange(len(scenes) * data.QUESTIONS)[: options.limit]
    total = len(numbers) * (1 + len(options.beside))

    def measure(candidate: nn.Module, at: list[int], before: int) -> dict[str, Any]:
        right = right_by_step(candidate, scenes, numbers, at[-1], lambda done, _: progress(before + done, total))
        return evaluation.accuracies(right, at, "jumps", numbers % data.JUMPS)

    result = {"n": len(numbers), **measure(network, steps, 0), "random": 1 / data.OBJECTS, "steps": steps[-1]}
    result |= {"training_steps": preset.steps, "beside": {}, "meaning": evaluation.MEANING}
    for index, name in enumerate(options.beside, 1):
        its_preset, config = read_config(name)
        if its_preset.task != preset.task:
            raise InputError(f"--beside {name}: of the task {its_preset.task!r}, not of {preset.task!r}")
        other = from_pretrained(name)
        figures = measure(other, list(range(1, its_preset.steps + 1)), index * len(numbers))
        facts = {"parameters": config["parameters"], "steps": its_preset.steps, "trained": config["trained"]}
        result["beside"][its_preset.name] = {**facts, **figures}
    return result


def tables(result: dict[str, Any]) -> list[Any]:
    by_jumps = result["accuracy_by_jumps_and_steps"]
    own = steps_table("jumps", by_jumps)
    overall = f"\n{summary(result, 'all jumps')}\n"
    others = result["beside"]
    if not others:
        return [own, overall.rstrip()]
    headings = [f"{name}, {plural(other['steps'], 'step')}" for name, other in others.items()]
    beside = Table("jumps", *headings, "random", box=None, header_style="bold")
    for jumps in by_jumps:
        figures = [other["accuracy_by_jumps"][jumps] for other in others.values()]
        beside.add_row(jumps, *[f"{figure:.1%}" for figure in [*figures, result["random"]]])
    return [own, overall, beside]
