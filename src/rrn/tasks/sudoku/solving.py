"""Solving Sudokus with a network: puzzles in, grids out, and whether each of them is a solution."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.tasks.sudoku import quick
from rrn.tasks.sudoku.grid import as_grids, clashes, solves
from rrn.updates import State

RESTARTS = 8
NOISE = 0.3
"""Standard deviation of the noise that a restart puts on the state, which itself has a mean square of 1."""
SHAKE_EVERY = 8
"""Steps from one dose of noise to the next. A network forgets what it starts from, so noise has to come on the way;
in the second half of a restart there is none, so that it can settle."""
PLACES = 16
"""Puzzles worked on at a time: few enough for the cache."""
PART = 100
"""Puzzles that one thread takes at a time."""
STRIDE = 4
"""Steps between looks at the grids."""


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
    weights: str = "sudoku",
    network: nn.Module | None = None,
    trace: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], Any] = lambda done, of: None,
) -> Solved:
    """Run a network on puzzles until their grids are filled and break no rule, or ``max_steps`` have passed.

    Args:
        puzzles: one or many, as (n, 81) or (n, 9, 9) digits with 0 for empty, or strings of 81 characters.
        max_steps: steps of one start.
        restarts: starts from a noisy state for puzzles that the first, clean start did not solve.
        noise: its standard deviation.
        weights: shipped weights, a folder or a hub id; or give a ``network``.
        trace: keep the probabilities of every step of the start that counts: the one that solved it, or the first.
        seed: of the noise.
    """
    grids = _as_puzzles(puzzles)
    if max_steps < 1:
        raise InputError(f"max_steps: expected at least 1, got {max_steps}")
    if restarts < 0:
        raise InputError(f"restarts: expected 0 or more, got {restarts}")
    if network is None:
        from rrn.pretrained import from_pretrained

        network, preset = from_pretrained(weights)
        if preset.task != "sudoku":
            raise InputError(f"weights {weights!r} are for the task {preset.task!r}, not for Sudoku")
    count = len(grids)
    found = Solved(
        np.zeros((count, 81), np.uint8),
        np.zeros(count, bool),
        np.zeros(count, np.int64),
        np.ones(count, np.int64),
        np.zeros((count, 81), np.uint8),
        np.zeros(count),
        np.zeros((max_steps, count, 81, 9), np.float32) if trace else None,
    )
    open_rows = np.arange(count)
    for start in range(1, restarts + 2):
        if not len(open_rows):
            break
        amount = noise if start > 1 else 0.0
        _one_start(network, grids, open_rows, found, max_steps, start, amount, seed, progress)
        if start == 1:
            found.first_grids[:] = found.grids
        open_rows = np.flatnonzero(~found.valid)
    return found


def _one_start(
    network: nn.Module,
    grids: np.ndarray,
    rows: np.ndarray,
    found: Solved,
    max_steps: int,
    start: int,
    noise: float,
    seed: int,
    progress: Callable[[int, int], Any],
) -> None:
    """One start for the puzzles in ``rows``: a part of them a thread, the noise the same however many threads."""
    workers = torch.get_num_threads()
    parts = [rows[low : low + PART] for low in range(0, len(rows), PART)]
    done = 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        progress(done, len(rows))

    def run(number: int) -> None:
        generator = torch.Generator().manual_seed((seed * 1009 + start) * 1_000_003 + number)
        with torch.inference_mode():
            if start == 1 and found.probabilities is None and quick.fits(network):
                of = parts[number]
                found.grids[of], found.valid[of], found.steps[of], found.confidence[of] = quick.solve_part(
                    network, grids[of], max_steps, report
                )
            else:
                _one_part(network, grids, parts[number], found, max_steps, start, noise, generator, report)

    if workers == 1 or len(parts) == 1:
        for number in range(len(parts)):
            run(number)
        return
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(run, range(len(parts))))
    finally:
        torch.set_num_threads(workers)


def answers_by_step(network: nn.Module, puzzles: np.ndarray, steps: int) -> np.ndarray:
    """The digits the network would put after every step from a clean start, never stopping: (steps, n, 81)."""
    with torch.inference_mode():
        outputs, _ = network({"puzzle": _tensor(puzzles)}, steps=steps)
        return _digit_probabilities(network, outputs, len(puzzles)).argmax(-1).numpy().astype(np.uint8) + 1


def _one_part(
    network: nn.Module,
    grids: np.ndarray,
    rows: np.ndarray,
    found: Solved,
    max_steps: int,
    start: int,
    noise: float,
    generator: torch.Generator,
    report: Callable[[int], None],
) -> None:
    """Solve the puzzles in ``rows``, some at a time; as soon as one is done, the next takes its place."""
    queue = list(rows[::-1])
    places = np.array([queue.pop() for _ in range(min(PLACES, len(rows)))])
    age = np.zeros(len(places), np.int64)
    state = _call(network, "start")(_tensor(grids[places]))
    while len(places):
        stride = min(STRIDE, int((max_steps - age).min()))
        if noise:
            state = _shake(network, state, (age % SHAKE_EVERY == 0) & (2 * age < max_steps), noise, generator)
        outputs, state = network({"puzzle": _tensor(grids[places])}, steps=stride, state=state)
        chances = _digit_probabilities(network, outputs, len(places))
        answers = chances.argmax(-1).numpy().astype(np.uint8) + 1  # (stride, places, 81)
        valid = np.stack([solves(answer, grids[places]) for answer in answers])
        won = np.asarray(valid.any(0))
        at = np.where(won, valid.argmax(0), stride - 1)
        here = np.arange(len(places))
        over = won | (age + stride >= max_steps)
        if found.probabilities is not None:
            for t in range(stride):
                found.probabilities[age + t, places] = chances[t].numpy()
            for place in np.flatnonzero(over):
                found.probabilities[age[place] + at[place] :, places[place]] = chances[at[place], place].numpy()
        final = places[over]
        improved = final if start == 1 else final[won[over]]
        kept = here[over] if start == 1 else here[over & won]
        found.grids[improved] = answers[at[kept], kept]
        found.valid[improved] = won[kept]
        found.steps[improved] = age[kept] + at[kept] + 1
        found.starts[final] = start
        found.confidence[improved] = _confidence(chances[at[kept], kept].numpy(), grids[improved])
        age += stride
        report(int(over.sum()))
        state, places, age = _refill(network, grids, queue, state, places, age, over)


def _refill(
    network: nn.Module,
    grids: np.ndarray,
    queue: list[int],
    state: State,
    places: np.ndarray,
    age: np.ndarray,
    over: np.ndarray,
) -> tuple[State, np.ndarray, np.ndarray]:
    """The next puzzles of the queue in the places of those that are over; when it is empty, fewer places."""
    finished = np.flatnonzero(over)
    fresh = np.array([queue.pop() for _ in range(min(len(finished), len(queue)))], dtype=np.int64)
    parts = [part.view(len(over), -1, part.shape[-1]) for part in (state.h, *state.memory)]
    if len(fresh):
        taken = finished[: len(fresh)]
        begun = _call(network, "start")(_tensor(grids[fresh]))
        for part, new in zip(parts, (begun.h, *begun.memory), strict=True):
            part[taken] = new.view(len(fresh), -1, new.shape[-1])
        places[taken], age[taken], over[taken] = fresh, 0, False
    if over.any():
        parts = [part[torch.from_numpy(~over)] for part in parts]
        places, age = places[~over], age[~over]
    flat = [part.flatten(0, 1) for part in parts]
    return State(flat[0], tuple(flat[1:])), places, age


def _shake(network: nn.Module, state: State, which: np.ndarray, noise: float, generator: torch.Generator) -> State:
    """The state with noise on some of its puzzles."""
    if not which.any():
        return state
    shaken = _call(network, "shaken")(state, noise, generator)

    def choose(new: Tensor, old: Tensor) -> Tensor:
        rows = torch.from_numpy(which).repeat_interleave(len(old) // len(which))[:, None]
        return torch.where(rows, new, old)

    memory = tuple(choose(new, old) for new, old in zip(shaken.memory, state.memory, strict=True))
    return State(choose(shaken.h, state.h), memory)


def _call(network: nn.Module, method: str) -> Callable[..., State]:
    return getattr(network, method)


def _tensor(grids: np.ndarray) -> Tensor:
    return torch.from_numpy(grids).long()


def _digit_probabilities(network: nn.Module, outputs: Tensor, puzzles: int) -> Tensor:
    """(steps, puzzles, 81, 9)."""
    digits = outputs[..., int(network.first_digit) :]  # type: ignore[arg-type]
    return digits.softmax(-1).view(len(outputs), puzzles, 81, 9)


def _confidence(chances: np.ndarray, puzzles: np.ndarray) -> np.ndarray:
    empty = puzzles == 0
    return (chances.max(-1) * empty).sum(1) / np.maximum(empty.sum(1), 1)


def _as_puzzles(puzzles: Any) -> np.ndarray:
    from rrn.tasks.sudoku.files import parse_puzzle

    if isinstance(puzzles, str):
        puzzles = [puzzles]
    if isinstance(puzzles, list | tuple) and puzzles and isinstance(puzzles[0], str):
        return np.stack([parse_puzzle(text, f"puzzle {number}") for number, text in enumerate(puzzles, 1)])
    grids = as_grids(puzzles)
    clashing = clashes(grids).any(1)
    if clashing.any():
        raise InputError(f"puzzle {int(clashing.argmax()) + 1}: two of its givens clash")
    return grids
