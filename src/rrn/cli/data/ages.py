"""rrn data ages: questions of age arithmetic."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rrn.cli import parse, report
from rrn.errors import plural
from rrn.training.presets import Count, Json, Seed


@dataclass(frozen=True)
class Options:
    out: Path = Path("data/ages")
    """The folder to write."""
    count: Count = 100_000
    """Number of questions."""
    seed: Seed = 0
    split: Literal["train", "valid", "test"] = "train"
    """The trees of the questions; no tree is in two splits."""
    json: Json = False


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn data ages", "Write questions of age arithmetic as arrays.")
    from rrn.tasks.ages.data import write_questions

    write_questions(options.out, options.count, options.seed, options.split)
    fields = {"task": "ages", "split": options.split, "count": options.count, "seed": options.seed}
    message = f"{plural(options.count, 'question')} written to {options.out}"
    return report(message, {"out": str(options.out), **fields}, options.json)
