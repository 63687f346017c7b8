"""Search policies for problems of candidates: which part of a problem the network works on next.

*Best-first search*, for networks that detect contradictions. Exactly one candidate of every cell is true. The network
predicts the probability of each candidate, and the probability that none is true, which means that an earlier guess was
wrong. A guess splits a branch in two: in one the candidate is true, and everything it excludes leaves the graph; in the
other the candidate is ruled out. The priority of a branch is the predicted probability of its guesses, times the odds
that the branch is possible. The branch with the highest priority is next: the network evaluates it for some steps, or
it is split. All attempts at a problem share its branches.

*Committing*, for problems with many solutions, where a network alone does not decide for one of them. After some steps
the candidate with the highest predicted probability becomes true, preferably in a cell with few options. Everything
that follows from it by the rules is decided, and the network runs on what is left. If a group can no longer be met, the
least sure of the latest choices is taken back: its candidate is ruled out instead.
"""

import heapq
import math
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rrn.inference.attempts import Slots
from rrn.inference.rules import CandidateLayout, Prediction, propagate
from rrn.nn.updates import State

FIRST_SPLIT, FURTHER_SPLIT, NOISY_ATTEMPTS = 48, 64, 8
"""Steps before the first split: of the first attempt, and of further attempts up to the given number, which noise may
solve before. Attempts beyond that join the search at once."""
EVALUATION_STEPS = 4
"""Steps in which a branch is evaluated before the next decision."""
DECIDED_ENTROPY = 0.1
"""Cells with an entropy below this, in nats, are split last: they carry little information."""
STALLED = 0.9
"""A branch is stalled, and may be split, when an evaluation leaves at least this share of its entropy."""
CERTAIN_LOGIT = 20.0
"""Logit of candidates known to be true; those known to be false have its negative."""
LEAST_PROBABILITY = 0.05
"""Predicted probabilities of a guess are clamped to this distance from 0 and 1."""
FIRST_COMMIT = 32
"""Steps before the first choice: problems with one solution are often solved by then."""
COMMIT_STEPS = 8
"""Steps between two choices."""
SURE = 0.9
"""Candidates with a higher predicted probability are fixed together with the surest one."""
FEW_OPTIONS = 3.0
"""Weight of the logarithm of the number of open candidates of a cell: cells with few of them are decided first."""
CHOICE_NOISE = 0.5
"""Scale of the Gumbel noise that attempts after the first add to log probabilities."""
DEPTH_BONUS = 0.5
"""What a later choice is preferred by when one is taken back, per choice between, in nats."""


class Branch(NamedTuple):
    """A set of guesses: the candidates that are still open, and those given or guessed to be true.

    Attributes:
        open: (candidates,) bool.
        true: (candidates,) bool.
        log_probability: of its guesses, predicted when they were made.
        log_odds: that the branch is possible, predicted for it or, until it is evaluated, for its parent.
        state_open: the candidates that were open when the network was in ``state``: a superset of ``open``.
        prediction: of the last evaluation; None before the first.
    """

    open: Tensor
    true: Tensor
    log_probability: float = 0.0
    log_odds: float = 0.0
    state_open: Tensor | None = None
    state: State | None = None
    prediction: Prediction | None = None


class Visit(NamedTuple):
    """The branch that an attempt evaluates, and its entropy after the last evaluation."""

    branch: Branch
    entropy: float = math.inf


class BranchQueue:
    """The branches of one problem that wait to be evaluated or split, by priority.

    The first attempt that is stalled at the ``root``, the whole problem, splits it; all others take waiting branches.
    """

    def __init__(self, layout: CandidateLayout, open_: Tensor, true: Tensor) -> None:
        self.layout = layout
        self.root = Branch(open_, true)
        self.begun = False
        self.waiting: list[tuple[float, int, Branch]] = []
        self.pushed = 0

    def next(self, visit: Visit, state: State, logits: Tensor) -> tuple[Visit, State | None]:
        """The next visit and its state, after an evaluation with logits (candidates,).

        The state is None for the initial state of the whole problem, if no branch is left.
        """
        if not (self.begun and visit.branch is self.root):
            prediction = self.layout.predict(visit.branch.open, logits)
            entropy = float(prediction.entropy.sum())
            if entropy < STALLED * visit.entropy:
                return visit._replace(entropy=entropy), state
            undecided = prediction.options > 0
            odds = float(prediction.log_odds[undecided].median()) if bool(undecided.any()) else 0.0
            self.begun = True
            copied = state.map(torch.clone)  # a view would keep the states of other slots in memory
            self._push(
                visit.branch._replace(log_odds=odds, state_open=visit.branch.open, state=copied, prediction=prediction)
            )
        while self.waiting:
            branch = heapq.heappop(self.waiting)[2]
            if branch.prediction is None:
                assert branch.state_open is not None
                assert branch.state is not None
                rows = branch.open[branch.state_open]
                return Visit(branch, 0.0), branch.state.map(lambda part, rows=rows: part[rows])  # type: ignore[misc]
            self._split(branch, branch.prediction)
        return Visit(self.root), state if visit.branch is self.root else None

    def put_back(self, visit: Visit) -> None:
        """Return the branch of an attempt that is over."""
        if visit.branch is not self.root:
            self._push(visit.branch)

    def _push(self, branch: Branch) -> None:
        self.pushed += 1  # breaks ties in order of arrival
        heapq.heappush(self.waiting, (-branch.log_probability - branch.log_odds, self.pushed, branch))

    def _split(self, branch: Branch, prediction: Prediction) -> None:
        guess = choose_guess(self.layout, prediction)
        if guess is None:
            return
        candidate, probability = guess
        itself = torch.zeros_like(branch.true)
        itself[candidate] = True
        excluded = self.layout.excluded_by(branch.true | itself)
        for removed, true, share in (
            (excluded, branch.true | itself, probability),
            (itself, branch.true, 1 - probability),
        ):
            open_ = branch.open & ~removed
            if self.layout.possible(open_ | true):
                log_probability = branch.log_probability + math.log(share)
                self._push(branch._replace(open=open_, true=true, log_probability=log_probability, prediction=None))


def choose_guess(layout: CandidateLayout, prediction: Prediction) -> tuple[int, float] | None:
    """The most probable candidate of the least uncertain cell, and its probability; None if all cells are decided."""
    undecided = prediction.options > 1
    if not bool(undecided.any()):
        return None
    entropy = torch.where(prediction.entropy < DECIDED_ENTROPY, prediction.entropy + 10.0, prediction.entropy)
    cell = int(torch.where(undecided, entropy, float("inf")).argmin())
    probability, candidate = torch.where(layout.index[:, 0] == cell, prediction.probability, -1.0).max(0)
    return int(candidate), min(max(float(probability), LEAST_PROBABILITY), 1 - LEAST_PROBABILITY)


class BestFirstSearch:
    """The search policy of `rrn.inference.attempts`: assigns branches of the problems to slots.

    Args:
        queue_of: makes the queue of a problem from its number and the attempt.
        initial_state: of a problem, from its number.
    """

    stride = EVALUATION_STEPS
    shared = True
    """Whether all attempts at a problem share its branches."""

    def __init__(
        self, queue_of: "Callable[[int, int], BranchQueue | CommitQueue]", initial_state: Callable[[int], State]
    ) -> None:
        self.queue_of, self.initial_state = queue_of, initial_state
        self.queues: dict[tuple[int, int], BranchQueue | CommitQueue] = {}
        self.visits: dict[tuple[int, int], Visit] = {}
        self.logits: dict[tuple[int, int], Tensor] = {}
        self.running: list[tuple[int, int]] = []
        self.paused: Collection[tuple[int, int]] = ()
        """Problems and attempts that have no slot for some strides; they keep their branch."""

    def first_split(self, attempt: int) -> int:
        """The steps of an attempt before its first split."""
        return FIRST_SPLIT if attempt == 1 else FURTHER_SPLIT if attempt <= NOISY_ATTEMPTS else EVALUATION_STEPS

    def _key(self, problem: int, attempt: int) -> tuple[int, int]:
        return problem, 0 if self.shared else attempt

    def branches(self, slots: Slots) -> list[Branch]:
        """The branch of each slot."""
        self.running = slots.entries()
        for problem, attempt in self.running:
            key = self._key(problem, attempt)
            if key not in self.queues:
                self.queues[key] = self.queue_of(problem, attempt)
            self.visits.setdefault((problem, attempt), Visit(self.queues[key].root))
        return [self.visits[key].branch for key in self.running]

    def observe(self, logits: Iterable[Tensor]) -> None:
        """Remember the last logits of all candidates of the problem in each slot that `branches` had."""
        paused = {key: self.logits[key] for key in self.paused if key in self.logits}
        self.logits = paused | dict(zip(self.running, logits, strict=True))

    def assign(self, slots: Slots) -> Slots:
        """The slots with the branches to evaluate next. Called before every stride."""
        if not self.visits:
            return slots
        keys, states = slots.entries(), []
        for key in [key for key in self.visits if key not in keys and key not in self.paused]:
            visit = self.visits.pop(key)
            if self._key(*key) in self.queues:
                self.queues[self._key(*key)].put_back(visit)
        parts = zip(*(part.split(slots.rows.tolist()) for part in slots.state.parts()), strict=True)
        for key, age, part in zip(keys, slots.age.tolist(), parts, strict=True):
            state: State | None = State.of(part)
            if age >= self.first_split(key[1]):
                queue = self.queues[self._key(*key)]
                self.visits[key], state = queue.next(self.visits[key], State.of(part), self.logits[key])
            states.append(self.initial_state(key[0]) if state is None else state)
        rows = torch.tensor([len(state.h) for state in states], device="cpu")
        return slots._replace(rows=rows, state=states[0].join(*states[1:]))

    def accepts_noise(self, slots: Slots) -> Tensor:
        """Whether noise may be added to each slot, (slots,) bool: only before its first split."""
        visits = [self.visits.get(key) for key in slots.entries()]
        return torch.tensor([visit is None or visit.branch.state_open is None for visit in visits], device="cpu")

    def close(self, problem: int) -> None:
        """Forget a problem that is done."""
        for key in [key for key in self.queues if key[0] == problem]:
            del self.queues[key]
        self.visits = {key: visit for key, visit in self.visits.items() if key[0] != problem}


class CommitQueue:
    """The choices of one attempt at a problem, and the alternatives to them.

    Args:
        layout: candidates and groups.
        open_, true: (candidates,) bool, at the start.
        initial_state: of the whole problem.
        decides: whether logits are those of one true candidate per cell; otherwise of each candidate alone.
        noise: scale of the Gumbel noise on log probabilities.
        preferences: (candidates,), added to log probabilities; or None.
        rng: random generator of the noise.
    """

    def __init__(
        self,
        layout: CandidateLayout,
        open_: Tensor,
        true: Tensor,
        initial_state: Callable[[], State],
        *,
        decides: bool = True,
        noise: float = 0.0,
        preferences: np.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.layout, self.initial_state, self.decides = layout, initial_state, decides
        self.noise, self.preferences, self.rng = noise, preferences, rng or np.random.default_rng(0)
        self.root = Branch(open_, true)
        self.waiting: list[tuple[float, int, np.ndarray, np.ndarray, int]] = []
        self.pushed = 0
        self.choices = 0

    def next(self, visit: Visit, state: State, logits: Tensor) -> tuple[Visit, State | None]:
        """As `BranchQueue.next`; every visit is to a new branch."""
        before = visit.branch
        found = self._commit(before, logits)
        reached = state
        if found is None:
            found = self._take_back()
            reached = self.initial_state()
        if found is None:  # nothing is left to try: the problem has no solution
            return Visit(self.root), state if before is self.root else None
        open_, true = (torch.from_numpy(part) for part in found)
        rows = open_[before.open if reached is state else self.root.open]
        return Visit(Branch(open_, true, state_open=open_)), reached.map(lambda part: part[rows])

    def put_back(self, visit: Visit) -> None:
        """Attempts share no branches."""

    def scores(self, branch: Branch, logits: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """The probability of each candidate, and its score: the candidate with the largest one is fixed first."""
        if self.decides:
            probability = self.layout.predict(branch.open, logits).probability.double().numpy()
        else:
            probability = logits.double().sigmoid().numpy()
        score = np.log(probability.clip(1e-9, 1 - 1e-9))
        if self.preferences is not None:
            score = score + self.preferences
        elif self.decides:
            cell = self.layout.groups[:, 0]
            options = np.bincount(cell, weights=branch.open.numpy(), minlength=int(cell.max()) + 1)
            score = score - FEW_OPTIONS * np.log(options.clip(1)[cell])
        return probability, score + self.noise * self.rng.gumbel(size=score.shape) if self.noise else score

    def _commit(self, branch: Branch, logits: Tensor) -> tuple[np.ndarray, np.ndarray] | None:
        """The open and the true candidates after further choices; None if a group cannot be met."""
        open_, true = branch.open.numpy().copy(), branch.true.numpy().copy()
        probability, score = self.scores(branch, logits)
        committed = False
        for candidate in np.argsort(-score, kind="stable").tolist():
            if not open_[candidate] or (committed and probability[candidate] < SURE):
                continue
            if not self.decides and probability[candidate] < 0.5 and not self._is_needed(candidate, true):
                continue
            open_[candidate], committed = False, True
            self._push(open_, true, score[candidate] - self._alternative(candidate, open_, score, probability))
            true[candidate] = True
            self.choices += 1
            if not propagate(open_, true, *self.layout.arrays):
                return None
        if not committed:  # no group needs another candidate
            open_[:] = False
        return open_, true

    def _is_needed(self, candidate: int, true: np.ndarray) -> bool:
        groups = self.layout.groups[candidate]
        groups = groups[groups >= 0]
        placed = self.layout.count(torch.from_numpy(true)).numpy()
        return bool((placed < self.layout.lower)[groups].any())

    def _alternative(self, candidate: int, open_: np.ndarray, score: np.ndarray, probability: np.ndarray) -> float:
        """The score of the best other candidate of the cell, or of "false"."""
        if not self.decides:
            return float(np.log1p(-probability[candidate].clip(1e-9, 1 - 1e-9)))
        _, starts, members, _, _ = self.layout.arrays
        cell = self.layout.groups[candidate, 0]
        others = members[starts[cell] : starts[cell + 1]]
        return float(score[others[open_[others]]].max(initial=-20.0))

    def _push(self, open_: np.ndarray, true: np.ndarray, regret: float) -> None:
        self.pushed += 1
        priority = regret - DEPTH_BONUS * self.choices
        heapq.heappush(self.waiting, (priority, -self.pushed, open_.copy(), true.copy(), self.choices))

    def _take_back(self) -> tuple[np.ndarray, np.ndarray] | None:
        while self.waiting:
            _, _, open_, true, self.choices = heapq.heappop(self.waiting)
            if propagate(open_, true, *self.layout.arrays):
                return open_, true
        return None


class Committing(BestFirstSearch):
    """The search policy that commits: every attempt makes its own choices."""

    stride = COMMIT_STEPS
    shared = False

    def first_split(self, attempt: int) -> int:
        return FIRST_COMMIT
