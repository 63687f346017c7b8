"""Sudokus on the command line: read from any input as a stream, and drawn on a terminal."""

import queue
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from rrn.errors import InputError
from rrn.tasks.sudoku.grid import BOXES, SYMBOLS, clashes, describe_clash, line_to_grid
from rrn.tasks.sudoku.text import Entry, entries

if TYPE_CHECKING:
    from rrn.inference.result import Result

WAITING = 2048
"""Puzzles that are read ahead of the solver."""


@dataclass
class Tally:
    """Counts of what has been solved so far."""

    count: int = 0
    solved: int = 0
    first: int = 0
    """Of them, in the first attempt."""
    ran: int = 0
    steps: int = 0
    """Steps of all puzzles that the network solved, and their number."""
    share: float | None = None
    """Share of the input that has been read, where known."""
    started: float = field(default_factory=time.monotonic)

    def add(self, result: "Result") -> None:
        self.count += 1
        self.solved += result.solved
        self.first += result.solved and result.attempts <= 1
        if result.solved and result.attempts:
            self.ran, self.steps = self.ran + 1, self.steps + result.steps

    def read(self, share: float) -> None:
        self.share = share

    def summary(self) -> str:
        parts = [f"{self.solved:,} of {self.count:,} solved, {self.first:,} of them in the first attempt"]
        if self.ran:
            parts.append(f"{self.steps / self.ran:.1f} steps on average")
        return "; ".join([*parts, f"{time.monotonic() - self.started:.1f} s"])

    def progress(self) -> str:
        speed = self.count / max(time.monotonic() - self.started, 1e-3)
        share = "" if self.share is None else f"; {self.share:.0%} of the input read"
        return f"{self.count:,} puzzles, {self.solved:,} solved, {speed:,.0f} per second{share}"


class Reader:
    """The puzzles of an input, read ahead by a thread, so that a slow input is solved while it is read.

    With ``full_batches`` it waits until a batch is full, so that batches, and with them the noise of further attempts,
    do not depend on the speed of the input.
    """

    def __init__(self, name: str, lines: Iterable[str], skip_bad: bool, full_batches: bool) -> None:
        self.name, self.skip_bad, self.full_batches = name, skip_bad, full_batches
        self.error: InputError | None = None
        """The error that ended the reading; raised after everything before it is solved."""
        self._found: queue.Queue[Entry | Exception | None] = queue.Queue(WAITING)
        self._ready: list[np.ndarray] = []
        self._over = False
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()
        self._fill(1, wait=True)
        if not self._ready:
            raise self.error or InputError(f"{name}: no usable puzzle in it")

    def is_single(self) -> bool:
        """Whether the input is exactly one puzzle; waits until that is known."""
        self._fill(2, wait=True)
        if self.error and len(self._ready) == 1:
            raise self.error
        return len(self._ready) == 1

    def batch(self, most: int) -> list[np.ndarray]:
        """The next puzzles, ``most`` at most; empty at the end."""
        self._fill(most, self.full_batches)
        taken, self._ready = self._ready[:most], self._ready[most:]
        return taken

    def _read(self, lines: Iterable[str]) -> None:
        try:
            for entry in entries(lines):
                self._found.put(entry)
            self._found.put(None)
        except UnicodeDecodeError as error:
            self._found.put(InputError(f"{self.name}: not text ({error})"))
        except Exception as error:
            self._found.put(error)

    def _fill(self, most: int, wait: bool) -> None:
        """Have ``most`` puzzles ready, or all there are; without ``wait`` only those read so far, at least one.

        An invalid puzzle is skipped and named, or ends the reading.
        """
        while len(self._ready) < most and not self._over and (wait or not self._ready or not self._found.empty()):
            entry = self._found.get()
            if not isinstance(entry, Entry):
                self._over = True
                if entry is not None and not isinstance(entry, InputError):
                    raise entry
                self.error = entry
                return
            grid, wrong = line_to_grid(entry.puzzle), entry.wrong
            if not wrong and (clash := describe_clash(grid, BOXES[len(grid)])):
                wrong = f"two equal givens clash: {clash}"
            if not wrong:
                self._ready.append(grid)
            elif self.skip_bad:
                print(f"skipped: {entry.place(self.name)}: {wrong}", file=sys.stderr)
            else:
                self._over, self.error = True, InputError(f"{entry.place(self.name)}: {wrong}")


DECIDED = 0.5
"""A digit counts as decided from this probability on."""
GIVEN, FOUND, WRONG, NEW, UNSURE = "bold", "cyan", "bold red", "bold green", "dim"


def framed(
    puzzle: np.ndarray, grid: np.ndarray, wrong: np.ndarray | None = None, sure: np.ndarray | None = None
) -> Text:
    """A grid with lines between its boxes; cells that are ``wrong`` are marked with ``!``, unsure ones are dim."""
    high, wide = BOXES[len(grid)]
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
    """A grid in few columns; digits that differ from ``before`` are highlighted."""
    high, wide = BOXES[len(grid)]
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
    return clashes(answer, BOXES[len(answer)])[0] | ((puzzle > 0) & (puzzle != answer))


def decided_cells(puzzle: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The grid after every step, (steps, cells), with 0 where no digit is decided; the last is the answer.

    ``steps`` are the probabilities of every digit in every cell after every step: (steps, cells, digits).
    """
    grids = np.where(steps.max(-1) >= DECIDED, steps.argmax(-1) + 1, 0)
    grids[-1] = steps[-1].argmax(-1) + 1
    grids[:-1] = np.where(puzzle > 0, puzzle, grids[:-1])
    return grids.astype(np.uint8)


def plain_if_needed(console: Console, text: Text) -> Text:
    """The text with ASCII characters only, if the terminal needs that."""
    if not console.options.ascii_only:
        return text
    plain = str.maketrans("┌┬┐├┼┤└┴┘─│·…→█░–", "+++++++++-|..>#.-")
    return Text(text.plain.translate(plain))
