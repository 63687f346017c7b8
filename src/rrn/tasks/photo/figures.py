"""A figure of the digit reader: shares of rendered photos by kind of writing."""

from pathlib import Path
from typing import Any

from rrn.viewing.plots import add_legend, save, subplots


def draw_result(result: dict[str, Any], path: Path) -> None:
    figure, axes = subplots(figsize=(6, 4))
    for shift, (kind, figures) in enumerate(result["by_kind"].items()):
        names = [name for name in figures if name != "n"]
        places = [place + 0.25 * (shift - 1) for place in range(len(names))]
        axes.bar(places, [figures[name] for name in names], width=0.24, label=f"{kind} ({figures['n']})")
    axes.set_xticks(range(len(names)), [name.replace("_", " ") for name in names])
    axes.set(ylabel="share", ylim=(0, 1.02))
    axes.set_title(f"{result['n']:,} rendered photos", fontsize=10)
    add_legend(axes)
    save(figure, path)
