"""rrn solve PUZZLE: solve Sudokus with a network, and watch it do so."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro
from rich.columns import Columns
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.text import Text

from rrn.cli.options import parse, print_json
from rrn.errors import InputError
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.files import PuzzleFile, parse_puzzles, read_puzzles
from rrn.tasks.sudoku.grid import cells_of, clashes, foreign_character, grid_to_line

if TYPE_CHECKING:
    from rrn.tasks.sudoku.solving import Solved

DECIDED = 0.5
"""The probability from which on a trace shows a digit."""
GIVEN, FOUND, WRONG, NEW = "bold", "cyan", "bold red", "bold green"
ABOUT = f"""Solve Sudokus with the network: steps of message passing until the grid is filled and breaks no rule.

  rrn solve {EXAMPLES[0]} --trace

  rrn solve puzzles.csv.gz --quiet

  rrn solve - --json < puzzles.txt

Exits with 1 if a puzzle is not solved."""


@dataclass(frozen=True)
class Options:
    puzzle: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PUZZLE|FILE|-")] = ""
    """81 characters with 0, . or _ for empty cells, or nine rows of nine; or a file of any number of these (text or
    CSV, plain or gzip); or - for standard input. Unset: standard input, or an example on a terminal."""
    max_steps: int = 128
    """Steps of message passing before a start counts as failed."""
    restarts: int | None = None
    """Starts from a noisy state for puzzles that the first, clean start did not solve. Unset: 8."""
    seed: int = 0
    """Of the noise."""
    weights: str = "sudoku"
    """A folder of weights, shipped weights by name, or a hub id."""
    trace: bool = False
    """One puzzle: print the grid at every step that changes it; digits appear when their probability passes 50 %."""
    gif: Path | None = None
    """One puzzle: draw all steps, nine digits in each cell, sized by probability, as an animation."""
    png: Path | None = None
    """One puzzle: draw a few of the steps side by side."""
    skip_bad: bool = False
    """Leave out, and name, what is not a puzzle. Otherwise nothing is solved if anything is bad."""
    quiet: bool = False
    """Print the last line only: what was solved."""
    json: bool = False
    """Print one JSON object and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn solve", ABOUT)
    if options.max_steps < 1:
        raise InputError(f"--max-steps: expected at least 1, got {options.max_steps}")
    if options.restarts is not None and options.restarts < 0:
        raise InputError(f"--restarts: expected 0 or more, got {options.restarts}")
    read = _read(options)
    puzzles = read.puzzles
    for message in read.bad:
        print(f"left out: {message}", file=sys.stderr)
    watched = {"--trace": options.trace, "--gif": options.gif, "--png": options.png}
    for flag, wanted in watched.items():
        if wanted and len(puzzles) > 1:
            raise InputError(f"{flag}: shows one puzzle, but these are {len(puzzles)}; give it one")
    started = time.monotonic()
    solved = _solve(puzzles, options, any(watched.values()))
    seconds = time.monotonic() - started
    reasons = why_not(puzzles, solved)
    steps = solved.probabilities[: solved.steps[0], 0] if solved.probabilities is not None else None
    if steps is not None:
        _draw(options, puzzles[0], steps)
    if options.json:
        print_json(_as_json(puzzles, solved, reasons, steps if options.trace else None))
    else:
        console = Console(highlight=False)
        if steps is not None and options.trace:
            show_trace(console, puzzles[0], steps)
        if len(puzzles) == 1:
            if not options.quiet:
                show_grid(console, puzzles[0], solved.grids[0])
            console.print(verdict(puzzles, solved, 0, reasons[0], options.max_steps), soft_wrap=True)
        else:
            if not options.quiet:
                show_list(console, puzzles, solved, reasons)
            console.print(_summary(solved, seconds), soft_wrap=True)
    return 0 if solved.valid.all() else 1


def why_not(puzzles: np.ndarray, solved: "Solved") -> list[str | None]:
    """For each puzzle that is not solved what the exact solver says of it; None for the others."""
    from rrn.tasks.sudoku.exact import count_solutions

    reasons: list[str | None] = [None] * len(puzzles)
    failed = np.flatnonzero(~solved.valid)
    if len(failed):
        said = (
            "the puzzle has no solution",
            "the puzzle has a solution, which the network did not find",
            "the puzzle has several solutions; any of them would have been accepted",
        )
        for row, count in zip(failed, count_solutions(puzzles[failed]), strict=True):
            reasons[row] = said[count]
    return reasons


def show_grid(console: Console, puzzle: np.ndarray, answer: np.ndarray) -> None:
    """The puzzle and, beside it, the answer; what clashes in it is marked."""
    wrong = _wrong_cells(puzzle, answer)
    sides = _boxed(puzzle, puzzle, np.zeros(81, bool)), _boxed(puzzle, answer, wrong)
    for left, right in zip(*(side.split("\n") for side in sides), strict=True):
        console.print(_plain_if_needed(console, Text.assemble(left, "   ", right)), soft_wrap=True)


def show_trace(console: Console, puzzle: np.ndarray, steps: np.ndarray) -> None:
    """The grid at step 0 and at every step that changes it, as many side by side as there is room for."""
    before = puzzle
    shown = [Text.assemble((f"step 0: {_count(puzzle)} given", "bold"), "\n", _small(puzzle, puzzle, puzzle))]
    for step, grid in enumerate(decided_cells(puzzle, steps), start=1):
        changed = int((grid != before).sum())
        if changed or step == len(steps):
            title = f"step {step}: {_count(grid)} filled"
            shown.append(Text.assemble((title, "bold"), "\n", _small(puzzle, grid, before)))
        before = grid
    console.print(Columns([_plain_if_needed(console, grid) for grid in shown], padding=(1, 4)))


def show_list(console: Console, puzzles: np.ndarray, solved: "Solved", reasons: list[str | None]) -> None:
    """A line a puzzle: what the network made of it."""
    width = len(str(len(puzzles)))
    for row, (answer, valid) in enumerate(zip(solved.grids, solved.valid, strict=True)):
        line, starts = Text(f"{row + 1:>{width}}  "), f"{_counted(solved.starts[row], 'start'):<8}"
        if valid:
            line.append("solved      ", "green")
            line.append(f"{solved.steps[row]:>3} steps  {starts}  {solved.confidence[row]:6.1%}  ")
            for given, digit in zip(puzzles[row], answer, strict=True):
                line.append(str(digit), GIVEN if given else FOUND)
        else:
            line.append("not solved  ", WRONG).append(f"           {starts}          {grid_to_line(puzzles[row])}")
            line.append(f"  {reasons[row]}")
        console.print(line, soft_wrap=True)


def verdict(puzzles: np.ndarray, solved: "Solved", row: int, reason: str | None, max_steps: int) -> Text:
    """Whether a puzzle is solved, and what it took."""
    if solved.valid[row]:
        took = f" in {_counted(solved.steps[row], 'step')}"
        failed = solved.starts[row] - 1
        after = f"of start {failed + 1}, after {_counted(failed, 'failed start')}" if failed else "from the first start"
        return Text.assemble(("solved", "bold green"), f"{took} {after}; confidence {solved.confidence[row]:.1%}")
    wrong = int(_wrong_cells(puzzles[row], solved.grids[row]).sum())
    tried = f": {_counted(solved.starts[row], 'start')} of {max_steps} steps; confidence {solved.confidence[row]:.1%}\n"
    return Text.assemble(("not solved", WRONG), tried, f"the {wrong} cells marked ! break a rule; {reason}")


def decided_cells(puzzle: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The grid after every step, (steps, 81), with 0 where no digit is probable enough; the last is the answer."""
    grids = np.where(steps.max(-1) >= DECIDED, steps.argmax(-1) + 1, 0)
    grids[-1] = steps[-1].argmax(-1) + 1
    grids[:-1] = np.where(puzzle > 0, puzzle, grids[:-1])
    return grids.astype(np.uint8)


def _read(options: Options) -> PuzzleFile:
    given = options.puzzle
    if not given and sys.stdin.isatty():
        print("an example; 'rrn solve --help' says how to give a puzzle of your own\n", file=sys.stderr)
        given = EXAMPLES[0]
    if given in ("", "-"):
        try:
            return parse_puzzles(sys.stdin.read(), "standard input", skip_bad=options.skip_bad)
        except UnicodeDecodeError as error:
            raise InputError(f"standard input: not text ({error})") from error
    try:
        is_file = Path(given).is_file()
    except OSError:  # too long for a name
        is_file = False
    if is_file:
        return read_puzzles(given, skip_bad=options.skip_bad)
    if foreign_character(cells_of(given)) and len(given) < 60:
        raise InputError(f"{given}: neither a file nor a puzzle (81 characters with 0, . or _ for empty cells)")
    return parse_puzzles(given, "puzzle", skip_bad=options.skip_bad)


def _solve(puzzles: np.ndarray, options: Options, trace: bool) -> "Solved":
    from rrn.tasks.sudoku.solving import RESTARTS, solve

    console = Console(stderr=True)
    bar = Progress("solving", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console, transient=True)
    bar.disable = not console.is_terminal or len(puzzles) == 1
    with bar:
        line = bar.add_task("", total=len(puzzles))
        return solve(
            puzzles,
            max_steps=options.max_steps,
            restarts=RESTARTS if options.restarts is None else options.restarts,
            weights=options.weights,
            trace=trace,
            seed=options.seed,
            progress=lambda done, of: bar.update(line, completed=done, total=of),
        )


def _draw(options: Options, puzzle: np.ndarray, steps: np.ndarray) -> None:
    from rrn.tasks.sudoku.figures import draw_gif, draw_steps_png

    if options.gif:
        draw_gif(options.gif, puzzle, steps)
    if options.png:
        draw_steps_png(options.png, puzzle, steps, {0, 1, (len(steps) + 2) // 3, len(steps)})
    drawn = [str(path) for path in (options.gif, options.png) if path]
    if drawn:
        print(f"drawn: {', '.join(drawn)}", file=sys.stderr)


def _as_json(
    puzzles: np.ndarray, solved: "Solved", reasons: list[str | None], traced: np.ndarray | None
) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for row, (puzzle, answer, valid) in enumerate(zip(puzzles, solved.grids, solved.valid, strict=True)):
        found = {
            "puzzle": grid_to_line(puzzle),
            "solution" if valid else "answer": grid_to_line(answer),
            "valid": bool(valid),
            "steps": int(solved.steps[row]),
            "starts": int(solved.starts[row]),
            "confidence": round(float(solved.confidence[row]), 4),
        }
        if not valid:
            found["reason"] = reasons[row]
        if traced is not None:
            found["trace"] = [grid_to_line(grid) for grid in decided_cells(puzzle, traced)]
        rows.append(found)
    return {"n": len(rows), "solved": int(solved.valid.sum()), "puzzles": rows}


def _summary(solved: "Solved", seconds: float) -> Text:
    done, count = int(solved.valid.sum()), len(solved.valid)
    first = int((solved.valid & (solved.starts == 1)).sum())
    parts = [f" of {count:,} solved, {first:,} of them from the first start"]
    if done:
        parts.append(f"{solved.steps[solved.valid].mean():.1f} steps on average")
    parts.append(f"{seconds:.1f} s")
    return Text.assemble((f"{done:,}", "bold green" if done == count else WRONG), "; ".join(parts))


def _wrong_cells(puzzle: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """Cells that clash, and givens that were not kept: (81,)."""
    return clashes(answer)[0] | ((puzzle > 0) & (puzzle != answer))


def _boxed(puzzle: np.ndarray, grid: np.ndarray, wrong: np.ndarray) -> Text:
    text = Text("┌─────────┬─────────┬─────────┐\n")
    for cell in range(81):
        if cell % 3 == 0:
            text.append("│")
        style = WRONG if wrong[cell] else GIVEN if puzzle[cell] else FOUND
        text.append(f" {grid[cell] or '·'}{'!' if wrong[cell] else ' '}", style if grid[cell] else "dim")
        if cell % 9 == 8:
            text.append("│\n")
        if cell in (26, 53):
            text.append("├─────────┼─────────┼─────────┤\n")
    return text.append("└─────────┴─────────┴─────────┘")


def _small(puzzle: np.ndarray, grid: np.ndarray, before: np.ndarray) -> Text:
    """A grid in 21 columns; digits that are new since ``before`` stand out."""
    text = Text()
    for cell in range(81):
        style = GIVEN if puzzle[cell] else NEW if grid[cell] != before[cell] else FOUND
        text.append(str(grid[cell] or "·"), style if grid[cell] else "dim")
        text.append("\n" if cell % 9 == 8 and cell < 80 else " │ " if cell % 9 in (2, 5) else " " if cell < 80 else "")
        if cell in (26, 53):
            text.append("──────┼───────┼──────\n")
    return text


def _plain_if_needed(console: Console, text: Text) -> Text:
    """Lines and dots an ASCII terminal can show."""
    if not console.options.ascii_only:
        return text
    plain = str.maketrans("┌┬┐├┼┤└┴┘─│·", "+++++++++-|.")
    return Text(text.plain.translate(plain))


def _count(grid: np.ndarray) -> int:
    return int((grid > 0).sum())


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
