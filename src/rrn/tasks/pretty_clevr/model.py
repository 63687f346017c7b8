"""Pretty-CLEVR as a graph: the eight objects are the nodes, and everyone hears everyone."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.graphs import CompleteGraphs, Graph
from rrn.network import RRN
from rrn.nn.layers import MLP
from rrn.nn.messages import GatedMessage, Message
from rrn.nn.readouts import Outputs, Readout
from rrn.nn.updates import ResidualUpdate, State
from rrn.tasks.pretty_clevr.data import JUMPS, NAMES, OBJECTS, STARTS, Scenes, questions, walks
from rrn.tasks.pretty_clevr.presets import (
    ChoosingPreset,
    PaperPreset,
    PerceptronPreset,
    PrettyClevrPreset,
    SeeingPreset,
    WalkingPreset,
)
from rrn.training.experiment import Batch


def as_batch(scenes: Scenes, scene: np.ndarray, question: np.ndarray) -> Batch:
    """The questions numbered ``question`` (n,) about the scenes numbered ``scene`` (n,).

    ``path`` (n, 8) holds the objects in the order in which the question's walk, were it to go on, visits them.
    """
    asked = questions(scenes, scene, question)
    arrays = {
        "positions": scenes.positions[scene],
        "colours": scenes.colours[scene].astype(np.int64),
        "shapes": scenes.shapes[scene].astype(np.int64),
        **asked._asdict(),
        "path": walks(scenes, scene, asked.start),
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def build(preset: PrettyClevrPreset) -> nn.Module:
    match preset:
        case PaperPreset():
            return PaperNetwork(preset)
        case SeeingPreset():
            from rrn.tasks.pretty_clevr.seeing import SeeingNetwork

            return SeeingNetwork(preset)
        case ChoosingPreset():
            return ChoosingNetwork(preset)
        case WalkingPreset():
            return WalkingNetwork(preset)
        case PerceptronPreset():
            from rrn.tasks.pretty_clevr.baselines.perceptron import Perceptron

            return Perceptron(preset)
    raise TypeError(f"no network for {type(preset).__name__}")


def distances(positions: Tensor) -> Tensor:
    """Between all pairs of objects: positions (n, 8, 2) → (n, 8, 8)."""
    return (positions[:, :, None] - positions[:, None]).norm(dim=-1)


def object_features(batch: Batch) -> Tensor:
    """The paper's o: position, colour and shape of every object, (n, 8, 18)."""
    colours, shapes = F.one_hot(batch["colours"], OBJECTS), F.one_hot(batch["shapes"], OBJECTS)
    return torch.cat([batch["positions"], colours.float(), shapes.float()], dim=-1)


def question_features(batch: Batch) -> Tensor:
    """The paper's q: the name of the start and the number of jumps, (n, 24)."""
    return torch.cat([F.one_hot(batch["start"], STARTS), F.one_hot(batch["jumps"], JUMPS)], dim=-1).float()


class PaperNetwork(nn.Module):
    """The paper's network: 42 inputs per object, distances on the edges, MLPs of one ReLU layer, one answer per step.

    With one step it is the paper's relational network.
    """

    def __init__(self, preset: PaperPreset) -> None:
        super().__init__()
        self.magnify = preset.magnify
        self.rrn = RRN(
            features=2 + 2 * OBJECTS + STARTS + JUMPS,
            hidden=preset.hidden,
            outputs=len(NAMES),
            edge_features=1,
            update="mlp",
            update_inputs=preset.update_inputs,
            readout="graph",
            readout_layers=1,
            dropout=preset.dropout,
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names: (steps, n, 16)."""
        question = question_features(batch)[:, None].expand(-1, OBJECTS, -1)
        x = torch.cat([object_features(batch), question], dim=-1)
        between = self.magnify * (distances(batch["positions"]) - 0.5)[..., None]
        graphs = CompleteGraphs(len(x), OBJECTS, device=x.device)
        return self.rrn.run(x.flatten(0, 1), graphs, between, steps=steps, state=state)


def nearness(positions: Tensor) -> Tensor:
    """Who is how near to whom: 1 where object j is the r-th nearest of object i, positions (n, 8, 2) → (n, i, j, 7).

    All that an answer depends on; turning and scaling a scene leaves it as it is.
    """
    rank = distances(positions).argsort(-1).argsort(-1)  # of an object among those around i; its own is 0
    return F.one_hot(rank, OBJECTS)[..., 1:].float()


def walk_features(batch: Batch) -> tuple[Tensor, Tensor]:
    """What our networks are told of each object, (n, 8, 11): whether the question names it by its colour or its shape,
    whether it asks for a shape, and for how many jumps; and the two names of each, (n, 8, 2), for the answer alone."""
    start = batch["start"][:, None]
    names = torch.stack([batch["colours"], batch["shapes"] + OBJECTS], dim=-1)
    jumps = F.one_hot(batch["jumps"], JUMPS)[:, None].expand(-1, OBJECTS, -1)
    by_colour = (start < OBJECTS).expand(-1, OBJECTS)[..., None]
    return torch.cat([names == start[..., None], by_colour, jumps], dim=-1).float(), names


def named(said: Tensor, names: Tensor) -> Tensor:
    """Logits of the 16 names, (steps, n, 16), from two per object, (steps, n · 8, 2): of its colour and its shape."""
    steps, count = len(said), len(names)
    places = names.flatten(1).expand(steps, -1, -1)
    return said.new_zeros(steps, count, len(NAMES)).scatter(2, places, said.reshape(steps, count, -1))


def choosing_rrn(preset: ChoosingPreset, features: int, outputs: int, edge_features: int) -> RRN:
    """Nodes that choose whom to send to by what stands on the edges."""
    return RRN(
        features=features,
        hidden=preset.hidden,
        outputs=outputs,
        edge_features=edge_features,
        encoder_layers=0,
        message=ChoosingMessage(preset.hidden, edge_features, preset.heads, preset.head_width),
        update=ResidualUpdate(preset.hidden, preset.update_width),
        readout="node",
        readout_layers=1,
    )


class ChoosingNetwork(nn.Module):
    """Objects that know whether they are the start, edges that know distances, and objects that choose whom to send to.

    No object is told its colour or shape: it is told whether the question names it, and r answers with two logits per
    object, one for its colour and one for its shape. So what the network learns of one name it knows of all.
    """

    def __init__(self, preset: ChoosingPreset) -> None:
        super().__init__()
        self.rrn = choosing_rrn(preset, features=3 + JUMPS, outputs=2, edge_features=1)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names: (steps, n, 16)."""
        x, names = walk_features(batch)
        edges = distances(batch["positions"])[..., None]
        graphs = CompleteGraphs(len(x), OBJECTS, device=x.device)
        said, state = self.rrn.run(x.flatten(0, 1), graphs, edges, steps=steps, state=state)
        return named(said, names), state


class ChoosingMessage(Message):
    """Messages for which the *receivers* compete: m_j = W·Σ_i a_ij relu(U h_i), a_ij a softmax over the receivers j,
    for each head.

    The logit of a_ij is q(h_i)·k(h_j) plus a linear function of the edge features, times a learned sharpness. So a
    node can hand something on to the nearest of the others that is not marked yet: a softmax over receivers finds it,
    where a sum over senders would have to compare them all. What a sender has nothing to say about is exactly zero.
    """

    SHARPNESS = 10.0
    """At first; it grows as far as telling nearly equal distances apart needs."""

    def __init__(self, hidden: int, edge_features: int, heads: int, width: int) -> None:
        super().__init__()
        self.outputs, self.heads, self.width = hidden, heads, width
        self.project = nn.Linear(hidden, 3 * heads * width)
        self.prefer = nn.Linear(edge_features, heads, bias=False)
        self.log_sharpness = nn.Parameter(torch.full((heads,), math.log(self.SHARPNESS)))
        self.out = nn.Linear(heads * width, hidden)

    def encode_edges(self, edge_attr: Tensor | None) -> Tensor | None:
        """(graphs, sender, receiver, features) → (graphs, heads, sender, receiver)."""
        if edge_attr is None:
            raise InputError("edge_attr: a ChoosingMessage needs edge features, got None")
        return self.prefer(edge_attr).permute(0, 3, 1, 2)

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        assert edge_term is not None
        if not isinstance(graph, CompleteGraphs):
            raise InputError(f"edge_index: a ChoosingMessage needs CompleteGraphs, got {type(graph).__name__}")
        shape = (graph.graphs, graph.size, self.heads, self.width)
        query, key, value = (part.reshape(shape).transpose(1, 2) for part in self.project(h).chunk(3, dim=-1))
        scores = query @ key.transpose(2, 3) * self.width**-0.5 + edge_term  # (graphs, heads, sender, receiver)
        scores = scores * self.log_sharpness.exp()[:, None, None]
        edges = graph.edges[..., 0][:, None]
        share = scores.masked_fill(~edges, float("-inf")).softmax(-1)
        arrived = share.transpose(2, 3) @ value.relu()  # (graphs, heads, receiver, width)
        return self.out(arrived.transpose(1, 2).reshape(len(h), -1))


class WalkingNetwork(nn.Module):
    """As `ChoosingNetwork`, but edges know who is the how-manieth nearest of whom, which spares it comparing distances.

    Trained with a loss on which object each number of jumps reaches.
    """

    def __init__(self, preset: WalkingPreset) -> None:
        super().__init__()
        self.rrn = RRN(
            features=3 + JUMPS,
            hidden=preset.hidden,
            edge_features=2 * (OBJECTS - 1),
            encoder_layers=0,
            message=GatedMessage(preset.hidden, 2 * (OBJECTS - 1), preset.message_width),
            update=ResidualUpdate(preset.hidden, preset.update_width),
            readout=WalkReadout(preset.hidden),
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Outputs, State]:
        """Logits of the 16 names, (steps, n, 16); and as ``walk`` those of which object (last) each number of jumps
        reaches, (steps, n, 8, 8)."""
        x, names = walk_features(batch)
        near = nearness(batch["positions"])
        graphs = CompleteGraphs(len(x), OBJECTS, device=x.device)
        edges = torch.cat([near, near.transpose(1, 2)], dim=-1)
        said, state = self.rrn.run(x.flatten(0, 1), graphs, edges, steps=steps, state=state)
        walk = said.extras["walk"].unflatten(1, (-1, OBJECTS)).transpose(2, 3)
        return Outputs(named(said.answer, names), {"walk": walk}), state


class WalkReadout(Readout):
    """What an object says of itself: (nodes, 2), that its colour is the answer, and that its shape is.

    Beside it, as ``walk``, that 0, 1, … 7 jumps lead to it: (nodes, 8).
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.answer = MLP(hidden, hidden, 2, 1)
        self.walk = nn.Linear(hidden, JUMPS)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Outputs:
        return Outputs(self.answer(h), {"walk": self.walk(h)})
