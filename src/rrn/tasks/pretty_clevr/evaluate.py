"""Evaluation of Pretty-CLEVR: accuracy by jumps and by steps on test scenes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from torch import nn

from rrn.errors import plural
from rrn.tasks import evaluation
from rrn.tasks.evaluation import EvaluateOptions, Progress, in_parts, no_progress, steps_table, summary
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.predict import probabilities
from rrn.tasks.weights import from_pretrained
from rrn.training.presets import Preset
from rrn.viewing.plots import add_legend, plot_lines, save, subplots, transpose

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

    source = options.data.name if options.data else "generated test scenes"
    result = {"n": len(numbers), "data": source, **measure(network, steps, 0)}
    result |= {"random": 1 / data.OBJECTS, "steps": steps[-1]}
    result |= {"training_steps": preset.steps, "beside": {}, "meaning": evaluation.MEANING}
    for index, name in enumerate(options.beside, 1):
        other = from_pretrained(name, task=preset.task)
        its_steps, config = other.preset.steps, other.config
        figures = measure(other, list(range(1, its_steps + 1)), index * len(numbers))
        facts = {"parameters": config["parameters"], "steps": its_steps, "trained": config["trained"]}
        result["beside"][other.preset.name] = {**facts, **figures}
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


def draw_result(result: dict[str, Any], path: Path) -> None:
    """The paper's figure: accuracy against jumps, a line for each number of steps, with RN, MLP and random.

    If the paper's network was evaluated too, it has a panel.
    """
    beside = result["beside"]
    panels = {"pretty-clevr-paper": beside["pretty-clevr-paper"]} if "pretty-clevr-paper" in beside else {}
    panels |= {result["preset"]: result}
    figure, all_axes = subplots(1, len(panels), figsize=(5.2 * len(panels), 3.8), sharey=True, squeeze=False)
    for axes, (name, shown) in zip(all_axes[0], panels.items(), strict=True):
        by_jumps = shown["accuracy_by_jumps_and_steps"]
        jumps = [int(n) for n in by_jumps]
        plot_lines(axes, transpose(by_jumps, lambda t: plural(int(t), "step")))
        for baseline, label, dashes in (("pretty-clevr-rn", "RN", "--"), ("pretty-clevr-mlp", "MLP", "-.")):
            if baseline in beside and baseline != name:
                heights = [beside[baseline]["accuracy_by_jumps"][str(n)] for n in jumps]
                axes.plot(jumps, heights, dashes, color="0.35", marker="s", markersize=3, label=label)
        axes.axhline(result["random"], color="black", linestyle=":", label="random")
        add_legend(axes)
        axes.set(xlabel="jumps", ylim=(0, 1.02), xticks=jumps)
        axes.set_title(f"{name} ({shown['parameters']:,} parameters)", fontsize=10)
    all_axes[0][0].set_ylabel("accuracy")
    figure.subplots_adjust(wspace=0.35)
    save(figure, path)
