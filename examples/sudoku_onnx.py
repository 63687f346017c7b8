"""Solve Sudokus with the exported network in onnxruntime; torch and rrn need not be installed.

A puzzle is 81 characters, 0 or . for an empty cell. Write the network once, where rrn is installed, then solve:

    rrn export sudoku --out step.onnx
    python examples/sudoku_onnx.py step.onnx PUZZLE…
"""

import sys

import numpy as np
import onnxruntime


def is_solution(grid: np.ndarray, puzzle: np.ndarray) -> bool:
    square = grid.reshape(9, 9)
    boxes = square.reshape(3, 3, 3, 3).swapaxes(1, 2).reshape(9, 9)
    units = np.concatenate([square, square.T, boxes])
    return bool((np.sort(units) == np.arange(1, 10)).all() and ((puzzle == 0) | (puzzle == grid)).all())


def solve(session: onnxruntime.InferenceSession, puzzle: np.ndarray, most_steps: int = 256) -> tuple[np.ndarray, int]:
    """The grid (81,) and the steps it took; 0 steps if it was not solved in ``most_steps``."""
    widths = {given.name: given.shape[-1] for given in session.get_inputs() if given.name.startswith("state_")}
    state = {name: np.zeros((1, 729, width), np.float32) for name, width in widths.items()}
    grid = puzzle
    for step in range(1, most_steps + 1):
        logits, *after = session.run(None, {"puzzle": puzzle[None], **state})
        state = dict(zip(state, after, strict=True))
        grid = logits[0].argmax(-1) + 1
        if is_solution(grid, puzzle):
            return grid, step
    return grid, 0


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or any(len(text) != 81 for text in arguments[1:]):
        print("usage: sudoku_onnx.py step.onnx PUZZLE…  (81 characters each, 0 or . for empty)", file=sys.stderr)
        return 2
    session = onnxruntime.InferenceSession(arguments[0])
    unsolved = 0
    for text in arguments[1:]:
        puzzle = np.array([int(c) if c.isdigit() else 0 for c in text], np.int64)
        grid, steps = solve(session, puzzle)
        unsolved += steps == 0
        print("\n".join(" ".join(map(str, row)) for row in grid.reshape(9, 9)))
        print(f"solved in {steps} steps\n" if steps else "not solved\n")
    return 1 if unsolved else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
