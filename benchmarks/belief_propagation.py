"""Loopy belief propagation: 1,000 puzzles through 32 parallel iterations, whatever is solved earlier."""

import time

import numpy as np
import torch

PUZZLES, STEPS, AT_A_TIME = 1000, 32, 50


def measure() -> dict[str, object]:
    from concurrent.futures import ThreadPoolExecutor

    from rrn.tasks.sudoku.baselines.belief_propagation import BeliefPropagation
    from rrn.tasks.sudoku.exact import generate

    puzzles, solutions = generate(PUZZLES, np.random.default_rng(0))
    network = BeliefPropagation()

    def run(low: int) -> int:
        part = slice(low, low + AT_A_TIME)
        with torch.inference_mode():
            outputs, _ = network({"puzzle": torch.from_numpy(puzzles[part]).long()}, steps=STEPS)
        answers = outputs[-1].argmax(-1).view(-1, 81).numpy() + 1
        return int((answers == solutions[part]).all(1).sum())

    run(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        solved = sum(pool.map(run, range(0, PUZZLES, AT_A_TIME)))
    seconds = time.perf_counter() - started
    torch.set_num_threads(threads)
    return {
        "about": f"{PUZZLES} generated puzzles, {STEPS} parallel iterations each, {threads} threads",
        "seconds": seconds,
        "puzzle_iterations_per_second": PUZZLES * STEPS / seconds,
        "right_at_the_end": solved / PUZZLES,
    }
