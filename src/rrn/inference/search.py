"""Search by guesses, in which the network says what to guess, and how much to trust what was guessed.

The problem is one of candidates: each cell has options, of which one is true, and so has each group of other kinds. A
network tells how likely each is true, and how likely it is that none is: that what was guessed before cannot be. A
guess splits what is known into two branches: in one the candidate is true, and all it excludes is gone from the graph;
in the other it is ruled out itself. One of all branches holds the answer, and the network's word makes some of them
more likely than others: what it believed when the guesses were made, times the odds that not "none" is true, when it
has looked at the branch. The likeliest one is always next, to be looked at for some steps, or to be split. All starts
of a problem share its branches: what one leaves, the others take up.
"""

import heapq
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rrn.inference.places import BatchWork, Places, Resumable
from rrn.nn.updates import State

FIRST_GUESS, FURTHER_GUESS, NOISY_STARTS = 48, 64, 8
"""Steps before the first guess: of the first start; and of further ones, up to so many, which may solve it by noise
before. The others help with the search as soon as they are there."""

LOOK = 4
"""Steps in which a branch is looked at before it is decided what comes next."""
DECIDED = 0.1
"""Cells with an entropy below this, in nats, are guessed last: there is little to learn from them."""
PROGRESS = 0.9
"""A branch is not split while each look at it leaves less than this share of its entropy."""
CERTAIN = 20.0
"""Logit of what is known to be true; what cannot be has as much less than nothing."""
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


class Look(NamedTuple):
    """What a start is at: a branch, and its entropy when it was looked at last."""

    branch: Branch
    entropy: float = math.inf


class Search:
    """The branches of one problem that wait to be looked at, or to be split. The first start that is at its wits' end
    with the ``whole`` problem splits that; all others take what waits."""

    def __init__(self, candidates: Candidates, still_open: Tensor, true: Tensor) -> None:
        self.candidates = candidates
        self.whole = Branch(still_open, true)
        self.begun = False
        self.waiting: list[tuple[float, int, Branch]] = []
        self.pushed = 0

    def go_on(self, look: Look, state: State, logits: Tensor) -> tuple[Look, State | None]:
        """What the network, in a state, says of the branch it looks at, logits (candidates,), decides which is next.

        Returns that, and the state to go on from; None for a clean one of the whole problem, if no branch is left.
        """
        if not (self.begun and look.branch is self.whole):
            said = self.candidates.beliefs(look.branch.still_open, logits)
            entropy = float(said.entropy.sum())
            if entropy < PROGRESS * look.entropy:
                return look._replace(entropy=entropy), state
            undecided = said.options > 0
            odds = float(said.odds[undecided].median()) if bool(undecided.any()) else 0.0
            self.begun = True
            kept = state.map(torch.clone)  # not a view of what others are in as well, which would stay in memory
            self._push(look.branch._replace(odds=odds, seen=look.branch.still_open, state=kept, said=said))
        while self.waiting:
            branch = heapq.heappop(self.waiting)[2]
            if branch.said is None:
                assert branch.seen is not None
                assert branch.state is not None
                return Look(branch, 0.0), _rows(branch.state, branch.still_open[branch.seen])
            self._split(branch, branch.said)
        return Look(self.whole), state if look.branch is self.whole else None

    def give_back(self, look: Look) -> None:
        """A start that is over leaves its branch to others."""
        if look.branch is not self.whole:
            self._push(look.branch)

    def _push(self, branch: Branch) -> None:
        self.pushed += 1  # of equals the first is first
        heapq.heappush(self.waiting, (-branch.belief - branch.odds, self.pushed, branch))

    def _split(self, branch: Branch, said: Beliefs) -> None:
        guess = choose(self.candidates, said)
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


def choose(candidates: Candidates, said: Beliefs) -> tuple[int, float] | None:
    """What to guess: the likeliest candidate of the cell that is least uncertain, and how likely it is; None if no cell
    is undecided."""
    undecided = said.options > 1
    if not bool(undecided.any()):
        return None
    entropy = torch.where(said.entropy < DECIDED, said.entropy + 10.0, said.entropy)
    cell = int(torch.where(undecided, entropy, float("inf")).argmin())
    chance, candidate = torch.where(candidates.groups[:, 0] == cell, said.chances, -1.0).max(0)
    return int(candidate), min(max(float(chance), LEAST_CHANCE), 1 - LEAST_CHANCE)


class Searches:
    """Those of all problems at work, as `rrn.inference.places.Guide`.

    ``whole`` gives the search of a problem by its number, ``begin`` its state at the start.
    """

    stride = LOOK

    def __init__(self, whole: Callable[[int], Search], begin: Callable[[int], State]) -> None:
        self.whole, self.begin = whole, begin
        self.searches: dict[int, Search] = {}
        self.looks: dict[tuple[int, int], Look] = {}
        self.logits: dict[tuple[int, int], Tensor] = {}

    def branches(self, places: Places) -> list[Branch]:
        """What each place looks at."""
        for number, start in places.who():
            if number not in self.searches:
                self.searches[number] = self.whole(number)
            self.looks.setdefault((number, start), Look(self.searches[number].whole))
        return [self.looks[key].branch for key in places.who()]

    def hear(self, places: Places, logits: Iterable[Tensor]) -> None:
        """What the network says last of all candidates of the problem in each place."""
        self.logits = dict(zip(places.who(), logits, strict=True))

    def decide(self, places: Places) -> Places:
        who, states = places.who(), []
        for key in [key for key in self.looks if key not in who]:
            look = self.looks.pop(key)
            if key[0] in self.searches:
                self.searches[key[0]].give_back(look)
        parts = zip(*(part.split(places.sizes.tolist()) for part in places.state.parts()), strict=True)
        for key, age, part in zip(who, places.age.tolist(), parts, strict=True):
            state: State | None = State.of(part)
            if age >= _first_guess(key[1]):
                self.looks[key], state = self.searches[key[0]].go_on(self.looks[key], State.of(part), self.logits[key])
            states.append(self.begin(key[0]) if state is None else state)
        joined = State.of(torch.cat(rows) for rows in zip(*(state.parts() for state in states), strict=True))
        sizes = torch.tensor([len(state.h) for state in states], device="cpu")
        return places._replace(sizes=sizes, state=joined)

    def noisy(self, places: Places) -> Tensor:
        looks = [self.looks.get(key) for key in places.who()]
        whole = [look is None or look.branch.seen is None for look in looks]
        return torch.tensor(whole, device="cpu")

    def over(self, number: int) -> None:
        self.searches.pop(number, None)


def known_logits(true: Tensor) -> Tensor:
    """Of candidates that are not open: which are true, bool, → logits."""
    return torch.where(true, CERTAIN, -CERTAIN)


class GuessedBatch(BatchWork):
    """Problems of the same candidates, in which the network guesses: each start of each has a graph of its own.
    The batch says which candidates are "open", and the logits "known" of the others: (problems,
    candidates) each; the network answers with logits of all of them."""

    guide: Searches

    def __init__(self, network: Resumable, batch: dict[str, Tensor], candidates: Candidates, **told: Any) -> None:
        super().__init__(network, batch, **told)
        self.candidates = candidates
        self.guide = Searches(self._search, lambda number: self.begin(torch.tensor([number], device="cpu"))[1])

    def _search(self, number: int) -> Search:
        still_open, known = (self.batch[name][number].cpu() for name in ("open", "known"))
        return Search(self.candidates, still_open, known > 0)

    def at_work(self, places: Places) -> dict[str, Tensor]:
        branches, batch = self.guide.branches(places), super().at_work(places)
        still_open, true = (torch.stack(parts) for parts in zip(*(branch[:2] for branch in branches), strict=True))
        changed = {"open": still_open, "known": known_logits(true)}
        return batch | {name: part.to(self.network.device) for name, part in changed.items()}

    def run(self, places: Places, steps: int) -> tuple[Any, State]:
        outputs, state = super().run(places, steps)
        self.guide.hear(places, outputs[-1].reshape(len(places.numbers), -1).cpu())
        return outputs, state


def _first_guess(start: int) -> int:
    return FIRST_GUESS if start == 1 else FURTHER_GUESS if start <= NOISY_STARTS else LOOK


def _rows(state: State, rows: Tensor) -> State:
    return state.map(lambda part: part[rows])
