"""The loop over slots: problems run until they are solved or out of steps, in one or several attempts each.

A slot is a position of the running batch. It holds one problem and its rows of the state. Some problems need three
steps, others a hundred: a finished problem frees its slot for the next one, which enters with its initial state.

The first attempt runs from the initial state. Further attempts add noise on the way, so that they end differently; all
further attempts of a problem run side by side, and the first that solves it ends the others.
"""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
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
        return self.select(~done) if bool(done.any()) else self

    def select(self, chosen: Tensor) -> "Slots":
        """Some of the slots, (slots,) bool."""
        rows = chosen.repeat_interleave(self.rows).nonzero()[:, 0].to(self.state.h.device)
        problems, attempts, counts, age = (column[chosen] for column in self.columns())
        return Slots(problems, attempts, counts, age, self.state.select(rows))

    def join(self, others: "Slots") -> "Slots":
        """The slots, followed by others."""
        both_columns = zip(self.columns(), others.columns(), strict=True)
        problems, attempts, rows, age = (torch.cat(both) for both in both_columns)
        return Slots(problems, attempts, rows, age, self.state.join(others.state))

    def with_noise(
        self,
        add_noise: AddNoise,
        amount: Tensor,
        generator: torch.Generator | None = None,
        chosen: Tensor | None = None,
    ) -> "Slots":
        """The slots with noise of a standard deviation (slots,) added to the states of the ``chosen``, by default all.

        Slots that are not chosen draw no random numbers.
        """
        noise = amount.repeat_interleave(self.rows)[:, None].to(self.state.h)
        if chosen is None or bool(chosen.all()):
            return self._replace(state=add_noise(self.state, noise, generator))
        rows = chosen.repeat_interleave(self.rows).nonzero()[:, 0].to(noise.device)
        noisy = add_noise(self.state.select(rows), noise[rows], generator)
        pairs = zip(self.state.parts(), noisy.parts(), strict=True)
        return self._replace(state=State.of(part.index_copy(0, rows, new) for part, new in pairs))


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
    best_of_attempts = False
    """Whether all attempts are made and the answer with the best `objective` counts, not the first one accepted."""

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

    def objective(self, problem: int, answer: Any) -> float:
        """How good an accepted answer is."""
        return 0.0

    def diagnose(self, problem: int) -> tuple[Status, str]:
        """Why the first attempt may have failed: the status if no attempt succeeds, and a message.

        `Status.IMPOSSIBLE` ends the attempts at once.
        """
        return Status.UNSOLVED, ""

    def batch_key(self) -> Hashable:
        """Problems with equal keys can be in one running batch of `rrn.inference.Service`."""
        return self

    def empty(self) -> "Problems":
        """No problems, with the same key."""
        return self

    def put(self, number: int, others: "Problems", row: int) -> None:
        """Let a problem of others with the same key replace the problem ``number``, or be the next one."""
        return


@dataclass(eq=False)
class Trial:
    """The attempts at one problem and their result so far.

    Attributes:
        problems, number: the problem.
        max_steps: steps of one attempt.
        attempts: how many attempts the problem gets.
        generator: random generator of the noise. Trials may share one.
        record: transform of the recorded outputs of an attempt, (steps, …). None: nothing is recorded.
        spent: steps of all its attempts so far.
        left: attempts that have not ended.
        attempt: the attempt that solved the problem; until then, the last that ended.
    """

    problems: Problems
    number: int
    max_steps: int
    attempts: int
    generator: torch.Generator | None = None
    record: Callable[[Tensor], Tensor] | None = None
    spent: int = 0
    best: float = -math.inf
    left: int = 1
    done: bool = False
    status: Status = Status.UNSOLVED
    message: str = ""
    answer: Any = None
    first_answer: Any = None
    steps: int = 0
    attempt: int = 1
    recorded: dict[int, list[Tensor]] = field(default_factory=dict)

    def offer(self, attempt: int, answer: Any, steps: int, solved: bool) -> None:
        """Remember the answer of an attempt that ended, if it is the first or better than those before."""
        if attempt == 1:
            self.first_answer = answer
        if solved and self.problems.best_of_attempts:
            value = self.problems.objective(self.number, answer)
            if value <= self.best:
                return
            self.best = value
        self.answer, self.steps = answer, steps
        if solved:
            self.status, self.message, self.attempt = Status.SOLVED, "", attempt

    def end_attempt(self, attempt: int, solved: bool) -> bool:
        """Count an attempt as ended; whether further attempts begin."""
        self.left -= 1
        if self.status is not Status.SOLVED:
            self.attempt = max(attempt, self.attempt)
        further, enough = False, solved and not self.problems.best_of_attempts
        if attempt == 1 and not enough:
            if not solved:
                self.status, self.message = self.problems.diagnose(self.number)
            further = self.attempts > 1 and self.status is not Status.IMPOSSIBLE
            self.left += self.attempts - 1 if further else 0
        self.done = enough or not self.left
        return further

    def recording(self) -> np.ndarray:
        """What was recorded in the attempt that is returned: (steps, …)."""
        shown = self.attempt if self.status is Status.SOLVED else 1
        assert self.record is not None
        return self.record(torch.cat(self.recorded[shown])[: self.steps]).float().cpu().numpy()


def result_of(problems: Problems, trials: list[Trial]) -> Result:
    """The result of the trials of all problems."""
    answers = [trial.answer for trial in trials]
    return Result(
        [trial.status for trial in trials],
        answers,
        np.array([trial.steps for trial in trials], np.int64),
        np.array([trial.attempt for trial in trials], np.int64),
        problems.confidence(answers),
        [trial.message for trial in trials],
        [trial.recording() for trial in trials] if trials and trials[0].record else None,
        {"first_answers": [trial.first_answer for trial in trials]},
    )


class AttemptLoop:
    """Trials of problems in slots. Problems may be added between strides."""

    restricted = False
    """Whether `fill` may have to pause some attempts."""

    def __init__(self, problems: Problems, noise: float = NOISE, callback: Callback | None = None) -> None:
        self.problems, self.noise, self.callback = problems, noise, callback
        self.trials: dict[int, Trial] = {}
        """The trials that are not done, by the number of the problem."""
        self.waiting: deque[tuple[int, int]] = deque()
        """Problems and attempts without a slot."""
        self.running: Slots | None = None
        self.paused: Slots | None = None
        self.stride = STRIDE if problems.search is None else problems.search.stride

    def add(self, problem: int, trial: Trial) -> None:
        self.trials[problem] = trial
        self.waiting.append((problem, 1))

    def fill(self, slots: int) -> None:
        """Let waiting attempts enter, at most ``slots`` at a time, in the order of the queue."""
        free = slots - (0 if self.running is None else len(self.running.problems))
        entering: list[tuple[int, int]] = []
        while self.waiting and len(entering) < free:
            entry = self.waiting.popleft()
            if entry[0] in self.trials:
                entering.append(entry)
        self.enter(entering)

    def enter(self, entries: list[tuple[int, int]]) -> None:
        """Put problems and attempts into new slots."""
        if entries:
            numbers, attempts = torch.tensor(entries, device="cpu").T
            new = Slots.enter(numbers, *self.problems.enter(numbers), attempts)
            self.running = new if self.running is None else self.running.join(new)

    def advance(self, slots: int) -> list[int]:
        """Fill free slots and run one stride. Returns the problems whose trial is done."""
        if self.waiting or self.paused is not None or self.restricted:
            self.fill(slots)
        if self.running is None or not len(self.running.problems):
            return []
        search = self.problems.search
        trials = [self.trials[problem] for problem in self.running.problems.tolist()]
        limits = torch.tensor([trial.max_steps for trial in trials], device="cpu")
        running = self._with_noise(self.running if search is None else search.assign(self.running), trials, limits)
        steps = min(self.stride, int((limits - running.age).min()))
        outputs, state = self.problems.run(running, steps)
        finished = self.problems.finished(running, outputs)
        self._record(running, trials, outputs)
        solved = finished.any(0)
        at = torch.where(solved, finished.int().argmax(0), steps - 1)
        over, done = solved | (running.age + steps >= limits), []
        for slot in over.nonzero()[:, 0].tolist():
            problem, attempt, trial = int(running.problems[slot]), int(running.attempts[slot]), trials[slot]
            if trial.done:
                continue
            ended, step = bool(solved[slot]), int(at[slot])
            if attempt == 1 or ended:
                answer = self.problems.answer(running, outputs, slot, step)
                trial.offer(attempt, answer, int(running.age[slot]) + step + 1, ended)
            if trial.end_attempt(attempt, ended):
                self.waiting.extendleft((problem, further) for further in range(trial.attempts, 1, -1))
            if trial.done:
                done.append(problem)
        self.running = running.advance(state, steps).release(over)
        for problem in done:
            self.drop(problem)
        return done

    def drop(self, problem: int) -> None:
        """Forget a problem: its trial is done, or its result is no longer wanted."""
        del self.trials[problem]
        for name in ("running", "paused"):
            slots = getattr(self, name)
            if slots is not None and len(slots.problems):
                setattr(self, name, slots.release(slots.problems == problem))
        if self.problems.search is not None:
            self.problems.search.close(problem)

    def _with_noise(self, running: Slots, trials: list[Trial], limits: Tensor) -> Slots:
        further = running.attempts > 1
        if not self.noise or not bool(further.any()):
            return running
        dose = further & (running.age % NOISE_EVERY == 0) & (2 * running.age < limits)
        if self.problems.search is not None:
            dose = dose & self.problems.search.accepts_noise(running)
        for generator in {id(trial.generator): trial.generator for trial in trials}.values():
            mine = torch.tensor([trial.generator is generator for trial in trials], device="cpu")
            running = running.with_noise(self.problems.add_noise, self.noise * dose, generator, mine)
        return running

    def _record(self, running: Slots, trials: list[Trial], outputs: Any) -> None:
        """Count the steps and record the outputs of the slots; call the callback."""
        for slot, (trial, attempt) in enumerate(zip(trials, running.attempts.tolist(), strict=True)):
            trial.spent += self.stride
            if trial.record is not None:
                trial.recorded.setdefault(attempt, []).append(outputs[:, slot].clone())  # not all slots
        if self.callback is not None:
            self.callback(running, outputs)


def run_attempts(
    problems: Problems,
    *,
    max_steps: int,
    attempts: int = 1,
    noise: float = NOISE,
    slots: int | None = None,
    generator: torch.Generator | None = None,
    progress: Callable[[int], None] | None = None,
    callback: Callback | None = None,
    record: Callable[[Tensor], Tensor] | None = None,
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
        record: record the outputs of the attempt that is returned; their transform, (steps, …) → (steps, …).
    """
    for name, value in (("max_steps", max_steps), ("attempts", attempts), ("slots", 1 if slots is None else slots)):
        if value < 1:
            raise InputError(f"{name}: expected at least 1, got {value}")
    loop = AttemptLoop(problems, noise, callback)
    trials = [Trial(problems, row, max_steps, attempts, generator, record) for row in range(len(problems))]
    for problem, trial in enumerate(trials):
        loop.add(problem, trial)
    while loop.trials:
        done = loop.advance(max(slots or len(trials), attempts - 1))
        if progress is not None:
            for _ in done:
                progress(1)
    return result_of(problems, trials)
