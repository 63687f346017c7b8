"""Evaluation of bAbI: error by task and by step on official files or generated questions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from rich.table import Table
from torch import Tensor, nn

from rrn.errors import InputError, plural
from rrn.tasks.answers import answer_logits
from rrn.tasks.babi.data import EncodedQuestions, EndlessQuestions, SentenceTable, encode
from rrn.tasks.babi.presets import BabiPreset, MemN2NPreset, PaperPreset, RolesPreset
from rrn.tasks.babi.reader import read_babi
from rrn.tasks.babi.stories import TASK_NAMES, TASKS
from rrn.tasks.babi.unanswerable import VARIED_TASKS
from rrn.tasks.babi.vocabulary import UNKNOWN_ID
from rrn.tasks.evaluation import EvaluateOptions, Progress, no_progress, reported_steps
from rrn.tasks.weights import from_pretrained
from rrn.training.experiment import Batch
from rrn.training.presets import Range
from rrn.viewing.plots import save, subplots

QUESTIONS = 1000
"""Generated questions of each task, if no files are given."""
SEED = 2**31 - 1
"""Seed of the generated test set; training uses other seeds."""
FAILED = 0.05
"""Error above which a task counts as failed, as in the paper."""
CHUNK = 250
FEWEST = 20
"""Least number of questions of a task, so that there are answerable and unanswerable ones."""
BINS = 15
"""Bins of the expected calibration error."""


@dataclass(frozen=True, kw_only=True)
class Options(EvaluateOptions):
    split: Literal["train", "valid", "test"] | None = None
    """Split of the files in --data. Unset: test if there are test files, else valid."""
    max_facts: Annotated[int, Range(least=1, most=1000)] | None = None
    """Facts read before a question. Unset: as in training."""
    beside: tuple[str, ...] = ()
    """More weights of this task to evaluate on the same questions: other seeds, ablations, baselines."""
    limits: bool = False
    """Also evaluate generated questions with and without an answer, and the calibration of the probabilities."""


def _logits(
    network: nn.Module, questions: EncodedQuestions, steps: int, max_facts: int, progress: Progress
) -> Iterator[tuple[Batch, Tensor]]:
    """Batches of questions and the logits of their answers: (steps, n, answers)."""
    for number, part in enumerate(questions.batches(CHUNK, max_facts), start=1):
        yield part, answer_logits(network, part, steps)
        progress(min(number * CHUNK, len(questions)), len(questions))


def calibration_error(probability: np.ndarray, happened: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error: mean |probability - frequency| over bins of equal width, weighted by their size."""
    index = np.minimum((probability * bins).astype(int), bins - 1)
    gap = np.bincount(index, probability - happened, minlength=bins)
    return float(np.abs(gap).sum() / len(probability))


def measure_limits(
    network: nn.Module, steps: int, max_facts: int, questions_per_task: int, progress: Progress = no_progress
) -> dict[str, Any]:
    """Accuracy and calibration on generated questions, half of them unanswerable (`rrn.tasks.babi.unanswerable`).

    ``composed``: the same for stories that mix sentences of several tasks (`rrn.tasks.babi.composed`).
    """
    mixed = EndlessQuestions(SEED, unanswerable_share=0.5, varied_share=0.25)
    composed = EndlessQuestions(SEED, sorted(VARIED_TASKS), unanswerable_share=0.5, composed_share=1.0)
    figures = _measure_limits(network, mixed.take(questions_per_task), steps, max_facts, progress)
    figures["composed"] = _measure_limits(network, composed.take(questions_per_task), steps, max_facts, progress)
    return {"data": "generated questions", "bins": BINS, **figures}


def _measure_limits(
    network: nn.Module, questions: EncodedQuestions, steps: int, max_facts: int, progress: Progress
) -> dict[str, Any]:
    parts = _logits(network, questions, steps, max_facts, progress)
    shares = np.concatenate([logits[-1].softmax(-1).numpy() for _, logits in parts])  # (n, answers)
    right = shares.argmax(1) == questions.answers
    refused, unanswerable = shares.argmax(1) == UNKNOWN_ID, questions.answers == UNKNOWN_ID

    def figures(rows: np.ndarray) -> dict[str, Any]:
        chosen = np.isin(np.arange(len(right)), rows)
        return {
            "answerable": {
                "n": int((chosen & ~unanswerable).sum()),
                "accuracy": float(right[chosen & ~unanswerable].mean()),
                "said_not_in_the_story": float(refused[chosen & ~unanswerable].mean()),
            },
            "unanswerable": {
                "n": int((chosen & unanswerable).sum()),
                "accuracy": float(right[chosen & unanswerable].mean()),
            },
            "calibration_error": calibration_error(shares[chosen].max(1), right[chosen]),
            "calibration_error_not_in_the_story": calibration_error(shares[chosen, UNKNOWN_ID], unanswerable[chosen]),
        }

    by_task = {str(task): figures(rows) for task, rows in questions.rows_by_task.items()}
    return {**figures(np.arange(len(right))), "by_task": by_task}


def wrong_by_step(
    network: nn.Module, questions: EncodedQuestions, steps: int, max_facts: int, progress: Progress = no_progress
) -> np.ndarray:
    """Whether the answer to each question is wrong after each step: (steps, n)."""
    parts = _logits(network, questions, steps, max_facts, progress)
    return np.concatenate([(logits.argmax(-1) != part["answers"]).numpy() for part, logits in parts], axis=1)


def read_questions(source: Path, split: str | None) -> tuple[EncodedQuestions, str]:
    """The questions of official files, and their split."""
    for wanted in [split] if split else ["test", "valid"]:
        try:
            return encode(read_babi(source, wanted), SentenceTable()), wanted
        except InputError as error:
            if split or wanted == "valid" or "no bAbI test files" not in str(error):
                raise
    raise AssertionError


def evaluate(network: nn.Module, preset: BabiPreset, options: EvaluateOptions, progress: Progress) -> dict[str, Any]:
    assert isinstance(options, Options)
    steps = reported_steps(options, preset)
    max_facts = options.max_facts or preset.max_facts
    if max_facts > preset.max_facts and isinstance(preset, (PaperPreset, MemN2NPreset)):
        raise InputError(f"--max-facts: {preset.name} reads at most {preset.max_facts} facts, got {max_facts}")
    if options.data is None:
        questions, split = EndlessQuestions(SEED).take(QUESTIONS), "generated"
    else:
        questions, split = read_questions(options.data, options.split)
    if options.limit is not None:
        questions = questions.first(options.limit)
    result = {
        "n": len(questions),
        "data": "generated questions" if split == "generated" else f"official {split} files",
        "n_by_task": {str(task): len(rows) for task, rows in questions.rows_by_task.items()},
        **_measure(network, preset, questions, steps, max_facts, progress),
    }
    if options.limits:
        each = QUESTIONS if options.limit is None else max(FEWEST, options.limit // len(TASKS))
        result["limits"] = measure_limits(network, steps[-1], max_facts, each, progress)
    if options.beside:
        result["beside"] = {_label(weights): _measure_weights(weights, questions) for weights in options.beside}
        same_network = [other for other in result["beside"].values() if _network(other["preset"]) == _network(preset)]
        runs = [result, *same_network]
        result["over_seeds"] = {
            "runs": len(runs),
            "mean_error": float(np.mean([run["mean_error"] for run in runs])),
            "deviation": float(np.std([run["mean_error"] for run in runs], ddof=len(runs) > 1)),
            "failed_tasks": [len(run["failed_tasks"]) for run in runs],
            "mean_errors": [run["mean_error"] for run in runs],
        }
        for other in result["beside"].values():
            other["preset"] = other["preset"].name
    return result


def _measure(
    network: nn.Module,
    preset: BabiPreset,
    questions: EncodedQuestions,
    steps: list[int],
    max_facts: int,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    wrong = wrong_by_step(network, questions, steps[-1], max_facts, progress)
    by_task = {task: wrong[:, rows].mean(1) for task, rows in questions.rows_by_task.items()}
    errors = {task: float(figures[-1]) for task, figures in by_task.items()}
    never = np.logical_and.accumulate(wrong)
    return {
        "mean_error": float(np.mean(list(errors.values()))),
        "failed_tasks": [task for task, error in errors.items() if error > FAILED],
        "error_by_task": {str(task): error for task, error in errors.items()},
        "mean_error_by_steps": {str(t): float(np.mean([row[t - 1] for row in by_task.values()])) for t in steps},
        "mean_error_within_steps": {
            str(t): float(np.mean([never[t - 1, rows].mean() for rows in questions.rows_by_task.values()]))
            for t in steps
        },
        "meaning": {
            "mean_error": "wrong at the last step",
            "mean_error_by_steps": "wrong at step t",
            "mean_error_within_steps": "wrong at all of the first t steps",
        },
        "error_by_task_and_steps": {
            str(task): {str(t): float(row[t - 1]) for t in steps} for task, row in by_task.items()
        },
        "steps": steps[-1],
        "training_steps": preset.steps,
        "max_facts": max_facts,
        "trained_on": "generated questions" if preset.data is None else "official train files",
        "told_supporting_facts": isinstance(preset, RolesPreset) and preset.support_loss > 0,
    }


def _measure_weights(weights: str, questions: EncodedQuestions) -> dict[str, Any]:
    network = from_pretrained(weights, task="babi")
    preset, config = network.preset, network.config
    figures = _measure(network, preset, questions, list(range(1, preset.steps + 1)), preset.max_facts)
    about = {name: config["trained"].get(name) for name in ("update", "minutes")}
    return {"preset": preset, "parameters": config["parameters"], "seed": preset.seed, **about, **figures}


def _label(weights: str) -> str:
    """``<name>`` for ``runs/<name>/best``, else the name of the weights."""
    path = Path(weights)
    return path.parent.name if path.name == "best" else path.name


def _network(preset: BabiPreset) -> BabiPreset:
    """The preset without its seed, length and stages of training, to compare runs of one network."""
    return replace(preset, seed=0, updates=1, minutes=None, start_from=None, validate_every=1)


def tables(result: dict[str, Any]) -> list[Any]:
    by_task = result["error_by_task_and_steps"]
    steps = list(result["mean_error_by_steps"])
    columns = [plural(int(t), "step") for t in steps]
    table = Table("task", "", "n", *columns, box=None, header_style="bold")
    for task, errors in by_task.items():
        style = "red" if int(task) in result["failed_tasks"] else ""
        cells = [f"{errors[t]:.1%}" for t in steps]
        table.add_row(task, TASK_NAMES[int(task) - 1], f"{result['n_by_task'][task]:,}", *cells, style=style)
    for label, key in (("at the step", "mean_error_by_steps"), ("within the steps", "mean_error_within_steps")):
        table.add_row("", f"mean error {label}", f"{result['n']:,}", *[f"{result[key][t]:.2%}" for t in steps])
    failed = ", ".join(map(str, result["failed_tasks"])) or "none"
    summary = (
        f"\n{result['data']}: mean error {result['mean_error']:.2%}; failed tasks (error > {FAILED:.0%}): {failed}"
    )
    if result["data"] == "generated questions":
        summary += "\nGenerated questions, not the released ones: give the folder of the official files with --data."
    parts: list[Any] = [table, summary, *(_limits_tables(result["limits"]) if "limits" in result else [])]
    if "beside" not in result:
        return parts
    others = Table("run", "trained on", "updates", "mean error", "failed", box=None, header_style="bold")
    for name, other in result["beside"].items():
        row = (f"{other['update']:,}", f"{other['mean_error']:.2%}", str(len(other["failed_tasks"])))
        others.add_row(name, other["trained_on"], *row)
    seeds = result["over_seeds"]
    spread = f"{seeds['mean_error']:.2%} ± {seeds['deviation']:.2%}"
    return [*parts, "", others, f"\n{seeds['runs']} seeds of {result['preset']}: mean error {spread}"]


def _limits_tables(limits: dict[str, Any]) -> list[Any]:
    columns = ("right", "refused", "unanswerable", "calibration")
    table = Table("task", "", *columns, box=None, header_style="bold")
    names = {task: TASK_NAMES[int(task) - 1] for task in limits["by_task"]}
    for task, figures in [*limits["by_task"].items(), ("all", limits), ("composed", limits["composed"])]:
        table.add_row(
            task if task in names else "",
            names.get(task, task),
            f"{figures['answerable']['accuracy']:.1%}",
            f"{figures['answerable']['said_not_in_the_story']:.1%}",
            f"{figures['unanswerable']['accuracy']:.1%}",
            f"{figures['calibration_error']:.2%}",
        )
    title = (
        f"\nGenerated questions, {limits['answerable']['n']:,} with an answer in the story (right, refused) and "
        f"{limits['unanswerable']['n']:,} without one (rightly refused: unanswerable):"
    )
    error = limits["calibration_error_not_in_the_story"]
    return [title, table, f"calibration error of the probability that the answer is not in the story: {error:.2%}"]


def draw_result(result: dict[str, Any], path: Path) -> None:
    by_task = result["error_by_task_and_steps"]
    tasks, steps = list(by_task), list(result["mean_error_by_steps"])
    errors = np.array([[by_task[task][t] for t in steps] for task in tasks])
    figure, axes = subplots(figsize=(3.2 + 0.9 * len(steps), 0.6 + 0.3 * len(tasks)))
    axes.imshow(np.sqrt(errors), cmap="YlOrRd", vmin=0, vmax=1, aspect="auto")
    for (row, column), error in np.ndenumerate(errors):
        weight = "bold" if error > FAILED else "normal"
        colour = "white" if error > 0.5 else "black"
        axes.text(column, row, f"{100 * error:.1f}", ha="center", va="center", fontsize=8, weight=weight, color=colour)
    axes.set_xticks(range(len(steps)), [f"{t}" for t in steps])
    axes.set_yticks(range(len(tasks)), [f"{task}  {TASK_NAMES[int(task) - 1]}" for task in tasks], fontsize=8)
    axes.set_xlabel("steps")
    axes.grid(False)
    means = ", ".join(f"{100 * result['mean_error_by_steps'][t]:.2f}" for t in steps)
    axes.set_title(f"{result['preset']}: error in % on {result['data']}\nmean by step: {means}", fontsize=9)
    save(figure, path)
