"""What decides how many Sudokus belief propagation solves: docs/belief_propagation.md. No part of ``make bench``.

python -m benchmarks.belief_propagation_choices FILE [PUZZLES]
"""

import argparse
from pathlib import Path
from typing import Any

from rrn.io.files import write_json
from rrn.io.machine import machine
from rrn.tasks.sudoku.baselines.belief_propagation import BeliefPropagation, ModifiedBeliefPropagation
from rrn.tasks.sudoku.baselines.compare import System, measure
from rrn.tasks.sudoku.files import read_puzzles

DOUBLE, LONG_DOUBLE = -745.0, -11356.0
"""Logarithms of the smallest numbers of 64 and of 80 bits."""
OUT = Path(__file__).parent.parent / "results" / "belief_propagation.json"

CHOICES: dict[str, tuple[type[BeliefPropagation], dict[str, Any], int]] = {
    "parallel, 64-bit range": (BeliefPropagation, {"underflow": DOUBLE}, 64),
    "random, 64-bit range": (BeliefPropagation, {"schedule": "random", "underflow": DOUBLE}, 64),
    "parallel, 80-bit range": (BeliefPropagation, {"underflow": LONG_DOUBLE}, 64),
    "random, 80-bit range": (BeliefPropagation, {"schedule": "random", "underflow": LONG_DOUBLE}, 64),
    "parallel, no underflow": (BeliefPropagation, {}, 64),
    "random, no underflow": (BeliefPropagation, {"schedule": "random"}, 64),
    "parallel, 64-bit range, damping 0.5": (BeliefPropagation, {"underflow": DOUBLE, "damping": 0.5}, 64),
    "parallel, no underflow, damping 0.5": (BeliefPropagation, {"damping": 0.5}, 64),
    "modified, parallel, fixed every 2": (
        ModifiedBeliefPropagation,
        {"schedule": "parallel", "fix_every": 2},
        250,
    ),
    "modified, parallel, fixed every 2, not balanced": (
        ModifiedBeliefPropagation,
        {"schedule": "parallel", "fix_every": 2, "balance_every": None},
        250,
    ),
    "modified, random, fixed every 20": (ModifiedBeliefPropagation, {}, 250),
}


def main(file: str, puzzles: int = 200) -> None:
    read = read_puzzles(file, limit=puzzles)
    result: dict[str, Any] = {"n": puzzles, "data": Path(file).name, "machine": machine(), "choices": {}}
    for label, (kind, settings, steps) in CHOICES.items():
        system = System(label, label, 0.0, steps, make=lambda kind=kind, settings=settings: kind(**settings))
        row = measure(system, read.puzzles, read.solutions)
        kept = ("accuracy", "accuracy_by_steps", "steps", "seconds")
        result["choices"][label] = {key: row[key] for key in kept}
        print(f"{label:<50}{row['accuracy']:.1%}", flush=True)
        write_json(OUT, result)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("puzzles", nargs="?", type=int, default=200, metavar="PUZZLES")
    main(**vars(parser.parse_args()))
