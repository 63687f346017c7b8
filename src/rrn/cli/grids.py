"""Sudokus on a terminal: framed, small, and as one line, of any size."""

import numpy as np
from rich.console import Console
from rich.text import Text

from rrn.tasks.sudoku.grid import SYMBOLS, box_of, clashes

DECIDED = 0.5
"""The probability from which on a digit counts as decided."""
GIVEN, FOUND, WRONG, NEW, UNSURE = "bold", "cyan", "bold red", "bold green", "dim"


def framed(
    puzzle: np.ndarray, grid: np.ndarray, wrong: np.ndarray | None = None, sure: np.ndarray | None = None
) -> Text:
    """A grid with lines between its boxes; cells that are ``wrong`` are marked with ``!``, unsure ones are dim."""
    high, wide = box_of(len(grid))
    size = high * wide
    bars = ["─" * (3 * wide)] * high
    text = Text("┌" + "┬".join(bars) + "┐\n")
    for cell, digit in enumerate(grid):
        row, column = divmod(cell, size)
        if column % wide == 0:
            text.append("│")
        bad = wrong is not None and bool(wrong[cell])
        style = WRONG if bad else GIVEN if puzzle[cell] else FOUND
        if sure is not None and not sure[cell] and not puzzle[cell]:
            style = UNSURE
        text.append(f" {SYMBOLS[digit - 1] if digit else '·'}{'!' if bad else ' '}", style if digit else UNSURE)
        if column == size - 1:
            text.append("│\n")
            if row % high == high - 1 and row < size - 1:
                text.append("├" + "┼".join(bars) + "┤\n")
    return text.append("└" + "┴".join(bars) + "┘")


def small(puzzle: np.ndarray, grid: np.ndarray, before: np.ndarray) -> Text:
    """A grid in few columns; digits that are new since ``before`` stand out."""
    high, wide = box_of(len(grid))
    size, text = high * wide, Text()
    for cell, digit in enumerate(grid):
        row, column = divmod(cell, size)
        style = GIVEN if puzzle[cell] else NEW if digit != before[cell] else FOUND
        text.append(SYMBOLS[digit - 1] if digit else "·", style if digit else UNSURE)
        if column < size - 1:
            text.append(" │ " if column % wide == wide - 1 else " ")
        elif row < size - 1:
            text.append("\n")
            if row % high == high - 1:
                bars = [2 * wide] + [2 * wide + 1] * (high - 2) + [2 * wide]
                text.append("┼".join("─" * bar for bar in bars) + "\n")
    return text


def beside(left: Text, right: Text) -> Text:
    """Two texts of as many lines, side by side."""
    pairs = zip(left.split("\n"), right.split("\n"), strict=True)
    return Text("\n").join(Text.assemble(a, "   ", b) for a, b in pairs)


def wrong_cells(puzzle: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """Cells that clash, and givens that were not kept: (cells,)."""
    return clashes(answer, box_of(len(answer)))[0] | ((puzzle > 0) & (puzzle != answer))


def decided_cells(puzzle: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The grid after every step, (steps, cells), with 0 where no digit is decided; the last is the answer.

    ``steps`` are the probabilities of every digit in every cell after every step: (steps, cells, digits).
    """
    grids = np.where(steps.max(-1) >= DECIDED, steps.argmax(-1) + 1, 0)
    grids[-1] = steps[-1].argmax(-1) + 1
    grids[:-1] = np.where(puzzle > 0, puzzle, grids[:-1])
    return grids.astype(np.uint8)


def plain_if_needed(console: Console, text: Text) -> Text:
    """Lines and dots an ASCII terminal can show."""
    if not console.options.ascii_only:
        return text
    plain = str.maketrans("┌┬┐├┼┤└┴┘─│·…→█░–", "+++++++++-|..>#.-")
    return Text(text.plain.translate(plain))
