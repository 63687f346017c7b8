"""Solving Sudokus with a network: puzzles in, checked grids out."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rrn.constraints.exact import diagnosis
from rrn.errors import InputError
from rrn.inference.attempts import NOISE, run_attempts
from rrn.inference.candidates import CandidateBatch
from rrn.inference.result import Result, Status
from rrn.tasks.parallel import in_threads
from rrn.tasks.sudoku.declared import sudoku
from rrn.tasks.sudoku.exact import count_solutions
from rrn.tasks.sudoku.files import parse_puzzle
from rrn.tasks.sudoku.grid import USUAL, Box, as_grids, clashes, is_solved
from rrn.tasks.sudoku.model import CandidateSudoku, group_table
from rrn.tasks.sudoku.puzzle_network import PuzzleNetwork

ATTEMPTS = 9
SLOTS = 32
"""Puzzles of 9 × 9 in the running batch; fewer of larger ones."""
PART = 100
"""Puzzles that one thread takes at a time."""
EXACT_GUESSES = 100_000
"""Guesses of the exact search that diagnoses what the first attempt did not solve."""


def solve(
    puzzles: Any,
    *,
    max_steps: int = 128,
    attempts: int = ATTEMPTS,
    noise: float = NOISE,
    search: bool = True,
    weights: str = "sudoku",
    network: nn.Module | None = None,
    fallback: Callable[[], nn.Module] | None = None,
    record: bool = False,
    seed: int = 0,
    box: Box = USUAL,
    exact_guesses: int = EXACT_GUESSES,
    progress: Callable[[int, int], Any] = lambda done, of: None,
) -> Result:
    """Run a network on n puzzles until their grids are filled and break no rule.

    An exact search diagnoses puzzles that the first attempt does not solve; impossible ones get no further attempts.

    Args:
        puzzles: one or many, as (n, 81) or (n, 9, 9) digits with 0 for empty, or strings of 81 characters.
        max_steps: steps of one attempt.
        attempts: how many attempts a puzzle gets; all but the first add noise.
        noise: its standard deviation.
        search: use best-first search if the network detects contradictions.
        weights: shipped weights, a folder or a hub id; or give a ``network``.
        fallback: makes a stronger network for puzzles that several attempts leave unsolved.
        record: record the probabilities of every digit in every cell at every step.
        seed: of the noise.
        box: rows and columns of a box, for Sudokus of another size than 9 × 9.
        exact_guesses: limit of the exact search.
        progress: called with the number of puzzles done and the number of all.

    Returns:
        a `Result`: answers uint8 (n, 81), and in details ``puzzles`` (n, 81), ``first_answers`` (n, 81), those of the
        first attempt, and ``fallback`` (n,), whether the stronger network ran.
    """
    grids = _as_puzzles(puzzles, box)
    full, cells, size = is_solved(grids, box), grids.shape[1], box[0] * box[1]
    done = itertools.count(1 + int(full.sum()))

    def run(rows: np.ndarray, by: PuzzleNetwork) -> Result:
        parts = [rows[low : low + PART] for low in range(0, len(rows), PART)]

        def one(number: int) -> Result:
            chosen = grids[parts[number]]
            batch, kwargs = {"puzzle": torch.from_numpy(chosen).long()}, dict[str, Any]()
            if isinstance(by, CandidateSudoku):
                batch, kwargs["groups"] = by.prepare(batch, box), group_table(box, by.device)
            with torch.inference_mode():
                problems = CandidateBatch(
                    by,
                    batch,
                    sudoku(box).layout,
                    torch.from_numpy(chosen[..., None] == np.arange(1, size + 1)).flatten(1),
                    search=search and by.detects_contradictions,
                    diagnose=lambda row: _diagnose(chosen[row], box, exact_guesses),
                    **kwargs,
                )
                return run_attempts(
                    problems,
                    max_steps=max_steps,
                    attempts=attempts,
                    noise=noise,
                    slots=max(1, SLOTS * 9**3 // size**3),
                    generator=torch.Generator().manual_seed(seed * 1_000_003 + number),
                    progress=lambda _: progress(next(done), len(grids)) if by is network else None,
                    record=(lambda logits: logits.unflatten(2, (cells, -1)).softmax(-1)) if record else None,
                )

        return one(0) if len(parts) == 1 else Result.concatenate(in_threads(one, range(len(parts))))

    network = as_puzzle_network(load(weights) if network is None else network)
    if box != USUAL and not isinstance(network, CandidateSudoku):
        raise InputError("box: only networks on candidates, such as 'sudoku', solve other sizes than 9 × 9")
    status, message = [Status.ALREADY_SOLVED] * len(grids), ["the grid is full and breaks no rule"] * len(grids)
    answers, first, records = grids.copy(), grids.copy(), [None] * len(grids)
    steps, tried = np.zeros((2, len(grids)), np.int64)
    confidence, handed_over = np.ones(len(grids)), np.zeros(len(grids), bool)
    rows = np.flatnonzero(~full)
    for by in (network, fallback if attempts > 1 else None):
        if by is None or not len(rows):
            break
        found = run(rows, by if isinstance(by, PuzzleNetwork) else as_puzzle_network(by()))
        answers[rows] = _digits(found.answers, cells)
        if by is network:
            first[rows] = _digits(found.details["first_answers"], cells)
        handed_over[rows] = by is not network
        steps[rows], confidence[rows] = found.steps, found.confidence
        tried[rows] += found.attempts
        for place, row in enumerate(rows):
            status[row], message[row] = found.status[place], found.message[place]
            records[row] = found.record[place] if record else None
        rows = np.array([row for row in rows if status[row] in (Status.UNSOLVED, Status.AMBIGUOUS)], dtype=np.int64)
    details = {"puzzles": grids, "first_answers": first, "fallback": handed_over}
    return Result(status, answers, steps, tried, confidence, message, records if record else None, details)


def load(weights: str) -> PuzzleNetwork:
    """A network for Sudoku by the name of its weights."""
    from rrn.tasks.weights import from_pretrained

    return as_puzzle_network(from_pretrained(weights, task="sudoku"))


def as_puzzle_network(network: nn.Module) -> PuzzleNetwork:
    if not isinstance(network, PuzzleNetwork):
        raise InputError(f"network: expected a PuzzleNetwork, got {type(network).__name__}")
    return network


def answers_by_step(network: nn.Module, puzzles: np.ndarray, steps: int) -> np.ndarray:
    """The most probable digits after every step of one attempt that never stops: (steps, n, 81)."""
    network = as_puzzle_network(network)
    with torch.inference_mode():
        outputs, _ = network({"puzzle": torch.from_numpy(puzzles).long().to(network.device)}, steps=steps)
        logits = outputs.view(steps, len(puzzles), 81, -1)[..., network.first_class :]
        return logits.argmax(-1).cpu().numpy().astype(np.uint8) + 1


def _diagnose(puzzle: np.ndarray, box: Box, guesses: int) -> tuple[Status, str]:
    return diagnosis("the puzzle", int(count_solutions(puzzle, box=box, most_tries=guesses)[0]))


def _digits(logits: list[Tensor], cells: int) -> np.ndarray:
    """The most probable digit of every cell: logits (cells · digits,) each → uint8 (n, cells)."""
    return (torch.stack(logits).unflatten(1, (cells, -1)).argmax(-1) + 1).numpy().astype(np.uint8)


def _as_puzzles(puzzles: Any, box: Box) -> np.ndarray:
    if isinstance(puzzles, str):
        puzzles = [puzzles]
    if isinstance(puzzles, list | tuple) and puzzles and isinstance(puzzles[0], str):
        return np.stack([parse_puzzle(text, f"puzzle {number}") for number, text in enumerate(puzzles, 1)])
    grids = as_grids(puzzles, box)
    clashing = clashes(grids, box).any(1)
    if clashing.any():
        raise InputError(f"puzzle {int(clashing.argmax()) + 1}: two of its givens clash")
    return grids
