"""rrn solve PUZZLE: solve Sudokus with a network, and print one result per line as soon as it is known."""

import itertools
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro
from rich.columns import Columns
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from rrn.cli import load, parse, print_json
from rrn.cli.puzzles import (
    FOUND,
    GIVEN,
    WRONG,
    Reader,
    Tally,
    beside,
    decided_cells,
    framed,
    plain_if_needed,
    small,
    wrong_cells,
)
from rrn.errors import InputError, plural
from rrn.io.files import read_lines
from rrn.tasks.photo.image import SUFFIXES
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.grid import BOXES, SYMBOLS, grid_to_line
from rrn.tasks.sudoku.presets import STRONGEST
from rrn.tasks.sudoku.text import cells_of
from rrn.training.presets import Device, Range, Seed, Steps

if TYPE_CHECKING:
    from torch import nn

    from rrn.inference.result import Result

FIRST_BATCH, BATCH = 32, 512
"""Puzzles solved together: few at first, so that the first results appear soon."""
HEAD = 1 << 16
"""Bytes of a JSON file that are read to detect a declared problem."""
PROGRESS_EVERY = 15.0
"""Seconds between progress lines where standard error is no terminal."""
ABOUT = f"""Solve Sudokus with the network: steps of message passing until the grid is filled and breaks no rule.

  rrn solve {EXAMPLES[0]} --trace

  rrn solve puzzles.csv.gz --quiet

  rrn solve - --json < puzzles.txt

  rrn solve photo.jpg

  rrn solve problem.json --weights folder

Exits with 1 if a puzzle is not solved. Results are written at once, so an interrupt loses none."""


@dataclass(frozen=True)
class Options:
    puzzle: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PUZZLE|FILE|-")] = ""
    """81 characters with 0, . or _ for empty cells, or nine rows of nine; 4 × 4, 6 × 6 and 16 × 16 likewise; or a file
    of any number of these (text, CSV, JSON, .sdk, plain or gzip); or a photo; or - for standard input. Unset: standard
    input, or an example on a terminal. A .json file with "candidates" is a declared problem (docs/constraints.md)."""
    photo: Path | None = None
    """A photo of a printed or handwritten Sudoku (PNG, JPEG, WebP …), under any name. Needs the extra vision."""
    max_steps: Steps = 128
    """Message-passing steps of one attempt; of a declared problem 1,024 if unset."""
    attempts: Annotated[int, Range(least=1, most=10_000)] | None = None
    """Attempts per puzzle; all but the first add noise. Unset: 9 by each network, then up to 32 longer ones, at most
    some minutes; of a declared problem 8."""
    seed: Seed = 0
    """Seed of the noise."""
    weights: str = "sudoku"
    """A folder of weights, shipped weights by name, or a hub id. What sudoku does not solve goes to
    sudoku-hard, which searches; other weights have no fallback."""
    device: Device = "auto"
    trace: bool = False
    """One puzzle: print the grid at every step that changes it; digits appear when their probability passes 50 %."""
    gif: Path | None = None
    """One puzzle: draw all steps, nine digits in each cell, sized by probability, as an animation."""
    png: Path | None = None
    """One puzzle: draw a few of the steps side by side."""
    skip_bad: bool = False
    """Skip and name invalid puzzles. Otherwise the first of them ends the run."""
    quiet: bool = False
    """Print only the last line, the summary."""
    json: bool = False
    """Print one JSON object per puzzle, a line each, and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn solve", ABOUT)
    flags = {"--trace": options.trace, "--gif": options.gif, "--png": options.png}
    drawn = [flag for flag, wanted in flags.items() if wanted]
    if _is_declared(options.puzzle):
        from rrn.cli.declared import solve_declared

        if drawn:
            raise InputError(f"{drawn[0]}: shows Sudokus, but {options.puzzle} is a declared problem")
        return solve_declared(options)
    if options.gif or options.png:
        from rrn.viewing.plots import check_drawing

        check_drawing(options.gif, ".gif")
        check_drawing(options.png, ".png")
    if options.photo or options.puzzle.lower().endswith(SUFFIXES):
        from rrn.cli.photo import solve_photo

        if options.photo and options.puzzle:
            raise InputError(f"--photo: give one puzzle, got {options.puzzle!r} as well")
        return solve_photo(str(options.photo or options.puzzle), options)
    tally = Tally()
    reader = _reader(options, tally)
    single = reader.is_single() if drawn or not options.json else False
    if drawn and not single:
        raise InputError(f"{drawn[0]}: shows one puzzle, but the input has more; give one puzzle")
    network = load(options.weights, "sudoku", options.device)
    if single:
        result = solve_puzzles(network, reader.batch(1), options, record=bool(drawn))[0]
        return show_one(result, options)
    try:
        with _counted_interrupts() as interrupts, _Progress(options, tally) as progress:
            size = FIRST_BATCH
            while batch := reader.batch(size):
                _write(solve_puzzles(network, batch, options), options, tally)
                progress.show()
                size = BATCH
                if interrupts:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        print(f"interrupted: {tally.summary()}", file=sys.stderr)
        return 130
    if reader.error:
        raise reader.error
    if not options.json:
        summary = Text(tally.summary())
        summary.stylize("bold green" if tally.solved == tally.count else WRONG, 0, len(f"{tally.solved:,}"))
        Console(highlight=False).print(summary, soft_wrap=True)
    elif tally.count > 1:
        print(tally.summary(), file=sys.stderr)
    return 0 if tally.solved == tally.count else 1


def _reader(options: Options, tally: Tally) -> Reader:
    given = options.puzzle
    if not given and sys.stdin.isatty():
        print("an example; 'rrn solve --help' shows how to give a puzzle\n", file=sys.stderr)
        given = EXAMPLES[0]
    if given in ("", "-"):
        return Reader("standard input", sys.stdin, options.skip_bad, full_batches=False)
    try:
        is_file = Path(given).is_file()
    except OSError:  # too long for a name
        is_file = False
    if is_file:
        return Reader(given, read_lines(given, tally.read), options.skip_bad, full_batches=True)
    if len(given) < 60 and given[0] not in "[{" and set(cells_of(given).upper()) - set("0" + SYMBOLS):
        raise InputError(f"{given}: neither a file nor a puzzle (81 characters with 0, . or _ for empty cells)")
    return Reader("puzzle", given.split("\n"), options.skip_bad, full_batches=True)


def _is_declared(given: str) -> bool:
    """Whether it is the file of a declared problem. Imports nothing slow."""
    if not given.endswith(".json"):
        return False
    try:
        with open(given, "rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return any(field in head for field in (b'"candidates"', b'"exactly_one"', b'"at_most_one"'))


def solve_puzzles(network: "nn.Module", puzzles: list[np.ndarray], options: Options, record: bool = False) -> "Result":
    """The results of puzzles, which may be of several sizes, in their order."""
    from rrn.inference.result import Result
    from rrn.tasks.sudoku.predict import ATTEMPTS, solve

    parts = [
        solve(
            np.stack(list(some)),
            box=BOXES[cells],
            network=network,
            max_steps=options.max_steps,
            attempts=options.attempts or ATTEMPTS,
            seed=options.seed,
            record=record,
            fallback=partial(load, STRONGEST, "sudoku", options.device) if options.weights == Options.weights else None,
            think_longer=_say_longer if (options.attempts, options.max_steps) == (None, Options.max_steps) else None,
        )
        for cells, some in itertools.groupby(puzzles, key=len)
    ]
    return parts[0] if len(parts) == 1 else Result.concatenate([_with_rows(part) for part in parts])


def _say_longer(puzzles: int, number: int) -> None:
    from rrn.tasks.sudoku.predict import LONGER_ATTEMPTS, LONGER_STEPS

    print(
        f"rrn: thinking longer about {plural(puzzles, 'puzzle')}: {LONGER_ATTEMPTS} attempts of "
        f"{LONGER_STEPS[number - 1]} steps by {STRONGEST}, round {number} of {len(LONGER_STEPS)}; "
        "--attempts K sets a limit",
        file=sys.stderr,
        flush=True,
    )


def _with_rows(result: "Result") -> "Result":
    """The result with lists of grids, which may be of different sizes."""
    details = {name: list(values) for name, values in result.details.items()}
    return replace(result, answers=list(result.answers), details=details)


def show_one(result: "Result", options: Options, details: dict[str, Any] | None = None) -> int:
    """Print one result; ``details`` are added to its JSON."""
    if result.record is not None:
        _draw(options, result)
    if options.json:
        print_json(_record(result, options.trace) | (details or {}))
    else:
        console = Console(highlight=False)
        if options.trace and result.record is not None:
            show_trace(console, result.details["puzzles"], result.record)
        if not options.quiet:
            show_grid(console, result)
        console.print(verdict(result, options.max_steps), soft_wrap=True)
    return 0 if result.solved else 1


def show_grid(console: Console, result: "Result") -> None:
    """The puzzle and, beside it, the answer with clashing cells marked."""
    shown = framed(result.details["puzzles"], result.details["puzzles"])
    if result.status in ("solved", "unsolved", "ambiguous"):
        wrong = wrong_cells(result.details["puzzles"], result.answers)
        shown = beside(shown, framed(result.details["puzzles"], result.answers, wrong))
    console.print(plain_if_needed(console, shown), soft_wrap=True)


def show_trace(console: Console, puzzle: np.ndarray, steps: np.ndarray) -> None:
    """The grid at step 0 and at every step that changes it, as many side by side as there is room for."""
    before = puzzle
    given = int((puzzle > 0).sum())
    shown = [Text.assemble((f"step 0: {given} given", "bold"), "\n", small(puzzle, puzzle, puzzle))]
    for step, grid in enumerate(decided_cells(puzzle, steps), start=1):
        if (grid != before).any() or step == len(steps):
            title = f"step {step}: {int((grid > 0).sum())} filled"
            shown.append(Text.assemble((title, "bold"), "\n", small(puzzle, grid, before)))
        before = grid
    console.print(Columns([plain_if_needed(console, grid) for grid in shown], padding=(1, 4)))


def verdict(result: "Result", max_steps: int) -> Text:
    """The status of a puzzle, with steps and attempts."""
    if result.status == "solved":
        after = f"of attempt {result.attempts}" if result.attempts > 1 else "of the first attempt"
        took = (
            f" in {result.steps} {'step' if result.steps == 1 else 'steps'} {after}; confidence {result.confidence:.1%}"
        )
        return Text.assemble(("solved", "bold green"), took)
    if result.status == "already solved":
        return Text.assemble(("already solved", "bold green"), f": {result.message}")
    if result.status == "impossible":
        return Text.assemble(("impossible", WRONG), f": {result.message}")
    wrong = int(wrong_cells(result.details["puzzles"], result.answers).sum())
    tried = f": {plural(result.attempts, 'attempt')} of {plural(max_steps, 'step')}; "
    tried += f"confidence {result.confidence:.1%}\n"
    broken = f"the {wrong} cells marked ! break a rule; {result.message}\n"
    harder = f"--weights {STRONGEST} --max-steps {16 * max_steps} --attempts 100"
    puzzle = grid_to_line(result.details["puzzles"])
    return Text.assemble((result.status, WRONG), tried, broken, f"to try harder: rrn solve {puzzle} {harder}")


def _draw(options: Options, result: "Result") -> None:
    from rrn.tasks.sudoku.figures import draw_gif, draw_steps_png

    assert result.record is not None
    if (options.gif or options.png) and len(result.details["puzzles"]) != 81:
        raise InputError("--gif and --png draw Sudokus of 9 × 9; --trace shows any")
    steps = len(result.record)
    attempt = result.attempts if result.solved else None
    if options.gif:
        draw_gif(options.gif, result.details["puzzles"], result.record, attempt=attempt)
    if options.png:
        draw_steps_png(
            options.png, result.details["puzzles"], result.record, {0, 1, (steps + 2) // 3, steps}, attempt=attempt
        )
    drawn = [str(path) for path in (options.gif, options.png) if path]
    if drawn:
        print(f"drawn: {', '.join(drawn)}", file=sys.stderr)


def _record(result: "Result", trace: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {"puzzle": grid_to_line(result.details["puzzles"]), "status": result.status}
    if result.status != "impossible":
        found["solution" if result.solved else "answer"] = grid_to_line(result.answers)
    found |= {"valid": result.solved, "steps": result.steps, "attempts": result.attempts}
    found["confidence"] = round(result.confidence, 4) if result.status != "impossible" else None
    if result.message:
        found["message"] = result.message
    if trace and result.record is not None:
        found["trace"] = [grid_to_line(grid) for grid in decided_cells(result.details["puzzles"], result.record)]
    return found


def _write(results: "Result", options: Options, tally: Tally) -> None:
    """One line per result, flushed before the next batch."""
    console = Console(highlight=False)
    with _uninterrupted():
        for result in results:
            tally.add(result)
            if options.json:
                sys.stdout.write(json.dumps(_record(result), allow_nan=False) + "\n")
            elif not options.quiet:
                line = _line(tally.count, result)
                if console.is_terminal:
                    console.print(line, soft_wrap=True)
                else:
                    sys.stdout.write(line.plain + "\n")
        sys.stdout.flush()


@contextmanager
def _counted_interrupts() -> Iterator[list[int]]:
    """Interrupts so far. Python drops one that arrives in a destructor or a callback; this list keeps it."""
    interrupts: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return

    def interrupt(number: int, _: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delays an interrupt until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


def _line(number: int, result: "Result") -> Text:
    """The solution of a puzzle, or the puzzle and why there is none, in one line."""
    line, tried = Text(f"{number:>6}  "), f"{plural(result.attempts, 'attempt'):<11}"
    if not result.solved:
        line.append(f"{result.status:<14}", WRONG)
        shown = f"           {tried}          " if result.status != "impossible" else " " * 32
        return line.append(f"{shown}{grid_to_line(result.details['puzzles'])}  {result.message}")
    line.append(f"{result.status:<14}", "green")
    took = f"{plural(result.steps, 'step'):>9}  {tried}  {result.confidence:6.1%}  "
    line.append(took if result.attempts else " " * len(took))
    for given, digit in zip(result.details["puzzles"], grid_to_line(result.answers), strict=True):
        line.append(digit, GIVEN if given else FOUND)
    return line


class _Progress:
    """Progress on standard error: a bar on a terminal that shows nothing else, otherwise a line from time to time."""

    def __init__(self, options: Options, tally: Tally) -> None:
        self.tally, self.printed = tally, time.monotonic()
        console = Console(stderr=True)
        self.lines = not console.is_terminal
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
        self.bar = Progress(*columns, console=console, transient=True)
        self.bar.disable = self.lines or (sys.stdout.isatty() and not options.quiet)
        self.task = self.bar.add_task("solving", total=None)

    def __enter__(self) -> "_Progress":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self) -> None:
        share = self.tally.share
        self.bar.update(self.task, description=self.tally.progress(), completed=share or 0, total=share and 1.0)
        if self.lines and time.monotonic() - self.printed > PROGRESS_EVERY:
            self.printed = time.monotonic()
            print(f"rrn: {self.tally.progress()}", file=sys.stderr, flush=True)
