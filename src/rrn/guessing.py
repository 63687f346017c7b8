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
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from rrn.places import Places
from rrn.updates import State

FIRST_GUESS, FURTHER_GUESS = 48, 64
"""Steps before the first guess, in the first start, and in further ones, which have noise on the way to it."""

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
    """All candidates of a problem, and the groups they stand in, of several kinds.

    Attributes:
        groups: (candidates, kinds), the group of each kind that each stands in, counted through over all kinds. Of no
            group more than one is true. Those of the first kind are the cells.
        needed: (groups,) bool, whether one of them has to be true, as in every cell.
        cells: how many there are.
    """

    groups: Tensor
    needed: Tensor
    cells: int

    def rivals(self, candidate: int) -> Tensor:
        """Who cannot be true beside one of them, itself included: (candidates,) bool."""
        return (self.groups == self.groups[candidate]).any(1)

    def possible(self, left: Tensor) -> bool:
        """Whether every group that needs one has a candidate among those that are left (candidates,)."""
        return bool(self.groups[left].flatten().bincount(minlength=len(self.needed))[self.needed].all())

    def beliefs(self, still_open: Tensor, logits: Tensor) -> "Beliefs":
        """What logits (candidates,) say, if one of the open candidates of each cell is true, or none."""
        cell = self.groups[:, 0]
        logits = torch.where(still_open, logits, float("-inf"))
        highest = logits.new_full((self.cells,), float("-inf")).scatter_reduce(0, cell, logits, "amax")
        highest = highest.nan_to_num(neginf=0.0)
        weights = (logits - highest[cell]).exp()
        total = weights.new_zeros(self.cells).index_add(0, cell, weights)
        chances = weights / total[cell].clamp_min(torch.finfo(weights.dtype).tiny)
        entropy = chances.new_zeros(self.cells).index_add(0, cell, -torch.xlogy(chances, chances))
        options = still_open.new_zeros(self.cells, dtype=torch.long).index_add(0, cell, still_open.long())
        return Beliefs(chances, entropy, options, highest + total.log())


class Beliefs(NamedTuple):
    """How likely each candidate is true, (candidates,); and of each cell, (cells,), the entropy, how many candidates
    are open, and the logarithm of the odds that one of them is true, against none, whose logit is zero."""

    chances: Tensor
    entropy: Tensor
    options: Tensor
    odds: Tensor


class Branch(NamedTuple):
    """A part of what may be: the candidates that are open, the nodes of its graph, and those given or guessed.

    Attributes:
        still_open: (candidates,) bool.
        true: (candidates,) bool.
        belief: the logarithm of the probability, at the time of the guesses, that all of them are right.
        odds: that of the odds that it is possible, as the network saw it or, until then, what it was split from.
        seen: with which candidates open the network was in ``state``, which may be more than are now.
        said: what it believed then; None until it has looked at this branch itself.
    """

    still_open: Tensor
    true: Tensor
    belief: float = 0.0
    odds: float = 0.0
    seen: Tensor | None = None
    state: State | None = None
    said: Beliefs | None = None


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
        """What the network, in a state, says of the branch at work, logits (candidates,), decides which is next.

        Returns the state to go on from; None to begin anew with the whole problem, if no branch is possible.
        """
        said = self.candidates.beliefs(self.now.still_open, logits)
        before, self.entropy = self.entropy, float(said.entropy.sum())
        if self.entropy < PROGRESS * before:
            return state
        undecided = said.options > 0
        odds = float(said.odds[undecided].median()) if bool(undecided.any()) else 0.0
        self._push(self.now._replace(odds=odds, seen=self.now.still_open, state=state, said=said))
        while self.waiting:
            self.now = heapq.heappop(self.waiting)[2]
            if self.now.said is None:
                assert self.now.seen is not None
                assert self.now.state is not None
                self.entropy = 0.0
                return _rows(self.now.state, self.now.still_open[self.now.seen])
            self._split(self.now, self.now.said, generator)
        self.now = self.whole
        return None

    def _push(self, branch: Branch) -> None:
        self.pushed += 1  # of equals the first is first
        heapq.heappush(self.waiting, (-branch.belief - branch.odds, self.pushed, branch))

    def _split(self, branch: Branch, said: Beliefs, generator: torch.Generator | None) -> None:
        guess = choose(self.candidates, said, self.spread, generator)
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
                self._push(branch._replace(still_open=still_open, true=guessed, belief=belief, said=None))


def choose(
    candidates: Candidates, said: Beliefs, spread: float = 0.0, generator: torch.Generator | None = None
) -> tuple[int, float] | None:
    """What to guess: the likeliest candidate of the cell that is least uncertain, and how likely it is; None if no cell
    is undecided."""
    undecided = said.options > 1
    if not bool(undecided.any()):
        return None
    entropy = torch.where(said.entropy < DECIDED, said.entropy + 10.0, said.entropy)
    if spread:
        luck = torch.rand(len(entropy), generator=generator, device="cpu")
        entropy = entropy + spread * torch.log(-torch.log(luck))
    cell = int(torch.where(undecided, entropy, float("inf")).argmin())
    chance, candidate = torch.where(candidates.groups[:, 0] == cell, said.chances, -1.0).max(0)
    return int(candidate), min(max(float(chance), LEAST_CHANCE), 1 - LEAST_CHANCE)


class Searches:
    """Those of all problems at work: each start of each problem has one of its own.

    ``whole`` gives the search of a problem by its number and the weight of luck, ``begin`` its state at the start.
    """

    def __init__(self, whole: Callable[[int, float], Search], begin: Callable[[int], State]) -> None:
        self.whole, self.begin = whole, begin
        self.searches: dict[tuple[int, int], Search] = {}
        self.logits: dict[tuple[int, int], Tensor] = {}

    def branches(self, places: Places) -> list[Branch]:
        """What is at work in each place."""
        for number, start in places.who():
            if (number, start) not in self.searches:
                self.searches[number, start] = self.whole(number, SPREAD if start > 1 else 0.0)
        return [self.searches[key].now for key in places.who()]

    def hear(self, places: Places, logits: Iterable[Tensor]) -> None:
        """What the network says last of all candidates of the problem in each place."""
        self.logits = dict(zip(places.who(), logits, strict=True))

    def decide(self, places: Places, generator: torch.Generator | None) -> Places:
        """Which branch of each problem is at work in the next steps, as `rrn.places.Decide`."""
        parts = zip(*(part.split(places.sizes.tolist()) for part in places.state.parts()), strict=True)
        who, states = places.who(), []
        self.searches = {key: search for key, search in self.searches.items() if key in who}
        for key, age, part in zip(who, places.age.tolist(), parts, strict=True):
            state: State | None = State.of(part)
            if age >= (FIRST_GUESS if key[1] == 1 else FURTHER_GUESS):
                state = self.searches[key].go_on(State.of(part), self.logits[key], generator)
            states.append(self.begin(key[0]) if state is None else state)
        joined = State.of(torch.cat(rows) for rows in zip(*(state.parts() for state in states), strict=True))
        sizes = torch.tensor([len(state.h) for state in states], device="cpu")
        return places._replace(sizes=sizes, state=joined)


def _rows(state: State, rows: Tensor) -> State:
    return state.map(lambda part: part[rows])
