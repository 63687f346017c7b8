"""Age arithmetic as a graph: the eight facts are the nodes, and everyone hears everyone."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.graphs import CompleteGraphs, Graph
from rrn.network import RRN
from rrn.nn.layers import Product
from rrn.nn.messages import GatedMessage
from rrn.nn.readouts import Outputs, Readout
from rrn.nn.updates import ResidualUpdate, State
from rrn.tasks.ages.data import AGES, PERSONS, Questions
from rrn.tasks.ages.presets import AgesPreset, BeliefsPreset, PaperAgesPreset, TurningPreset
from rrn.training.experiment import Batch

FREQUENCIES = (1, 2, 5, 10, 20, 25, 33, 41)
"""Turns of the circle that a hundred years make. The fast ones tell neighbours apart, the slow ones tell decades."""
CODE = 2 * len(FREQUENCIES)
"""Numbers in the code of a number: see `angles`."""


def as_batch(questions: Questions) -> Batch:
    return {name: torch.from_numpy(array) for name, array in questions.arrays().items()}


def build(preset: AgesPreset) -> nn.Module:
    match preset:
        case PaperAgesPreset():
            return PaperAges(preset)
        case BeliefsPreset():
            return BelievingAges(preset)
        case TurningPreset():
            return TurningAges(preset)
    raise TypeError(f"no network for {type(preset).__name__}")


class PaperAges(nn.Module):
    """The appendix's network: 127 one-hot inputs per fact, the question also on every edge, one answer per step."""

    def __init__(self, preset: PaperAgesPreset) -> None:
        super().__init__()
        self.rrn = RRN(
            features=2 * PERSONS + 3 + AGES + PERSONS,
            hidden=preset.hidden,
            outputs=AGES,
            edge_features=PERSONS,
            encoder_layers=preset.layers,
            message_layers=preset.layers,
            update="lstm",
            update_layers=preset.layers,
            readout="graph",
            readout_layers=preset.layers,
            dropout=preset.dropout,
            dropout_layers=2,
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the age asked for: (steps, n, 100)."""
        a, b, sign, number = batch["facts"].unbind(-1)
        asked = F.one_hot(batch["asked"], PERSONS).float()
        parts = [F.one_hot(a, PERSONS), F.one_hot(b, PERSONS), F.one_hot(sign + 1, 3), F.one_hot(number, AGES)]
        everywhere = asked[:, None].expand(-1, a.shape[1], -1)
        x = torch.cat([*(part.float() for part in parts), everywhere], dim=-1)
        graphs = CompleteGraphs(len(x), a.shape[1], device=x.device)
        return self.rrn.run(x.flatten(0, 1), graphs, asked[:, None, None], steps=steps, state=state)


def angles(numbers: Tensor) -> Tensor:
    """A number as points on circles: cosine and sine at each frequency. Adding numbers turns the points."""
    frequencies = torch.tensor(FREQUENCIES, device=numbers.device)
    turns = numbers[..., None] * (2 * math.pi / AGES) * frequencies
    return torch.cat([turns.cos(), turns.sin()], dim=-1)


def _signed(batch: Batch) -> Tensor:
    """The number of each fact as a code of angles, negative where A is the younger, and the three kinds of facts:
    (n, 8, CODE + 3)."""
    _, _, sign, number = batch["facts"].unbind(-1)
    signed = torch.where(sign == 0, number, sign * number)
    kinds = torch.stack([sign == -1, sign == 0, sign == 1], dim=-1)
    return torch.cat([angles(signed), kinds.float()], dim=-1)


def _shared(batch: Batch) -> Tensor:
    """Which persons two facts share, sender A or B and receiver A or B: (n, sender, receiver, 4)."""
    a, b = batch["facts"][..., 0], batch["facts"][..., 1]
    return torch.stack([p[:, :, None] == q[:, None] for p in (a, b) for q in (a, b)], dim=-1).float()


class BelievingAges(nn.Module):
    """Each fact comes to believe something of its two people; the answer adds up what is believed of the one asked.

    Numbers are angles, so that adding one to another is a product of their codes, and g can multiply. A fact knows its
    signed number and what kind of fact it is; an edge knows which persons its two facts share. Which persons these
    are, no part of the network is told, so what it learns of one it knows of all; nor whom the question is about, so
    that what it learns for one question serves all others. Only the answer is trained.
    """

    def __init__(self, preset: BeliefsPreset) -> None:
        super().__init__()
        hidden = preset.hidden
        self.encode = nn.Sequential(nn.Linear(CODE + 3, hidden), nn.LayerNorm(hidden))
        self.rrn = RRN(
            features=hidden,
            hidden=hidden,
            outputs=2 * CODE,
            edge_features=4,
            encoder_layers=None,
            message=GatedMessage(hidden, edge_features=4, width=preset.message_width),
            update=ResidualUpdate(hidden, preset.update_width, kind="product"),
            readout="node",
        )
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("codes", angles(torch.arange(AGES)), persistent=False)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the age asked for: (steps, n, 100)."""
        x = self.encode(_signed(batch))
        graphs = CompleteGraphs(len(x), PERSONS, device=x.device)
        beliefs, state = self.rrn.run(x.flatten(0, 1), graphs, _shared(batch), steps=steps, state=state)
        beliefs = beliefs.view(steps, len(x), 2 * PERSONS, CODE)  # of A and B of each fact
        about = (batch["facts"][..., :2] == batch["asked"][:, None, None]).flatten(1).float()
        answer = (about[:, None] @ beliefs)[:, :, 0]
        return answer @ (self.get_buffer("codes").T * self.scale), state


class TurningAges(nn.Module):
    """As `BelievingAges`, but facts also know whether they are about the person asked, and f and r can multiply.

    Trained with a loss on the ages of all people of all facts.
    """

    def __init__(self, preset: TurningPreset) -> None:
        super().__init__()
        hidden = preset.hidden
        self.encode = nn.Sequential(nn.Linear(CODE + 5, hidden), nn.LayerNorm(hidden))
        self.rrn = RRN(
            features=hidden,
            hidden=hidden,
            edge_features=4,
            encoder_layers=None,
            message=GatedMessage(hidden, edge_features=4, width=preset.message_width),
            update=ResidualUpdate(hidden, preset.update_width, kind="product"),
            readout=AgesReadout(hidden),
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Outputs, State]:
        """Logits of the age asked for, (steps, n, 100); and as ``persons`` those of A and B of each fact,
        (steps, n, 16, 100)."""
        about = (batch["facts"][..., :2] == batch["asked"][:, None, None]).float()
        x = self.encode(torch.cat([_signed(batch), about], dim=-1))
        graphs = CompleteGraphs(len(x), PERSONS, device=x.device)
        return self.rrn.run(x.flatten(0, 1), graphs, _shared(batch), steps=steps, state=state)


class AgesReadout(Readout):
    """Every fact says what it knows, as a code of angles; the answer is the age whose code is nearest the sum.

    Beside it, as ``persons``, what every fact thinks the ages of its two people are: (graphs, 16, 100).
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.answer = Product(hidden, hidden, CODE)
        self.persons = nn.Linear(hidden, 2 * CODE)
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("codes", angles(torch.arange(AGES)), persistent=False)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Outputs:
        codes = self.get_buffer("codes").T * self.scale
        answer = graph.sum_nodes(self.answer(h), batch)
        persons = self.persons(h).view(len(answer), 2 * PERSONS, CODE)
        return Outputs(answer @ codes, {"persons": persons @ codes})
