"""Accuracy by jumps and by steps, beside the networks of the paper."""

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.table import Table
from torch import nn

from rrn.evaluation import EvaluateOptions, step_list
from rrn.presets import Preset
from rrn.pretrained import from_pretrained, read_config, shipped
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.predict import probabilities

CHUNK = 1_000
BESIDE = ("pretty-clevr-paper", "pretty-clevr-rn", "pretty-clevr-mlp")
"""Shipped weights that every evaluation also measures."""
Options = EvaluateOptions


def right_by_step(
    network: nn.Module,
    scenes: data.Scenes,
    numbers: np.ndarray,
    steps: int,
    progress: Callable[[int, int], Any] = lambda done, of: None,
) -> np.ndarray:
    """Whether each question is answered right after each step: (steps, n)."""
    parts = []
    for low in range(0, len(numbers), CHUNK):
        part = numbers[low : low + CHUNK]
        right = data.questions(scenes, *np.divmod(part, data.QUESTIONS)).answer
        parts.append(probabilities(network, scenes, part, steps).argmax(-1) == right)
        progress(min(low + CHUNK, len(numbers)), len(numbers))
    return np.concatenate(parts, axis=1)


def evaluate(
    network: nn.Module, preset: Preset, options: EvaluateOptions, progress: Callable[[int, int], Any]
) -> dict[str, Any]:
    steps = step_list(options.steps) if options.steps else list(range(1, preset.steps + 1))
    scenes = data.read(options.data, "test") if options.data else data.scenes("test")
    numbers = np.arange(len(scenes) * data.QUESTIONS)[: options.limit]
    others = [name for name in BESIDE if name != preset.name and name in shipped()]
    total = len(numbers) * (1 + len(others))

    def measure(candidate: nn.Module, at: list[int], before: int) -> dict[str, Any]:
        right = right_by_step(candidate, scenes, numbers, at[-1], lambda done, _: progress(before + done, total))
        by_jumps = {
            str(jumps): {str(t): float(right[t - 1, numbers % data.JUMPS == jumps].mean()) for t in at}
            for jumps in range(min(data.JUMPS, len(numbers)))
        }
        return {
            "accuracy": float(right[-1].mean()),
            "accuracy_by_jumps": {jumps: figures[str(at[-1])] for jumps, figures in by_jumps.items()},
            "accuracy_by_jumps_and_steps": by_jumps,
        }

    result = {"n": len(numbers), **measure(network, steps, 0), "random": 1 / data.OBJECTS, "steps": steps[-1]}
    result |= {"training_steps": preset.steps, "minutes": preset.minutes, "beside": {}}
    for index, name in enumerate(others, 1):
        _, config = read_config(name)
        other, its_preset = from_pretrained(name)
        figures = measure(other, list(range(1, its_preset.steps + 1)), index * len(numbers))
        facts = {"parameters": config["parameters"], "minutes": its_preset.minutes, "steps": its_preset.steps}
        result["beside"][name] = {**facts, "trained": config["trained"], **figures}
    return result


def tables(result: dict[str, Any]) -> list[Any]:
    by_jumps = result["accuracy_by_jumps_and_steps"]
    steps = list(next(iter(by_jumps.values())))
    own = Table("jumps", *[f"{t} step{'s' * (t != '1')}" for t in steps], box=None, header_style="bold")
    for jumps, figures in by_jumps.items():
        own.add_row(jumps, *[f"{figures[t]:.1%}" for t in steps])
    summary = f"\nall jumps, {result['steps']} steps: {result['accuracy']:.2%} of {result['n']:,} questions\n"
    others = result["beside"]
    headings = [f"{name}, {other['steps']} step{'s' * (other['steps'] > 1)}" for name, other in others.items()]
    beside = Table("jumps", *headings, "random", box=None, header_style="bold")
    for jumps in by_jumps:
        figures = [other["accuracy_by_jumps"][jumps] for other in others.values()]
        beside.add_row(jumps, *[f"{figure:.1%}" for figure in [*figures, result["random"]]])
    return [own, summary, beside]
