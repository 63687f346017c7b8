"""Age arithmetic as a graph: the eight facts are the nodes, and everyone hears everyone."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.graphs import CompleteGraphs, Graph
from rrn.layers import Product
from rrn.messages import GatedMessage
from rrn.network import RRN
from rrn.readouts import Readout
from rrn.tasks.ages.data import AGES, PERSONS, Questions
from rrn.tasks.ages.presets import AgesPreset
from rrn.training.experiment import Batch
from rrn.updates import ResidualUpdate, State

FREQUENCIES = (1, 2, 5, 10, 20, 25, 33, 41)
"""Turns of the circle that a hundred years make. The fast ones tell neighbours apart, the slow ones tell decades."""


def as_batch(questions: Questions) -> Batch:
    return {name: torch.from_numpy(array) for name, array in questions.arrays().items()}


def build(preset: AgesPreset) -> nn.Module:
    return PaperAges(preset) if preset.network == "paper" else TurningAges(preset)


class PaperAges(nn.Module):
    """The appendix's network: 127 one-hot inputs a fact, the question also on every edge, one answer a step."""

    def __init__(self, preset: AgesPreset) -> None:
        super().__init__()
        self.rrn = RRN(
            features=2 * PERSONS + 3 + AGES + PERSONS,
            hidden=preset.hidden,
            outputs=AGES,
            edge_features=PERSONS,
            encoder_layers=3,
            message_layers=3,
            update="lstm",
            update_layers=3,
            readout="graph",
            readout_layers=3,
            dropout=preset.dropout,
            dropout_layers=2,
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the age asked for: (steps, n, 100)."""
        a, b, sign, number = batch["facts"].unbind(-1)
        asked = F.one_hot(batch["asked"], PERSONS).float()
        parts = [F.one_hot(a, PERSONS), F.one_hot(b, PERSONS), F.one_hot(sign + 1, 3), F.one_hot(number, AGES)]
        everywhere = asked[:, None].expand(-1, PERSONS, -1)
        x = torch.cat([*(part.float() for part in parts), everywhere], dim=-1)
        graphs = CompleteGraphs(len(x), PERSONS)
        return self.rrn.run(x.flatten(0, 1), graphs, asked[:, None, None], steps=steps, state=state)


def angles(numbers: Tensor) -> Tensor:
    """A number as points on circles: cosine and sine at each frequency. Adding numbers turns the points."""
    turns = numbers[..., None] * (2 * math.pi / AGES) * torch.tensor(FREQUENCIES)
    return torch.cat([turns.cos(), turns.sin()], dim=-1)


class TurningAges(nn.Module):
    """Numbers as angles: adding one to another is a product of their codes, and f, g and r can multiply.

    A fact knows its signed number, what kind of fact it is, and whether it is about the person asked; an edge knows
    which persons its two facts share. Which persons these are, no part of the network is told, so what it learns of
    one it knows of all.
    """

    def __init__(self, preset: AgesPreset) -> None:
        super().__init__()
        hidden = preset.hidden
        self.encode = nn.Sequential(nn.Linear(2 * len(FREQUENCIES) + 5, hidden), nn.LayerNorm(hidden))
        self.rrn = RRN(
            features=hidden,
            hidden=hidden,
            edge_features=4,
            encoder_layers=None,
            message=GatedMessage(hidden, edge_features=4, width=preset.message_width),
            update=ResidualUpdate(hidden, preset.update_width, kind="product"),
            readout=AgesReadout(hidden),
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of 17 ages a question, the one asked for first, then those of A and B of each fact.

        Shape (steps, n, 17, 100); out of training only the one asked for, (steps, n, 100).
        """
        a, b, sign, number = batch["facts"].unbind(-1)
        asked = batch["asked"][:, None]
        signed = torch.where(sign == 0, number, sign * number)
        marks = [sign == -1, sign == 0, sign == 1, a == asked, b == asked]
        x = self.encode(torch.cat([angles(signed), torch.stack(marks, dim=-1).float()], dim=-1))
        shared = [p[:, :, None] == q[:, None] for p in (a, b) for q in (a, b)]
        graphs = CompleteGraphs(len(x), PERSONS)
        return self.rrn.run(x.flatten(0, 1), graphs, torch.stack(shared, dim=-1).float(), steps=steps, state=state)


class AgesReadout(Readout):
    """Every fact says what it knows, as a code of angles; the answer is the age whose code is nearest the sum."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        width = 2 * len(FREQUENCIES)
        self.answer = Product(hidden, hidden, width)
        self.persons = nn.Linear(hidden, 2 * width)
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("codes", angles(torch.arange(AGES)), persistent=False)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        codes = self.get_buffer("codes").T * self.scale
        answer = graph.sum_nodes(self.answer(h), batch)
        if not self.training:
            return answer @ codes
        persons = self.persons(h).view(len(answer), 2 * PERSONS, -1)
        return torch.cat([answer[:, None], persons], dim=1) @ codes
