"""Latin squares with holes, declared as constraints: trained on size 7 and 8, tested on 7, 8 and 9.

Every square has one solution, and nothing is given that could be left out. The Sudoku weights that ship with the
package are tried on them as well, as they are: a Latin square is a Sudoku whose boxes are its rows.

    python examples/latin_squares.py
"""

from functools import cache
from itertools import product

import numpy as np
import torch

from rrn.constraints import Constraints, Problem, Solver
from rrn.tasks.sudoku.declared import solver as sudoku_solver
from rrn.tasks.sudoku.declared import sudoku


@cache
def latin_square(size: int) -> Constraints:
    return Constraints(
        product(range(size), repeat=3),  # row, column, digit
        exactly={
            "cell": lambda c: (c[0], c[1]),
            "digit in row": lambda c: (c[0], c[2]),
            "digit in column": lambda c: (c[1], c[2]),
        },
    )


def train(updates: int, sizes: tuple[int, ...] = (7, 8), seed: int = 0) -> Solver:
    def make(rng: np.random.Generator) -> Problem:
        return latin_square(int(rng.choice(sizes))).dig(rng)

    def report(update: int, extra: float, solved: float) -> None:
        if update % 100 == 0:
            print(f"update {update:5}  extra givens up to {extra:.0%}  solved {solved:.0%}", flush=True)

    return latin_square(sizes[0]).fit(make, updates=updates, slots=8, seed=seed, callback=report)


def unseen(size: int, count: int, seed: int = 1_000_000) -> list[Problem]:
    rng = np.random.default_rng(seed)
    return [latin_square(size).dig(rng) for _ in range(count)]


def as_sudoku(problem: Problem, size: int) -> Problem:
    return sudoku((1, size)).problem(given=problem.given)


def main(updates: int = 700, count: int = 200) -> dict[str, dict[str, object]]:
    solver = train(updates)
    results: dict[str, dict[str, object]] = {}
    for size in (7, 8, 9):
        problems = unseen(size, count)
        found = solver.solve(problems)
        untrained = sudoku_solver().solve([as_sudoku(problem, size) for problem in problems[:50]])
        results[f"size {size}"] = {
            "n": count,
            "holes": float(np.mean([size * size - len(problem.given) for problem in problems])),
            "solved_by_attempts": found.solved_by_attempts(),
            "sudoku_weights_untrained": {"n": 50, "solved_by_attempts": untrained.solved_by_attempts()},
        }
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)  # the problems are small, and other programs may use the cores
    print(main())
