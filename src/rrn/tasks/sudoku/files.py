"""Puzzles from text and files, every bad one named with file and line."""

import gzip
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from rrn.errors import InputError
from rrn.parallel import run_jobs
from rrn.tasks.sudoku.exact import solve_exactly
from rrn.tasks.sudoku.grid import CELLS, breaks_a_rule, cells_of, describe_clash, foreign_character, solves

PUZZLE_COLUMNS = {"puzzle", "puzzles", "quiz", "quizzes", "question", "sudoku"}
SOLUTION_COLUMNS = {"solution", "solutions", "answer", "answers"}
LONGEST_GRID_ROW = 20
MESSAGES_SHOWN = 20
PROOFS_A_JOB = 2000

Prove = Literal["nothing", "unsolved", "all"]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class PuzzleFile:
    """What was read: puzzles uint8 (n, 81), solutions uint8 (n, 81), all zeros where unknown, the line each puzzle
    starts on (n,), and a message for each puzzle that was left out."""

    puzzles: np.ndarray
    solutions: np.ndarray
    lines: np.ndarray
    bad: tuple[str, ...]


def parse_puzzle(text: str, name: str = "puzzle") -> np.ndarray:
    """The one puzzle, uint8 (81,), a text holds in any of the forms of `parse_puzzles`."""
    puzzles = parse_puzzles(text, name).puzzles
    if len(puzzles) != 1:
        raise InputError(f"{name}: {len(puzzles)} puzzles, where one is expected")
    return puzzles[0]


def parse_puzzles(
    text: str,
    name: str,
    *,
    prove: Prove = "nothing",
    skip_bad: bool = False,
    limit: int | None = None,
    processes: int = 1,
    progress: Progress = lambda _what, _done, _total: None,
) -> PuzzleFile:
    """All puzzles of a text, or its first ``limit``; ``name`` stands for the text in messages.

    The forms, told apart line by line: a puzzle a line, 81 characters with ``0``, ``.`` or ``_`` for an empty cell;
    the same followed by a comma and its solution (other columns are ignored), with a header such as
    ``puzzle,solution`` that may put the columns in another order, or without; nine lines of nine cells, with spaces
    and ``| - +`` between cells and lines or without. Blank lines and lines that start with ``#`` are passed over.

    Always checked: length, characters, clashing givens, and that a stated solution solves its puzzle. By ``prove``
    the exact solver also checks that there is one solution and no second: of no puzzle, of those without a stated
    solution, or of all; what it solves gets its solution filled in. Bad puzzles are left out and listed with
    ``skip_bad``; without it the first of them make an `InputError`.
    """
    entries, bad = _scan(text, limit)
    puzzles = _to_array([entry.puzzle for entry in entries])
    solutions = _to_array([entry.solution or "0" * CELLS for entry in entries])
    lines = np.array([entry.line for entry in entries], dtype=np.int64)
    good = np.ones(len(puzzles), dtype=bool)

    def refuse(wrong: np.ndarray, reason: str) -> None:
        bad.extend((int(line), reason) for line in lines[wrong & good])
        good[wrong] = False

    stated = solutions.any(axis=1)
    for row in np.flatnonzero(breaks_a_rule(puzzles)):
        bad.append((int(lines[row]), f"two equal givens clash: {describe_clash(puzzles[row])}"))
        good[row] = False
    refuse(stated & ~solves(solutions, puzzles), "the stated solution does not solve the puzzle")
    if prove != "nothing":
        rows = np.flatnonzero(good & ~stated if prove == "unsolved" else good)
        found, counts = _prove(puzzles[rows], processes, progress)
        solutions[rows] = found
        all_counts = np.ones(len(puzzles), dtype=np.uint8)
        all_counts[rows] = counts
        refuse(all_counts == 0, "the puzzle has no solution")
        refuse(all_counts > 1, "the puzzle has more than one solution")

    messages = tuple(f"{name}:{line}: {reason}" for line, reason in sorted(bad))
    if messages and not skip_bad:
        more = len(messages) - MESSAGES_SHOWN
        shown = [*messages[:MESSAGES_SHOWN], *([f"... and {more} more"] if more > 0 else [])]
        if len(messages) > 1 or good.any():
            shown.append(
                f"{len(messages)} bad and {good.sum()} good puzzles: correct the bad ones, or ask to have them skipped"
            )
        raise InputError("\n".join(shown))
    if not good.any():
        raise InputError("\n".join([*messages[:MESSAGES_SHOWN], f"{name}: no usable puzzle in it"]))
    return PuzzleFile(puzzles[good], solutions[good], lines[good], messages)


def read_puzzles(
    path: str | Path,
    *,
    prove: Prove = "nothing",
    skip_bad: bool = False,
    limit: int | None = None,
    processes: int = 1,
    progress: Progress = lambda _what, _done, _total: None,
) -> PuzzleFile:
    """`parse_puzzles` of a file, plain or gzip (told apart by content, not by name)."""
    text = _read_text(Path(path))
    return parse_puzzles(
        text, str(path), prove=prove, skip_bad=skip_bad, limit=limit, processes=processes, progress=progress
    )


class _Entry(NamedTuple):
    line: int
    puzzle: str
    solution: str | None


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: a broken gzip file ({error}); fetch or write it again") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    return content.decode("utf-8-sig", errors="replace")


def _to_array(cells: list[str]) -> np.ndarray:
    return (np.frombuffer("".join(cells).encode(), dtype=np.uint8) - ord("0")).reshape(-1, CELLS)


def _prove(puzzles: np.ndarray, processes: int, progress: Progress) -> tuple[np.ndarray, np.ndarray]:
    chunks = [puzzles[start : start + PROOFS_A_JOB] for start in range(0, max(len(puzzles), 1), PROOFS_A_JOB)]
    done = 0

    def finished(index: int) -> None:
        nonlocal done
        done += len(chunks[index])
        progress("proving", done, len(puzzles))

    results = run_jobs(solve_exactly, chunks, processes, finished)
    return np.concatenate([found for found, _ in results]), np.concatenate([counts for _, counts in results])


def _wrong_cells(cells: str) -> str | None:
    if len(cells) != CELLS:
        return f"{len(cells)} cells where a puzzle has {CELLS}"
    return foreign_character(cells)


def _wrong_solution(cells: str) -> str | None:
    if len(cells) != CELLS:
        return f"the stated solution has {len(cells)} cells, not {CELLS}"
    if "0" in cells:
        return "the stated solution has empty cells"
    wrong = foreign_character(cells)
    return wrong and f"the stated solution: {wrong}"


class _Scanner:
    """Collects entries and bad lines; holds the rows of a grid that is spread over lines until it is complete."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.bad: list[tuple[int, str]] = []
        self.rows: list[str] = []
        self.first_row = 0

    def add(self, line: int, puzzle: str, solution: str | None) -> None:
        wrong = _wrong_cells(puzzle) or (_wrong_solution(solution) if solution else None)
        if wrong:
            self.bad.append((line, wrong))
        else:
            self.entries.append(_Entry(line, puzzle, solution or None))

    def add_row(self, line: int, cells: str) -> None:
        if not self.rows:
            self.first_row = line
        self.rows.append(cells)
        if len(self.rows) == 9:
            self.close_grid()

    def close_grid(self) -> None:
        rows, self.rows = self.rows, []
        if not rows:
            return
        uneven = next((number for number, row in enumerate(rows) if len(row) != 9), None)
        if uneven is not None:
            self.bad.append((self.first_row, f"row {uneven + 1} of the grid has {len(rows[uneven])} cells, not 9"))
        elif len(rows) != 9:
            self.bad.append((self.first_row, f"a grid of {len(rows)} rows, not 9"))
        else:
            self.add(self.first_row, "".join(rows), None)


def _scan(text: str, limit: int | None) -> tuple[list[_Entry], list[tuple[int, str]]]:
    """The puzzles of a text with well-formed cells, and (line, reason) of all that are not."""
    scanner = _Scanner()
    header: tuple[int, int | None] | None = None
    at_start = True
    for line, content in enumerate(text.split("\n"), start=1):
        if limit is not None and len(scanner.entries) >= limit:
            return scanner.entries[:limit], scanner.bad
        content = content.strip()
        if content.startswith("#"):
            continue
        if not content:
            if len(scanner.rows) not in (3, 6):
                scanner.close_grid()
            continue
        fields = [field.strip().strip('"') for field in re.split("[,;]", content)]
        if at_start:
            at_start = False
            header = _header(fields)
            if header:
                continue
        cells = cells_of(fields[0])
        if header:
            puzzle_column, solution_column = header
            puzzle = fields[puzzle_column] if puzzle_column < len(fields) else ""
            has_solution = solution_column is not None and solution_column < len(fields)
            scanner.add(line, cells_of(puzzle), cells_of(fields[solution_column or 0]) if has_solution else None)
        elif len(fields) > 1:
            scanner.close_grid()
            second = cells_of(fields[1])
            scanner.add(line, cells, second if len(second) > LONGEST_GRID_ROW else None)
        elif len(cells) == 2 * CELLS:
            scanner.close_grid()
            scanner.add(line, cells[:CELLS], cells[CELLS:])
        elif len(cells) > LONGEST_GRID_ROW:
            scanner.close_grid()
            scanner.add(line, cells, None)
        elif cells:
            scanner.add_row(line, cells)
    scanner.close_grid()
    return scanner.entries, scanner.bad


def _header(fields: list[str]) -> tuple[int, int | None] | None:
    """The columns of puzzle and solution, if these are the names of columns."""
    names = [field.lower() for field in fields]
    puzzle = next((column for column, name in enumerate(names) if name in PUZZLE_COLUMNS), None)
    if puzzle is None:
        return None
    return puzzle, next((column for column, name in enumerate(names) if name in SOLUTION_COLUMNS), None)
