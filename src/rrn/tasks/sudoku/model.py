"""The networks for Sudoku: on the graph of cells, as in the paper, and on the graph of open candidates."""

from abc import abstractmethod
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from rrn.graphs import NeighbourTable
from rrn.inference.attempts import RecurrentNetwork
from rrn.inference.candidates import CandidateNetwork, GroupTable, known_logits, make_network
from rrn.network import RRN
from rrn.nn.updates import State
from rrn.tasks.sudoku.baselines.presets import ConvolutionalPreset, LearnedMessagesPreset, WholeGraphPreset
from rrn.tasks.sudoku.declared import sudoku
from rrn.tasks.sudoku.grid import Box, box_of, candidates_of, neighbours, size_of
from rrn.tasks.sudoku.settings import CandidatesPreset, PaperPreset, SudokuPreset
from rrn.training.experiment import Batch
from rrn.training.tying import Axis, Ties, ties_of

OWN_UNIT = 3.0
"""Added to the unit that belongs to a digit in its embedding, at initialisation, where digits are tied."""
GROUP_TYPES = 6
"""Group types of `candidate_groups`."""
ROWS_AND_COLUMNS = ((1, 2), (4, 5))


class PuzzleNetwork(RecurrentNetwork):
    """The interface of every network for Sudoku: the paper's, ours and the baselines.

    Called with a batch of puzzles ("puzzle": (n, 81) digits, 0 for empty), it returns logits of the digits of every
    cell after every step, (steps, n · 81, classes), and the state after the last step.
    """

    validation_steps: int | None = None
    """Steps of validation, if they differ from those of training."""
    detects_contradictions = False
    """Whether the logits of a cell also predict that no digit fits, which best-first search needs."""

    @abstractmethod
    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]: ...


def build(preset: SudokuPreset) -> PuzzleNetwork:
    from rrn.tasks.sudoku.baselines.convolutional import ConvolutionalSudoku
    from rrn.tasks.sudoku.baselines.learned_messages import LearnedMessages

    match preset:
        case CandidatesPreset():
            return CandidateSudoku(preset)
        case PaperPreset():
            return CellSudoku(preset)
        case WholeGraphPreset():  # the relational network that sums all messages
            return CellSudoku(preset, outputs=810, update="none", readout="graph", readout_layers=preset.layers)
        case LearnedMessagesPreset():
            return LearnedMessages(preset.hidden)
        case ConvolutionalPreset():
            return ConvolutionalSudoku(preset.hidden, preset.tied_digit_units)
    raise AssertionError(preset)


@cache
def cell_graph(puzzles: int, device: torch.device) -> NeighbourTable:
    """The paper's graph, for a batch: one node per cell, 1,620 edges per puzzle."""
    return NeighbourTable.repeat(torch.from_numpy(neighbours()).to(device), puzzles)


class CellSudoku(PuzzleNetwork):
    """The paper's network, on the graph of cells. ``changed`` overrides settings of its `RRN`."""

    first_class = 1

    def __init__(self, preset: PaperPreset | WholeGraphPreset, **changed: Any) -> None:
        super().__init__()
        self.digit = nn.Embedding(10, 16)
        self.row = nn.Embedding(9, 16)
        self.column = nn.Embedding(9, 16)
        self.tied_digit_units = preset.tied_digit_units if isinstance(preset, PaperPreset) else 0
        layers = {f"{part}_layers": preset.layers for part in ("encoder", "message", "update")}
        settings: dict[str, Any] = {"outputs": 10, "update": "lstm", "readout": "node", "readout_layers": 0} | layers
        edges = 1 if preset.layers == 3 else 0
        self.rrn = RRN(features=48, hidden=preset.hidden, edge_features=edges, **settings | changed)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        x, count = self.features(batch["puzzle"]), len(batch["puzzle"])
        node_batch = torch.arange(count, device=x.device).repeat_interleave(81)
        always_zero = x.new_zeros(1, 1, 1) if self.rrn.edge_features else None
        given = self.rrn.prepare(x, cell_graph(count, x.device), always_zero, node_batch)
        if state is not None and "age" in batch:  # a new puzzle starts from x, with gradients
            state = state.where((batch["age"] == 0).repeat_interleave(81), self.rrn.initial_state(given))
        outputs, state = self.rrn.run(given, steps=steps, state=state)
        return outputs.reshape(steps, count * 81, 10), state

    def features(self, puzzles: Tensor) -> Tensor:
        """Digits (n, 81), or probabilities of "empty" and the digits (n, 81, 10), as node features (n · 81, 48)."""
        cells = torch.arange(81, device=puzzles.device)
        positions = torch.cat([self.row(cells // 9), self.column(cells % 9)], dim=-1)
        digits = puzzles @ self.digit.weight if puzzles.is_floating_point() else self.digit(puzzles)
        return torch.cat([digits, positions.expand(len(puzzles), -1, -1)], dim=-1).flatten(0, 1)

    def rows(self, batch: Batch) -> Tensor:
        return torch.full_like(batch["puzzle"][:, 0], 81)

    def initial_state(self, batch: Batch) -> State:
        return self.rrn.initial_state(self.features(batch["puzzle"]))

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        return self.rrn.update.add_noise(state, noise, generator)

    def ties(self) -> list[Ties]:
        """The weights that are equal if digits are tied: ``tied_digit_units`` of every layer belong to each digit."""
        if not (units := self.tied_digit_units):
            return []
        names, digit = Axis.of(0, 0, 1) + Axis.of(9, 1, 0), Axis.of(9, 1, 7)
        hidden = Axis.of(9, units, self.rrn.hidden - 9 * units)
        two = hidden + hidden
        return ties_of(
            self,
            hidden,
            outputs={"digit": names, "rrn.update.gates": two + two, "rrn.readout.mlp.linears.0": names},
            inputs={
                "digit": digit,
                "rrn.encoder.linears.0": digit + Axis.of(0, 0, 32),
                "rrn.message.mlp.linears.0": two + Axis.of(0, 0, 1) if self.rrn.edge_features else two,
                "rrn.update.reader.mlp.linears.0": two,
                "rrn.update.gates": two,
            },
            left_out=("row", "column"),
        )

    def tie_weights(self) -> None:
        for tied in self.ties():
            if tied.parameter is self.digit.weight:
                with torch.no_grad():
                    self.digit.weight.copy_(tied.mean(self.digit.weight))
                    self.digit.weight[1:, :9] += OWN_UNIT * torch.eye(9, device=self.digit.weight.device)
            elif tied.parameter.dim() == 2:
                tied.draw(gates=len(tied.parameter) // self.rrn.hidden or 1)


class CandidateSudoku(CandidateNetwork, PuzzleNetwork):
    """A recurrent relational network whose nodes are the open candidates.

    Candidates ruled out by the givens are removed before the network runs. It has no features of digits, rows and
    columns, so it is equivariant to permuting digits, lines, bands and stacks, and runs on Sudokus of any size.
    Rows and columns differ: each group type has its own weights. ``box`` is needed only where the number of cells does
    not determine it.
    """

    def __init__(self, preset: CandidatesPreset) -> None:
        rrn = make_network(GROUP_TYPES, preset.hidden, preset.message_width, preset.layer_width)
        super().__init__(rrn)
        self.detects_contradictions = preset.contradiction_share > 0
        self.exchangeable = ROWS_AND_COLUMNS if preset.tie_rows_and_columns else ()

    def prepare(self, batch: Batch, box: Box | None = None) -> Batch:
        """With "open", the open candidates, and "known", the logits of the others: (n, 729) each."""
        if "open" in batch:
            return batch
        given, open_ = candidates_of(batch["puzzle"], box or box_of(batch["puzzle"].shape[1]))
        return batch | {"open": open_, "known": known_logits(given).to(next(self.parameters()).dtype)}

    def groups_of(self, batch: Batch) -> GroupTable:
        return group_table(box_of(batch["puzzle"].shape[1]), batch["puzzle"].device)


@cache
def group_table(box: Box, device: torch.device) -> GroupTable:
    """The groups of all candidates of a Sudoku with such boxes."""
    return GroupTable(torch.from_numpy(sudoku(box).member_of).to(device), sudoku(box).counts, size_of(box))
