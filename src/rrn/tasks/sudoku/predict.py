"""Solving Sudokus with a network: puzzles in, checked grids out."""

import itertools
from collections.abc import Callable, Iterator
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
from rrn.tasks.sudoku.grid import USUAL, Box, as_puzzles, candidates_of
from rrn.tasks.sudoku.model import CandidateSudoku, PuzzleNetwork

ATTEMPTS = 9
SLOTS = 32
"""Puzzles of 9 × 9 in the running batch; fewer of larger ones."""
PART = 100
"""Puzzles that one thread takes at a time."""
LONGER_STEPS, LONGER_ATTEMPTS = (512, 1024, 2048, 4096), 8
"""Steps of an attempt in each round, and attempts of a round, when the fallback thinks longer. All attempts of a round
share the branches of one search, so longer rounds search deeper."""
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
    think_longer: Callable[[int, int], Any] | None = None,
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
        think_longer: the fallback then makes rounds of longer attempts (`LONGER_STEPS`) at what is still unsolved;
            called before each with the number of puzzles and of the round.
        record: record the probabilities of every digit in every cell at every step.
        seed: of the noise.
        box: rows and columns of a box, for Sudokus of another size than 9 × 9.
        exact_guesses: limit of the exact search.
        progress: called with the number of puzzles done and the number of all.

    Returns:
        a `Result`: answers uint8 (n, 81), and in details ``puzzles`` (n, 81), ``first_answers`` (n, 81), those of the
        first attempt, and ``fallback`` (n,), whether the stronger network ran.
    """
    first = as_puzzle_network(load(weights) if network is None else network)
    grids = _as_puzzles(puzzles, box)
    stages = Stages(grids, first, fallback if attempts > 1 else None, box=box, search=search, guesses=exact_guesses)
    done = itertools.count(len(grids) - len(stages.rows) + 1)

    def run(by: PuzzleNetwork, max_steps: int, attempts: int, seed: int) -> None:
        parts = [stages.rows[low : low + PART] for low in range(0, len(stages.rows), PART)]

        def one(number: int) -> Result:
            with torch.inference_mode():
                return run_attempts(
                    stages.problems(by, parts[number]),
                    max_steps=max_steps,
                    attempts=attempts,
                    noise=noise,
                    slots=max(1, SLOTS * 9**3 // (box[0] * box[1]) ** 3),
                    generator=torch.Generator().manual_seed(seed * 1_000_003 + number),
                    progress=lambda _: progress(next(done), len(grids)) if by is first else None,
                    record=digit_probabilities if record else None,
                )

        stages.add(one(0) if len(parts) == 1 else Result.concatenate(in_threads(one, range(len(parts)))))

    for by in stages:
        run(by, max_steps, attempts, seed)
    for number, steps in enumerate(LONGER_STEPS if think_longer is not None and stages.second else (), start=1):
        stages.rows = stages.rows[[stages.status[row] == Status.UNSOLVED for row in stages.rows]]
        if len(stages.rows) and think_longer is not None:
            think_longer(len(stages.rows), number)
            run(by, steps, LONGER_ATTEMPTS, seed + number)
    return stages.result()


class Stages:
    """Puzzles that one network tries and, if there is a ``fallback``, a second one after it. Iterate over the networks;
    after each, `add` what it found for the puzzles in ``rows``. ``grids`` are (n, cells), without clashes; the other
    arguments are those of `solve`."""

    def __init__(
        self,
        grids: np.ndarray,
        network: nn.Module,
        fallback: Callable[[], nn.Module] | None = None,
        *,
        box: Box = USUAL,
        search: bool = True,
        guesses: int = EXACT_GUESSES,
    ) -> None:
        self.grids, self.box, self.search, self.guesses = grids, box, search, guesses
        self.network, self.fallback = as_puzzle_network(network), fallback
        if box != USUAL and not isinstance(self.network, CandidateSudoku):
            raise InputError("box: only networks on candidates, such as 'sudoku', solve other sizes than 9 × 9")
        count = len(grids)
        self.rows = np.flatnonzero((grids == 0).any(1))
        """The puzzles that are not solved."""
        self.status, self.message = [Status.ALREADY_SOLVED] * count, ["the grid is full and breaks no rule"] * count
        self.answers, self.first_answers = grids.copy(), grids.copy()
        self.records: list[np.ndarray | None] = [None] * count
        self.steps, self.attempts = np.zeros((2, count), np.int64)
        self.confidence, self.handed_over, self.second = np.ones(count), np.zeros(count, bool), False

    def __iter__(self) -> Iterator[PuzzleNetwork]:
        if len(self.rows):
            yield self.network
        if len(self.rows) and self.fallback is not None:
            self.second = True
            yield as_puzzle_network(self.fallback())

    def problems(self, network: PuzzleNetwork, rows: np.ndarray) -> CandidateBatch:
        """Some of the puzzles as problems of a network."""
        chosen = self.grids[rows]
        batch = {"puzzle": torch.from_numpy(chosen).long()}
        given, open_ = candidates_of(batch["puzzle"], self.box)
        if isinstance(network, CandidateSudoku):
            batch["open"] = open_
        return CandidateBatch(
            network,
            batch,
            sudoku(self.box).layout,
            given,
            search=self.search and network.detects_contradictions,
            diagnose=lambda row: diagnosis(
                "the puzzle", int(count_solutions(chosen[row], box=self.box, most_tries=self.guesses)[0])
            ),
        )

    def add(self, found: Result) -> None:
        """Enter the result of the puzzles in ``rows``."""
        rows, cells = self.rows, self.grids.shape[1]
        self.answers[rows] = _digits(found.answers, cells)
        if not self.second:
            self.first_answers[rows] = _digits(found.details["first_answers"], cells)
        self.handed_over[rows] = self.second
        self.steps[rows], self.confidence[rows] = found.steps, found.confidence
        self.attempts[rows] += found.attempts
        for place, row in enumerate(rows):
            self.status[row], self.message[row] = found.status[place], found.message[place]
            self.records[row] = None if found.record is None else found.record[place]
        open_ = (Status.UNSOLVED, Status.AMBIGUOUS)
        self.rows = np.array([row for row in rows if self.status[row] in open_], dtype=np.int64)

    def result(self) -> Result:
        details = {"puzzles": self.grids, "first_answers": self.first_answers, "fallback": self.handed_over}
        records = None if all(record is None for record in self.records) else self.records
        return Result(
            self.status, self.answers, self.steps, self.attempts, self.confidence, self.message, records, details
        )


def digit_probabilities(logits: Tensor) -> Tensor:
    """Logits (steps, cells · digits) → the probabilities of the digits of every cell, (steps, cells, digits)."""
    digits = round(logits.shape[1] ** (1 / 3))
    by_digit = logits.unflatten(1, (-1, digits)).movedim(-1, 0).contiguous()  # 8 times as fast as along the last one
    return by_digit.softmax(0).movedim(0, -1).contiguous()


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


def _digits(logits: list[Tensor], cells: int) -> np.ndarray:
    """The most probable digit of every cell: logits (cells · digits,) each → uint8 (n, cells)."""
    return (torch.stack(logits).unflatten(1, (cells, -1)).argmax(-1) + 1).numpy().astype(np.uint8)


def _as_puzzles(puzzles: Any, box: Box) -> np.ndarray:
    if isinstance(puzzles, str):
        puzzles = [puzzles]
    if isinstance(puzzles, list | tuple) and puzzles and isinstance(puzzles[0], str):
        return np.stack([parse_puzzle(text, f"puzzle {number}") for number, text in enumerate(puzzles, 1)])
    return as_puzzles(puzzles, box)
