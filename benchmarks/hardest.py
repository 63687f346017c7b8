"""Plain ``rrn solve`` on the hardest puzzles known, with the seconds that it takes.

``python -m benchmarks.hardest forum_hardest.csv.gz named.csv [--count 10]`` writes results/sudoku_hardest.json. The
first file has a puzzle per line. Of it, those are solved for which the exact solver needs most guesses. The second
file has lines ``name,puzzle``, for example AI Escargot and Golden Nugget. The result has hashes, not puzzles.
"""

import argparse
import csv
import gzip
import hashlib
import json
import resource
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from rrn.io.files import write_json
from rrn.tasks.evaluation import machine
from rrn.tasks.sudoku.exact import count_guesses

OUT = Path(__file__).parent.parent / "results" / "sudoku_hardest.json"


def hardest(path: Path, count: int) -> dict[str, str]:
    """The puzzles of a file with the most guesses, the hardest first, by rank."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        lines = [line.split(",")[0].strip() for line in file]
    puzzles = [line.replace(".", "0") for line in lines if len(line) == 81]
    guesses = count_guesses(np.array([list(map(int, puzzle)) for puzzle in puzzles], np.int64))
    order = np.argsort(-guesses, kind="stable")[:count]
    return {f"number {rank} of {path.name.split('.')[0]}": puzzles[row] for rank, row in enumerate(order, start=1)}


def solve(puzzle: str) -> dict[str, Any]:
    """One run of the command, from its start to its end."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "rrn.cli", "solve", puzzle, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = json.loads(run.stdout)
    return {
        "sha256": hashlib.sha256(puzzle.replace(".", "0").encode()).hexdigest()[:16],
        "solved": answer["valid"],
        "rounds_of_thinking_longer": run.stderr.count("thinking longer"),
        "processor_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "seconds": round(seconds, 1),
        "guesses_of_exact_solver": int(count_guesses(np.array([list(map(int, puzzle.replace(".", "0")))]))[0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("puzzles", type=Path)
    parser.add_argument("named", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=10)
    options = parser.parse_args()
    named = dict(csv.reader(options.named.open())) if options.named else {}
    rows: dict[str, Any] = {}
    for name, puzzle in (named | hardest(options.puzzles, options.count)).items():
        rows[name] = solve(puzzle)
        print(name, json.dumps(rows[name]), flush=True)
    seconds = [row["processor_seconds"] for row in rows.values()]
    figures = {"n": len(rows), "solved": sum(row["solved"] for row in rows.values()), "puzzles": rows}
    figures |= {"longest_processor_seconds": max(seconds), "command": "rrn solve PUZZLE --json"}
    figures |= {"about": "seconds include the start of Python; other jobs shared the core, so the processor counts"}
    write_json(OUT, figures | {"seed": 0, "date": date.today().isoformat(), "machine": f"{machine()}, 1 used"})


if __name__ == "__main__":
    main()
