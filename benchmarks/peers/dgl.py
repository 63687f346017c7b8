"""Deep Graph Library's pretrained RRN for Sudoku beside ours: the same puzzles, right at the same number of steps.

No network stops or searches here, and each makes one attempt. Ours are shipped weights, run by their engines.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.memory import forget_peak, peak_since
from benchmarks.peers.counting import add_timing, previous, public_file, share, shuffled_puzzles
from benchmarks.peers.dgl_network import DGLSudoku
from rrn.errors import InputError
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.model import PuzzleNetwork
from rrn.tasks.sudoku.predict import answers_by_step, load

STEPS = (16, 32, 64)
COUNT, SEED = 1000, 2018
BATCH, TIMED = 8, 64
OURS = ("sudoku-paper", "sudoku", "sudoku-hard")
GIVENS = ((17, 25), (26, 30), (31, 35), (36, 45))
Puzzles = tuple[np.ndarray, np.ndarray]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, metavar="FILE", help="the peer's weights (.safetensors)")
    names = ("dgl", *OURS)
    parser.add_argument("--networks", nargs="+", choices=names, default=names, help="renew the rows of these only")
    add_timing(parser)


def measure(arguments: Namespace) -> dict[str, Any]:
    weights = arguments.weights
    if weights is None and "dgl" in arguments.networks:
        weights = public_file(arguments, "peers/dgl_rrn_sudoku.safetensors")
    result = {"networks": {}, "timing": {}} | previous(arguments, "dgl")
    if arguments.timing != "only":
        sets = _sets(arguments)
        result |= {"steps": list(STEPS), "sets": {name: about for name, (about, _) in sets.items()}}
        for name in arguments.networks:
            network = network_of(name, weights)
            row = {"parameters": sum(weight.numel() for weight in network.parameters())}
            result["networks"][name] = row | {
                title: _accuracy(network, *puzzles, f"{name}, {title}") for title, (_, puzzles) in sets.items()
            }
    for name in arguments.networks if arguments.timing != "none" else ():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            result["timing"][name] = alone.submit(timing, name, weights).result()
    result["meaning"] = {
        "accuracy": "right at the step, without stopping, search or further attempts",
        "timing": f"{TIMED} puzzles with 17 to 45 givens in batches of {BATCH}, {STEPS[-1]} steps, one thread; "
        "memory is how far the peak rises above what the process holds before",
    }
    return result


def network_of(name: str, weights: Path | None) -> PuzzleNetwork:
    if name == "dgl":
        if weights is None or not weights.exists():
            raise InputError(f"--weights: no file {weights}")
        return DGLSudoku.from_file(weights)
    return load(name).eval()


def _sets(arguments: Namespace) -> dict[str, tuple[str, Puzzles]]:
    """Puzzles and what they are, by name. With ``--data``, those of that file only."""
    n = arguments.limit or COUNT
    if arguments.data is not None:
        puzzles = shuffled_puzzles(arguments.data, arguments.limit)
        return {arguments.data.name: ("random order, seed 0", puzzles)}
    royle = read_puzzles(public_file(arguments, "sudoku/royle17.csv.gz"), prove="unsolved", limit=n)
    extreme = shuffled_puzzles(public_file(arguments, "sudoku/extreme_valid.csv.gz"), n)
    return {
        "17 givens": (
            "Royle's list, first rows; the peer may have seen them",
            (royle.puzzles, royle.solutions),
        ),
        "generated": (f"minimal puzzles with 0 to 17 extra givens, seed {SEED}", generated(n)),
        "Sudoku-Extreme": ("extreme_valid.csv.gz, random order, seed 0", extreme),
    }


def generated(n: int) -> Puzzles:
    return generate(n, np.random.default_rng(SEED), (0, 17))


def _accuracy(network: PuzzleNetwork, puzzles: np.ndarray, solutions: np.ndarray, title: str) -> dict[str, Any]:
    """The share that is right at each of `STEPS`, in all and by givens."""
    right = np.zeros((len(STEPS), len(puzzles)), bool)
    for low in range(0, len(puzzles), BATCH):
        part = slice(low, low + BATCH)
        answers = answers_by_step(network, puzzles[part], STEPS[-1])[np.array(STEPS) - 1]
        right[:, part] = (answers == solutions[part]).all(-1)
        if low % 160 == 0:
            print(f"{title}: {low:,} of {len(puzzles):,}", file=sys.stderr, flush=True)
    givens = (puzzles > 0).sum(1)
    bands = {f"{low}-{high}": (givens >= low) & (givens <= high) for low, high in GIVENS}
    by_givens = {
        name: {"n": int(band.sum()), "at_step": {str(t): share(ok[band]) for t, ok in zip(STEPS, right, strict=True)}}
        for name, band in bands.items()
        if band.any()
    }
    at_step = {str(t): share(ok) for t, ok in zip(STEPS, right, strict=True)}
    return {"n": len(puzzles), "at_step": at_step, "by_givens": by_givens}


def timing(name: str, weights: Path | None) -> dict[str, float]:
    """Puzzles per second of clock and of processor time, and peak memory; in a process of its own."""
    torch.set_num_threads(1)
    network, (puzzles, _) = network_of(name, weights), generated(TIMED)
    answers_by_step(network, puzzles[:BATCH], 2)
    before, started, seconds = forget_peak(), time.perf_counter(), time.process_time()
    for low in range(0, TIMED, BATCH):
        answers_by_step(network, puzzles[low : low + BATCH], STEPS[-1])
    return {
        "puzzles_per_second": round(TIMED / (time.perf_counter() - started), 2),
        "puzzles_per_processor_second": round(TIMED / (time.process_time() - seconds), 2),
        "peak_megabytes": round(peak_since(before), 1),
    }
