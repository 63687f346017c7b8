"""Draw how many guesses the exact solver needs for Sudokus: docs/sudoku_hard.png. No part of ``make bench``.

python -m benchmarks.hard_puzzles FIGURE FILE …
"""

import sys
from pathlib import Path

import numpy as np

from rrn.tasks.sudoku.exact import count_guesses, generate
from rrn.tasks.sudoku.files import read_puzzles
from rrn.viewing.plots import save, subplots

GENERATED = 2000
"""Generated puzzles that are drawn beside those of the files."""
TICKS = (0, 1, 3, 10, 30, 100, 300, 1000, 3000)


def main(figure_path: str, *files: str) -> None:
    guesses = {Path(file).name: count_guesses(read_puzzles(file).puzzles) for file in files}
    guesses[f"{GENERATED:,} generated"] = count_guesses(generate(GENERATED, np.random.default_rng(0))[0])
    most = max(int(some.max()) for some in guesses.values())
    edges = np.unique(np.geomspace(1, most + 2, 28).round())
    figure, axes = subplots(figsize=(7.5, 4))
    for name, some in guesses.items():
        shares = 100 * np.histogram(some + 1, edges)[0] / len(some)
        label = f"{name}: median {np.median(some):.0f}, zero for {(some == 0).mean():.0%}"
        axes.stairs(shares, edges, linewidth=1.6, label=label)
    ticks = [tick for tick in TICKS if tick <= most]
    axes.set_xscale("log")
    axes.set_xticks([tick + 1 for tick in ticks], [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="guesses of the exact solver", ylabel="% of the puzzles")
    axes.legend(fontsize=8, frameon=False)
    save(figure, figure_path)


if __name__ == "__main__":
    main(*sys.argv[1:])
