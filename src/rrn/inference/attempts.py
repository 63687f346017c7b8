"""The loop over slots: problems run until they are solved or out of steps, in one or several attempts each.

A slot is a position of the running batch. It holds one problem and its rows of the state. Some problems need three
steps, others a hundred: a finished problem frees its slot for the next one, which enters with its initial state.

The first attempt runs from the initial state. Further attempts add noise on the way, so that they end differently; all
further attempts of a problem run side by side, and the first that solves it ends the others.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.inference.result import Result, Status
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.inference.search import BestFirstSearch
    from rrn.training.tying import Ties

STRIDE = 8
"""Steps between two checks of the answers."""
NOISE = 0.3
"""Standard deviation of the noise of further attempts."""
NOISE_EVERY = 8
"""Steps between two additions of noise. The second half of an attempt has none, so that it can converge."""

AddNoise = Callable[[State, Tensor, torch.Generator | None], State]
"""Adds noise of a standard deviation (rows, 1) to a state, as `rrn.nn.updates.Update.add_noise` does."""


class Slots(NamedTuple):
    """The contents of the slots of a running batch.

    Attributes:
        problems: (slots,) the number of the problem in each slot.
        attempts: (slots,) the attempt at that problem, counted from 1.
        rows: (slots,) how many rows of the state belong to the slot.
        age: (slots,) the steps of this attempt so far.
        state: its rows are in the order of the slots.
    """

    problems: Tensor
    attempts: Tensor
    rows: Tensor
    age: Tensor
    state: State

    @classmethod
    def enter(cls, problems: Tensor, rows: Tensor, state: State, attempts: Tensor | None = None) -> "Slots":
        """Slots of problems that have had no step yet."""
        attempts = torch.ones_like(problems) if attempts is None else attempts
        return cls(problems, attempts, rows, torch.zeros_like(problems), state)

    def columns(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All but the state: a row per slot each."""
        return self.problems, self.attempts, self.rows, self.age

    def entries(self) -> list[tuple[int, int]]:
        """The problem and the attempt in each slot."""
        return list(zip(self.problems.tolist(), self.attempts.tolist(), strict=True))

    def advance(self, state: State, steps: int) -> "Slots":
        """The slots after some steps."""
        return self._replace(state=state, age=self.age + steps)

    def release(self, done: Tensor) -> "Slots":
        """The slots without those that are done, (slots,) bool."""
        if not bool(done.any()):
            return self
        rows = (~done).repeat_interleave(self.rows).nonzero()[:, 0].to(self.state.h.device)
        problems, attempts, counts, age = (column[~done] for column in self.columns())
        return Slots(problems, attempts, counts, age, self.state.map(lambda part: part.index_select(0, rows)))

    def join(self, others: "Slots") -> "Slots":
        """The slots, followed by others."""
        both_columns = zip(self.columns(), others.columns(), strict=True)
        problems, attempts, rows, age = (torch.cat(both) for both in both_columns)
        state = State.of(torch.cat(both) for both in zip(self.state.parts(), others.state.parts(), strict=True))
        return Slots(problems, attempts, rows, age, state)

    def with_noise(self, add_noise: AddNoise, amount: Tensor, generator: torch.Generator | None = None) -> "Slots":
        """The slots with noise of a standard deviation (slots,) added to their states."""
        noise = amount.repeat_interleave(self.rows)[:, None].to(self.state.h)
        return self._replace(state=add_noise(self.state, noise, generator))


class RecurrentNetwork(nn.Module, ABC):
    """A network that can resume from a per-problem state. A batch is tensors by name, one row per problem."""

    first_class = 0
    """The first class that is a candidate. Where it is 1, class 0 means "none of them"."""
    keeps_device = True
    """Batches are moved to the network's device by the caller: see `rrn.inference.devices`."""

    @property
    def device(self) -> torch.device:
        """The device of its weights; the CPU if it has none."""
        return next((weight.device for weight in self.parameters()), torch.device("cpu"))

    def prepare(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The batch with everything derived from its problems alone, computed once."""
        return batch

    def rows(self, batch: dict[str, Tensor]) -> Tensor:
        """How many rows of the state each problem has: (n,)."""
        first = next(iter(batch.values()))
        return first.new_ones(len(first), dtype=torch.long)

    @abstractmethod
    def initial_state(self, batch: dict[str, Tensor]) -> State:
        """The state before the first step."""

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        """The state with noise of a standard deviation (rows, 1) added."""
        return state

    def ties(self) -> list["Ties"]:
        """Which of its weights training keeps equal: see `rrn.training.tying`."""
        return []

    def tie_weights(self) -> None:
        """Initialise the weights so that those of `ties` are equal."""
        for tied in self.ties():
            tied.share()

    def widened(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Weights of a network of this class that may be narrower, widened to this one's size."""
        return weights


Callback = Callable[[Slots, Any], None]
"""Called after every stride with the slots before it and its outputs."""


class Problems(ABC):
    """Problems, numbered from 0, and the network that runs on some of them at a time."""

    search: "BestFirstSearch | None" = None
    """Search policy, or None."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def enter(self, problems: Tensor) -> tuple[Tensor, State]:
        """The rows of the state of each of these problems, and their initial state."""

    @abstractmethod
    def run(self, slots: Slots, steps: int) -> tuple[Any, State]:
        """The outputs of some steps and the state after them."""

    @abstractmethod
    def finished(self, slots: Slots, outputs: Any) -> Tensor:
        """Whether the stopping rule accepts the answer in each slot after each of these steps: (steps, slots)."""

    @abstractmethod
    def answer(self, slots: Slots, outputs: Any, slot: int, step: int) -> Any:
        """The answer in a slot after one of these steps."""

    @abstractmethod
    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None) -> State:
        """The state with noise of a standard deviation (rows, 1) added."""

    def confidence(self, answers: list[Any]) -> np.ndarray:
        """Mean probability of the predicted values of the answers to all problems: (n,)."""
        return np.ones(len(answers))

    def diagnose(self, problem: int) -> tuple[Status, str]:
        """Why the first attempt may have failed: the status if no attempt succeeds, and a message.

        `Status.IMPOSSIBLE` ends the attempts at once.
        """
        return Status.UNSOLVED, ""


class Recorder:
    """Callback that records a transform of the outputs of every step of every attempt."""

    def __init__(self, transform: Callable[[Any], Tensor]) -> None:
        self.transform = transform
        self.parts: dict[tuple[int, int], list[Tensor]] = {}

    def __call__(self, slots: Slots, outputs: Any) -> None:
        values = self.transform(outputs)
        for slot, key in enumerate(slots.entries()):
            self.parts.setdefault(key, []).append(values[:, slot])

    def of(self, problem: int, attempt: int, steps: int) -> np.ndarray:
        """What was recorded in the first steps of an attempt: (steps, …)."""
        return torch.cat(self.parts[problem, attempt])[:steps].float().cpu().numpy()


def run_attempts(
    problems: Problems,
    *,
    max_steps: int,
    attempts: int = 1,
    noise: float = NOISE,
    slots: int | None = None,
    generator: torch.Generator | None = None,
    progress: Callable[[int], None] = lambda count: None,
    callback: Callback | None = None,
    record: Callable[[Any], Tensor] | None = None,
) -> Result:
    """Run all problems, at most ``slots`` at a time, until each is solved or has had all its attempts.

    Args:
        problems: what to solve.
        max_steps: steps of one attempt.
        attempts: how many attempts a problem gets.
        noise: standard deviation of the noise of further attempts.
        slots: size of the running batch; by default all problems at once.
        generator: random generator of the noise.
        progress: called with 1 whenever a problem is done.
        callback: called after every stride.
        record: transform of the outputs to record at every step of the attempt that is returned.
    """
    for name, value in (("max_steps", max_steps), ("attempts", attempts), ("slots", 1 if slots is None else slots)):
        if value < 1:
            raise InputError(f"{name}: expected at least 1, got {value}")
    count, search = len(problems), problems.search
    stride = STRIDE if search is None else search.stride
    recorder = None if record is None else Recorder(record)
    callbacks = [call for call in (recorder, callback) if call is not None]
    found = _Found(problems, attempts)
    waiting = deque((problem, 1) for problem in range(count))
    running: Slots | None = None
    while True:
        free = max(slots or count, attempts - 1) - (0 if running is None else len(running.problems))
        entering = _next(waiting, free, found.done)
        if entering:
            numbers, attempt_numbers = torch.tensor(entering, device="cpu").T
            new = Slots.enter(numbers, *problems.enter(numbers), attempt_numbers)
            running = new if running is None else running.join(new)
        if running is None or not len(running.problems):
            return found.result(recorder)
        if search is not None:
            running = search.assign(running)
        steps = min(stride, max_steps - int(running.age.max()))
        if noise and bool((running.attempts > 1).any()):
            dose = (running.attempts > 1) & (running.age % NOISE_EVERY == 0) & (2 * running.age < max_steps)
            dose = dose & search.accepts_noise(running) if search is not None else dose
            running = running.with_noise(problems.add_noise, noise * dose, generator)
        outputs, state = problems.run(running, steps)
        finished = problems.finished(running, outputs)
        for call in callbacks:
            call(running, outputs)
        solved = finished.any(0)
        at = torch.where(solved, finished.int().argmax(0), steps - 1)
        over = solved | (running.age + steps >= max_steps)
        for slot in over.nonzero()[:, 0].tolist():
            problem, attempt = int(running.problems[slot]), int(running.attempts[slot])
            if found.done[problem]:
                continue
            ended, step = bool(solved[slot]), int(at[slot])
            if attempt == 1 or ended:
                answer = problems.answer(running, outputs, slot, step)
                found.add(problem, attempt, answer, int(running.age[slot]) + step + 1, ended)
            if found.end_attempt(problem, attempt, ended):
                waiting.extendleft((problem, further) for further in range(attempts, 1, -1))
            if found.done[problem]:
                progress(1)
                if search is not None:
                    search.close(problem)
        running = running.advance(state, steps).release(over | found.done[running.problems])


class _Found:
    """What is known of each problem so far."""

    def __init__(self, problems: Problems, attempts: int) -> None:
        count = len(problems)
        self.problems, self.attempts = problems, attempts
        self.done = torch.zeros(count, dtype=torch.bool, device="cpu")
        self.left = [1] * count  # attempts of each problem that have not ended
        self.status, self.message = [Status.UNSOLVED] * count, [""] * count
        self.answers: list[Any] = [None] * count
        self.first_answers: list[Any] = [None] * count
        self.steps, self.attempt = np.zeros(count, np.int64), np.ones(count, np.int64)

    def add(self, problem: int, attempt: int, answer: Any, steps: int, solved: bool) -> None:
        self.answers[problem], self.steps[problem] = answer, steps
        if attempt == 1:
            self.first_answers[problem] = answer
        if solved:
            self.status[problem], self.message[problem] = Status.SOLVED, ""

    def end_attempt(self, problem: int, attempt: int, solved: bool) -> bool:
        """Count an attempt as ended; whether further attempts begin."""
        self.left[problem] -= 1
        self.attempt[problem] = attempt if solved else max(attempt, int(self.attempt[problem]))
        further = False
        if attempt == 1 and not solved:
            self.status[problem], self.message[problem] = self.problems.diagnose(problem)
            further = self.attempts > 1 and self.status[problem] is not Status.IMPOSSIBLE
            self.left[problem] += self.attempts - 1 if further else 0
        self.done[problem] = solved or not self.left[problem]
        return further

    def result(self, recorder: Recorder | None) -> Result:
        recorded = None
        if recorder is not None:
            shown = np.where([status is Status.SOLVED for status in self.status], self.attempt, 1)
            keys = zip(range(len(shown)), shown.tolist(), self.steps.tolist(), strict=True)
            recorded = [recorder.of(*key) for key in keys]
        return Result(
            self.status,
            self.answers,
            self.steps,
            self.attempt,
            self.problems.confidence(self.answers),
            self.message,
            recorded,
            {"first_answers": self.first_answers},
        )


def _next(waiting: deque[tuple[int, int]], free: int, done: Tensor) -> list[tuple[int, int]]:
    """The next problems and attempts in the queue, one for each free slot, without problems that are done."""
    entering: list[tuple[int, int]] = []
    while waiting and len(entering) < free:
        problem, attempt = waiting.popleft()
        if not done[problem]:
            entering.append((problem, attempt))
    return entering
