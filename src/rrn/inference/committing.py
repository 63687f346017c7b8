"""Committing: the surest candidate is fixed, the network continues, and a wrong choice is taken back.

For problems with many solutions, where a network alone does not decide for one of them. After some steps the candidate
with the highest predicted probability becomes true, preferably in a cell with few options. Everything that follows from
it by the rules is decided, and the network runs on what is left. If a group can no longer be met, the least sure of the
latest choices is taken back: its candidate is ruled out instead.
"""

import heapq
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rrn._compat import compiled
from rrn.inference.search import BestFirstSearch, Branch, CandidateLayout, Visit
from rrn.nn.updates import State

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


@compiled
def propagate(
    open_: np.ndarray,
    true: np.ndarray,
    groups: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> bool:
    """Close open candidates of full groups, and make candidates true that a group needs, until nothing changes.

    ``open_`` and ``true`` are (candidates,) bool and change in place. Returns whether every group can still be met.
    """
    changed = True
    while changed:
        changed = False
        for group in range(len(lower)):
            placed, left = 0, 0
            for index in range(starts[group], starts[group + 1]):
                placed += true[members[index]]
                left += open_[members[index]]
            if placed > upper[group] or placed + left < lower[group]:
                return False
            if left == 0 or (placed < upper[group] and placed + left > lower[group]):
                continue
            for index in range(starts[group], starts[group + 1]):
                if open_[members[index]]:
                    open_[members[index]] = False
                    true[members[index]] = placed < upper[group]
            changed = True
    return True
