"""Solving 1,000 puzzles: the default network against the paper's at 64 steps; generator and training throughput.

The puzzles have 17 givens: the project's own five, each under 200 symmetries, none of which the default network can
tell apart except by transposition. Beside them, generated minimal puzzles. How many steps the default network needs
is part of what is measured; the paper's network runs 64 steps whatever the puzzle, as in the paper.
"""

import time
from dataclasses import replace

import numpy as np
import torch

PUZZLES, PAPER_PUZZLES, PAPER_STEPS = 1000, 64, 64


def measure() -> dict[str, object]:
    from rrn.tasks import build_network, find_preset
    from rrn.tasks.sudoku.exact import generate
    from rrn.tasks.sudoku.examples import EXAMPLES
    from rrn.tasks.sudoku.files import parse_puzzle
    from rrn.tasks.sudoku.predict import answers_by_step, solve
    from rrn.tasks.sudoku.symmetry import random_symmetry
    from rrn.tasks.weights import from_pretrained

    generate(8, np.random.default_rng(1))
    started = time.perf_counter()
    minimal, _ = generate(PUZZLES, np.random.default_rng(0))
    generated = PUZZLES / (time.perf_counter() - started)
    own = np.repeat([parse_puzzle(line, "an example") for line in EXAMPLES], PUZZLES // len(EXAMPLES), axis=0)
    puzzles, _ = random_symmetry(own, own, np.random.default_rng(0))

    default = from_pretrained("sudoku")
    solve(puzzles[:16], network=default, max_steps=8, attempts=1)
    results = {}
    for name, some in (("17 givens", puzzles), ("generated minimal", minimal)):
        started = time.perf_counter()
        found = solve(some, network=default, max_steps=128, attempts=1)
        seconds = time.perf_counter() - started
        solved, steps = float(found.solved.mean()), float(found.steps.mean())
        results[name] = {"puzzles_per_second": PUZZLES / seconds, "solved": solved, "steps": steps}

    torch.manual_seed(0)
    paper = build_network(find_preset("sudoku-paper")).eval()
    answers_by_step(paper, puzzles[:16], 2)
    started = time.perf_counter()
    for low in range(0, PAPER_PUZZLES, 16):
        answers_by_step(paper, puzzles[low : low + 16], PAPER_STEPS)
    theirs = PAPER_PUZZLES / (time.perf_counter() - started)
    return {
        "about": f"{PUZZLES} puzzles in one batch, up to 128 steps each; the paper's network ran {PAPER_PUZZLES} of "
        f"them, {PAPER_STEPS} steps each",
        "sudoku": results,
        "sudoku_paper_puzzles_per_second": theirs,
        "ratio": results["17 givens"]["puzzles_per_second"] / theirs,
        "generated_puzzles_per_second": generated,
        "training_puzzle_steps_per_second": _training(),
    }


def _training() -> float:
    from rrn.tasks import find_preset, make_experiment
    from rrn.training.experiment import Shard, seeded

    torch.manual_seed(0)
    experiment = make_experiment(replace(find_preset("sudoku"), few_givens_pool=0))
    network = experiment.network()
    carry = experiment.first_batch(seeded(0), Shard())

    def update() -> int:
        steps = experiment.steps_of(carry)
        outputs, _ = network(carry.batch, steps=steps, state=carry.state)
        experiment.loss(outputs, carry.batch).backward()
        return steps * len(carry.batch["puzzle"])

    update()
    started = time.perf_counter()
    done = sum(update() for _ in range(30))
    return done / (time.perf_counter() - started)
