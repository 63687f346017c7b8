"""Solving Sudokus with a network: puzzles in, grids out, and whether each of them is a solution."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.inference.places import NOISE, BatchWork, Found, Kept, Places, think_through
from rrn.inference.search import GuessedBatch
from rrn.nn.updates import State
from rrn.tasks.parallel import in_threads
from rrn.tasks.sudoku.declared import sudoku
from rrn.tasks.sudoku.files import parse_puzzle
from rrn.tasks.sudoku.grid import USUAL, Box, as_grids, clashes, size_of, solves
from rrn.tasks.sudoku.puzzle_network import PuzzleNetwork

RESTARTS = 8
PLACES = 32
"""Puzzles of 9 × 9 worked on at a time. Larger ones are fewer."""
PART = 100
"""Puzzles that one thread takes at a time."""


@dataclass(frozen=True)
class Solved:
    """What `solve` found for n puzzles.

    Attributes:
        grids: (n, 81) digits 1-9: the answer at the step that counts. Look at ``valid`` before you trust one.
        valid: (n,) whether the grid breaks no rule and keeps the givens, and so is a solution.
        steps: (n,) steps of message passing it took, in the start that counts.
        starts: (n,) starts it took: 1 where the first, clean one did it.
        first_grids: (n, 81) the answer of the first, clean start.
        confidence: (n,) the mean probability of the digits put into empty cells.
        probabilities: (steps, n, 81, 9) after every step, where asked for; rows beyond a puzzle's steps repeat.
    """

    grids: np.ndarray
    valid: np.ndarray
    steps: np.ndarray
    starts: np.ndarray
    first_grids: np.ndarray
    confidence: np.ndarray
    probabilities: np.ndarray | None = None


def solve(
    puzzles: Any,
    *,
    max_steps: int = 128,
    restarts: int = RESTARTS,
    noise: float = NOISE,
    guess: bool = True,
    weights: str = "sudoku",
    network: nn.Module | None = None,
    trace: bool = False,
    seed: int = 0,
    box: Box = USUAL,
    progress: Callable[[int, int], Any] = lambda done, of: None,
) -> Solved:
    """Run a network on puzzles until their grids are filled and break no rule, or ``max_steps`` have passed.

    Args:
        puzzles: one or many, as (n, 81) or (n, 9, 9) digits with 0 for empty, or strings of 81 characters.
        box: rows and columns of a box, for Sudokus of another size than 9 × 9.
        max_steps: steps of one start.
        restarts: starts with noise on the way for puzzles that the first, clean start did not solve.
        noise: its standard deviation.
        guess: let a network that was trained with ``--contradiction-share`` guess, and take guesses back: see
            `rrn.inference.search`. Its further starts share what there is to search.
        weights: shipped weights, a folder or a hub id; or give a ``network``.
        trace: keep the probabilities of every step of the start that counts: the one that solved it, or the first.
        seed: of the noise.
    """
    grids = _as_puzzles(puzzles, box)
    if restarts < 0:
        raise InputError(f"restarts: expected 0 or more, got {restarts}")
    network = load(weights) if network is None else _for_puzzles(network)
    if box != USUAL and not network.any_size:
        raise InputError("Sudokus of other sizes: only the network on candidates (the preset 'sudoku') solves them")
    guess = guess and network.refutes
    parts = [grids[low : low + PART] for low in range(0, max(len(grids), 1), PART)]
    done = itertools.count(1)

    def run(number: int) -> Solved:
        generator = torch.Generator().manual_seed(seed * 1_000_003 + number)
        kept = Kept(lambda outputs: outputs.softmax(-1)) if trace else None
        batch = {"puzzle": torch.from_numpy(parts[number]).long()}
        told: dict[str, Any] = {"box": box} if network.any_size else {}
        with torch.inference_mode():
            found = think_through(
                _GuessedPuzzles(network, batch, sudoku(box).candidates, **told)
                if guess
                else _Puzzles(network, batch, **told),
                max_steps=max_steps,
                starts=1 + restarts,
                noise=noise,
                places=max(1, PLACES * 9**3 // size_of(box) ** 3),
                generator=generator,
                progress=lambda _: progress(next(done), len(grids)),
                watch=kept,
            )
        probabilities = kept.of(found, max_steps).float().numpy() if kept else None
        return _as_solved(parts[number], found, size_of(box), probabilities)

    return _together(in_threads(run, range(len(parts))))


def load(weights: str) -> PuzzleNetwork:
    """A network for Sudoku by the name of its weights."""
    from rrn.tasks.weights import from_pretrained

    return _for_puzzles(from_pretrained(weights, task="sudoku"))


def _for_puzzles(network: nn.Module) -> PuzzleNetwork:
    if not isinstance(network, PuzzleNetwork):
        raise InputError(f"network: expected a PuzzleNetwork, got {type(network).__name__}")
    return network


def answers_by_step(network: nn.Module, puzzles: np.ndarray, steps: int) -> np.ndarray:
    """The digits the network would put after every step from a clean start, never stopping: (steps, n, 81)."""
    network = _for_puzzles(network)
    with torch.inference_mode():
        outputs, _ = network({"puzzle": torch.from_numpy(puzzles).long().to(network.device)}, steps=steps)
        logits = outputs.view(steps, len(puzzles), 81, -1)[..., network.first_digit :]
        return logits.argmax(-1).cpu().numpy().astype(np.uint8) + 1


class _Puzzles(BatchWork):
    """Puzzles as `rrn.inference.places.Work`: finished when the grid is a solution."""

    network: PuzzleNetwork

    def run(self, places: Places, steps: int) -> tuple[Tensor, State]:
        outputs, state = super().run(places, steps)
        logits = outputs.view(steps, len(places.numbers), self.batch["puzzle"].shape[1], -1)
        return logits[..., self.network.first_digit :].cpu(), state

    def finished(self, places: Places, outputs: Tensor) -> Tensor:
        puzzles = self.batch["puzzle"][places.numbers].cpu().numpy().astype(np.uint8)
        answers = (outputs.argmax(-1) + 1).numpy().astype(np.uint8)
        solved = solves(
            answers.reshape(-1, puzzles.shape[1]), np.tile(puzzles, (len(answers), 1)), self.told.get("box", USUAL)
        )
        return torch.from_numpy(solved).view(answers.shape[:2])

    def answer(self, places: Places, outputs: Tensor, place: int, step: int) -> Tensor:
        return outputs[step, place]


class _GuessedPuzzles(GuessedBatch, _Puzzles):
    """Puzzles in which the network guesses."""


def _as_solved(puzzles: np.ndarray, found: Found, digits: int, probabilities: np.ndarray | None) -> Solved:
    nothing = torch.zeros(0, puzzles.shape[1], digits, device="cpu")
    logits, first = (torch.stack(a) if a else nothing for a in (found.answers, found.first_answers))
    grids, first_grids = ((answers.argmax(-1) + 1).numpy().astype(np.uint8) for answers in (logits, first))
    empty = puzzles == 0
    confidence = (logits.softmax(-1).amax(-1).numpy() * empty).sum(1) / np.maximum(empty.sum(1), 1)
    valid, steps, starts = found.finished.numpy(), found.steps.numpy(), found.starts.numpy()
    return Solved(grids, valid, steps, starts, first_grids, confidence, probabilities)


def _together(parts: list[Solved]) -> Solved:
    names = [field.name for field in fields(Solved) if getattr(parts[0], field.name) is not None]
    axes = {"probabilities": 1}
    return Solved(**{n: np.concatenate([getattr(part, n) for part in parts], axes.get(n, 0)) for n in names})


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
