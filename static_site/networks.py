"""ONNX exports of the networks, for the static site (`static_site.build`).

The program for Sudoku runs one step (`step_program`). The others run all training steps. Inputs:

* ages: ``facts`` (1, 8, 4) and ``asked`` (1,), as in `rrn.tasks.ages.data.Questions`;
* pretty-clevr: ``positions`` (1, 8, 2), ``colours``, ``shapes`` (1, 8), ``start`` and ``jumps`` (1,);
* babi: ``words`` (n, F + 1, 12), word indices + 1, padded with 0; the question is the last sentence. All n stories
  have F facts, and n is at least 2.

``outputs`` are logits (steps, n, choices).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from rrn.io.export import Program, export_program
from rrn.nn.readouts import answer_of
from rrn.tasks.babi.data import MIN_WIDTH
from rrn.tasks.babi.model import Bucket, RolesNetwork, StoryGraphs
from rrn.tasks.sudoku.export import step_program


class _Ages(Program[nn.Module]):
    def forward(self, facts: Tensor, asked: Tensor) -> Tensor:
        return answer_of(self.network({"facts": facts, "asked": asked}, steps=self.steps)[0])


class _PrettyClevr(Program[nn.Module]):
    def forward(self, positions: Tensor, colours: Tensor, shapes: Tensor, start: Tensor, jumps: Tensor) -> Tensor:
        batch = {"positions": positions, "colours": colours, "shapes": shapes, "start": start, "jumps": jumps}
        return answer_of(self.network(batch, steps=self.steps)[0])


class _Babi(Program[nn.Module]):
    def forward(self, words: Tensor) -> Tensor:
        network = self.network
        assert isinstance(network, RolesNetwork)
        stories, sentences, _ = words.shape
        codes, roles = network.encoder(words.flatten(0, 1))
        which = torch.arange(stories * sentences).view(stories, sentences)
        run, _ = network.run(_SameSize(stories, sentences), [which], codes, roles, self.steps)
        return network.logits(run.answer)


class _SameSize(StoryGraphs):
    """Stories of equal size, in one bucket that needs no padding."""

    def __init__(self, stories: int, size: int) -> None:
        self.buckets = [_Unpadded(stories, size)]
        self.num_nodes = stories * size


class _Unpadded(Bucket):
    def __init__(self, stories: int, size: int) -> None:
        self.stories, self.size, self.nodes = stories, size, slice(None)
        self.exists = torch.ones(stories, size, dtype=torch.bool)
        self.positions = torch.arange(stories * size)
        self.no_edge = torch.eye(size, dtype=torch.bool)[:, None]

    def pad(self, packed: Tensor) -> Tensor:
        return packed.view(self.stories, self.size, -1)

    def pack(self, padded: Tensor) -> Tensor:
        return padded.flatten(0, 1)


def _ages(network: nn.Module, steps: int) -> ExportedProgram:
    facts = torch.tensor([[[person, max(person - 1, 0), int(person > 0), 9 - person] for person in range(8)]])
    return export_program(_Ages(network, steps), {"facts": facts, "asked": torch.tensor([7])}, {})


def _pretty_clevr(network: nn.Module, steps: int) -> ExportedProgram:
    inputs = {"positions": torch.rand(1, 8, 2), "colours": torch.arange(8)[None], "shapes": torch.arange(8)[None]}
    inputs |= {"start": torch.tensor([9]), "jumps": torch.tensor([2])}
    return export_program(_PrettyClevr(network, steps), inputs, {})


def _babi(network: nn.Module, steps: int) -> ExportedProgram:
    words = torch.arange(3 * 5 * MIN_WIDTH).view(3, 5, MIN_WIDTH) % 150 + 1
    return export_program(_Babi(network, steps), {"words": words}, {"words": {0: "n", 1: "sentences"}})


PROGRAMS: dict[str, Callable[[nn.Module, int], ExportedProgram]] = {
    "sudoku": lambda network, steps: step_program(network, group_mask=True),
    "babi": _babi,
    "pretty-clevr": _pretty_clevr,
    "ages": _ages,
}
"""By name of the panel."""
