"""rrn data babi: generated questions of the 20 tasks in the official file format."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from rrn.cli import parse, progress_bars, report
from rrn.errors import plural
from rrn.training.presets import Json, Range, Seed

Questions = Annotated[int, Range(least=0, most=10**9)]


@dataclass(frozen=True)
class Options:
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


def main(arguments: list[str]) -> int:
    about = "Write generated bAbI questions of all 20 tasks, distributed as in the released data, in its file format."
    options = parse(Options, arguments, "rrn data babi", about)
    counts = {"train": options.train, "valid": options.valid, "test": options.test}
    from rrn.tasks.babi.data import write_babi

    with progress_bars() as progress:
        written = write_babi(options.out, counts, options.seed, partial(progress, "writing"))
    message = f"{plural(20 * sum(counts.values()), 'question')} written to {options.out}"
    return report(message, {"out": str(options.out), **written}, options.json)
