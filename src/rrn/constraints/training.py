"""Training on problems of your own: each keeps its place until the network has solved it, or has failed to in time."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from rrn.constraints.problem import Problem
from rrn.constraints.solve import Solver, as_batch
from rrn.errors import InputError
from rrn.inference.attempts import NOISE, Slots
from rrn.inference.candidates import make_network, open_graph
from rrn.network import RRN
from rrn.nn.updates import State
from rrn.training.curriculum import Easing
from rrn.training.loop import Average

NOISY = 0.1
"""The share of segments that begin with noise."""
WINDOW = 0.3
"""The share of extra givens is drawn from the most to so much less."""
LOWER_BY, MEMORY = 0.005, 0.01
"""The most is lowered by so much per update: see `rrn.training.curriculum.Easing`."""
AVERAGE = 0.998


class TrainingBatch:
    """Problems as one graph of their open candidates, with the true ones as targets.

    Attributes:
        sizes: (problems,) the number of open candidates of each.
        target: (nodes,) bool; all false for a problem without an answer.
    """

    def __init__(self, problems: Sequence[Problem], group_types: tuple[str, ...]) -> None:
        batch, counts = as_batch(problems, group_types)
        self.graph, _ = open_graph(batch["open"], batch["member_of"], counts)
        self.sizes, self.decides = batch["open"].sum(1), problems[0].constraints.decides
        answers = [p.open & p.answer if p.answer is not None else np.zeros_like(p.open) for p in problems]
        self.target = torch.from_numpy(np.concatenate([a[p.open] for a, p in zip(answers, problems, strict=True)]))
        self.cells, self.cell = self.graph.rows()[:, 0].unique(return_inverse=True)

    def run(self, network: RRN, steps: int, state: State) -> tuple[Tensor, State]:
        """The logits of the nodes after each step, (steps, nodes), and the state after the last."""
        outputs, state = network.run(state.h.new_ones(self.graph.num_nodes, 1), self.graph, steps=steps, state=state)
        return outputs[..., 0], state

    def choose(self, logits: Tensor) -> Tensor:
        """The chosen candidates, (steps, nodes) bool."""
        if not self.decides:
            return logits > 0
        cell = self.cell.expand_as(logits)
        largest = logits.new_full((len(logits), len(self.cells)), float("-inf")).scatter_reduce(1, cell, logits, "amax")
        return logits == largest.gather(1, cell)


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
    here: Slots | None = None
    easing = Easing(extra, 0.0, LOWER_BY, MEMORY)
    for update in range(updates):
        room = places - (0 if here is None else len(here.problems))
        if room:
            numbers = [next(counter) for _ in range(room)]
            problems |= {number: _draw(make, drawn, pool, easing.most, wrong, rng) for number in numbers}
            sizes = torch.tensor([int(problems[number].open.sum()) for number in numbers], device="cpu")
            state = network.initial_state(next(network.parameters()).new_ones(int(sizes.sum()), 1))
            new = Slots.enter(torch.tensor(numbers, device="cpu"), sizes, state)
            here = new if here is None else here.join(new)
        assert here is not None
        if noise:
            which = torch.from_numpy((rng.random(places) < NOISY).astype(np.float32))
            here = here.with_noise(network.update.add_noise, which * noise, generator)
        batch = TrainingBatch([problems[number] for number in here.problems.tolist()], tuple(kinds))
        if wrong and not batch.decides:
            raise InputError("wrong: only for constraints whose first kind decides; see Constraints.decides")
        logits, state = batch.run(network, segment, here.state)
        loss = _loss(logits, batch, wrong > 0)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        average.follow(network, update)
        here = here.advance(state.detach(), segment)
        with torch.no_grad():
            right = _right(logits, batch, wrong > 0)
        over = (right[0] & right[-1]) | (here.age >= max_steps)
        if bool(over.any()):
            easing.leave(int(over.sum()), float(right[-1][over].float().mean()))
            for number in here.problems[over].tolist():
                del problems[number]
            here = here.release(over)
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
        easier = problem.with_more_givens(rng.uniform(max(0.0, extra - WINDOW), extra), rng) if extra else problem
        if wrong and rng.random() < wrong:
            easier = easier.with_contradiction(rng)
        if easier.open.any():
            return easier
    raise InputError("make: 100 problems in a row had no open candidate")


def _loss(logits: Tensor, batch: TrainingBatch, refutes: bool = False) -> Tensor:
    """(steps, nodes) → the mean over steps and over groups of the first kind, or nodes. One that ``refutes`` has the
    choice "none" in each group, whose logit is always zero; it is right where no candidate is true."""
    if not batch.decides:
        target = batch.target.to(logits).expand_as(logits)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
    groups, group = batch.cells, batch.cell
    lowest = logits.new_full((len(logits), len(groups)), 0.0 if refutes else float("-inf"))
    largest = lowest.scatter_reduce(1, group.expand_as(logits), logits.detach(), "amax")
    total = torch.zeros_like(largest).index_add(1, group, (logits - largest[:, group]).exp())
    total = total + (-largest).exp() if refutes else total
    true = batch.target.nonzero()[:, 0]
    chosen = torch.zeros_like(largest).index_add(1, group[true], logits[:, true])
    return (total.log() + largest - chosen).mean()


def _right(logits: Tensor, batch: TrainingBatch, refutes: bool = False) -> Tensor:
    """Whether each problem's answer is the known one, after each step: (steps, problems)."""
    decided = batch.choose(logits) & (logits > 0) if refutes else batch.choose(logits)
    wrong = (decided ^ batch.target).int()
    place = batch.graph.graph_of_node().expand_as(wrong)
    return wrong.new_zeros(len(logits), len(batch.sizes)).scatter_add(1, place, wrong) == 0
