"""Problems of candidates: declared constraints and Sudokus, solved by a network, with or without search."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from rrn.graphs import Groups
from rrn.inference.attempts import Problems, RecurrentNetwork, Slots
from rrn.inference.result import Status
from rrn.inference.rules import CandidateLayout, StackedLayouts
from rrn.inference.search import (
    CERTAIN_LOGIT,
    CHOICE_NOISE,
    BestFirstSearch,
    Branch,
    BranchQueue,
    CommitQueue,
    Committing,
)
from rrn.network import RRN, Prepared
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout
from rrn.nn.updates import SharedLayerUpdate, State

if TYPE_CHECKING:
    from rrn.training.tying import Ties

LAYER_WIDTH = 128


def make_network(
    types: int, hidden: int = 48, message_width: int = 16, layer_width: int | None = None, features: int = 1
) -> RRN:
    """The network for groups of so many types, on a graph whose nodes are the open candidates.

    ``layer_width`` is by default 128, or more if the messages need it. The last of the ``features`` of a node is 1.
    """
    messages = types * message_width
    layer_width = max(LAYER_WIDTH, messages) if layer_width is None else layer_width
    return RRN(
        features=features,
        hidden=messages,
        encoder_layers=None,
        message=GroupMessage(types, message_width),
        update=SharedLayerUpdate(hidden, messages, layer_width, features),
        readout=DotReadout(hidden),
    )


class GroupTable(NamedTuple):
    """The groups of all candidates of a problem.

    Attributes:
        member_of: (candidates, columns), as in `rrn.graphs.Groups`; or (problems, candidates, columns), if the problems
            of a batch have different groups.
        counts: the number of groups of each type.
        classes: candidates per cell, if all cells have the same number of them, in order; otherwise 1.
        column_types: (columns,), the type of each column; by default column k has type k.
    """

    member_of: Tensor
    counts: Sequence[int]
    classes: int = 1
    column_types: Sequence[int] | None = None


class OpenCandidates(NamedTuple):
    """The graph of the open candidates with its features, the indices of its nodes among all candidates, and the
    candidates per cell (see `GroupTable`)."""

    given: Prepared
    nodes: Tensor
    classes: int


class CandidateNetwork(RecurrentNetwork):
    """A network of `make_network` on batches of problems.

    A batch has "open", the open candidates, and "known", the logits of the others: (problems, candidates) each. Only
    open candidates are nodes, so the graph carries what is known. It may have "features", (problems, candidates,
    features - 1), of candidates.
    """

    exchangeable: Sequence[tuple[int, int]] = ()
    """Pairs of group types that a symmetry of the problem exchanges, all at once: rows and columns, for example."""

    def __init__(self, rrn: RRN) -> None:
        super().__init__()
        self.rrn = rrn

    def forward(
        self,
        batch: dict[str, Tensor],
        *,
        steps: int,
        state: State | None = None,
        candidates: OpenCandidates | None = None,
    ) -> tuple[Tensor, State]:
        """Logits of all candidates after each step, (steps, problems · cells, classes), and the state after the last.

        ``candidates`` is the result of `open_candidates`: for callers that know the groups, or run a batch repeatedly.
        """
        batch = batch if "open" in batch else self.prepare(batch)
        given, nodes, classes = candidates or self.open_candidates(batch, self.groups_of(batch))
        state = self.initial_state(batch) if state is None else state
        logits = batch["known"].flatten().repeat(steps, 1)
        if len(nodes):
            outputs, state = self.rrn.run(given, steps=steps, state=state)
            logits = logits.index_copy(1, nodes, outputs[..., 0])
        return logits.view(steps, -1, classes), state

    def open_candidates(self, batch: dict[str, Tensor], groups: GroupTable) -> OpenCandidates:
        """The graph of the open candidates of a batch and its features."""
        graph, nodes = open_graph(batch["open"], groups.member_of, groups.counts, groups.column_types)
        x = next(self.parameters()).new_ones(len(nodes), 1)
        if "features" in batch:
            x = torch.cat([batch["features"].flatten(0, 1)[nodes], x], dim=1)
        return OpenCandidates(self.rrn.prepare(x, graph) if len(nodes) else Prepared(x, graph), nodes, groups.classes)

    def groups_of(self, batch: dict[str, Tensor]) -> GroupTable:
        """The groups of the candidates of a batch."""
        raise NotImplementedError

    def rows(self, batch: dict[str, Tensor]) -> Tensor:
        batch = batch if "open" in batch else self.prepare(batch)
        return batch["open"].sum(1)

    def initial_state(self, batch: dict[str, Tensor]) -> State:
        batch = batch if "open" in batch else self.prepare(batch)
        return self.rrn.initial_state(next(self.parameters()).new_ones(int(batch["open"].sum()), 1))

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return self.rrn.update.add_noise(state, noise, generator)

    def ties(self) -> "list[Ties]":
        """The weights that are equal if the network does not distinguish `exchangeable` group types."""
        from rrn.training.tying import ties_of_group_types

        return ties_of_group_types(self.rrn, self.exchangeable) if self.exchangeable else []

    def widened(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        from rrn.training.growing import widen

        return widen(self.rrn, weights, "rrn.")


def open_graph(
    open_: Tensor, member_of: Tensor, counts: Sequence[int], column_types: Sequence[int] | None = None
) -> tuple[Groups, Tensor]:
    """The graph of the open candidates (problems, candidates), and the indices of its nodes among all candidates.

    ``member_of`` is (candidates, columns), or (problems, candidates, columns).
    """
    nodes = open_.flatten().nonzero()[:, 0]
    groups = member_of[nodes % open_.shape[1]] if member_of.dim() == 2 else member_of.flatten(0, 1)[nodes]
    return Groups(groups, counts, open_.sum(1).cumsum(0), column_types), nodes


def known_logits(true: Tensor) -> Tensor:
    """Logits of candidates that are not open: which of them are true, bool, → ±`CERTAIN_LOGIT`."""
    return torch.where(true, CERTAIN_LOGIT, -CERTAIN_LOGIT)


class CandidateBatch(Problems):
    """n problems of candidates, padded to the same number, and the network that predicts their logits.

    An answer is the logits (candidates,) of a step. It is accepted if the chosen candidates break no rule and contain
    all that is given. If each cell of all problems has exactly one true candidate (``decides``), the largest logit of a
    cell is chosen; otherwise all candidates with a positive logit are.

    Args:
        network: called with the batch of the problems in slots; returns a state and logits (steps, problems · cells,
            classes), of which those from ``first_class`` on are candidates.
        batch: what the network reads, tensors by name with n rows. For search it has "open", the open candidates, and
            maybe "known", the logits of the others: (n, candidates) each.
        layouts: candidates and groups of each problem; one for all of them if they share it.
        true: (n, candidates) bool, the candidates that are given.
        search: use best-first search; for networks trained to detect contradictions.
        commit: fix the surest candidate every few steps, see `rrn.inference.search`.
        counted_types: types of groups whose number of remaining true candidates is a feature of the network.
        evidence: (n, candidates), logits that are a feature of the network.
        preferences: (n, candidates), weights of candidates in the objective.
        seed: of the noise in choices.
        diagnose: the status and message of a problem whose first attempt failed, by its number.
    """

    def __init__(
        self,
        network: RecurrentNetwork,
        batch: dict[str, Tensor],
        layouts: CandidateLayout | Sequence[CandidateLayout],
        true: Tensor,
        *,
        search: bool = False,
        commit: bool = False,
        counted_types: Sequence[int] = (),
        evidence: Tensor | None = None,
        preferences: Tensor | None = None,
        seed: int = 0,
        diagnose: Callable[[int], tuple[Status, str]] | None = None,
    ) -> None:
        self.network, self.diagnosis = network, diagnose
        weight = next(network.parameters(), torch.empty(0, device="cpu"))
        self.device = weight.device
        self.batch = {name: part.to(self.device) for name, part in batch.items()}
        if "open" in batch and "known" not in batch:
            self.batch["known"] = known_logits(true).to(weight)
        self.layouts = [layouts] * len(true) if isinstance(layouts, CandidateLayout) else list(layouts)
        self.true, self.seed, self.decides = true, seed, all(layout.decides for layout in self.layouts)
        self.counted_types, self.evidence, self.preferences = counted_types, evidence, preferences
        self.best_of_attempts = preferences is not None
        self.stacked = StackedLayouts.of(self.layouts, true.shape[1])
        if search:
            self.search = BestFirstSearch(lambda problem, _: BranchQueue(*self._start(problem)), self._initial_state)
        elif commit:
            self.search = Committing(self._commit_queue, self._initial_state)

    def __len__(self) -> int:
        return len(self.true)

    def batch_key(self) -> Hashable:
        if len(self.stacked.group_of) > 1 or type(self.network) is CandidateNetwork:
            return self  # problems with different layouts or features
        parts = tuple((name, part.shape[1:]) for name, part in self.batch.items())
        return id(self.network), id(self.layouts[0]), parts, self.search is not None

    def empty(self) -> "CandidateBatch":
        if self.batch_key() is self:
            return self
        batch, search = {name: part[:0] for name, part in self.batch.items()}, self.search is not None
        return CandidateBatch(self.network, batch, self.layouts[:1], self.true[:0], search=search)

    def put(self, number: int, others: Problems, row: int) -> None:
        if others is self:
            return
        assert isinstance(others, CandidateBatch)
        self._running = None
        if number == len(self.true):
            one = slice(row, row + 1)
            self.true = torch.cat([self.true, others.true[one]])
            self.batch = {name: torch.cat([part, others.batch[name][one]]) for name, part in self.batch.items()}
            self.layouts += self.layouts[:1] if number else []
        else:
            self.true[number] = others.true[row]
            for name, part in self.batch.items():
                part[number] = others.batch[name][row]

    def enter(self, problems: Tensor) -> tuple[Tensor, State]:
        batch = {name: part[problems] for name, part in self.batch.items()}
        return self.network.rows(batch).cpu(), self.network.initial_state(batch)

    def run(self, slots: Slots, steps: int) -> tuple[Tensor, State]:
        batch, kwargs = self._inputs(slots)
        outputs, state = self.network(batch, steps=steps, state=slots.state, **kwargs)
        first, classes = self.network.first_class, outputs.shape[-1]
        logits = outputs.view(steps, len(slots.problems), -1, classes)[..., first:].flatten(2).cpu()
        if self.search is not None:
            widths = [len(self.layouts[problem].groups) for problem in slots.problems.tolist()]
            self.search.observe([row[:width] for row, width in zip(logits[-1], widths, strict=True)])
        return logits, state

    def _inputs(self, slots: Slots) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What the network reads of the problems in slots. Without search it stays the same until the slots change."""
        if self.search is not None:
            return self.inputs(slots.problems, self.search.branches(slots))
        problems = slots.problems.tolist()
        if self._running is None or self._running[0] != problems:
            self._running = problems, *self.inputs(slots.problems)
        return self._running[1:]

    _running: tuple[list[int], dict[str, Tensor], dict[str, Any]] | None = None

    def inputs(
        self, problems: Tensor, branches: Sequence[Branch] | None = None
    ) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The batch of some problems, or of branches of them, and the further arguments of the network."""
        batch, true = {name: part[problems] for name, part in self.batch.items()}, self.true[problems]
        if branches is not None:
            true, open_ = (self._padded(parts) for parts in ([b.true for b in branches], [b.open for b in branches]))
            batch["open"], batch["known"] = open_.to(self.device), known_logits(true).to(batch["known"])
        features = [self.stacked.remaining(true, problems, self.counted_types)] if self.counted_types else []
        features += [] if self.evidence is None else [self.evidence[problems][..., None]]
        if features:
            batch["features"] = torch.cat(features, dim=-1).to(batch["known"])
        if not isinstance(self.network, CandidateNetwork):
            return batch, {}
        member_of, counts, column_types, *_ = self.stacked
        member_of = member_of[problems] if len(member_of) > 1 else member_of[0]
        groups = GroupTable(member_of.to(self.device), counts, column_types=column_types)
        return batch, {"candidates": self.network.open_candidates(batch, groups)}

    def _padded(self, rows: list[Tensor]) -> Tensor:
        width = self.true.shape[1]
        return torch.stack([row if len(row) == width else pad(row, (0, width - len(row))) for row in rows])

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None) -> State:
        return self.network.add_noise(state, noise, generator)

    def diagnose(self, problem: int) -> tuple[Status, str]:
        return (Status.UNSOLVED, "") if self.diagnosis is None else self.diagnosis(problem)

    def finished(self, slots: Slots, outputs: Tensor) -> Tensor:
        return self.keeps_rules(self.choose(outputs, slots.problems), slots.problems)

    def answer(self, slots: Slots, outputs: Tensor, slot: int, step: int) -> Tensor:
        return outputs[step, slot]

    def objective(self, problem: int, answer: Tensor) -> float:
        assert self.preferences is not None
        chosen = self.choose(answer[None, None], torch.tensor([problem], device="cpu"))
        return float(self.preferences[problem][chosen[0, 0]].sum())

    def choose(self, logits: Tensor, problems: Tensor) -> Tensor:
        """The candidates chosen by logits (steps, problems, candidates), bool."""
        if "open" in self.batch:
            logits = logits.where((self.batch["open"][problems].cpu() | self.true[problems]), float("-inf"))
        if not self.decides:
            return logits > 0
        return self.stacked.largest_of_cells(logits, problems)

    def keeps_rules(self, chosen: Tensor, problems: Tensor) -> Tensor:
        """Whether a choice (steps, problems, candidates) breaks no rule and contains the givens: (steps, problems)."""
        return self.stacked.keep_rules(chosen, self.true[problems], problems)

    def confidence(self, answers: list[Tensor]) -> np.ndarray:
        if not answers:
            return np.zeros(0)
        logits, given = torch.stack(answers), self.true
        if not self.decides:
            certainty = logits.abs().sigmoid().where(logits.abs() < CERTAIN_LOGIT, 0.0)
            open_ = (certainty > 0).sum(1)
            return (certainty.sum(1) / open_.clamp_min(1)).where(open_ > 0, 1.0).double().numpy()
        cell = self.stacked.select(self.stacked.group_of[..., 0], torch.arange(len(logits), device="cpu"))
        cells = logits.new_zeros(len(logits), self.stacked.lower.shape[1])
        largest = torch.full_like(cells, float("-inf")).scatter_reduce(1, cell, logits, "amax")
        total = cells.scatter_add(1, cell, (logits - largest.gather(1, cell)).exp())
        asked = cells.scatter_reduce(1, cell, torch.where(given, 2.0, 1.0).to(cells), "amax") == 1.0
        asked[:, -1] = False
        mean = (1 / total.clamp_min(1)).where(asked, 0.0).sum(1) / asked.sum(1).clamp_min(1)
        return mean.where(asked.any(1), 1.0).double().numpy()

    def _initial_state(self, problem: int) -> State:
        return self.enter(torch.tensor([problem], device="cpu"))[1]

    def _start(self, problem: int) -> tuple[CandidateLayout, Tensor, Tensor]:
        layout, width = self.layouts[problem], len(self.layouts[problem].groups)
        return layout, self.batch["open"][problem, :width].cpu(), self.true[problem, :width]

    def _commit_queue(self, problem: int, attempt: int) -> CommitQueue:
        start, preferences = self._start(problem), None
        if self.preferences is not None:
            preferences = self.preferences[problem, : len(start[1])].double().numpy()
        return CommitQueue(
            *start,
            lambda: self._initial_state(problem),
            decides=self.decides,
            noise=CHOICE_NOISE if attempt > 1 else 0.0,
            preferences=preferences,
            rng=np.random.default_rng([self.seed, problem, attempt]),
        )
