"""rrn data ages: questions of age arithmetic."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rrn.cli import parse, print_json
from rrn.errors import counted
from rrn.training.presets import Count, Seed


@dataclass(frozen=True)
class Options:
    out: Path = Path("data/ages")
    """The folder to write."""
    count: Count = 100_000
    """Number of questions."""
    seed: Seed = 0
    split: Literal["train", "valid", "test"] = "train"
    """The trees of the questions; no tree is in two splits."""
    json: bool = False
    """Print one JSON object to standard output."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn data ages", "Write questions of age arithmetic as arrays.")
    from rrn.tasks.ages.data import write_questions

    write_questions(options.out, options.count, options.seed, options.split)
    print(f"{counted(options.count, 'question')} written to {options.out}", file=sys.stderr)
    if options.json:
        about = {"task": "ages", "split": options.split, "count": options.count, "seed": options.seed}
        print_json({"out": str(options.out), **about})
    return 0
