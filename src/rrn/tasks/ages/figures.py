"""The paper's figure: accuracy against path length, a line for each number of steps."""

from pathlib import Path
from typing import Any

from rrn.viewing.plots import add_legend, plot_lines, save, subplots, transpose


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
