"""n queens with some placed, declared as constraints: trained on boards of 8 to 12, tested on 8, 10 and 12.

One queen in every row and column, at most one on every diagonal. Queens of a random solution are placed one by one
until no other solution is left; tested so, and with one or two more. A fifth of all solutions, with their mirror
images and rotations, is reserved for testing. What elimination and search do without
training is in results/constraints.json.

    python examples/queens.py
"""

import zlib
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import torch

from rrn.constraints import Constraints, Problem, Solver

TEST_SHARE = 5
"""One in so many solutions is reserved for testing."""


@cache
def queens(size: int) -> Constraints:
    return Constraints(
        product(range(size), repeat=2),  # row, column
        exactly={"row": lambda c: c[0], "column": lambda c: c[1]},
        at_most={"diagonal": lambda c: c[0] - c[1], "other diagonal": lambda c: c[0] + c[1]},
    )


def for_testing(problem: Problem, size: int) -> bool:
    """Whether a solution is reserved for testing: the same for its mirror images and rotations."""
    assert problem.answer is not None
    board = problem.answer.reshape(size, size)
    turned = [np.rot90(side, quarter) for side in (board, board.T) for quarter in range(4)]
    return zlib.crc32(min(np.ascontiguousarray(each).tobytes() for each in turned)) % TEST_SHARE == 0


def draw(size: int, rng: np.random.Generator, testing: bool, more: int = 0) -> Problem:
    """A board with ``more`` queens than needed for one solution."""
    while True:
        solved = queens(size).dig(rng)
        if for_testing(solved, size) == testing:
            break
    order = rng.permutation(np.flatnonzero(solved.answer))
    boards = (replace(solved, given_numbers=order[:placed]) for placed in range(size + 1))
    fewest = next(len(board.given_numbers) for board in boards if board.count_solutions() == 1)
    return replace(solved, given_numbers=order[: fewest + more])


def train(updates: int, sizes: tuple[int, ...] = (8, 9, 10, 11, 12), seed: int = 0) -> Solver:
    def make(rng: np.random.Generator) -> Problem:
        return draw(int(rng.choice(sizes)), rng, testing=False)

    def report(update: int, extra: float, solved: float) -> None:
        if update % 200 == 0:
            print(f"update {update:5}  extra givens up to {extra:.0%}  solved {solved:.0%}", flush=True)

    return queens(sizes[0]).fit(make, updates=updates, slots=32, pool=8000, seed=seed, callback=report)


def main(updates: int = 4000, count: int = 200) -> dict[str, dict[str, object]]:
    solver = train(updates)
    results: dict[str, dict[str, object]] = {}
    for size in (8, 10, 12):
        for more in (0, 1, 2):
            rng = np.random.default_rng(2_000_000)
            problems = [draw(size, rng, testing=True, more=more) for _ in range(count)]
            found = solver.solve(problems, max_steps=1024, noise=2.0)
            results[f"size {size}, {more} more"] = {
                "n": count,
                "placed": float(np.mean([len(problem.given) for problem in problems])),
                "open": float(np.mean([problem.open.sum() for problem in problems])),
                "solved_by_attempts": found.solved_by_attempts(),
            }
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)  # the problems are small, and other programs may use the cores
    print(main())
