"""The networks for Sudoku.

All are called with a batch of puzzles and return, for every step, logits of shape (puzzles · 81, digits). Class 0 of
the paper's networks stands for "empty" and is never right; ``first_digit`` says which class is the digit 1.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.graphs import Graph
from rrn.messages import Message
from rrn.network import RRN
from rrn.readouts import Readout
from rrn.tasks.sudoku import fast
from rrn.tasks.sudoku.baselines.convolutional import ConvolutionalSudoku
from rrn.tasks.sudoku.baselines.learned_messages import LearnedMessages
from rrn.tasks.sudoku.graph import KINDS, CandidateGraph, cell_graph
from rrn.tasks.sudoku.presets import SudokuPreset
from rrn.training.experiment import Batch
from rrn.updates import State, Update

CERTAIN = 20.0
"""Logit of a given; what givens rule out has as much less than nothing."""
LARGEST = 6.0
"""Units of the shared layer are cut off here: sums over groups feed back into it, and must not run away."""


def build(preset: SudokuPreset) -> nn.Module:
    match preset.network:
        case "candidates":
            return CandidateSudoku(preset)
        case "learned-messages":
            return LearnedMessages(preset.hidden)
        case "convolutional":
            return ConvolutionalSudoku(preset.hidden)
        case "paper" | "rn-graph":
            return CellSudoku(preset)


class CellSudoku(nn.Module):
    """The paper's network, on the graph of cells; or, as "rn-graph", the relational network that sums everything."""

    first_digit = 1

    def __init__(self, preset: SudokuPreset) -> None:
        super().__init__()
        self.digit = nn.Embedding(10, 16)
        self.row = nn.Embedding(9, 16)
        self.column = nn.Embedding(9, 16)
        self.whole_graph = preset.network == "rn-graph"
        self.rrn = RRN(
            features=48,
            hidden=preset.hidden,
            outputs=810 if self.whole_graph else 10,
            edge_features=1 if preset.layers == 3 else 0,
            encoder_layers=preset.layers,
            message_layers=preset.layers,
            update="none" if self.whole_graph else "lstm",
            update_layers=preset.layers,
            readout="graph" if self.whole_graph else "node",
            readout_layers=preset.layers if self.whole_graph else 0,
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        x, count = self.features(batch["puzzle"]), len(batch["puzzle"])
        node_batch = torch.arange(count).repeat_interleave(81)
        always_zero = x.new_zeros(1, 1, 1) if self.rrn.edge_features else None
        given = self.rrn.prepare(x, cell_graph(count), always_zero, node_batch)
        if state is not None and "age" in batch:  # of a puzzle that is new in its place the state means nothing
            state = state.where((batch["age"] == 0).repeat_interleave(81), self.rrn.init_state(given))
        outputs, state = self.rrn.run(given, steps=steps, state=state)
        return outputs.view(steps, count * 81, 10), state

    def features(self, puzzles: Tensor) -> Tensor:
        cells = torch.arange(81)
        positions = torch.cat([self.row(cells // 9), self.column(cells % 9)], dim=-1)
        return torch.cat([self.digit(puzzles), positions.expand(len(puzzles), -1, -1)], dim=-1).flatten(0, 1)

    def start(self, puzzles: Tensor) -> State:
        return self.rrn.init_state(self.features(puzzles))

    def shaken(self, state: State, noise: float, generator: torch.Generator) -> State:
        """The state with noise of a standard deviation added."""
        return State(state.h + torch.randn(state.h.shape, generator=generator) * noise, state.memory)


def what_givens_say(puzzles: Tensor, box: tuple[int, int] = (3, 3)) -> tuple[Tensor, Tensor]:
    """Which candidates are given, and which are still open: (puzzles, cells) → two of (puzzles · n³,), bool.

    The rest is ruled out: by the digit given in the same cell, or by a given in the same row, column or box.
    """
    high, wide = box
    n, count = high * wide, puzzles.shape[0]
    grid = puzzles.view(count, n, n)
    given = F.one_hot(grid, n + 1)[..., 1:].bool()
    boxes = given.view(count, n // high, high, n // wide, wide, n)
    in_box = boxes.any(4, keepdim=True).any(2, keepdim=True).expand_as(boxes).reshape_as(given)
    seen = given.any(2, keepdim=True) | given.any(1, keepdim=True) | in_box
    still_open = (grid == 0)[..., None] & ~seen
    return given.view(-1), still_open.view(-1)


class GroupMessage(Message):
    """f hands on part k of h to the sender's group of kind k, where it is summed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.outputs = KINDS * width

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        assert isinstance(graph, CandidateGraph)
        return graph.group_sums(h)


class CandidateUpdate(Update):
    """One layer z on [s, m, x], from which the messages (`GroupMessage`) and the change of s are both read::

        z ← x · clamp([s, m, x] W, 0, 6)        s ← unit(s + z V)

    The first units of z are what other nodes hear of (h), s is what the answer is read from; unit() scales to a mean
    square of 1. x is 1 for an open candidate and 0 for the others, which so stay silent.
    """

    def __init__(self, hidden: int, messages: int, layer: int) -> None:
        super().__init__()
        if layer < messages:
            raise InputError(f"layer_width: expected at least the {messages} units of all messages, got {layer}")
        self.hidden, self.messages = hidden, messages
        first = torch.randn(hidden + messages + 1, layer) * (2 * hidden + messages) ** -0.5
        first[hidden:] *= 0.3
        first[-1] = torch.randn(layer) * 0.3
        self.first = nn.Parameter(first)
        self.second = nn.Parameter(torch.randn(layer, hidden) * 0.5 * layer**-0.5)

    def start(self, x: Tensor) -> State:
        nodes = x.shape[0]
        return State(x.new_zeros(nodes, self.messages), (x.new_zeros(nodes, self.hidden),))

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        (s,) = state.memory
        z = (torch.cat([s, m, x], dim=-1) @ self.first).clamp(0.0, LARGEST) * x
        s = s + z @ self.second
        return State(z[:, : self.messages], (s * torch.rsqrt(s.square().mean(-1, keepdim=True) + 1e-6),))

    def shown(self, state: State) -> Tensor:
        return state.memory[0]


class CandidateSudoku(nn.Module):
    """A recurrent relational network whose nodes are the candidates.

    Candidates that the givens rule out take no part: the open ones are the graph. The network is not told which digit,
    row or column a candidate is of, so it treats all digits, lines, bands and stacks alike, and runs on Sudokus of any
    size. It does tell rows from columns: each kind of group has weights of its own.
    """

    first_digit = 0

    def __init__(self, preset: SudokuPreset) -> None:
        super().__init__()
        messages = KINDS * preset.message_width
        self.rrn = RRN(
            features=1,
            hidden=messages,
            outputs=1,
            encoder_layers=None,
            message=GroupMessage(preset.message_width),
            update=CandidateUpdate(preset.hidden, messages, preset.layer_width),
            readout=CandidateReadout(preset.hidden),
        )

    def forward(
        self, batch: Batch, *, steps: int, state: State | None = None, box: tuple[int, int] = (3, 3)
    ) -> tuple[Tensor, State]:
        given, still_open = what_givens_say(batch["puzzle"], box)
        update, readout = self.rrn.update, self.rrn.readout
        assert isinstance(update, CandidateUpdate)
        assert isinstance(readout, CandidateReadout)
        x = still_open.to(update.first.dtype)[:, None]
        graph = CandidateGraph(batch["puzzle"].shape[0], box)
        if fast.fits(x, box):
            state = self.rrn.init_state(x) if state is None else state
            weights = update.first, update.second, readout.weight
            logits, h, s = fast.run_steps(state.h, state.memory[0], still_open, *weights, steps)
            state = State(h, (s,))
        else:
            outputs, state = self.rrn.run(x, graph, steps=steps, state=state)
            logits = outputs.view(steps, -1)
        known = torch.where(given, CERTAIN, -CERTAIN).to(logits.dtype)
        return torch.where(still_open, logits, known).view(steps, -1, graph.size), state

    def start(self, puzzles: Tensor) -> State:
        return self.rrn.init_state(next(self.parameters()).new_zeros(puzzles.shape[0] * 729, 1))

    def shaken(self, state: State, noise: float, generator: torch.Generator) -> State:
        """The state with noise of a standard deviation added; s has a mean square of 1."""
        (s,) = state.memory
        return State(state.h, (s + torch.randn(s.shape, generator=generator) * noise,))


class CandidateReadout(Readout):
    """The logit of a candidate: one weight a unit. The nine candidates of a cell make its softmax."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden) * hidden**-0.5)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        assert isinstance(graph, CandidateGraph)
        return (h @ self.weight).view(-1, graph.size)
