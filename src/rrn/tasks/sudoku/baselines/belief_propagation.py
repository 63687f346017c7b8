"""Loopy belief propagation on Sudoku: 27 factors (units) with the constraint "all different", 81 variables (cells).

Messages are logarithms. Those of a unit are exact sums over permutations. A converging message squares its odds at
every step, so plain numbers soon underflow; docs/belief_propagation.md shows that the range of floating point decides
how many puzzles are solved.
"""

from functools import cache
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rrn._compat import compiled
from rrn.nn.updates import State, normal_like
from rrn.tasks.sudoku.baselines.factor_graph import SUDOKU, FactorGraph, fill_most_probable, given_digits
from rrn.tasks.sudoku.model import PuzzleNetwork
from rrn.training.experiment import Batch

NEVER = float("-inf")
SINKHORN_ROUNDS = 3
SAFE = -700.0
"""Products with a logarithm above this are computed in double precision, without logarithms."""
NEGLIGIBLE = -40.0
"""Terms below e⁻⁴⁰ times the largest do not change a sum of doubles."""


def all_different(incoming: Tensor, underflow: float = NEVER) -> Tensor:
    """The messages of units whose cells all differ: (units, cells, digits) → the same shape, logarithms of both.

    The message of a unit to a cell about a digit is a sum over all assignments of different other digits to the other
    cells, of the product of their messages. Partial sums over the sets of digits used by the first cells, and by the
    last, take 2304 · 3 products instead of 9! · 8. Units may have fewer cells than digits.

    Numbers with a logarithm below ``underflow`` become 0, as in arithmetic of that range. The sums run on the CPU,
    without gradients; without numba they are slow.
    """
    outgoing = np.empty(incoming.shape)
    messages = incoming.detach().double().cpu().contiguous().numpy()
    with np.errstate(divide="ignore"):
        _all_different(messages, outgoing, _sizes(incoming.shape[2]), underflow)
    return torch.from_numpy(outgoing).to(incoming)


@cache
def _sizes(digits: int) -> np.ndarray:
    return np.array([subset.bit_count() for subset in range(1 << digits)])


@compiled
def _log_sum(terms: Any, count: int) -> float:
    """The logarithm of a sum of ``count`` numbers, given as logarithms."""
    largest = -np.inf
    for index in range(count):
        largest = max(largest, terms[index])
    if count < 2 or largest == -np.inf:
        return largest
    total = 0.0
    for index in range(count):
        if terms[index] - largest > NEGLIGIBLE:
            total += np.exp(terms[index] - largest)
    return largest + np.log(total)


@compiled
def _all_different(incoming: Any, outgoing: Any, sizes: Any, underflow: float) -> None:
    units, cells, digits = incoming.shape
    work = np.empty((3, 1 << digits))
    ways, counts = np.empty((cells, digits, 1 << digits - 1)), np.empty((cells, digits), np.int64)
    for unit in range(units):
        lowest = 0.0
        for cell in range(cells):
            for digit in range(digits):
                if incoming[unit, cell, digit] > -np.inf:
                    lowest = min(lowest, incoming[unit, cell, digit])
        if cells * lowest > max(underflow, SAFE):
            _with_numbers(incoming[unit], outgoing[unit], sizes, work)
        else:
            _with_logarithms(incoming[unit], outgoing[unit], sizes, underflow, work, ways, counts)


@compiled
def _with_numbers(incoming: Any, outgoing: Any, sizes: Any, work: Any) -> None:
    """A set of digits is a bit mask; cells come in order, so its size is the index of the next cell."""
    cells, digits = incoming.shape
    probabilities = np.exp(incoming)
    outgoing[:] = 0.0
    before, after = work[0], work[1]
    before[:] = 0.0
    before[0] = 1.0
    for subset in range(before.size):
        turn = sizes[subset]
        if turn < cells and before[subset] > 0:
            for digit in range(digits):
                if not subset >> digit & 1:
                    before[subset | 1 << digit] += before[subset] * probabilities[turn, digit]
    for subset in range(before.size - 1, -1, -1):
        turn = sizes[subset]
        after[subset] = 1.0 if turn == cells else 0.0
        if turn < cells:
            for digit in range(digits):
                if not subset >> digit & 1:
                    rest = after[subset | 1 << digit]
                    after[subset] += rest * probabilities[turn, digit]
                    outgoing[turn, digit] += rest * before[subset]
    outgoing[:] = np.log(outgoing)


@compiled
def _with_logarithms(
    incoming: Any, outgoing: Any, sizes: Any, underflow: float, work: Any, ways: Any, counts: Any
) -> None:
    """The same for numbers beyond the range of floating point."""
    cells, digits = incoming.shape
    before, after, terms = work[0], work[1], work[2]
    before[0] = 0.0
    for subset in range(1, before.size):
        turn, count = sizes[subset] - 1, 0
        if turn < cells:
            for digit in range(digits):
                if subset >> digit & 1:
                    term = before[subset ^ 1 << digit] + incoming[turn, digit]
                    if term > underflow:
                        terms[count] = term
                        count += 1
        before[subset] = _log_sum(terms, count)
    counts[:] = 0
    for subset in range(before.size - 1, -1, -1):
        turn, count = sizes[subset], 0
        after[subset] = 0.0
        if turn >= cells:
            continue
        for digit in range(digits):
            rest = after[subset | 1 << digit]
            if subset >> digit & 1 or rest == -np.inf:
                continue
            if before[subset] + rest > underflow:
                ways[turn, digit, counts[turn, digit]] = before[subset] + rest
                counts[turn, digit] += 1
            if rest + incoming[turn, digit] > underflow:
                terms[count] = rest + incoming[turn, digit]
                count += 1
        after[subset] = _log_sum(terms, count)
    for cell in range(cells):
        for digit in range(digits):
            outgoing[cell, digit] = _log_sum(ways[cell, digit], counts[cell, digit])


def normalised(messages: Tensor) -> Tensor:
    """Shift the last dimension so that its largest value is 0; all become 0 where all are -∞, a contradiction."""
    largest = messages.amax(-1, keepdim=True)
    return torch.where(largest == NEVER, 0.0, messages - largest)


class BeliefPropagation(PuzzleNetwork):
    """The sum-product algorithm of Bauke (2008). The state is the messages to cells, (n, 243 · 9), and its age.

    Args:
        schedule: in a step, all units send at once, or one after another in a random order per step.
        damping: the share of the previous message in the new one, in logarithms.
        underflow: see `all_different`.
        seed: of the random orders.
        graph: the factor graph.
    """

    def __init__(
        self,
        schedule: Literal["parallel", "random"] = "parallel",
        *,
        damping: float = 0.0,
        underflow: float = NEVER,
        seed: int = 0,
        graph: FactorGraph = SUDOKU,
    ) -> None:
        super().__init__()
        self.schedule, self.damping, self.underflow, self.seed, self.graph = schedule, damping, underflow, seed, graph

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        state = self.initial_state(batch) if state is None else state
        messages, (age, *fixed) = state.h.view(len(batch["puzzle"]), -1, 9), state.memory
        grids = fixed[0] if fixed else batch["puzzle"]
        evidence = evidence_of(grids)
        outputs = []
        for _ in range(steps):
            messages, age = self.step(messages, evidence, age), age + 1
            outputs.append(self.beliefs(messages, evidence).log_softmax(-1))
            if fixed:
                grids = self.fix(grids, outputs[-1], age)
                evidence = evidence_of(grids)
        return torch.stack(outputs).flatten(1, 2), State(messages.flatten(1), (age, grids) if fixed else (age,))

    def initial_state(self, batch: Batch) -> State:
        puzzles = batch["puzzle"]
        messages = torch.zeros(len(puzzles), self.graph.places * 9, dtype=torch.float64, device=puzzles.device)
        return State(messages, (torch.zeros_like(puzzles[:, :1]),))

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return state._replace(h=state.h + noise * normal_like(state.h, generator))

    def beliefs(self, messages: Tensor, evidence: Tensor) -> Tensor:
        """Logarithms of unnormalised marginals: (n, cells, digits)."""
        return normalised(evidence + self.graph.sum_at(messages, self.graph.places_of))

    def step(self, messages: Tensor, evidence: Tensor, age: Tensor) -> Tensor:
        """The messages to cells, (n, edges, digits), after another step; ``age`` (n, 1) counts steps."""
        known = evidence[:, self.graph.cell_of]
        if self.schedule == "parallel":
            incoming = known + self.graph.sum_at(messages, self.graph.elsewhere)
            return self._send(incoming.unflatten(1, (-1, self.graph.cells_per_unit)), messages, age)
        orders = np.stack(
            [np.random.default_rng([self.seed, t]).permutation(self.graph.units) for t in age[:, 0].tolist()]
        )
        size = self.graph.cells_per_unit
        in_order = torch.from_numpy(orders.T[..., None] * size + np.arange(size))
        rows = torch.arange(len(messages), device=messages.device)[:, None]
        messages = F.pad(messages, (0, 0, 0, 1))
        for places in in_order:
            incoming = known[rows, places] + messages[rows[..., None], self.graph.elsewhere[places]].sum(-2)
            messages[rows, places] = self._send(incoming[:, None], messages[rows, places], age)
        return messages[:, :-1]

    def _send(self, incoming: Tensor, earlier: Tensor, age: Tensor) -> Tensor:
        """The messages of units, shaped like the ``earlier`` ones, from incoming ones (n, units, cells, digits)."""
        if self.underflow > NEVER:
            incoming = incoming.masked_fill(incoming <= self.underflow, NEVER)
        incoming = self.transform(normalised(incoming), age)
        sent = normalised(all_different(incoming.flatten(0, 1), self.underflow)).view_as(earlier)
        return (1 - self.damping) * sent + self.damping * earlier if self.damping else sent

    def transform(self, incoming: Tensor, age: Tensor) -> Tensor:
        """Transform incoming messages (n, units, cells, digits) before the sums: the identity."""
        return incoming

    def fix(self, grids: Tensor, beliefs: Tensor, age: Tensor) -> Tensor:
        """Grids with further cells filled in, if the state has a grid: unchanged."""
        return grids


class ModifiedBeliefPropagation(BeliefPropagation):
    """Belief propagation made for Sudoku, after Khan, Jabbari, Jabbari and Ghanbarinejad (2014).

    After every ``fix_every`` steps the most probable digit of all open cells becomes a given. In every
    ``balance_every``-th step incoming messages are balanced. The state also has the current grid, (n, 81).
    """

    def __init__(
        self,
        schedule: Literal["parallel", "random"] = "random",
        *,
        fix_every: int = 20,
        balance_every: int | None = 2,
        **options: Any,
    ) -> None:
        super().__init__(schedule, **options)
        self.fix_every, self.balance_every = fix_every, balance_every

    def fix(self, grids: Tensor, beliefs: Tensor, age: Tensor) -> Tensor:
        return torch.where(age % self.fix_every == 0, fill_most_probable(grids, beliefs), grids)

    def transform(self, incoming: Tensor, age: Tensor) -> Tensor:
        if self.balance_every is None:
            return incoming
        due = ((age + 1) % self.balance_every == 0)[..., None, None]
        return torch.where(due, balanced(incoming), incoming) if due.any() else incoming

    def initial_state(self, batch: Batch) -> State:
        start = super().initial_state(batch)
        return State(start.h, (*start.memory, batch["puzzle"]))


def balanced(incoming: Tensor) -> Tensor:
    """Sinkhorn: messages (…, cells, digits) scaled until every cell and every digit sums to about 1."""
    for _ in range(SINKHORN_ROUNDS):
        for dimension in (-1, -2):
            total = incoming.logsumexp(dimension, keepdim=True)
            incoming = torch.where(total == NEVER, incoming, incoming - total)
    return normalised(incoming)


def evidence_of(puzzles: Tensor) -> Tensor:
    """The evidence of the givens, (n, 81) → (n, 81, 9): 0 for a possible digit, -∞ for an impossible one."""
    impossible = (puzzles > 0)[..., None] & (given_digits(puzzles) == 0)
    return torch.zeros_like(impossible, dtype=torch.float64).masked_fill(impossible, NEVER)
