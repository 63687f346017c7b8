"""The Sudoku network as an exported program: see `rrn.io.export`.

Inputs are ``puzzle``, digits (puzzles, 81) with 0 for empty, and for a step ``state_0`` (puzzles, 729, messages)
and ``state_1`` (puzzles, 729, hidden), both initially zero. ``outputs`` are the logits of the digits 1-9:
(puzzles, 81, 9) of a step, (steps, puzzles, 81, 9) of a run. The number of puzzles is dynamic.

A program has fixed shapes, so all 729 candidates are nodes; those that are not open have x = 0 and send no messages.
"""

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from rrn.errors import InputError
from rrn.graphs import Groups
from rrn.io.export import Dimensions, Program, export_program
from rrn.nn.updates import State
from rrn.tasks.sudoku.grid import candidate_groups
from rrn.tasks.sudoku.model import CandidateSudoku

# The axes that each group type sums over, of (puzzle, band, row, stack, column, digit, unit).
_SUMMED = ((5,), (3, 4), (1, 2), (2, 4), (4,), (2,))


class _AllCandidates(Groups):
    """`candidate_groups` of several puzzles, summed along the axes of the grid instead of by an index.

    ``enabled`` (puzzles, 6) is 1 for the group types that send messages, 0 for the others; None: all send.
    """

    def __init__(self, puzzles: int, enabled: Tensor | None = None) -> None:
        self.puzzles, self.num_nodes, self.counts = puzzles, puzzles * 729, tuple(candidate_groups()[1].tolist())
        self.enabled = enabled

    def sums(self, values: Tensor) -> Tensor:
        parts = values.view(self.puzzles, 3, 3, 3, 3, 9, -1).chunk(len(_SUMMED), dim=-1)
        sums = [part.sum(axes, keepdim=True).expand_as(part) for part, axes in zip(parts, _SUMMED, strict=True)]
        if self.enabled is not None:
            enabled = self.enabled.view(self.puzzles, 1, 1, 1, 1, 1, len(_SUMMED)).unbind(-1)
            sums = [part * share[..., None] for part, share in zip(sums, enabled, strict=True)]
        return torch.cat(sums, dim=-1).view_as(values)


class _Program(Program[CandidateSudoku]):
    def __init__(self, network: nn.Module, steps: int = 1) -> None:
        if not isinstance(network, CandidateSudoku):
            raise InputError("network: only the network on the candidate graph (the preset 'sudoku') can be exported")
        super().__init__(network, steps)

    def run(self, puzzle: Tensor, state: State | None, group_mask: Tensor | None = None) -> tuple[Tensor, State]:
        _, still_open, known = self.network.prepare({"puzzle": puzzle}).values()
        graph = _AllCandidates(puzzle.shape[0], group_mask)
        outputs, state = self.network.rrn.run(still_open.to(known).view(-1, 1), graph, steps=self.steps, state=state)
        logits = torch.where(still_open, outputs.view(self.steps, *still_open.shape), known)
        return logits.view(self.steps, puzzle.shape[0], 81, 9), state


class _Start(_Program):
    def forward(self, puzzle: Tensor) -> tuple[Tensor, ...]:
        state = self.network.rrn.initial_state(next(self.network.parameters()).new_zeros(puzzle.shape[0] * 729, 1))
        return tuple(part.view(puzzle.shape[0], 729, -1) for part in state.parts())


class Step(_Program):
    """One step, in which each puzzle may use only some group types."""

    def forward(
        self, puzzle: Tensor, state: tuple[Tensor, ...], group_mask: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        outputs, after = self.run(puzzle, State.of(part.flatten(0, 1) for part in state), group_mask)
        return outputs[0], *(part.view(puzzle.shape[0], 729, -1) for part in after.parts())

    def start(self, puzzles: int) -> tuple[Tensor, ...]:
        weights = next(self.network.parameters())
        return _Start(self.network)(weights.new_zeros(puzzles, 81, dtype=torch.long))


class _Run(_Program):
    def forward(self, puzzle: Tensor) -> Tensor:
        return self.run(puzzle, None)[0]


EXAMPLE = torch.arange(3 * 81, device="cpu").view(3, 81) % 10
PUZZLES: Dimensions = {0: "puzzles"}


def start_program(network: nn.Module) -> ExportedProgram:
    return export_program(_Start(network), {"puzzle": EXAMPLE}, {"puzzle": PUZZLES})


def step_program(network: nn.Module, group_mask: bool = False) -> ExportedProgram:
    """One step, state in, state out; optionally with the input ``group_mask``: (puzzles, 6), 1 for the group types that
    send messages."""
    step = Step(network)
    state = step.start(len(EXAMPLE))
    inputs: dict[str, Tensor | tuple[Tensor, ...]] = {"puzzle": EXAMPLE, "state": state}
    dynamic: dict[str, Dimensions | tuple[Dimensions, ...]] = {"puzzle": PUZZLES, "state": (PUZZLES,) * len(state)}
    if group_mask:
        inputs["group_mask"], dynamic["group_mask"] = torch.ones(len(EXAMPLE), len(_SUMMED), device="cpu"), PUZZLES
    return export_program(step, inputs, dynamic)


def run_program(network: nn.Module, steps: int) -> ExportedProgram:
    """A run of ``steps`` steps."""
    return export_program(_Run(network, steps), {"puzzle": EXAMPLE}, {"puzzle": PUZZLES})
