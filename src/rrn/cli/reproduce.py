"""rrn reproduce ID: a row of the paper's tables and figures, measured with the shipped weights, beside the paper's."""

import contextlib
import io
import json
import shlex
import sys
import time
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from rrn.cli.options import parse, print_json
from rrn.errors import InputError
from rrn.io.files import write_atomically, write_json
from rrn.tasks import reproducing
from rrn.tasks.evaluation import machine

ABOUT = """Measure a row of the paper's tables and figures with the shipped weights, beside the paper's figure and ours.

  rrn reproduce --list

  rrn reproduce ages-steps

Nothing is trained, and nothing is written unless --out says where. Exits with 1 where there is nothing to measure."""
MEASURING = ("evaluate", "compare")
"""Commands that take --data and --limit."""


@dataclass(frozen=True)
class Options:
    id: Annotated[str, tyro.conf.Positional] = ""
    """The row; --list names them."""
    list: bool = False
    """Print all rows: the paper's figure, ours told as much, our best, the command and its minutes."""
    json: bool = False
    """Print JSON and nothing else: an array with --list, else one object."""
    markdown: bool = False
    """With --list: print docs/reproduce.md."""
    data: Path | None = None
    """Measure on this file or folder instead of on data made on the spot."""
    limit: int | None = None
    """Measure on this many only, the first."""
    weights: str | None = None
    """Measure these weights instead: a folder, such as runs/sudoku-paper/best, shipped weights by name, or a hub id."""
    out: Path | None = None
    """Also write the list (JSON, or the page with --markdown) or what was measured (JSON) to this file."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn reproduce", ABOUT)
    if bool(options.id) == options.list:
        raise InputError("expected the ID of a row, or --list, which names them")
    _refuse_what_does_nothing(options)
    from rrn.io.pretrained import shipped

    if options.list:
        return _print_list(options, reproducing.listed(shipped()))
    return _print_row(options, reproducing.find_row(options.id), shipped())


def _refuse_what_does_nothing(options: Options) -> None:
    if options.markdown and (options.json or not options.list):
        raise InputError("--markdown: with --list, and without --json")
    for name in ("data", "limit", "weights"):
        if options.list and getattr(options, name) is not None:
            raise InputError(f"--{name}: --list measures nothing; give the ID of a row")
    if options.limit is not None and options.limit < 1:
        raise InputError(f"--limit: expected at least 1, got {options.limit}")


def _print_list(options: Options, rows: list[dict[str, Any]]) -> int:
    page = reproducing.markdown(rows)
    if options.out:
        if options.markdown:
            write_atomically(options.out, page)
        else:
            write_json(options.out, rows)
    if options.json:
        print_json(rows)
    elif options.markdown:
        print(page, end="")
    else:
        table = Table("id", "the paper", "like for like", "best", "minutes", header_style="bold")
        for row in rows:
            minutes = "" if row["minutes"] is None else f"{row['minutes']:g}"
            table.add_row(row["id"], row["paper"], row["like_for_like"] or "–", row["best"] or "–", minutes)
        Console(highlight=False).print(table)
    return 0


def _print_row(options: Options, row: reproducing.Row, shipped: list[str]) -> int:
    entry = next(entry for entry in reproducing.listed(shipped) if entry["id"] == row.id)
    preset = row.measurable(shipped)
    found: dict[str, Any] = {"measured": None}
    hint = _hint(row, shipped)
    if not row.arguments:
        found["why_not"] = row.note
    elif options.weights is None and preset is None:
        found["why_not"] = hint
    else:
        name = preset or row.like or ""
        words = _words(row, name, options)
        started = time.perf_counter()
        result = _run(words)
        figure = row.figure(reproducing.part_of(result, name) or result)
        found |= {
            "measured": figure.text if figure else None,
            "preset": result.get("preset", name),
            "command": "rrn " + shlex.join(words),
            "minutes": round((time.perf_counter() - started) / 60, 2),
            "date": date.today().isoformat(),
            "machine": machine(),
            "result": result,
        }
    if options.out:
        write_json(options.out, {"id": row.id, "paper": row.paper, **found})
    if options.json:
        print_json({**entry, **found})
    else:
        _show(row, {**entry, **found}, hint if found["measured"] else None)
        if options.out:
            print(f"written: {options.out}", file=sys.stderr)
    return 0 if found["measured"] else 1


def _hint(row: reproducing.Row, shipped: list[str]) -> str | None:
    """How to measure the network that is told what the paper's was, where its weights do not ship."""
    if row.like is None or not row.trained or row.like in shipped:
        return None
    return (
        f"no weights ship for {row.like!r}; train them with 'rrn train {row.like}', then "
        f"'rrn reproduce {row.id} --weights runs/{row.like}/best'"
    )


def _words(row: reproducing.Row, preset: str, options: Options) -> list[str]:
    """The command of a row with what was asked for instead of its own."""
    words = row.words(preset)
    instead = {"data": options.data, "limit": options.limit, "weights": options.weights}
    for name, value in instead.items():
        if value is None:
            continue
        if words[0] not in MEASURING if name != "weights" else words[0] == "compare":
            raise InputError(f"--{name}: not for {row.id}, which is 'rrn {words[0]}'")
        if f"--{name}" in words:
            place = words.index(f"--{name}")
            del words[place : place + 2]
        words += [f"--{name}", str(value)]
    return words


def _run(words: list[str]) -> dict[str, Any]:
    """Run a command of this package; returns the JSON that it prints."""
    command, *rest = words
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        import_module(f"rrn.cli.{command}").main([*rest, "--json"])
    return json.loads(said.getvalue())


def _show(row: reproducing.Row, result: dict[str, Any], hint: str | None) -> None:
    console = Console(highlight=False)
    console.print(f"[bold]{row.where}[/bold]: {row.title}\n")
    table = Table(box=None, show_header=False)
    table.add_row("the paper", row.paper)
    table.add_row("ours, like for like", result["like_for_like"] or "–")
    table.add_row("ours, best", result["best"] or "–")
    if result["measured"]:
        about = f"{result['measured']}  [dim]({result['minutes']:g} minutes)[/dim]"
        table.add_row(f"now, {result['preset']}", about, style="bold")
    else:
        table.add_row("now", f"not measured: {result['why_not']}", style="bold")
    console.print(table)
    for text in (row.note if row.arguments else None, hint):
        if text:
            console.print(f"\n{text[0].upper()}{text[1:]}", markup=False)
