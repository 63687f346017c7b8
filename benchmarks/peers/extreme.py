"""Sudoku-Extreme: accuracy of one network against compute, by difficulty, from one run that can be resumed.

Each puzzle gets a first attempt and, if that fails, further attempts that share one best-first search. The run records
the attempt and the step that solved each puzzle, so every smaller amount of compute is counted from the same run.
"""

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.peers.counting import add_timing, previous, public_file, share, shuffled_puzzles
from rrn.errors import InputError
from rrn.tasks.sudoku.exact import count_guesses
from rrn.tasks.sudoku.model import PuzzleNetwork
from rrn.tasks.sudoku.predict import load, solve

FILE = "sudoku/extreme_valid.csv.gz"
BLOCK = 50
"""Puzzles solved together and recorded together."""
QUANTILES = (0, 0.25, 0.5, 0.75, 1)
TIMED = 100


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--network", default="sudoku-hard", help="weights: shipped name or folder")
    parser.add_argument("--steps", type=int, default=512, help="steps of one attempt")
    parser.add_argument("--attempts", type=int, default=32)
    parser.add_argument("--resume", type=Path, metavar="FILE", help="record finished puzzles here and continue from it")
    parser.add_argument("--minutes", type=float, metavar="M", help="stop after M minutes; report the puzzles finished")
    add_timing(parser)


def measure(arguments: Namespace) -> dict[str, Any]:
    path = arguments.data or public_file(arguments, FILE)
    puzzles, solutions = shuffled_puzzles(path, arguments.limit)
    network, known = load(arguments.network), previous(arguments, "extreme")
    settings = {
        "network": Path(arguments.network).name,
        "parameters": sum(weight.numel() for weight in network.parameters()),
        "data": path.name,
        "steps_per_attempt": arguments.steps,
        "attempts": arguments.attempts,
    }
    if arguments.timing == "only" and arguments.data is None and "n" not in known:
        raise InputError(f"--timing only: {arguments.out.name} has no accuracy yet; run without it first")
    result = known | settings | {"order": "random, seed 0", "puzzles": len(puzzles)}
    if arguments.timing != "only":
        rows = _run(network, puzzles, solutions, settings, arguments)
        result |= summarise(rows, count_guesses(puzzles))
    if arguments.timing != "none":
        result["timing"] = _timing(network, puzzles[:TIMED], arguments)
    return result


def _run(
    network: PuzzleNetwork, puzzles: np.ndarray, solutions: np.ndarray, settings: dict[str, Any], arguments: Namespace
) -> list[dict[str, Any]]:
    """The record of each puzzle in order: right, attempt, steps of that attempt, steps of all, processor seconds."""
    rows = _recorded(arguments.resume, settings)[: len(puzzles)]
    started, first = time.monotonic(), len(rows)
    while len(rows) < len(puzzles):
        minutes = (time.monotonic() - started) / 60
        if arguments.minutes is not None and minutes >= arguments.minutes:
            break
        if len(rows) > first:
            left = minutes / (len(rows) - first) * (len(puzzles) - len(rows))
            right = sum(row["right"] for row in rows) / len(rows)
            message = f"{len(rows):,} of {len(puzzles):,} puzzles, {right:.1%} right, about {left:.0f} minutes left"
            print(message, file=sys.stderr, flush=True)
        part, seconds = slice(len(rows), len(rows) + BLOCK), time.process_time()
        found = solve(
            puzzles[part],
            network=network,
            max_steps=arguments.steps,
            attempts=arguments.attempts,
            seed=len(rows) // BLOCK,
        )
        right = (found.answers == solutions[part]).all(1)
        seconds = (time.process_time() - seconds) / len(right)
        new = [
            {"right": bool(ok), "attempt": int(attempt), "steps": int(steps), "seconds": round(seconds, 4)}
            for ok, attempt, steps in zip(right, found.attempts, found.steps, strict=True)
        ]
        if arguments.resume is not None:
            with arguments.resume.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in new)
        rows.extend(new)
    if not rows:
        raise InputError("no puzzle is finished; give more --minutes")
    for row in rows:
        further = row["attempt"] > 1
        all_steps = arguments.steps + (arguments.attempts - 1) * row["steps"] if further else row["steps"]
        row["all_steps"] = all_steps if row["right"] else arguments.steps * arguments.attempts
    return rows


def _recorded(path: Path | None, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The puzzles that an earlier run recorded; begin the file if there is none."""
    if path is None:
        return []
    if not path.exists():
        path.write_text(json.dumps(settings) + "\n")
    known, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    if known != settings:
        raise InputError(f"--resume {path.name}: recorded with other settings, {known}")
    whole = rows[: len(rows) // BLOCK * BLOCK]
    path.write_text("".join(json.dumps(line) + "\n" for line in (known, *whole)))
    return whole


def summarise(rows: list[dict[str, Any]], guesses: np.ndarray) -> dict[str, Any]:
    """Accuracy by compute and by difficulty. ``guesses`` (≥ n,) of the exact solver, of all puzzles of the set."""
    right, first, total, seconds = (
        np.array([row[key] for row in rows]) for key in ("right", "attempt", "all_steps", "seconds")
    )
    first, n = right & (first == 1), len(rows)
    edges = np.quantile(guesses, QUANTILES)
    middle, upper = np.quantile(guesses, [0.5, 0.9])
    of_rows = guesses[:n]
    bands = {
        f"quarter {k + 1}": (of_rows > edges[k] if k else of_rows >= 0) & (of_rows <= edges[k + 1]) for k in range(4)
    } | {"percentiles 50 to 90": (of_rows > middle) & (of_rows <= upper)}
    powers = [2**power for power in range(4, int(total.max()).bit_length())]
    return {
        "n": n,
        "one_attempt": share(first),
        "all_attempts": share(right),
        "by_all_steps": {str(t): share(right & (total <= t)) for t in sorted({*powers, int(total.max())})},
        "mean_steps": round(float(total.mean()), 1),
        "by_guesses": {
            name: {
                "n": int(band.sum()),
                "guesses": [int(of_rows[band].min()), int(of_rows[band].max())],
                "one_attempt": share(first[band]),
                "all_attempts": share(right[band]),
                "mean_steps": round(float(total[band].mean()), 1),
            }
            for name, band in bands.items()
            if band.any()
        },
        "processor_seconds_per_puzzle": round(float(seconds.mean()), 3),
        "meaning": {
            "one_attempt": "right within the steps of the first attempt, stopping at a filled grid that breaks no rule",
            "by_all_steps": "right within so many steps of all attempts together",
            "by_guesses": "guesses that our exact solver needs; quarters and percentiles of all puzzles of the set",
            "processor_seconds_per_puzzle": f"all attempts, batches of {BLOCK}, the core shared with other jobs",
        },
    }


def _timing(network: PuzzleNetwork, puzzles: np.ndarray, arguments: Namespace) -> dict[str, Any]:
    """Seconds per puzzle, one thread, of the network (one puzzle at a time) and the exact solver."""
    torch.set_num_threads(1)
    seconds = []
    count_guesses(puzzles[:1])  # compiles it
    started = time.perf_counter()
    count_guesses(puzzles)
    exact = (time.perf_counter() - started) / len(puzzles)
    for number, puzzle in enumerate(puzzles):
        started = time.perf_counter()
        solve(puzzle[None], network=network, max_steps=arguments.steps, attempts=arguments.attempts, seed=number)
        seconds.append(time.perf_counter() - started)
    return {
        "n": len(seconds),
        "mean_seconds": round(float(np.mean(seconds)), 3),
        "median_seconds": round(float(np.median(seconds)), 3),
        "longest_seconds": round(float(np.max(seconds)), 3),
        "exact_solver_mean_seconds": round(exact, 7),
    }
