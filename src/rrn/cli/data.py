"""rrn data TASK: write a data set to disk."""

import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from rrn.cli import Task, parse, print_json, progress_bars, report, run_task
from rrn.errors import DISTRIBUTION, command, plural
from rrn.training.presets import Count, Json, Needs, Range, Seed

SUDOKU = """Write Sudokus and their solutions as arrays, with a sidecar file that records the settings.

Without --pool, puzzles are generated: minimal puzzles with one solution, plus extra givens. With --pool, the paper's
sets are made from a file of puzzles. The file is split into training, validation and test first, so that no puzzle has
a relative in another part; then each set gets samples for each of 0 to 17 extra givens.

With --hard, puzzles that need search: givens of generated puzzles are exchanged, one by one, for others that make them
harder, measured in guesses of the exact solver. Each puzzle is minimal and has one solution."""
SHEET = 12
"""Scenes of Pretty-CLEVR on a contact sheet."""
EXAMPLE = 37
"""The scene of the test set on which "green, 3 jumps" leads to "plus", as in the paper's figure."""
Questions = Annotated[int, Range(least=0, most=10**9)]


@dataclass(frozen=True)
class SudokuOptions:
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


@dataclass(frozen=True)
class AgesOptions:
    out: Path = Path("data/ages")
    """The folder to write."""
    count: Count = 100_000
    """Number of questions."""
    seed: Seed = 0
    split: Literal["train", "valid", "test"] = "train"
    """The trees of the questions; no tree is in two splits."""
    json: Json = False


@dataclass(frozen=True)
class BabiOptions:
    out: Path = Path("data/babi")
    """The folder to write qa1_train.txt … qa20_test.txt to."""
    train: Questions = 9_000
    """Training questions of each task."""
    valid: Questions = 1_000
    """Validation questions of each task."""
    test: Questions = 1_000
    """Test questions of each task."""
    seed: Seed = 0
    json: Json = False


@dataclass(frozen=True)
class PrettyClevrOptions:
    out: Path = Path("data/pretty-clevr")
    """The folder to write, with train/, valid/ and test/."""
    train: Count = 100_000
    """Training scenes; each has 128 questions."""
    valid: Count = 1_000
    """Validation scenes."""
    test: Count = 1_000
    """Test scenes."""
    seed: Seed = 0
    images: Annotated[int, Range(least=16, most=4096)] | None = None
    """Also draw every scene as a PNG, this many pixels wide (usually 128)."""
    contact_sheet: Path | None = None
    """Write no data; draw the first twelve test scenes to this file (.png, .pdf)."""
    question: Path | None = None
    """Write no data; draw the jumps of "green, 3 jumps" on a test scene to this file (.png, .pdf, .svg)."""
    json: Json = False


def write_sudoku(arguments: list[str]) -> int:
    options = parse(SudokuOptions, arguments, "rrn data sudoku", SUDOKU)
    from rrn._compat import COMPILED
    from rrn.tasks.sudoku.data import read_pools, write_generated, write_hard, write_paper_sets

    out = options.out or Path("data/sudoku-hard.csv.gz" if options.hard else "data/sudoku")
    if options.hard and not COMPILED:
        fast = f"{command('pip')} install '{DISTRIBUTION}[fast]'"
        print(f"without numba ({fast}) this takes hundreds of times as long", file=sys.stderr)
    started = time.perf_counter()
    with progress_bars() as progress:
        shared: dict[str, Any] = {"processes": options.processes, "progress": progress}
        if options.hard:
            settings = options.least_guesses, options.pool_avoid
            about = write_hard(out, options.count or 1_000, options.seed, *settings, **shared)
        elif options.pool is None:
            about = write_generated(out, options.count or 100_000, options.seed, options.extra_givens, **shared)
        else:
            pools = read_pools(
                options.pool,
                test=options.test,
                valid=options.valid,
                split_seed=options.split_seed,
                skip_bad=options.skip_bad,
                **shared,
            )
            per_givens = {name: getattr(options, f"{name}_per_givens") for name in ("train", "valid", "test")}
            about = write_paper_sets(out, pools, options.seed, per_givens, progress)
    if "pool" in about:
        for message in about["pool"]["bad_left_out"]:
            print(f"left out: {message}", file=sys.stderr)
        listed = ", ".join(f"{count:,} for {name}" for name, count in about["pool"]["parts"].items())
        relatives = about["pool"]["relatives_left_out"]
        print(f"the pool: {listed}; {relatives:,} left out as relatives of these", file=sys.stderr)
    counts = ", ".join(f"{name} {count:,}" for name, count in about["counts"].items())
    print(f"puzzles written to {out}: {counts}", file=sys.stderr)
    if options.hard:
        seconds, guesses = time.perf_counter() - started, about["guesses"]
        print(
            f"{guesses['least']:.0f} to {guesses['most']:.0f} guesses, half of them {guesses['half']:.0f} or "
            f"more; {about['counts']['hard'] / seconds:.1f} puzzles per second",
            file=sys.stderr,
        )
    if options.json:
        print_json({"out": str(out), **about})
    return 0


def write_ages(arguments: list[str]) -> int:
    options = parse(AgesOptions, arguments, "rrn data ages", "Write questions of age arithmetic as arrays.")
    from rrn.tasks.ages.data import write_questions

    write_questions(options.out, options.count, options.seed, options.split)
    fields = {"task": "ages", "split": options.split, "count": options.count, "seed": options.seed}
    message = f"{plural(options.count, 'question')} written to {options.out}"
    return report(message, {"out": str(options.out), **fields}, options.json)


def write_stories(arguments: list[str]) -> int:
    about = "Write generated bAbI questions of all 20 tasks, distributed as in the released data, in its file format."
    options = parse(BabiOptions, arguments, "rrn data babi", about)
    from rrn.tasks.babi.data import write_babi

    counts = {"train": options.train, "valid": options.valid, "test": options.test}
    with progress_bars() as progress:
        written = write_babi(options.out, counts, options.seed, partial(progress, "writing"))
    message = f"{plural(20 * sum(counts.values()), 'question')} written to {options.out}"
    return report(message, {"out": str(options.out), **written}, options.json)


def write_pretty_clevr(arguments: list[str]) -> int:
    about = "Write the Pretty-CLEVR data set, or draw scenes."
    options = parse(PrettyClevrOptions, arguments, "rrn data pretty-clevr", about)
    from rrn.tasks.pretty_clevr import data

    if options.contact_sheet or options.question:
        return _draw_scenes(options)
    counts = {"train": options.train, "valid": options.valid, "test": options.test}
    with progress_bars() as progress:
        data.write(options.out, counts, options.seed, options.images, progress)
    total = sum(counts.values())
    fields = {"out": str(options.out), "task": "pretty-clevr", "scenes": counts, "seed": options.seed}
    message = f"{total:,} scenes with {total * data.QUESTIONS:,} questions written to {options.out}"
    return report(message, fields, options.json)


def _draw_scenes(options: PrettyClevrOptions) -> int:
    from rrn.tasks.pretty_clevr.data import number_of, scenes
    from rrn.tasks.pretty_clevr.figures import draw_contact_sheet, draw_question

    shown = scenes("test", seed=options.seed)
    if options.contact_sheet:
        draw_contact_sheet(options.contact_sheet, shown[:SHEET])
    if options.question:
        draw_question(options.question, shown.scene(EXAMPLE), number_of("green"), 3)
    drawn = [str(path) for path in (options.contact_sheet, options.question) if path]
    return report(f"drawn: {', '.join(drawn)}", {"drawn": drawn}, options.json)


TASKS = {
    "sudoku": Task("generated puzzles, or the paper's sets from a pool of puzzles, as arrays", write_sudoku),
    "ages": Task("questions of age arithmetic, as arrays", write_ages),
    "babi": Task("generated questions of bAbI's 20 tasks, in the official file format", write_stories),
    "pretty-clevr": Task("scenes of eight objects with their questions, as arrays and images", write_pretty_clevr),
}


def main(arguments: list[str]) -> int:
    return run_task("data", TASKS, arguments)
