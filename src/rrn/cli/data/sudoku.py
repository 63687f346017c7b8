"""rrn data sudoku: generated puzzles, hard puzzles, or the paper's sets from a file of puzzles."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rrn._compat import COMPILED
from rrn.cli import parse, print_json, progress_bars
from rrn.errors import DISTRIBUTION, command
from rrn.training.presets import Count, Json, Needs, Range, Seed

if TYPE_CHECKING:
    import numpy as np

ABOUT = """Write Sudokus and their solutions as arrays, with a sidecar file that records the settings.

Without --pool, puzzles are generated: minimal puzzles with one solution, plus extra givens. With --pool, the paper's
sets are made from a file of puzzles. The file is split into training, validation and test first, so that no puzzle has
a relative in another part; then each set gets samples for each of 0 to 17 extra givens.

With --hard, puzzles that need search: givens of generated puzzles are exchanged, one by one, for others that make them
harder, measured in guesses of the exact solver. Each puzzle is minimal and has one solution."""
DRAWN = 2000
"""Number of generated puzzles in the figure of --hard."""


@dataclass(frozen=True)
class Options:
    out: Path | None = None
    """The folder to write. Default: data/sudoku; with --hard a file, data/sudoku-hard.csv.gz (.csv or .csv.gz; its
    settings go to a .json of the same name)."""
    seed: Seed = 0
    """The same seed gives the same bytes for any number of processes."""
    processes: Annotated[int, Range(least=1, most=1024)] = 1
    count: Annotated[Count | None, Needs("pool", False)] = None
    """Number of puzzles. Default: 100,000 generated or 1,000 hard ones."""
    extra_givens: Annotated[
        tuple[int, int], Range(least=0, most=81, rising=True), Needs("pool", False), Needs("hard", False)
    ] = (0, 17)
    """Generated: least and greatest number of digits added to a minimal puzzle."""
    hard: Annotated[bool, Needs("pool", False)] = False
    """Search for hard puzzles."""
    least_guesses: Annotated[int, Range(least=1, most=1000), Needs("hard")] = 20
    """Hard: the least number of guesses of a puzzle. Most need several times as many."""
    pool_avoid: Annotated[tuple[Path, ...], Needs("hard")] = ()
    """Hard: files of puzzles for testing. No relative of them is generated."""
    figure: Annotated[Path | None, Needs("hard")] = None
    """Hard: draw the distribution of guesses, next to that of generated puzzles (.png)."""
    beside: Annotated[Path | None, Needs("figure")] = None
    """Hard: also draw the distribution of this file of puzzles."""
    pool: Path | None = None
    """A file of puzzles (text or CSV, plain or gzip, with or without solutions) for the paper's sets."""
    split_seed: Annotated[Seed | None, Needs("pool")] = None
    """Pool: shuffle before the split. Default: the first puzzles are for testing, the next for validation."""
    test: Annotated[Count, Needs("pool")] = 10_000
    """Pool: number of puzzles for testing."""
    valid: Annotated[Count, Needs("pool")] = 1_000
    """Pool: number of puzzles for validation."""
    train_per_givens: Annotated[Count, Needs("pool")] = 10_000
    """Pool: training samples with each number of givens."""
    valid_per_givens: Annotated[Count, Needs("pool")] = 1_000
    test_per_givens: Annotated[Count, Needs("pool")] = 1_000
    skip_bad: Annotated[bool, Needs("pool")] = False
    """Pool: leave out puzzles without exactly one solution, and list them. Otherwise they are an error."""
    json: Json = False


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn data sudoku", ABOUT)
    out = options.out or Path("data/sudoku-hard.csv.gz" if options.hard else "data/sudoku")
    beside = _guesses_beside(options) if options.figure else {}
    started = time.perf_counter()
    with progress_bars() as progress:
        about = _write(options, out, progress)
    if "pool" in about:
        for message in about["pool"]["bad_left_out"]:
            print(f"left out: {message}", file=sys.stderr)
        parts = ", ".join(f"{count:,} for {name}" for name, count in about["pool"]["parts"].items())
        relatives = about["pool"]["relatives_left_out"]
        print(f"the pool: {parts}; {relatives:,} left out as relatives of these", file=sys.stderr)
    counts = ", ".join(f"{name} {count:,}" for name, count in about["counts"].items())
    print(f"puzzles written to {out}: {counts}", file=sys.stderr)
    if options.hard:
        seconds, guesses = time.perf_counter() - started, about["guesses"]
        print(
            f"{guesses['least']:.0f} to {guesses['most']:.0f} guesses, half of them {guesses['half']:.0f} or "
            f"more; {about['counts']['hard'] / seconds:.1f} puzzles per second",
            file=sys.stderr,
        )
    if options.figure:
        from rrn.tasks.sudoku.exact import count_guesses
        from rrn.tasks.sudoku.files import read_puzzles
        from rrn.viewing.plots import draw_counts

        guesses = {out.name: count_guesses(read_puzzles(out).puzzles), **beside}
        draw_counts(guesses, options.figure, "guesses of the exact solver", "puzzles")
        print(f"drawn: {options.figure}", file=sys.stderr)
    if options.json:
        print_json({"out": str(out), **about})
    return 0


def _guesses_beside(options: Options) -> "dict[str, np.ndarray]":
    """Guesses of generated puzzles and of --beside; read first, so that errors appear before the search."""
    import numpy as np

    from rrn.tasks.sudoku.exact import count_guesses, generate
    from rrn.tasks.sudoku.files import read_puzzles
    from rrn.viewing.plots import check_drawing

    check_drawing(options.figure, ".png")
    guesses = {f"{DRAWN:,} generated": count_guesses(generate(DRAWN, np.random.default_rng(0))[0])}
    if options.beside:
        guesses[options.beside.name] = count_guesses(read_puzzles(options.beside).puzzles)
    return guesses


def _write(options: Options, out: Path, progress: Callable[[str, int, int], None]) -> dict[str, Any]:
    from rrn.tasks.sudoku.data import read_pools, write_generated, write_hard, write_paper_sets

    if options.hard:
        if not COMPILED:
            fast = f"{command('pip')} install '{DISTRIBUTION}[fast]'"
            print(f"without numba ({fast}) this takes hundreds of times as long", file=sys.stderr)
        return write_hard(
            out,
            options.count or 1_000,
            options.seed,
            options.least_guesses,
            options.pool_avoid,
            options.processes,
            progress,
        )
    if options.pool is None:
        return write_generated(
            out, options.count or 100_000, options.seed, options.extra_givens, options.processes, progress
        )
    pools = read_pools(
        options.pool,
        test=options.test,
        valid=options.valid,
        split_seed=options.split_seed,
        skip_bad=options.skip_bad,
        processes=options.processes,
        progress=progress,
    )
    per_givens = {"train": options.train_per_givens, "valid": options.valid_per_givens, "test": options.test_per_givens}
    return write_paper_sets(out, pools, options.seed, per_givens, progress)
