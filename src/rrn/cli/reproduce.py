"""rrn reproduce ID: measure a row of the paper's tables and figures with the shipped weights.

The rows are in ``rrn/tasks/reproduce.json``. Figures are templates filled with the JSON of a file of ``results/``:
``{a.b}`` is an entry, ``*`` all entries of an object. Shares are shown in percent, a list by its length.
"""

import contextlib
import io
import json
import re
import shlex
import time
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from importlib import import_module, resources
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from rrn.cli import parse, print_json
from rrn.errors import InputError, quote
from rrn.io.files import write_json
from rrn.io.machine import machine

ABOUT = """Measure a row of the paper's tables and figures with the shipped weights, next to the paper's figure.

  rrn reproduce --list

  rrn reproduce ages-steps

Nothing is trained. Nothing is written without --out. Exits with 1 if the row has no command."""
COLUMNS = {"paper": "the paper", "same_inputs": "same inputs and supervision", "best": "best"}
Row = dict[str, Any]


@dataclass(frozen=True)
class Options:
    id: Annotated[str, tyro.conf.Positional] = ""
    """The row; --list prints all."""
    list: bool = False
    """Print all rows: the paper's figure, ours with the same inputs and supervision, our best."""
    json: bool = False
    """Print only JSON: an array with --list, otherwise one object."""
    data: Path | None = None
    """Measure on this file or folder instead of generated data."""
    limit: int | None = None
    """Measure on the first problems only, this many."""
    weights: str | None = None
    """Measure these weights instead of the shipped ones: a folder, such as runs/sudoku-paper/best, or a hub id."""
    out: Path | None = None
    """Also write the list or the measurement, as JSON, to this file."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn reproduce", ABOUT)
    if bool(options.id) == options.list:
        raise InputError("expected the ID of a row, or --list, which prints them")
    for name in ("data", "limit", "weights"):
        if options.list and getattr(options, name) is not None:
            raise InputError(f"--{name}: --list measures nothing; give the ID of a row")
    content = read_content()
    rows = {row["id"]: {"where": part["title"], **row} for part in content["sections"] for row in part["rows"]}
    if options.list:
        return _print_list(options, content, list(rows.values()))
    if options.id not in rows:
        near = get_close_matches(options.id, rows, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "'rrn reproduce --list' prints all"
        raise InputError(f"no row {quote(options.id)}; {hint}")
    row = rows[options.id]
    measured = _measure(row, options) if row["command"] else None
    if options.out:
        write_json(options.out, {"id": row["id"], "paper": row["paper"], **(measured or {})})
    if options.json:
        print_json(row | {"measured": measured})
        return 0 if measured else 1
    table = Table(box=None, show_header=False)
    for key, label in COLUMNS.items():
        table.add_row(label, shown_figure(row[key]))
    table.add_row("now", measured["figure"] if measured else "not measured", style="bold")
    console = Console(highlight=False)
    console.print(f"[bold]{row['where']}[/bold]: {row['what']}\n")
    console.print(table)
    if measured and measured["n"]:
        differs = next(text for task, text in content["now_differs"].items() if row["id"].startswith(task))
        console.print(f"\nNow: n = {measured['n']:,}. Data: {measured['data']}. {differs}", markup=False)
    if row["note"]:
        console.print(f"\n{row['note']}", markup=False)
    return 0 if measured else 1


def read_content() -> dict[str, Any]:
    """The rows and the texts of ``rrn/tasks/reproduce.json``."""
    content: dict[str, Any] = json.loads((resources.files("rrn.tasks") / "reproduce.json").read_text("utf-8"))
    return content


def _measure(row: Row, options: Options) -> Row:
    """Run the command of a row; --data, --limit and --weights replace those in it."""
    words = shlex.split(row["command"])[1:]
    for name in ("data", "limit", "weights"):
        if (value := getattr(options, name)) is not None:
            if name != "weights" and words[0] not in ("evaluate", "compare"):
                raise InputError(f"--{name}: {row['id']} is about one problem: {row['command']}")
            if f"--{name}" in words:
                index = words.index(f"--{name}")
                del words[index : index + 2]
            words += [f"--{name}", str(value)]
    started, output = time.perf_counter(), io.StringIO()
    with contextlib.redirect_stdout(output):
        import_module(f"rrn.cli.{words[0]}").main([*words[1:], "--json"])
    result = json.loads(output.getvalue())
    try:
        figure = fill(row["now"], result)
    except KeyError as error:
        given = f"--limit {options.limit}" if options.limit else f"--data {options.data}"
        raise InputError(
            f"{given}: no problem of the kind that {row['id']} counts ({error.args[0]}); measure more"
        ) from error
    return {
        "figure": figure,
        "n": result.get("n"),
        "data": result.get("data"),
        "command": "rrn " + shlex.join(words),
        "minutes": round((time.perf_counter() - started) / 60, 2),
        "date": date.today().isoformat(),
        "machine": machine(),
        "result": result,
    }


def fill(template: str, result: Any) -> str:
    """A template with the entries of a result."""
    return re.sub(r"{(.+?)}", lambda key: _shown(_entry(result, key[1].split("."))), template)


def _entry(value: Any, path: list[str]) -> Any:
    for depth, part in enumerate(path):
        if part == "*":
            return tuple(_entry(each, path[depth + 1 :]) for each in value.values())
        value = value[part]
    return len(value) if isinstance(value, list) else value


def _shown(value: Any) -> str:
    """Shares in percent, never 100 for less than all."""
    if isinstance(value, tuple):
        return " / ".join(map(_shown, value))
    if not isinstance(value, float):
        return str(value)
    decimals = 0 if value in (0.0, 1.0) else 1 if 0.1 <= value <= 0.99 else 2
    return f"{100 * value if decimals == 0 else min(100 * value, 99.99):.{decimals}f}"


def shown_figure(figure: Row | str | None) -> str:
    return "–" if figure is None else figure if isinstance(figure, str) else figure["figure"]


def _print_list(options: Options, content: dict[str, Any], rows: list[Row]) -> int:
    if options.out:
        write_json(options.out, rows)
    if options.json:
        print_json(rows)
        return 0
    console = Console(highlight=False)
    for section in content["sections"]:
        table = Table("id", *COLUMNS.values(), box=None, header_style="bold")
        table.columns[0].no_wrap = True
        for row in section["rows"]:
            table.add_row(row["id"], *(shown_figure(row[key]) for key in COLUMNS))
        console.print(f"\n[bold]{section['title']}[/bold]: {section['metric']}")
        console.print(table)
    return 0
