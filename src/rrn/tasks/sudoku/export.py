"""The Sudoku network as a program of its own: see `rrn.export`.

Inputs are ``puzzle``, digits (puzzles, 81) with 0 for empty, and for a step ``state_0`` (puzzles, 729, messages)
and ``state_1`` (puzzles, 729, hidden), both zero at the start. ``outputs`` are the logits of the digits 1-9:
(puzzles, 81, 9) of a step, (steps, puzzles, 81, 9) of a run. The number of puzzles is free.
"""

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from rrn.errors import InputError
from rrn.export import Dimensions, export_program
from rrn.tasks.sudoku.model import CandidateSudoku
from rrn.updates import State


class _Start(nn.Module):
    def __init__(self, network: CandidateSudoku) -> None:
        super().__init__()
        self.network = network

    def forward(self, puzzle: Tensor) -> tuple[Tensor, ...]:
        state = self.network.start(puzzle)
        return tuple(part.view(puzzle.shape[0], 729, -1) for part in (state.h, *state.memory))


class _Step(nn.Module):
    def __init__(self, network: CandidateSudoku) -> None:
        super().__init__()
        self.network = network

    def forward(self, puzzle: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        h, *memory = (part.flatten(0, 1) for part in state)
        outputs, after = self.network({"puzzle": puzzle}, steps=1, state=State(h, tuple(memory)))
        count = puzzle.shape[0]
        return outputs.view(count, 81, 9), *(part.view(count, 729, -1) for part in (after.h, *after.memory))


class _Run(nn.Module):
    def __init__(self, network: CandidateSudoku, steps: int) -> None:
        super().__init__()
        self.network, self.steps = network, steps

    def forward(self, puzzle: Tensor) -> Tensor:
        outputs, _ = self.network({"puzzle": puzzle}, steps=self.steps)
        return outputs.view(self.steps, puzzle.shape[0], 81, 9)


EXAMPLE = torch.arange(3 * 81).view(3, 81) % 10
PUZZLES: Dimensions = {0: "puzzles"}


def start_program(network: nn.Module) -> ExportedProgram:
    return export_program(_Start(_checked(network)), {"puzzle": EXAMPLE}, {"puzzle": PUZZLES})


def step_program(network: nn.Module) -> ExportedProgram:
    """One step, state in, state out."""
    checked = _checked(network)
    state = _Start(checked)(EXAMPLE)
    dynamic: dict[str, Dimensions | tuple[Dimensions, ...]] = {"puzzle": PUZZLES, "state": (PUZZLES,) * len(state)}
    return export_program(_Step(checked), {"puzzle": EXAMPLE, "state": state}, dynamic)


def run_program(network: nn.Module, steps: int) -> ExportedProgram:
    """All of ``steps`` steps."""
    if steps < 1:
        raise InputError(f"steps: expected at least 1, got {steps}")
    return export_program(_Run(_checked(network), steps), {"puzzle": EXAMPLE}, {"puzzle": PUZZLES})


def _checked(network: nn.Module) -> CandidateSudoku:
    if not isinstance(network, CandidateSudoku):
        raise InputError("network: only the network on the candidate graph (the preset 'sudoku') can be exported")
    return network
