"""rrn data pretty-clevr: scenes, their images, and figures."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rrn.cli import parse, progress_bars, report
from rrn.training.presets import Count, Json, Range, Seed

SHEET = 12
"""Number of scenes on a contact sheet."""
EXAMPLE = 37
"""The scene of the test set on which "green, 3 jumps" leads to "plus", as in the paper's figure."""


@dataclass(frozen=True)
class Options:
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


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn data pretty-clevr", "Write the Pretty-CLEVR data set, or draw scenes.")
    counts = {"train": options.train, "valid": options.valid, "test": options.test}
    if options.contact_sheet or options.question:
        return _draw(options)
    from rrn.tasks.pretty_clevr.data import QUESTIONS, write

    with progress_bars() as progress:
        write(options.out, counts, options.seed, options.images, progress)
    total = sum(counts.values())
    fields = {"out": str(options.out), "task": "pretty-clevr", "scenes": counts, "seed": options.seed}
    message = f"{total:,} scenes with {total * QUESTIONS:,} questions written to {options.out}"
    return report(message, fields, options.json)


def _draw(options: Options) -> int:
    from rrn.tasks.pretty_clevr.data import number_of, scenes
    from rrn.tasks.pretty_clevr.figures import draw_contact_sheet, draw_question

    shown = scenes("test", seed=options.seed)
    if options.contact_sheet:
        draw_contact_sheet(options.contact_sheet, shown[:SHEET])
    if options.question:
        draw_question(options.question, shown.scene(EXAMPLE), number_of("green"), 3)
    drawn = [str(path) for path in (options.contact_sheet, options.question) if path]
    return report(f"drawn: {', '.join(drawn)}", {"drawn": drawn}, options.json)
