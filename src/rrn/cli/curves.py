"""rrn curves: validation curves of several trainings."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rrn.cli import parse, print_json, printable
from rrn.errors import InputError, as_input_error
from rrn.io.files import read_bytes
from rrn.viewing.plots import save, subplots

METRICS = "metrics.jsonl"
"""A run folder has this file: one line of JSON per validation."""
MOST_BYTES = 100_000_000


@dataclass(frozen=True)
class Options:
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of runs, or copies of their metrics.jsonl."""
    of: str = "score"
    """The metric: a key in the lines of metrics.jsonl, such as loss, solved or cells."""
    against: Literal["update", "minutes"] = "update"
    """The horizontal axis."""
    figure: Path | None = None
    """Draw the curves to this file (.png, .svg, .pdf)."""
    json: bool = False
    """Print only one JSON object: for each run its [against, value] pairs; null is a value that is not finite."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn curves", "Validation curves of several trainings, as a table or a figure.")
    curves = dict(_curve(path, options.of, options.against) for path in options.runs)
    if len(curves) < len(options.runs):
        raise InputError("two runs have the same name; rename a folder or file")
    if options.figure:
        _draw(curves, options)
    if options.json:
        pairs = {
            name: [[at, value if math.isfinite(value) else None] for at, value in points]
            for name, points in curves.items()
        }
        print_json(pairs)
        return 0
    table = Table(
        "run", "validations", options.against, f"last {escape(printable(options.of))}", "least", "most", box=None
    )
    for name, points in curves.items():
        finite = [value for _, value in points if math.isfinite(value)] or [math.nan]
        last = [f"{value:.4g}" for value in (points[-1][1], min(finite), max(finite))]
        table.add_row(escape(printable(name)), str(len(points)), f"{points[-1][0]:g}", *last)
    Console().print(table)
    return 0


def _curve(path: Path, of: str, against: str) -> tuple[str, list[tuple[float, float]]]:
    """The name of a run and its points."""
    file = path / METRICS if path.is_dir() else path
    with as_input_error(f"{file}: expected lines of JSON, as a run writes them to {METRICS}"):
        lines: list[dict[str, Any]] = [dict(json.loads(line)) for line in read_bytes(file, MOST_BYTES).splitlines()]
        points = [(float(line[against]), float(line[of])) for line in lines if of in line]
    if not all(math.isfinite(at) for at, _ in points):
        raise InputError(f"{file}: {against} is not a finite number in some line")
    if not points:
        known = sorted({name for line in lines for name in line})
        raise InputError(f"{file}: no metric {of!r}; there are {', '.join(known) or 'no lines yet'}")
    name = path.resolve().name if path.is_dir() else path.stem.removesuffix("_training")
    return name, points


def _draw(curves: dict[str, list[tuple[float, float]]], options: Options) -> None:
    assert options.figure is not None
    figure, axes = subplots(figsize=(7, 4))
    for name, points in curves.items():
        label = printable(name).replace("$", r"\$").lstrip("_")
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1.4, label=label)
    what = printable(options.of).replace("$", r"\$")
    axes.set(xlabel={"update": "updates", "minutes": "minutes"}[options.against], ylabel=what)
    axes.legend(fontsize=8, frameon=False)
    save(figure, options.figure)
