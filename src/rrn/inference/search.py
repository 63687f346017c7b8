"""Best-first search guided by a network, for problems of candidates.

Exactly one candidate of every cell is true. The network predicts the probability of each candidate, and the probability
that none is true, which means that an earlier guess was wrong. A guess splits a branch in two: in one the candidate is
true, and everything it excludes leaves the graph; in the other the candidate is ruled out. The priority of a branch is
the predicted probability of its guesses, times the odds that the branch is possible. The branch with the highest
priority is next: the network evaluates it for some steps, or it is split. All attempts at a problem share its branches.
"""

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from rrn.inference.attempts import Slots
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


class CandidateLayout:
    """The candidates of a problem and the groups they are in.

    Args:
        groups: (candidates, columns), the groups of each candidate, numbered through over all types; -1 for no group.
        lower: (groups,), the least number of true candidates in each group.
        upper: (groups,), the largest number.
        counts: the number of groups of each type.
        column_types: (columns,), the type of each column, ascending; by default column k has type k.
    """

    def __init__(
        self,
        groups: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        counts: Sequence[int],
        column_types: Sequence[int] | None = None,
    ) -> None:
        self.groups, self.lower, self.upper, self.counts = groups, lower, upper, tuple(int(count) for count in counts)
        self.column_types = tuple(range(groups.shape[1]) if column_types is None else column_types)
        self.cells = self.counts[0]
        """The number of groups of the first type."""
        first = slice(0, self.cells)
        one_each = self.column_types.count(0) == 1 and bool((groups[:, 0] >= 0).all())
        self.decides = one_each and bool((lower[first] == 1).all() and (upper[first] == 1).all())
        """Whether exactly one candidate of each group of the first type, a cell, is true, and all are in one."""
        self.index = torch.from_numpy(np.where(groups < 0, len(lower), groups))  # the group of no rule is the last
        self.least, self.most = torch.from_numpy(lower), torch.from_numpy(upper)
        self.stacked: Any = None
        """Cache of `rrn.inference.rules.StackedLayouts.of` for problems with this layout."""

    @cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What compiled code reads: groups; where the members of each group begin; the members; lower; upper."""
        candidate, column = np.nonzero(self.groups >= 0)
        group = self.groups[candidate, column]
        starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(self.lower)))])
        members = candidate[np.argsort(group, kind="stable")]
        return self.groups, starts, members, self.lower, self.upper

    def count(self, candidates: Tensor) -> Tensor:
        """How many of the candidates, (candidates,) bool, are in each group: (groups,)."""
        return self.index[candidates].flatten().bincount(minlength=len(self.lower) + 1)[:-1]

    def excluded_by(self, true: Tensor) -> Tensor:
        """The members of groups with as many true candidates as they may have, those included: (candidates,) bool."""
        full = torch.cat([self.count(true) >= self.most, true.new_zeros(1)])
        return full[self.index].any(1)

    def possible(self, left: Tensor) -> bool:
        """Whether every group has enough candidates among those left, (candidates,) bool."""
        return bool((self.count(left) >= self.least).all())

    def predict(self, open_: Tensor, logits: Tensor) -> "Prediction":
        """Probabilities from logits (candidates,), if one open candidate of each cell is true, or none."""
        cell = self.index[:, 0]
        logits = torch.where(open_, logits, float("-inf"))
        highest = logits.new_full((self.cells,), float("-inf")).scatter_reduce(0, cell, logits, "amax")
        highest = highest.nan_to_num(neginf=0.0)
        weights = (logits - highest[cell]).exp()
        total = weights.new_zeros(self.cells).index_add(0, cell, weights)
        probability = weights / total[cell].clamp_min(torch.finfo(weights.dtype).tiny)
        entropy = probability.new_zeros(self.cells).index_add(0, cell, -torch.xlogy(probability, probability))
        options = open_.new_zeros(self.cells, dtype=torch.long).index_add(0, cell, open_.long())
        return Prediction(probability, entropy, options, highest + total.log())


class Prediction(NamedTuple):
    """Predicted probability of each candidate, (candidates,); and of each cell, (cells,), the entropy, the number of
    open candidates, and the log odds that one of them is true against none, whose logit is zero."""

    probability: Tensor
    entropy: Tensor
    options: Tensor
    log_odds: Tensor


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


class Queue(Protocol):
    """The branches of one problem."""

    root: Branch

    def next(self, visit: Visit, state: State, logits: Tensor) -> tuple[Visit, State | None]:
        """The next visit and its state, after an evaluation with logits (candidates,).

        The state is None for the initial state of the whole problem, if no branch is left.
        """

    def put_back(self, visit: Visit) -> None:
        """Return the branch of an attempt that is over to the queue."""


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

    def __init__(self, queue_of: Callable[[int, int], Queue], initial_state: Callable[[int], State]) -> None:
        self.queue_of, self.initial_state = queue_of, initial_state
        self.queues: dict[tuple[int, int], Queue] = {}
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
