"""Networks for age arithmetic: the eight facts are the nodes of a complete graph."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.graphs import CompleteGraphs, Graph
from rrn.network import RRN
from rrn.nn.layers import MLP, Product
from rrn.nn.messages import GatedMessage
from rrn.nn.readouts import GraphReadout, Outputs, Readout
from rrn.nn.updates import ResidualUpdate, State
from rrn.tasks.ages.data import AGES, PERSONS, Questions
from rrn.tasks.ages.presets import AgesPreset, AnglesPreset, EstimatesPreset, PaperPreset
from rrn.training.experiment import Batch

FREQUENCIES = (1, 2, 5, 10, 20, 25, 33, 41)
"""Full turns per hundred years. High frequencies distinguish years, low frequencies decades."""
CODE = 2 * len(FREQUENCIES)
"""Width of the encoding of a number: see `angles`."""


def build(preset: AgesPreset) -> nn.Module:
    networks = {PaperPreset: PaperNetwork, EstimatesPreset: EstimatesNetwork, AnglesPreset: AnglesNetwork}
    return networks[type(preset)](preset)


def as_batch(questions: Questions) -> Batch:
    return {name: torch.from_numpy(array) for name, array in questions.arrays().items()}


class PaperNetwork(nn.Module):
    """The paper's network: 127 one-hot inputs per fact, the question is also a feature of every edge."""

    def __init__(self, preset: PaperPreset) -> None:
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
        if preset.number_waves:
            self._draw_number_waves()

    @torch.no_grad()
    def _draw_number_waves(self) -> None:
        """Draw the weights of the one-hot numbers and of the answers as waves along the numbers 0 to 99."""
        encoder, readout = self.rrn.encoder, self.rrn.readout
        assert isinstance(encoder, MLP)
        assert isinstance(readout, GraphReadout)
        (first, _), (last, _) = encoder.weights()[0], readout.mlp.weights()[-1]
        numbers = first[:, 2 * PERSONS + 3 : -PERSONS]
        numbers.copy_(random_waves(len(numbers)))
        last.copy_(random_waves(last.shape[1]).T * math.sqrt(2) * last.std())

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the age asked for: (steps, n, 100)."""
        a, b, sign, number = batch["facts"].unbind(-1)
        asked = F.one_hot(batch["asked"], PERSONS).float()
        parts = [F.one_hot(a, PERSONS), F.one_hot(b, PERSONS), F.one_hot(sign + 1, 3), F.one_hot(number, AGES)]
        question = asked[:, None].expand(-1, a.shape[1], -1)
        x = torch.cat([*(part.float() for part in parts), question], dim=-1)
        graphs = CompleteGraphs(len(x), a.shape[1], device=x.device)
        return self.rrn.run(x.flatten(0, 1), graphs, asked[:, None, None], steps=steps, state=state)


WAVES = (0.5, 1, 2, 3, 5, 10, 20, 25, 33, 41)
"""Full turns per hundred years of the initial weights of numbers, with --number-waves."""


def random_waves(count: int) -> Tensor:
    """Cosines along the numbers 0 to 99, with random frequencies of `WAVES` and random phases: (count, 100)."""
    turns, phase = torch.tensor(WAVES)[torch.randint(len(WAVES), (count,))], torch.rand(count)
    return torch.cos(2 * math.pi * (turns[:, None] * torch.arange(AGES) / AGES + phase[:, None]))


def angles(numbers: Tensor) -> Tensor:
    """Encode numbers as cosine and sine at each frequency. Adding a number is a rotation."""
    frequencies = torch.tensor(FREQUENCIES, device=numbers.device)
    turns = numbers[..., None] * (2 * math.pi / AGES) * frequencies
    return torch.cat([turns.cos(), turns.sin()], dim=-1)


def _signed(batch: Batch) -> Tensor:
    """The signed number of each fact as angles, and its type (younger, age, older): (n, 8, CODE + 3)."""
    _, _, sign, number = batch["facts"].unbind(-1)
    signed = torch.where(sign == 0, number, sign * number)
    kinds = torch.stack([sign == -1, sign == 0, sign == 1], dim=-1)
    return torch.cat([angles(signed), kinds.float()], dim=-1)


def _shared(batch: Batch) -> Tensor:
    """Whether person A or B of the sender is person A or B of the receiver: (n, sender, receiver, 4)."""
    a, b = batch["facts"][..., 0], batch["facts"][..., 1]
    return torch.stack([p[:, :, None] == q[:, None] for p in (a, b) for q in (a, b)], dim=-1).float()


def _product_rrn(preset: EstimatesPreset, readout: Any, outputs: int | None = None) -> RRN:
    """An RRN with a gated message, and product units in the update."""
    hidden = preset.hidden
    message = GatedMessage(hidden, edge_features=4, width=preset.message_width)
    update = ResidualUpdate(hidden, preset.update_width, kind="product")
    readout = readout if isinstance(readout, str) else readout(hidden)
    parts = {"message": message, "update": update, "readout": readout}
    return RRN(hidden, hidden, outputs, edge_features=4, encoder_layers=None, **parts)


class EstimatesNetwork(nn.Module):
    """Each fact estimates the ages of its two people; the answer is the sum of the estimates for the person asked.

    Numbers are encoded as angles, so that a product of encodings adds numbers; the update has product units. Node
    features are the signed number and the type of the fact. Edge features are the shared persons. Neither the names of
    the persons nor the question are inputs of the RRN, so it generalises over both. Only the answer has a loss.
    """

    def __init__(self, preset: EstimatesPreset) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(CODE + 3, preset.hidden), nn.LayerNorm(preset.hidden))
        self.rrn = _product_rrn(preset, outputs=2 * CODE, readout="node")
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("codes", angles(torch.arange(AGES)), persistent=False)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the age asked for: (steps, n, 100)."""
        x = self.encode(_signed(batch))
        graphs = CompleteGraphs(len(x), PERSONS, device=x.device)
        estimates, state = self.rrn.run(x.flatten(0, 1), graphs, _shared(batch), steps=steps, state=state)
        estimates = estimates.view(steps, len(x), 2 * PERSONS, CODE)  # of A and B of each fact
        about = (batch["facts"][..., :2] == batch["asked"][:, None, None]).flatten(1).float()
        answer = (about[:, None] @ estimates)[:, :, 0]
        return answer @ (self.get_buffer("codes").T * self.scale), state


class AnglesNetwork(nn.Module):
    """As `EstimatesNetwork`, but the person asked is an input of the nodes, and the readout has product units.

    The loss includes the ages of all people of all facts.
    """

    def __init__(self, preset: AnglesPreset) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(CODE + 5, preset.hidden), nn.LayerNorm(preset.hidden))
        self.rrn = _product_rrn(preset, readout=AgesReadout)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Outputs, State]:
        """Logits of the age asked for (steps, n, 100); the extra output ``persons`` has those of A and B of each fact:
        (steps, n, 16, 100)."""
        about = (batch["facts"][..., :2] == batch["asked"][:, None, None]).float()
        x = self.encode(torch.cat([_signed(batch), about], dim=-1))
        graphs = CompleteGraphs(len(x), PERSONS, device=x.device)
        return self.rrn.run(x.flatten(0, 1), graphs, _shared(batch), steps=steps, state=state)


class AgesReadout(Readout):
    """Logits of the ages: the similarity of each age's encoding to the sum over the facts.

    The extra output ``persons`` holds the logits of the ages of the two people of every fact: (graphs, 16, 100).
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
