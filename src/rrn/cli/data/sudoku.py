"""rrn data sudoku: puzzles made on the spot, or the paper's sets from a file of puzzles."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from rrn.cli.options import parse
from rrn.errors import InputError
from rrn.presets import Count, Range, Seed

ABOUT = """Write Sudokus and their solutions as arrays, with what made them beside them.

Without --pool, puzzles are generated: dug until minimal, proved to have one solution, then given extra digits. With
--pool, the paper's sets are made from a file of puzzles: it is split into training, validation and test first, so that
no puzzle has a relative in another part; then each set gets so many samples for each of 0 to 17 extra givens."""
GENERATED_ONLY = ("count", "extra_givens")
POOL_ONLY = ("split_seed", "test", "valid", "train_per_givens", "valid_per_givens", "test_per_givens", "skip_bad")


@dataclass(frozen=True)
class Options:
    out: Path = Path("data/sudoku")
    """The folder to write."""
    seed: Seed = 0
    """The same seed gives the same bytes, whatever the number of processes."""
    processes: Annotated[int, Range(least=1, most=1024)] = 1
    count: Count = 100_000
    """Generated puzzles."""
    extra_givens: Annotated[tuple[int, int], Range(least=0, most=81, rising=True)] = (0, 17)
    """Generated: digits put back into a minimal puzzle, from the first number to the second."""
    pool: Path | None = None
    """A file of puzzles (text or CSV, plain or gzip, with or without solutions) to make the paper's sets from."""
    split_seed: Seed | None = None
    """Pool: shuffle it before it is split. Unset: the first puzzles are for testing, the next for validation."""
    test: Count = 10_000
    """Pool: puzzles kept for testing."""
    valid: Count = 1_000
    """Pool: puzzles kept for validation."""
    train_per_givens: Count = 10_000
    """Pool: samples for training with each number of givens."""
    valid_per_givens: Count = 1_000
    test_per_givens: Count = 1_000
    skip_bad: bool = False
    """Pool: leave out, and name, what is not a puzzle with one solution. Otherwise nothing is written."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn data sudoku", ABOUT)
    _check(options)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        lines: dict[str, TaskID] = {}

        def progress(stage: str, done: int, total: int) -> None:
            if stage not in lines:
                lines[stage] = bar.add_task(stage, total=total)
            bar.update(lines[stage], completed=done)

        about = _write(options, progress)
    if "pool" in about:
        for message in about["pool"]["bad_left_out"]:
            print(f"left out: {message}", file=sys.stderr)
        parts = ", ".join(f"{count:,} for {name}" for name, count in about["pool"]["parts"].items())
        relatives = about["pool"]["relatives_left_out"]
        print(f"the pool: {parts}; {relatives:,} left out as relatives of these", file=sys.stderr)
    counts = ", ".join(f"{name} {count:,}" for name, count in about["counts"].items())
    print(f"puzzles written to {options.out}: {counts}", file=sys.stderr)
    return 0


def _check(options: Options) -> None:
    unused = GENERATED_ONLY if options.pool else POOL_ONLY
    for name in unused:
        if getattr(options, name) != getattr(Options, name):
            mode = "without --pool only" if options.pool else "with --pool only"
            raise InputError(f"--{name.replace('_', '-')}: {mode}")


def _write(options: Options, progress: Callable[[str, int, int], None]) -> dict[str, Any]:
    from rrn.tasks.sudoku.data import write_generated, write_paper_sets

    if options.pool is None:
        return write_generated(
            options.out, options.count, options.seed, options.extra_givens, options.processes, progress
        )
    return write_paper_sets(
        options.out,
        options.pool,
        options.seed,
        {"train": options.train_per_givens, "valid": options.valid_per_givens, "test": options.test_per_givens},
        test=options.test,
        valid=options.valid,
        split_seed=options.split_seed,
        skip_bad=options.skip_bad,
        processes=options.processes,
        progress=progress,
    )
