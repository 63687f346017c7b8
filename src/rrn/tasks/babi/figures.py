"""Error by task and step as a heat map."""

from pathlib import Path
from typing import Any

import numpy as np

from rrn.tasks.babi.evaluate import FAILED
from rrn.tasks.babi.stories import TASK_NAMES
from rrn.viewing.plots import save, subplots


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
