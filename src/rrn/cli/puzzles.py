"""The puzzles of an input as a stream: read ahead, checked, handed out in batches."""

import itertools
import queue
import sys
import threading
from collections.abc import Iterable

import numpy as np

from rrn.errors import InputError
from rrn.tasks.sudoku.grid import box_of, breaks_a_rule, describe_clash, line_to_grid
from rrn.tasks.sudoku.text import Entry, entries

WAITING = 2048
"""Puzzles that are read ahead."""


class Reader:
    """The puzzles of an input, read ahead by a thread of its own, so that a slow input is solved as it comes.

    A ``patient`` one waits until a batch is full, so that batches, and with them the noise of restarts, do not depend
    on how fast the input is.
    """

    def __init__(self, name: str, lines: Iterable[str], skip_bad: bool, patient: bool) -> None:
        self.name, self.skip_bad, self.patient = name, skip_bad, patient
        self.error: InputError | None = None
        """What ended the reading, to be raised once all before it is solved."""
        self._found: queue.Queue[Entry | Exception | None] = queue.Queue(WAITING)
        self._ready: list[np.ndarray] = []
        self._over = False
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()
        self._fill(1, patient=True)
        if not self._ready:
            raise self.error or InputError(f"{name}: no usable puzzle in it")

    def alone(self) -> bool:
        """Whether the input is one puzzle and nothing else; waits until that is known."""
        self._fill(2, patient=True)
        if self.error and len(self._ready) == 1:
            raise self.error
        return len(self._ready) == 1

    def batch(self, most: int) -> list[np.ndarray]:
        """The next puzzles, ``most`` at most; empty at the end."""
        self._fill(most, self.patient)
        taken, self._ready = self._ready[:most], self._ready[most:]
        return taken

    def _read(self, lines: Iterable[str]) -> None:
        try:
            for entry in entries(lines):
                self._found.put(entry)
            self._found.put(None)
        except Exception as error:
            self._found.put(error)

    def _fill(self, most: int, patient: bool) -> None:
        """Have ``most`` puzzles ready, or all there are; if not patient, those that wait, but one at least."""
        while len(self._ready) < most and not self._over and (patient or not self._ready):
            taken: list[Entry] = []
            while len(self._ready) + len(taken) < most and not self._over:
                try:
                    entry = self._found.get(block=not taken)
                except queue.Empty:
                    break
                if isinstance(entry, Entry):
                    taken.append(entry)
                else:
                    self._over = True
                    self.error = _as_input_error(self.name, entry)
            self._check(taken)

    def _check(self, taken: list[Entry]) -> None:
        """Keep the good ones; the first bad one is left out and named, or ends the reading."""
        for cells, some in itertools.groupby(taken, key=lambda entry: len(entry.puzzle)):
            group = list(some)
            grids = np.stack([line_to_grid(entry.puzzle) for entry in group])
            clashing = breaks_a_rule(grids, box_of(cells)) if cells else np.ones(len(group), bool)
            for entry, grid, clashes in zip(group, grids, clashing, strict=True):
                if not clashes:
                    self._ready.append(grid)
                    continue
                wrong = entry.wrong or f"two equal givens clash: {describe_clash(grid, box_of(cells))}"
                if not self.skip_bad:
                    self._over, self.error = True, InputError(f"{entry.place(self.name)}: {wrong}")
                    return
                print(f"left out: {entry.place(self.name)}: {wrong}", file=sys.stderr)


def _as_input_error(name: str, error: Exception | None) -> InputError | None:
    if error is None or isinstance(error, InputError):
        return error
    if isinstance(error, UnicodeDecodeError):
        return InputError(f"{name}: not text ({error})")
    raise error
