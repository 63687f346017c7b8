"""The paper's figure: accuracy against path length, a line for each number of steps."""

from pathlib import Path
from typing import Any

from rrn.figures import pyplot, save


def draw_result(result: dict[str, Any], path: Path) -> None:
    plt = pyplot()
    by_length = result["accuracy_by_length_and_steps"]
    lengths = [int(length) for length in by_length]
    steps = list(next(iter(by_length.values())))
    figure, axes = plt.subplots(figsize=(7, 4))
    for index, t in enumerate(steps):
        shade = plt.cm.viridis(0.9 * index / max(len(steps) - 1, 1))
        axes.plot(lengths, [by_length[str(n)][t] for n in lengths], "o-", color=shade, markersize=4, label=f"RRN ({t})")
    axes.axhline(result["random"], color="black", linestyle=":", label="random")
    axes.set(xlabel="differences between the age given and the age asked", ylabel="accuracy", ylim=(0, 1.02))
    axes.set_xticks(lengths)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.set_title(f"{result['preset']}: age arithmetic, {result['n']:,} questions on unseen trees", fontsize=10)
    save(figure, path)
