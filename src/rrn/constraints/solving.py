"""Solving declared problems with a network: answers, and whether each of them breaks no rule.

Problems that share their groups can also be batches of tensors: `CandidateNetwork`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from rrn.constraints.declaring import Problem
from rrn.errors import InputError
from rrn.graphs import Groups
from rrn.inference.places import NOISE, Places, Resumable, think_through
from rrn.inference.search import Branch, Search, Searches
from rrn.network import RRN
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout
from rrn.nn.updates import SharedLayerUpdate, State
from rrn.training.growing import widen
from rrn.training.tying import Axis, Ties

PLACES = 32
"""Problems worked on at a time."""
STARTS = 8


class Batch:
    """Problems side by side, as one graph of their open candidates.

    Attributes:
        sizes: (problems,), the open candidates of each.
        target: (nodes,), which of them are true; none of a problem whose answer is not known.
    """

    def __init__(self, problems: Sequence[Problem], kinds: tuple[str, ...]) -> None:
        parts = [problem.constraints.as_kinds(kinds) for problem in problems]
        self.counts = [max(sizes) for sizes in zip(*(counts for _, counts, _ in parts), strict=True)]
        opened = [problem.still_open for problem in problems]
        members = [member_of[still_open] for (member_of, _, _), still_open in zip(parts, opened, strict=True)]
        self.sizes = torch.tensor([len(rows) for rows in members], device="cpu")
        self.graph = Groups(torch.from_numpy(np.concatenate(members)), self.counts, self.sizes.cumsum(0))
        self.decides = problems[0].constraints.decides
        first = np.cumsum([0, *self.counts])
        self.needed = torch.zeros(len(problems), first[-1], dtype=torch.bool, device="cpu")
        """(problems, groups), which groups still need a true member."""
        for row, problem, (_, _, groups) in zip(self.needed.numpy(), problems, parts, strict=True):
            missing = problem.constraints.needed & ~problem.taken
            for k, of_kind in enumerate(groups):
                row[first[k] : first[k] + len(of_kind)] = missing[of_kind]
        answers = [
            p.answer if p.answer is not None else np.zeros(len(o), bool) for p, o in zip(problems, opened, strict=True)
        ]
        answers = [answer[still_open] for answer, still_open in zip(answers, opened, strict=True)]
        self.target = torch.from_numpy(np.concatenate(answers))

    def largest(self, logits: Tensor) -> Tensor:
        """The largest logit in the group of the first kind that each node stands in: (steps, nodes)."""
        group = self.graph.rows()[:, 0].expand_as(logits)
        lowest = logits.new_full((len(logits), self.needed.numel()), float("-inf"))
        return lowest.scatter_reduce(1, group, logits, "amax").gather(1, group)

    def decide(self, logits: Tensor) -> Tensor:
        """Which candidates are said to be true after each step: (steps, nodes) → bool."""
        return logits == self.largest(logits) if self.decides else logits > 0

    def keeps_the_rules(self, chosen: Tensor) -> Tensor:
        """Whether each problem's answer breaks no rule, after each step: (steps, nodes) → (steps, problems)."""
        groups, kinds = self.graph.rows(), len(self.counts)
        counts = chosen.new_zeros(len(chosen), self.needed.numel(), dtype=torch.int32)
        counts.index_add_(1, groups.flatten(), chosen.int().repeat_interleave(kinds, dim=1))
        counts = counts.view(len(chosen), *self.needed.shape)
        return ((counts <= 1) & ((counts == 1) | ~self.needed)).all(-1)


@dataclass(frozen=True)
class Solutions:
    """What `Solver.solve` found for n problems.

    Attributes:
        answers: of each problem the names of the candidates that are true. Look at ``valid`` before you trust one.
        valid: (n,) whether the answer breaks no rule and keeps what is given.
        steps: (n,) steps of message passing it took, in the start that counts.
        starts: (n,) the start that found it, 1 for the clean one; or how many there were.
    """

    answers: list[list[Any]]
    valid: np.ndarray
    steps: np.ndarray
    starts: np.ndarray

    def solved_by_starts(self) -> list[float]:
        """The share solved within 1, 2, … starts, up to the most that any problem took."""
        most = int(self.starts.max(initial=0))
        return [float((self.valid & (self.starts <= starts)).mean()) for starts in range(1, most + 1)]


def make_network(kinds: int, hidden: int = 48, message_width: int = 16, layer_width: int = 128) -> RRN:
    """A network on groups of so many kinds: the one that solves Sudokus."""
    messages = kinds * message_width
    return RRN(
        features=1,
        hidden=messages,
        encoder_layers=None,
        message=GroupMessage(kinds, message_width),
        update=SharedLayerUpdate(hidden, messages, layer_width),
        readout=DotReadout(hidden),
    )


class Solver:
    """A network and the kinds of groups that it knows. `Constraints.fit` makes one.

    ``refutes``: it was trained to see that something given is wrong (``fit(…, wrong=…)``), so it can guess.
    """

    def __init__(self, network: RRN, kinds: Sequence[str], refutes: bool = False) -> None:
        message = network.message
        if not isinstance(message, GroupMessage) or message.group_types != len(kinds):
            found = f"{message.group_types} kinds" if isinstance(message, GroupMessage) else type(message).__name__
            raise InputError(f"network: expected one for {len(kinds)} kinds of groups, got {found}")
        self.network, self.kinds, self.refutes = network, tuple(kinds), refutes

    def solve(
        self,
        problems: Problem | Sequence[Problem],
        *,
        max_steps: int = 64,
        starts: int = STARTS,
        noise: float = NOISE,
        guess: bool = True,
        places: int = PLACES,
        seed: int = 0,
        progress: Callable[[int], None] = lambda count: None,
    ) -> Solutions:
        """Run the network on problems until their answers break no rule, or ``max_steps`` have passed.

        Args:
            problems: one or many, of any sizes.
            max_steps: steps of one start.
            starts: how often to begin; all but the first, clean one get noise on the way.
            noise: its standard deviation.
            guess: let a network that ``refutes`` search: see `rrn.inference.search`.
            places: problems worked on at a time.
            seed: of the noise.
            progress: told how many more problems are done.
        """
        problems = [problems] if isinstance(problems, Problem) else list(problems)
        generator = torch.Generator().manual_seed(seed)
        guess = guess and self.refutes and all(problem.constraints.decides for problem in problems)
        with torch.inference_mode():
            found = think_through(
                _GuessedWork(self, problems) if guess else _Work(self, problems),
                max_steps=max_steps,
                starts=starts,
                noise=noise,
                places=places,
                generator=generator,
                progress=progress,
            )
        answers = [
            [problem.constraints.names[number] for number in true]
            for problem, true in zip(problems, found.answers, strict=True)
        ]
        return Solutions(answers, found.finished.numpy(), found.steps.numpy(), found.starts.numpy())

    def save(self, folder: str | Path) -> None:
        """Write weights (safetensors) and settings (JSON), for `load` and for ``rrn solve --weights``."""
        from rrn.constraints.files import save_solver

        save_solver(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "Solver":
        """What `save` wrote, ready to use."""
        from rrn.constraints.files import load_solver

        return load_solver(Path(folder))


class _Work:
    """Problems as `rrn.inference.places.Work`: finished when the answer breaks no rule."""

    guide: Searches | None = None

    def __init__(self, solver: Solver, problems: Sequence[Problem]) -> None:
        self.network, self.kinds, self.problems = solver.network, solver.kinds, problems
        self.noisy = solver.network.update.add_noise
        self.at_work: list[Problem] = []
        self.batch: Batch | None = None

    def __len__(self) -> int:
        return len(self.problems)

    def begin(self, numbers: Tensor) -> tuple[Tensor, State]:
        return enter(self.network, [self.problems[number] for number in numbers.tolist()])

    def now(self, places: Places) -> list[Problem]:
        """The problem in each place, with what was guessed of it."""
        return [self.problems[number] for number in places.numbers.tolist()]

    def run(self, places: Places, steps: int) -> tuple[Tensor, State]:
        at_work = self.now(places)
        if self.batch is None or at_work != self.at_work:
            self.at_work, self.batch = at_work, Batch(at_work, self.kinds)
        return run(self.network, self.batch.graph, steps, places.state)

    def finished(self, places: Places, outputs: Tensor) -> Tensor:
        assert self.batch is not None
        return self.batch.keeps_the_rules(self.batch.decide(outputs))

    def answer(self, places: Places, outputs: Tensor, place: int, step: int) -> np.ndarray:
        """The candidates that are said to be true, by their numbers."""
        assert self.batch is not None
        chosen = self.batch.decide(outputs[step : step + 1])[0].split(self.batch.sizes.tolist())[place]
        problem = self.at_work[place]
        return np.sort(np.concatenate([problem.given, np.flatnonzero(problem.still_open)[chosen.numpy()]]))


class _GuessedWork(_Work):
    """Problems in which the network guesses: each start of each has a graph of its own."""

    guide: Searches

    def __init__(self, solver: Solver, problems: Sequence[Problem]) -> None:
        super().__init__(solver, problems)
        self.guide = Searches(self._search, lambda number: enter(self.network, [self.problems[number]])[1])
        self.made: dict[tuple[int, int], tuple[Branch, Problem]] = {}

    def _search(self, number: int) -> Search:
        problem = self.problems[number]
        true = np.zeros_like(problem.still_open)
        true[problem.given] = True
        still_open = torch.from_numpy(problem.still_open)
        return Search(problem.constraints.candidates, still_open, torch.from_numpy(true))

    def now(self, places: Places) -> list[Problem]:
        before, self.made = self.made, {}
        for key, branch in zip(places.who(), self.guide.branches(places), strict=True):
            known = before.get(key)
            if known is None or known[0] is not branch:
                still_open, true = branch.still_open.numpy(), branch.true.numpy()
                excluded = np.flatnonzero(~(still_open | true))
                known = branch, Problem(self.problems[key[0]].constraints, np.flatnonzero(true), excluded)
            self.made[key] = known
        return [problem for _, problem in self.made.values()]

    def run(self, places: Places, steps: int) -> tuple[Tensor, State]:
        outputs, state = super().run(places, steps)
        of_all = [outputs.new_zeros(len(problem.still_open)) for problem in self.at_work]
        said = outputs[-1].split([int(problem.still_open.sum()) for problem in self.at_work])
        for logits, problem, of_open in zip(of_all, self.at_work, said, strict=True):
            logits[torch.from_numpy(problem.still_open)] = of_open
        self.guide.hear(places, of_all)
        return outputs, state


def enter(network: RRN, problems: Sequence[Problem]) -> tuple[Tensor, State]:
    """How many open candidates each problem has, and the state of all of them before the first step."""
    sizes = torch.tensor([int(problem.still_open.sum()) for problem in problems], device="cpu")
    return sizes, network.initial_state(next(network.parameters()).new_ones(int(sizes.sum()), 1))


def run(network: RRN, graph: Groups, steps: int, state: State) -> tuple[Tensor, State]:
    """The logits of the open candidates after each step, (steps, nodes), and the state after the last."""
    if not graph.num_nodes:
        return state.h.new_zeros(steps, 0), state
    outputs, state = network.run(state.h.new_ones(graph.num_nodes, 1), graph, steps=steps, state=state)
    return outputs[..., 0], state


def open_graph(still_open: Tensor, member_of: Tensor, counts: Sequence[int]) -> tuple[Groups, Tensor]:
    """The graph of the open candidates (problems, candidates), and which of all candidates its nodes are."""
    nodes = still_open.flatten().nonzero()[:, 0]
    return Groups(member_of[nodes % still_open.shape[1]], counts, still_open.sum(1).cumsum(0)), nodes


class CandidateNetwork(Resumable):
    """`make_network` on problems that share their groups: those of a batch with "open", which candidates are, and
    "known", the logits of the others, (problems, candidates) each; `prepare` may derive them.

    Candidates that are not open take no part: the graph itself says what is known.
    """

    exchanged: Sequence[tuple[int, int]] = ()
    """Pairs of kinds that a symmetry of the problem exchanges, all at once: rows and columns, say."""

    def __init__(self, kinds: int, hidden: int, message_width: int, layer_width: int) -> None:
        super().__init__()
        self.rrn = make_network(kinds, hidden, message_width, layer_width)
        self.kinds = kinds

    def run(
        self, batch: dict[str, Tensor], member_of: Tensor, counts: Sequence[int], steps: int, state: State | None
    ) -> tuple[Tensor, State]:
        """The logits of all candidates after each step, (steps, problems · candidates), and the state after the last.

        ``member_of`` and ``counts`` are as in `Constraints`.
        """
        graph, nodes = open_graph(batch["open"], member_of, counts)
        outputs, state = run(self.rrn, graph, steps, state or self.start(batch))
        return batch["known"].flatten().repeat(steps, 1).index_copy(1, nodes, outputs), state

    def rows(self, batch: dict[str, Tensor]) -> Tensor:
        return self.prepare(batch)["open"].sum(1)

    def start(self, batch: dict[str, Tensor]) -> State:
        return self.rrn.initial_state(next(self.parameters()).new_ones(int(self.rows(batch).sum()), 1))

    def noisy(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return self.rrn.update.add_noise(state, noise, generator)

    def ties(self) -> list[Ties]:
        """What is equal if the network treats kinds alike that are `exchanged`: a third of its units belong to the
        first of each pair, and a third to the second."""
        if not self.exchanged:
            return []
        update, readout = cast(SharedLayerUpdate, self.rrn.update), cast(DotReadout, self.rrn.readout)
        width = update.messages // self.kinds
        owner, role = torch.full((self.kinds,), -1, device="cpu"), torch.arange(self.kinds, device="cpu")
        for one, second in self.exchanged:
            owner[one], owner[second], role[second] = 0, 1, one
        roles = role[:, None] * width + torch.arange(width, device="cpu")
        messages = Axis(owner.repeat_interleave(width), roles.flatten())
        layer, state = (_thirds(units) for units in (update.first.shape[1] - update.messages, update.hidden))
        layer = messages + layer
        told = state + messages + Axis.of(0, 0, 1)
        return [
            Ties(update.first, told, layer, inputs=0),
            Ties(update.second, layer, state, inputs=0),
            Ties(readout.weight, state),
        ]

    def widened(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The weights of a narrower network of this kind, widened: see `rrn.training.growing`."""
        update, second = cast(SharedLayerUpdate, self.rrn.update), weights.get("rrn.update.second")
        if second is None or second.shape == update.second.shape:
            return weights
        layer, hidden = second.shape
        rest = layer - (len(weights["rrn.update.first"]) - 1 - hidden)
        state, others = _thirds_of(hidden, update.hidden), _thirds_of(rest, len(update.second) - update.messages)
        return widen(self.rrn, weights, state, others, prefix="rrn.")


def _thirds(units: int) -> Axis:
    """A third of the units for the first of each pair of kinds, one for the second, and the rest for both."""
    return Axis.of(2, units // 3, units - 2 * (units // 3))


def _thirds_of(few: int, many: int) -> Tensor:
    """Where few units stand among many, if each keeps to its third."""
    each, third = few // 3, many // 3
    shares = (0, each), (third, each), (2 * third, few - 2 * each)
    return torch.cat([torch.arange(first, first + count, device="cpu") for first, count in shares])
