"""Training on problems of your own: each keeps its place until the network has solved it, or has failed to in time."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from rrn.constraints.declaring import Problem
from rrn.constraints.solving import Batch, Solver, enter, make_network, run
from rrn.errors import InputError
from rrn.inference.places import NOISE, Places
from rrn.network import RRN
from rrn.training.curriculum import Easing
from rrn.training.loop import Average

NOISY = 0.1
"""The share of segments that begin with noise."""
WINDOW = 0.3
"""The share of extra givens is drawn from the most to so much less."""
LOWER_BY, MEMORY = 0.005, 0.01
"""The most is lowered by so much per update: see `rrn.training.curriculum.Easing`."""
AVERAGE = 0.998


def fit(
    kinds: Sequence[str],
    make: Callable[[np.random.Generator], Problem],
    *,
    updates: int,
    places: int = 16,
    segment: int = 8,
    max_steps: int = 48,
    pool: int = 2000,
    rate: float = 2e-3,
    extra: float = 0.9,
    noise: float = NOISE,
    wrong: float = 0.0,
    hidden: int = 48,
    message_width: int = 16,
    layer_width: int = 128,
    seed: int = 0,
    progress: Callable[[int, float, float], None] = lambda update, extra, solved: None,
) -> Solver:
    """Train a network on problems that ``make`` draws, and whose answer is known; they may be of several sizes.

    Each update runs a segment of steps for every place of the batch, with the loss at every step: cross-entropy within
    the groups of the first kind, or that of each candidate where that kind does not decide. A problem that is solved
    leaves its place to a new one, the others go on from where they are.

    Problems get easy first: a share of the answer is given besides what ``make`` gives, at first up to ``extra``, and
    less and less as the network solves them.

    Args:
        updates: how many; the rate of learning falls to zero over them.
        places: problems in a batch.
        segment: steps per update; the gradient stays within them.
        max_steps: steps that a problem may have before it counts as failed.
        pool: so many problems are drawn; after that they come again, with other extra givens. 0: always new ones.
        rate: of AdamW at the start.
        extra: the largest share of the answer that is given besides, at the start. 0: none.
        noise: standard deviation of the noise that a tenth of the segments begin with.
        wrong: the share of problems of which something false is given as well. Nothing solves them, and the network
            learns to say so: all logits of their groups of the first kind become negative. Then it can guess, and see
            which guesses were wrong: see `rrn.inference.search`. Only where that kind decides.
        hidden, message_width, layer_width: of the network, see `rrn.nn.updates.SharedLayerUpdate`.
        seed: of the problems, the weights and the noise.
        progress: told the update, the share of extra givens and that of problems solved, after every update.
    """
    if updates < 1:
        raise InputError(f"updates: expected at least 1, got {updates}")
    if not 0 <= wrong < 1:
        raise InputError(f"wrong: expected a share from 0 to less than 1, got {wrong}")
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(seed)
        network = make_network(len(kinds), hidden, message_width, layer_width)
    average = Average(network, AVERAGE)
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    drawn: list[Problem] = []
    problems: dict[int, Problem] = {}
    counter = itertools.count()
    here: Places | None = None
    easing = Easing(extra, 0.0, LOWER_BY, MEMORY)
    for update in range(updates):
        room = places - (0 if here is None else len(here.numbers))
        if room:
            numbers = [next(counter) for _ in range(room)]
            problems |= {number: _draw(make, drawn, pool, easing.most, wrong, rng) for number in numbers}
            sizes, state = enter(network, [problems[number] for number in numbers])
            new = Places.enter(torch.tensor(numbers, device="cpu"), sizes, state)
            here = new if here is None else here.join(new)
        assert here is not None
        if noise:
            which = torch.from_numpy((rng.random(places) < NOISY).astype(np.float32))
            here = here.noisy(network.update.add_noise, which * noise, generator)
        batch = Batch([problems[number] for number in here.numbers.tolist()], tuple(kinds))
        if wrong and not batch.decides:
            raise InputError("wrong: only for constraints whose first kind decides; see Constraints.decides")
        logits, state = run(network, batch.graph, segment, here.state)
        loss = _loss(logits, batch, wrong > 0)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        average.follow(network, update)
        here = here.after(state.detach(), segment)
        with torch.no_grad():
            right = _right(logits, batch, wrong > 0)
        over = (right[0] & right[-1]) | (here.age >= max_steps)
        if bool(over.any()):
            easing.leave(int(over.sum()), float(right[-1][over].float().mean()))
            for number in here.numbers[over].tolist():
                del problems[number]
            here = here.leave(over)
        easing.lower()
        progress(update + 1, easing.most, easing.solved_share)
    assert isinstance(average.network, RRN)
    return Solver(average.network, kinds, wrong > 0)


def _draw(
    make: Callable[[np.random.Generator], Problem],
    drawn: list[Problem],
    pool: int,
    extra: float,
    wrong: float,
    rng: np.random.Generator,
) -> Problem:
    """A problem with open candidates: one that is all given has nothing to teach."""
    for _ in range(100):
        if pool and len(drawn) == pool:
            problem = drawn[rng.integers(pool)]
        else:
            problem = make(rng)
            if problem.answer is None:
                raise InputError("make: returned a problem without an answer; give problem(…, answer=…), or use dig")
            drawn += [problem] if pool else []
        easier = problem.with_more(rng.uniform(max(0.0, extra - WINDOW), extra), rng) if extra else problem
        if wrong and rng.random() < wrong:
            easier = easier.with_wrong(rng)
        if easier.still_open.any():
            return easier
    raise InputError("make: 100 problems in a row had no open candidate")


def _loss(logits: Tensor, batch: Batch, refutes: bool = False) -> Tensor:
    """(steps, nodes) → the mean over steps and over groups of the first kind, or nodes. One that ``refutes`` has the
    choice "none" in each group, whose logit is always zero; it is right where no candidate is true."""
    if not batch.decides:
        target = batch.target.to(logits).expand_as(logits)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
    groups, group = batch.graph.rows()[:, 0].unique(return_inverse=True)
    lowest = logits.new_full((len(logits), len(groups)), 0.0 if refutes else float("-inf"))
    largest = lowest.scatter_reduce(1, group.expand_as(logits), logits.detach(), "amax")
    total = torch.zeros_like(largest).index_add(1, group, (logits - largest[:, group]).exp())
    total = total + (-largest).exp() if refutes else total
    true = batch.target.nonzero()[:, 0]
    chosen = torch.zeros_like(largest).index_add(1, group[true], logits[:, true])
    return (total.log() + largest - chosen).mean()


def _right(logits: Tensor, batch: Batch, refutes: bool = False) -> Tensor:
    """Whether each problem's answer is the known one, after each step: (steps, problems)."""
    decided = batch.decide(logits) & (logits > 0) if refutes else batch.decide(logits)
    wrong = (decided ^ batch.target).int()
    place = batch.graph.graph_of_node().expand_as(wrong)
    return wrong.new_zeros(len(logits), len(batch.sizes)).scatter_add(1, place, wrong) == 0
