"""Read puzzles from files; errors name file and line."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from rrn.errors import InputError
from rrn.io.files import read_lines
from rrn.tasks.parallel import apply_in_jobs
from rrn.tasks.sudoku.exact import solve_exactly
from rrn.tasks.sudoku.grid import CELLS, breaks_a_rule, describe_clash, line_to_grid, solves
from rrn.tasks.sudoku.text import entries as entries_of

MESSAGES_SHOWN = 20
PROOFS_PER_JOB = 2000

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class PuzzleFile:
    """Puzzles uint8 (n, 81), solutions uint8 (n, 81), zeros if unknown, and a message for each skipped puzzle."""

    puzzles: np.ndarray
    solutions: np.ndarray
    bad: tuple[str, ...]


def parse_puzzle(text: str, name: str = "puzzle") -> np.ndarray:
    """The single puzzle, uint8 (81,), of a text in any format of `rrn.tasks.sudoku.text`."""
    puzzles = read_puzzles(name, text).puzzles
    if len(puzzles) != 1:
        raise InputError(f"{name}: expected one puzzle, found {len(puzzles)}")
    return puzzles[0]


def read_puzzles(
    path: str | Path,
    text: str | None = None,
    *,
    prove: Literal["nothing", "unsolved", "all"] = "nothing",
    skip_bad: bool = False,
    limit: int | None = None,
    processes: int = 1,
    progress: Progress = lambda _what, _done, _total: None,
) -> PuzzleFile:
    """All puzzles of a file, plain or gzip, or the first ``limit``; or of a ``text``, for which ``path`` is a name.

    The formats are those of `rrn.tasks.sudoku.text`. Length, characters, clashing givens and stated solutions are
    always checked. ``prove``: the puzzles for which the exact solver also checks that there is exactly one solution,
    and fills it in. Bad puzzles are an `InputError`, or skipped and listed with ``skip_bad``.
    """
    scanned, found = [], 0
    for entry in entries_of(read_lines(path) if text is None else text.split("\n"), (CELLS,)):
        scanned.append(entry)
        found += not entry.wrong
        if found == limit:
            break
    entries, bad = [entry for entry in scanned if not entry.wrong], [entry for entry in scanned if entry.wrong]
    puzzles = line_to_grid("".join(entry.puzzle for entry in entries)).reshape(-1, CELLS)
    solutions = line_to_grid("".join(entry.solution or "0" * CELLS for entry in entries)).reshape(-1, CELLS)
    good = np.ones(len(puzzles), dtype=bool)

    def refuse(wrong: np.ndarray, reason: str) -> None:
        bad.extend(entries[row]._replace(wrong=reason) for row in np.flatnonzero(wrong & good))
        good[wrong] = False

    stated = solutions.any(axis=1)
    for row in np.flatnonzero(breaks_a_rule(puzzles)):
        bad.append(entries[row]._replace(wrong=f"two equal givens clash: {describe_clash(puzzles[row])}"))
        good[row] = False
    refuse(stated & ~solves(solutions, puzzles), "the stated solution does not solve the puzzle")
    if prove != "nothing":
        rows = np.flatnonzero(good & ~stated if prove == "unsolved" else good)
        proving = partial(progress, "proving")
        solved, counts = apply_in_jobs(solve_exactly, puzzles[rows], PROOFS_PER_JOB, processes, proving)
        solutions[rows] = solved
        all_counts = np.ones(len(puzzles), dtype=np.uint8)
        all_counts[rows] = counts
        refuse(all_counts == 0, "the puzzle has no solution")
        refuse(all_counts > 1, "the puzzle has more than one solution")

    bad.sort(key=lambda entry: (entry.line, entry.item or 0))
    messages = tuple(f"{entry.place(str(path))}: {entry.wrong}" for entry in bad)
    if messages and not skip_bad:
        more = len(messages) - MESSAGES_SHOWN
        shown = [*messages[:MESSAGES_SHOWN], *([f"... and {more} more"] if more > 0 else [])]
        if len(messages) > 1 or good.any():
            shown.append(f"{len(messages)} bad and {good.sum()} good puzzles; correct or skip the bad ones")
        raise InputError("\n".join(shown))
    if not good.any():
        raise InputError("\n".join([*messages[:MESSAGES_SHOWN], f"{path}: no valid puzzle"]))
    return PuzzleFile(puzzles[good], solutions[good], messages)
