"""Networks for Pretty-CLEVR: the eight objects are the nodes of a complete graph."""

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
from rrn.tasks.pretty_clevr.data import JUMPS, NAMES, OBJECTS, STARTS, Scenes, full_paths, questions
from rrn.tasks.pretty_clevr.presets import (
    AttentionPreset,
    ImagePreset,
    PaperPreset,
    PerceptronPreset,
    PrettyClevrPreset,
    RanksPreset,
)
from rrn.training.experiment import Batch


def as_batch(scenes: Scenes, scene: np.ndarray, question: np.ndarray) -> Batch:
    """The questions numbered ``question`` (n,) about the scenes numbered ``scene`` (n,).

    ``path`` (n, 8) is the full path of seven jumps from the start of the question.
    """
    asked = questions(scenes, scene, question)
    arrays = {
        "positions": scenes.positions[scene],
        "colours": scenes.colours[scene].astype(np.int64),
        "shapes": scenes.shapes[scene].astype(np.int64),
        **asked._asdict(),
        "path": full_paths(scenes, scene, asked.start),
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def build(preset: PrettyClevrPreset) -> nn.Module:
    from rrn.tasks.pretty_clevr.baselines import Perceptron
    from rrn.tasks.pretty_clevr.image_encoder import ImageNetwork

    networks = {PaperPreset: PaperNetwork, AttentionPreset: AttentionNetwork, RanksPreset: RanksNetwork}
    return (networks | {PerceptronPreset: Perceptron, ImagePreset: ImageNetwork})[type(preset)](preset)


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
    """The paper's network: 42 inputs per object, distances on the edges, MLPs of one ReLU layer.

    With one step it is the paper's relational network.
    """

    def __init__(self, preset: PaperPreset) -> None:
        super().__init__()
        self.distance_scale = preset.distance_scale
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
        between = self.distance_scale * (distances(batch["positions"]) - 0.5)[..., None]
        graphs = CompleteGraphs(len(x), OBJECTS, device=x.device)
        return self.rrn.run(x.flatten(0, 1), graphs, between, steps=steps, state=state)


def distance_ranks(positions: Tensor) -> Tensor:
    """One-hot distance ranks: 1 if object j is the r-th nearest of object i, positions (n, 8, 2) → (n, i, j, 7).

    The answers depend on the ranks alone, which rotation and scaling do not change.
    """
    rank = distances(positions).argsort(-1).argsort(-1)  # rank 0 is object i
    return F.one_hot(rank, OBJECTS)[..., 1:].float()


def question_inputs(batch: Batch) -> tuple[Tensor, Tensor]:
    """Inputs of each object (n, 8, 11), and its two names (n, 8, 2), which are used for the answer alone.

    Inputs: whether the question names the object by its colour or its shape, whether it asks for a shape, and one-hot
    jumps.
    """
    start = batch["start"][:, None]
    names = torch.stack([batch["colours"], batch["shapes"] + OBJECTS], dim=-1)
    jumps = F.one_hot(batch["jumps"], JUMPS)[:, None].expand(-1, OBJECTS, -1)
    by_colour = (start < OBJECTS).expand(-1, OBJECTS)[..., None]
    return torch.cat([names == start[..., None], by_colour, jumps], dim=-1).float(), names


def name_logits(logits: Tensor, names: Tensor) -> Tensor:
    """Logits of the 16 names (steps, n, 16) from those of the colour and shape of each object (steps, n · 8, 2)."""
    steps, count = len(logits), len(names)
    index = names.flatten(1).expand(steps, -1, -1)
    return logits.new_zeros(steps, count, len(NAMES)).scatter(2, index, logits.reshape(steps, count, -1))


def attention_rrn(preset: AttentionPreset, features: int, outputs: int, edge_features: int) -> RRN:
    """An RRN with attention over receivers."""
    return RRN(
        features=features,
        hidden=preset.hidden,
        outputs=outputs,
        edge_features=edge_features,
        encoder_layers=0,
        message=ReceiverAttentionMessage(preset.hidden, edge_features, preset.heads, preset.head_width),
        update=ResidualUpdate(preset.hidden, preset.update_width),
        readout="node",
        readout_layers=1,
    )


class AttentionNetwork(nn.Module):
    """Attention over receivers with distances on the edges.

    Colours and shapes are not inputs of the RRN. A node reads whether the question names it, and has two output logits,
    for its colour and its shape. So the network generalises over names.
    """

    def __init__(self, preset: AttentionPreset) -> None:
        super().__init__()
        self.rrn = attention_rrn(preset, features=3 + JUMPS, outputs=2, edge_features=1)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names: (steps, n, 16)."""
        x, names = question_inputs(batch)
        edges = distances(batch["positions"])[..., None]
        graphs = CompleteGraphs(len(x), OBJECTS, device=x.device)
        logits, state = self.rrn.run(x.flatten(0, 1), graphs, edges, steps=steps, state=state)
        return name_logits(logits, names), state


class ReceiverAttentionMessage(Message):
    """Attention over *receivers*: m_j = W·Σ_i a_ij relu(U h_i), a_ij a softmax over the receivers j, for each head.

    The logit of a_ij is q(h_i)·k(h_j) plus a linear function of the edge features, times a learned sharpness. A node
    can thus send to its nearest unvisited node.
    """

    SHARPNESS = 10.0
    """Initial sharpness."""

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
            raise InputError("edge_attr: ReceiverAttentionMessage needs edge features, got None")
        return self.prefer(edge_attr).permute(0, 3, 1, 2)

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        assert edge_term is not None
        if not isinstance(graph, CompleteGraphs):
            raise InputError(f"edge_index: a ReceiverAttentionMessage needs CompleteGraphs, got {type(graph).__name__}")
        shape = (graph.graphs, graph.size, self.heads, self.width)
        query, key, value = (part.reshape(shape).transpose(1, 2) for part in self.project(h).chunk(3, dim=-1))
        scores = query @ key.transpose(2, 3) * self.width**-0.5 + edge_term  # (graphs, heads, sender, receiver)
        scores = scores * self.log_sharpness.exp()[:, None, None]
        edges = graph.edges[..., 0][:, None]
        share = scores.masked_fill(~edges, float("-inf")).softmax(-1)
        received = share.transpose(2, 3) @ value.relu()  # (graphs, heads, receiver, width)
        return self.out(received.transpose(1, 2).reshape(len(h), -1))


class RanksNetwork(nn.Module):
    """As `AttentionNetwork`, but with one-hot distance ranks on the edges and a gated message.

    The loss includes the object after each number of jumps.
    """

    def __init__(self, preset: RanksPreset) -> None:
        super().__init__()
        self.rrn = RRN(
            features=3 + JUMPS,
            hidden=preset.hidden,
            edge_features=2 * (OBJECTS - 1),
            encoder_layers=0,
            message=GatedMessage(preset.hidden, 2 * (OBJECTS - 1), preset.message_width),
            update=ResidualUpdate(preset.hidden, preset.update_width),
            readout=PathReadout(preset.hidden),
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Outputs, State]:
        """Logits of the 16 names (steps, n, 16); the extra output ``path`` has those of the object after each number of
        jumps: (steps, n, jumps, objects)."""
        x, names = question_inputs(batch)
        near = distance_ranks(batch["positions"])
        graphs = CompleteGraphs(len(x), OBJECTS, device=x.device)
        edges = torch.cat([near, near.transpose(1, 2)], dim=-1)
        outputs, state = self.rrn.run(x.flatten(0, 1), graphs, edges, steps=steps, state=state)
        path = outputs.extras["path"].unflatten(1, (-1, OBJECTS)).transpose(2, 3)
        return Outputs(name_logits(outputs.answer, names), {"path": path}), state


class PathReadout(Readout):
    """Logits of each object's colour and shape as the answer: (nodes, 2).

    The extra output ``path`` has the logits that 0, 1, … 7 jumps lead to the object: (nodes, 8).
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.answer = MLP(hidden, hidden, 2, 1)
        self.walk = nn.Linear(hidden, JUMPS)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Outputs:
        return Outputs(self.answer(h), {"path": self.walk(h)})
