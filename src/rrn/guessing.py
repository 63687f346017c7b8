"""Search by guesses, in which the network says what to guess, and how much to trust what was guessed.

The problem is one of candidates: each cell has options, of which one is true, and so has each group of other kinds. A
network tells how likely each is true, and how likely it is that none is: that what was guessed before cannot be. A
guess splits what is known into two branches: in one the candidate is true, and all it excludes is gone from the graph;
in the other it is ruled out itself. One of all branches holds the answer, and the network's word makes some of them
more likely than others: what it believed when the guesses were made, times the odds that not "none" is true, when it
has looked at the branch. The likeliest one is always next, to be looked at for some steps, or to be split.
"""

import heapq
import math
from typing import NamedTuple

import torch
from torch import Tensor

from rrn.updates import State

FIRST_GUESS = 32
"""Steps before the first guess."""

LOOK = 4
"""Steps in which a branch is looked at before it is decided what comes next."""
DECIDED = 0.1
"""Cells with an entropy below this, in nats, are guessed last: there is little to learn from them."""
SPREAD = 0.1
"""In further starts, luck has this weight, in nats, beside a cell's entropy."""
PROGRESS = 0.9
"""A branch is not split while each look at it leaves less than this share of its entropy."""
LEAST_CHANCE = 0.05
"""No candidate is believed in, or not, with more confidence than this leaves."""


class Candidates(NamedTuple):
    """All candidates of a problem: ``groups`` (candidates, kinds), the group of each kind that each stands in, counted
    through over all kinds, ``total`` of them; of each exactly one candidate is true. The first kind are the cells."""

    groups: Tensor
    total: int

    def rivals(self, candidate: int) -> Tensor:
        """Who cannot be true beside one of them, itself included: (candidates,) bool."""
        return (self.groups == self.groups[candidate]).any(1)

    def possible(self, left: Tensor) -> bool:
        """Whether every group has a candidate among those that are left (candidates,)."""
        return bool(self.groups[left].flatten().bincount(minlength=self.total).all())


class Branch(NamedTuple):
    """A part of what may be: the candidates that are open, the nodes of its graph, and those given or guessed.

    Attributes:
        still_open: (candidates,) bool.
        true: (candidates,) bool.
        belief: the logarithm of the probability, at the time of the guesses, that all of them are right.
        odds: that of the odds that it is possible, as the network saw it or, until then, what it was split from.
        seen: with which candidates open the network was in ``state``, which may be more than are now.
        logits: what it said then, (cells, options); None until it has looked at this branch itself.
    """

    still_open: Tensor
    true: Tensor
    belief: float = 0.0
    odds: float = 0.0
    seen: Tensor | None = None
    state: State | None = None
    logits: Tensor | None = None


class Search:
    """The branches of one problem. ``now`` is the one at work; with a ``spread`` of 0 luck plays no part."""

    def __init__(self, candidates: Candidates, still_open: Tensor, true: Tensor, spread: float = 0.0) -> None:
        self.candidates, self.spread = candidates, spread
        self.now = self.whole = Branch(still_open, true)
        self.waiting: list[tuple[float, int, Branch]] = []
        self.pushed = 0
        self.entropy = math.inf
        """That of the branch at work, at the last look at it."""

    def go_on(self, state: State, logits: Tensor, generator: torch.Generator | None) -> State | None:
        """What the network, in a state, says of the branch at work, logits (cells, options), decides which is next.

        Returns the state to go on from; None to begin anew with the whole problem, if no branch is possible.
        """
        before, self.entropy = self.entropy, float(_entropies(self.now.still_open, logits)[1].sum())
        if self.entropy < PROGRESS * before:
            return state
        seen = self.now._replace(odds=self._odds(logits), seen=self.now.still_open, state=state, logits=logits)
        self._push(seen)
        while self.waiting:
            self.now = heapq.heappop(self.waiting)[2]
            if self.now.logits is None:
                assert self.now.seen is not None
                assert self.now.state is not None
                self.entropy = 0.0
                return _rows(self.now.state, self.now.still_open[self.now.seen])
            self._split(self.now, generator)
        self.now = self.whole
        return None

    def _push(self, branch: Branch) -> None:
        self.pushed += 1  # of equals the first is first
        heapq.heappush(self.waiting, (-branch.belief - branch.odds, self.pushed, branch))

    def _odds(self, logits: Tensor) -> float:
        """The logarithm of the odds that the branch at work is possible: those in the middle one of its open cells."""
        unsettled = ~self.now.true.view(logits.shape).any(1)
        return float(logits[unsettled].logsumexp(1).median())  # against "none", whose logit is zero

    def _split(self, branch: Branch, generator: torch.Generator | None) -> None:
        assert branch.logits is not None
        guess = choose(branch.still_open, branch.logits, self.spread, generator)
        if guess is None:
            return
        candidate, chance = guess
        itself = torch.zeros_like(branch.true)
        itself[candidate] = True
        rivals = self.candidates.rivals(candidate)
        for excluded, guessed, share in ((rivals, branch.true | itself, chance), (itself, branch.true, 1 - chance)):
            still_open = branch.still_open & ~excluded
            if self.candidates.possible(still_open | guessed):
                belief = branch.belief + math.log(share)
                self._push(branch._replace(still_open=still_open, true=guessed, belief=belief, logits=None))


def choose(
    still_open: Tensor, logits: Tensor, spread: float = 0.0, generator: torch.Generator | None = None
) -> tuple[int, float] | None:
    """What to guess: the likeliest candidate of the cell that is least uncertain, and how likely it is; None if no cell
    is undecided. ``still_open`` (candidates,), ``logits`` (cells, options)."""
    undecided = still_open.view(logits.shape).sum(1) > 1
    if not bool(undecided.any()):
        return None
    chances, entropy = _entropies(still_open, logits)
    entropy = torch.where(entropy < DECIDED, entropy + 10.0, entropy)
    if spread:
        luck = torch.rand(len(entropy), generator=generator, device="cpu")
        entropy = entropy + spread * torch.log(-torch.log(luck))
    cell = int(torch.where(undecided, entropy, float("inf")).argmin())
    chance, option = chances[cell].max(0)
    return cell * logits.shape[1] + int(option), min(max(float(chance), LEAST_CHANCE), 1 - LEAST_CHANCE)


def _entropies(still_open: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """How likely each option of each cell is, if one of the open ones is true, and the entropy of each cell."""
    chances = torch.where(still_open.view(logits.shape), logits, float("-inf")).softmax(1).nan_to_num()
    return chances, -torch.xlogy(chances, chances).sum(1)


def _rows(state: State, rows: Tensor) -> State:
    return state.map(lambda part: part[rows])
