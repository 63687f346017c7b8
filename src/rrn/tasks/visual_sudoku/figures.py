"""A figure of visual Sudoku: puzzles solved by givens, from images and from symbols."""

from pathlib import Path
from typing import Any

from rrn.viewing.plots import add_legend, save, subplots


def draw_result(result: dict[str, Any], path: Path) -> None:
    figure, axes = subplots(figsize=(6, 4))
    for name, label in (("accuracy_by_givens", "from images"), ("accuracy_by_givens_from_symbols", "from symbols")):
        axes.plot([int(givens) for givens in result[name]], list(result[name].values()), marker="o", label=label)
    add_legend(axes)
    axes.set(xlabel="givens", ylabel="puzzles solved", ylim=(0, 1.02))
    axes.set_title(f"{result['preset']}: {result['n']:,} puzzles, {result['digits']}", fontsize=10)
    save(figure, path)
