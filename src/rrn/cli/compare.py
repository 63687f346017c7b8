"""rrn compare sudoku: measure the systems of the paper's table on the same puzzles."""

import json
import shlex
import sys
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from rrn._compat import keep_freed_memory
from rrn.cli import Task, parse, progress_bars, run_task, show_result
from rrn.io.machine import machine
from rrn.training.presets import Count, Json


@dataclass(frozen=True)
class Options:
    data: Path | None = None
    """A file of puzzles, with or without solutions. Default: generated puzzles."""
    limit: Count | None = None
    """Measure on the first puzzles only, this many."""
    systems: str | None = None
    """Measure only these, such as parallel,random. Rows of other systems in --out stay if the puzzles are the same."""
    json: Json = False
    out: Path | None = None
    """Also write the JSON to this file."""
    figure: Path | None = None
    """Draw a bar chart to this file (.png, .svg, .pdf)."""


def main(arguments: list[str]) -> int:
    return run_task("compare", {"sudoku": Task("the systems of the paper's table", compare_sudoku)}, arguments)


def compare_sudoku(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn compare sudoku", "Measure the systems of the paper's table on Sudokus.")
    from rrn.tasks.sudoku.baselines import compare
    from rrn.viewing.plots import check_figure

    check_figure(options.figure)
    systems = compare.find_systems(options.systems)
    puzzles, solutions, source = compare.puzzles_to_compare_on(options.data, options.limit)
    keep_freed_memory()
    command = "rrn " + shlex.join(sys.argv[1:])
    measured: dict[str, Any] = {}
    with progress_bars() as progress:
        for system in systems:
            row = compare.measure(system, puzzles, solutions, partial(progress, system.title))
            measured[system.name] = {**row, "command": command, "date": date.today().isoformat()}
    result: dict[str, Any] = {"n": len(puzzles), "data": source, "machine": machine()}
    result["systems"] = {**(_earlier_rows(options.out, result) if options.systems and options.out else {}), **measured}
    show_result(result, options, [compare.table(result)], compare.draw)
    return 0


def _earlier_rows(path: Path, result: dict[str, Any]) -> dict[str, Any]:
    """The rows of an earlier result on the same puzzles."""
    try:
        earlier = json.loads(path.read_text())
        same = all(earlier[key] == result[key] for key in ("n", "data"))
        return dict(earlier["systems"]) if same else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
