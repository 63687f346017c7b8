"""Pretty-CLEVR as a graph: the eight objects are the nodes, and everyone hears everyone."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.graphs import CompleteGraphs, Graph
from rrn.layers import MLP
from rrn.messages import GatedMessage
from rrn.network import RRN
from rrn.readouts import Readout
from rrn.tasks.pretty_clevr.data import JUMPS, NAMES, OBJECTS, STARTS, Scenes, questions
from rrn.tasks.pretty_clevr.presets import PrettyClevrPreset
from rrn.training.experiment import Batch
from rrn.updates import ResidualUpdate, State


def as_batch(scenes: Scenes, scene: np.ndarray, question: np.ndarray) -> Batch:
    """The questions numbered ``question`` (n,) about the scenes numbered ``scene`` (n,).

    ``path`` (n, 8) holds the objects in the order in which the question's walk, were it to go on, visits them.
    """
    asked = questions(scenes, scene, question)
    names = np.where(asked.start[:, None] < OBJECTS, scenes.colours[scene], scenes.shapes[scene] + np.int64(OBJECTS))
    arrays = {
        "positions": scenes.positions[scene],
        "colours": scenes.colours[scene].astype(np.int64),
        "shapes": scenes.shapes[scene].astype(np.int64),
        **asked._asdict(),
        "path": scenes.paths[scene, (names == asked.start[:, None]).argmax(1)].astype(np.int64),
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def build(preset: PrettyClevrPreset) -> nn.Module:
    networks = {"walking": WalkingNetwork, "paper": PaperNetwork, "mlp": SceneMLP}
    return networks[preset.network](preset)


def distances(positions: Tensor) -> Tensor:
    """Between all pairs of objects: positions (n, 8, 2) → (n, 8, 8)."""
    return (positions[:, :, None] - positions[:, None]).norm(dim=-1)


def magnified(between: Tensor) -> Tensor:
    """Distances about 0 and with a spread of 4 over scenes, so that small differences between them weigh something."""
    return 16 * (between - 0.5)


def _objects(batch: Batch) -> Tensor:
    """The paper's o: position, colour and shape of every object, (n, 8, 18)."""
    colours, shapes = F.one_hot(batch["colours"], OBJECTS), F.one_hot(batch["shapes"], OBJECTS)
    return torch.cat([batch["positions"], colours.float(), shapes.float()], dim=-1)


def _question(batch: Batch) -> Tensor:
    """The paper's q: the name of the start and the number of jumps, (n, 24)."""
    return torch.cat([F.one_hot(batch["start"], STARTS), F.one_hot(batch["jumps"], JUMPS)], dim=-1).float()


class PaperNetwork(nn.Module):
    """The paper's network: 42 inputs an object, distances on the edges, MLPs of one ReLU layer, one answer a step.

    With one step it is the paper's relational network.
    """

    def __init__(self, preset: PrettyClevrPreset) -> None:
        super().__init__()
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
        question = _question(batch)[:, None].expand(-1, OBJECTS, -1)
        x = torch.cat([_objects(batch), question], dim=-1)
        between = magnified(distances(batch["positions"]))[..., None]
        return self.rrn.run(x.flatten(0, 1), CompleteGraphs(len(x), OBJECTS), between, steps=steps, state=state)


class SceneMLP(nn.Module):
    """The paper's baseline: one perceptron on all objects, all distances and the question. It has no steps.

    Objects come in the order of their colours, so that half of the names have their place among the inputs: the paper
    does not say in which order, and in a random one even 0 jumps take far longer to learn.
    """

    def __init__(self, preset: PrettyClevrPreset) -> None:
        super().__init__()
        inputs = OBJECTS * (2 + 2 * OBJECTS) + OBJECTS * OBJECTS + STARTS + JUMPS
        self.mlp = MLP(inputs, preset.hidden, len(NAMES), layers=4, dropout=preset.dropout)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names, the same at every step: (steps, n, 16)."""
        order = batch["colours"].argsort(1)
        objects = _objects(batch).take_along_dim(order[..., None], dim=1)
        between = distances(objects[..., :2])
        scene = torch.cat([objects.flatten(1), between.flatten(1), _question(batch)], dim=-1)
        logits = self.mlp(scene)
        return logits.expand(steps, -1, -1), State(logits)


def nearness(positions: Tensor) -> Tensor:
    """Who is how near to whom: 1 where object j is the r-th nearest of object i, positions (n, 8, 2) → (n, i, j, 7).

    All that an answer depends on; turning and scaling a scene leaves it as it is.
    """
    rank = distances(positions).argsort(-1).argsort(-1)  # of an object among those around i; its own is 0
    return F.one_hot(rank, OBJECTS)[..., 1:].float()


class WalkingNetwork(nn.Module):
    """Objects that know whether they are the start, and edges that know who is how near to whom.

    No object is told its colour or shape: it is told whether the question names it, and r answers with two logits an
    object, one for its colour and one for its shape. So what the network learns of one name it knows of all.
    """

    def __init__(self, preset: PrettyClevrPreset) -> None:
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

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names, (steps, n, 16).

        In training followed by 8 × 8 logits of which object (last) each number of jumps reaches: (steps, n, 16 + 64).
        """
        start = batch["start"][:, None]
        names = torch.stack([batch["colours"], batch["shapes"] + OBJECTS], dim=-1)  # (n, 8, 2)
        jumps = F.one_hot(batch["jumps"], JUMPS)[:, None].expand(-1, OBJECTS, -1)
        x = torch.cat([names == start[..., None], (start < OBJECTS).expand(-1, OBJECTS)[..., None], jumps], dim=-1)
        near = nearness(batch["positions"])
        graphs = CompleteGraphs(len(x), OBJECTS)
        edges = torch.cat([near, near.transpose(1, 2)], dim=-1)
        logits, state = self.rrn.run(x.flatten(0, 1).float(), graphs, edges, steps=steps, state=state)
        logits = logits.unflatten(1, (-1, OBJECTS))  # (steps, n, objects, 2 or 2 + 8)
        places = names.flatten(1).expand(steps, -1, -1)
        answer = logits.new_zeros(steps, len(x), len(NAMES)).scatter(2, places, logits[..., :2].flatten(2))
        if not self.training:
            return answer, state
        return torch.cat([answer, logits[..., 2:].transpose(2, 3).flatten(2)], dim=-1), state


class WalkReadout(Readout):
    """What an object says of itself: (nodes, 2), that its colour is the answer, and that its shape is.

    In training (nodes, 2 + 8): also that 0, 1, … 7 jumps lead to it.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.answer = MLP(hidden, hidden, 2, 1)
        self.walk = nn.Linear(hidden, JUMPS)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        return torch.cat([self.answer(h), self.walk(h)], dim=-1) if self.training else self.answer(h)
