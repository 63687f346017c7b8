"""Measure our networks beside those of others and write results/peers.json.

python -m benchmarks.peers [PROBLEM] --public FOLDER [--limit N] [--json]
python -m benchmarks.peers PROBLEM --data FILE_OR_FOLDER [--limit N] [--json]

Without PROBLEM all are measured. Each problem is a module of this package with ``add_arguments(parser)`` and
``measure(arguments) -> dict``. FOLDER holds public data sets, which are not in this repository: see docs/compared.md.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers import page
from rrn.errors import InputError
from rrn.io.files import write_json
from rrn.io.machine import machine

PROBLEMS = ("extreme", "dgl", "mazes", "algorithms")
OUT = Path(__file__).parents[2] / "results" / "peers.json"


def problems() -> list[str]:
    """The problems whose module exists."""
    return [name for name in PROBLEMS if find_spec(f"benchmarks.peers.{name}") is not None]


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of one problem: the common arguments and those of its module."""
    module = import_module(f"benchmarks.peers.{name}")
    parser = argparse.ArgumentParser(f"python -m benchmarks.peers {name}", description=module.__doc__)
    parser.add_argument("--public", type=Path, metavar="FOLDER", help="folder of public data sets")
    parser.add_argument("--data", type=Path, help="measure on this file or folder; results/peers.json is not changed")
    parser.add_argument("--limit", type=int, metavar="N", help="measure on the first N of each set only")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--out", type=Path, default=OUT, help="file with all results, by default results/peers.json")
    module.add_arguments(parser)
    return parser


def run(name: str, argv: Sequence[str]) -> dict[str, Any]:
    """Measure one problem. Unless ``--data`` is given, the result replaces that of the problem in ``--out``.

    The tables of docs/compared.md are then made anew.
    """
    arguments = parser_of(name).parse_args(argv)
    result: dict[str, Any] = import_module(f"benchmarks.peers.{name}").measure(arguments)
    command = shlex.join(["python", "-m", "benchmarks.peers", name, *_without_folders(argv)])
    result |= {"command": command, "date": date.today().isoformat(), "machine": machine()}
    if arguments.data is None:
        known = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
        write_json(arguments.out, known | {name: result})
    if arguments.data is None and arguments.out == OUT:
        page.main()
    return result


def _without_folders(argv: Sequence[str]) -> list[str]:
    """The arguments, with the names of files in place of their paths on this machine."""
    return [Path(part).name if "/" in part else part for part in argv]


def main(argv: Sequence[str] | None = None) -> None:
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv[:1] in (["-h"], ["--help"]):
        print(__doc__, "Problems:", ", ".join(problems()))
        return
    named = bool(argv) and not argv[0].startswith("-")
    if named and argv[0] not in problems():
        sys.exit(f"no problem {argv[0]!r}; there are {', '.join(problems())}")
    names, rest = ([argv[0]], argv[1:]) if named else (problems(), argv)
    results = {}
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            results[name] = run(name, rest)
        except InputError as error:
            sys.exit(f"{name}: {error}")
    shown = results[names[0]] if named else results
    print(json.dumps(shown, indent=None if "--json" in rest else 2))


if __name__ == "__main__":
    main()
