"""Pretty-CLEVR from pictures: a network that is shown pixels and told neither objects nor positions."""

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.graphs import CompleteGraphs
from rrn.nn.updates import State
from rrn.tasks.pretty_clevr.data import JUMPS, NAMES, OBJECT_RADIUS, OBJECTS, SHAPES
from rrn.tasks.pretty_clevr.figures import PALETTE, outline
from rrn.tasks.pretty_clevr.model import choosing_rrn, distances
from rrn.tasks.pretty_clevr.presets import SeeingPreset
from rrn.training.experiment import Batch

PIXELS = 64
"""Width and height of a picture."""
CELLS = 8
"""The eye looks at 8 × 8 cells of a picture: hardly ever are two objects in one."""
NODES = 24
"""Nodes of the graph: the cells in which there is most to see. An object reaches into three of them or so."""
SHARPNESS = 10.0
"""Scale of the logits of names: large enough that nodes differ before anything is learned."""
SAME = 0.08
"""Nodes that believe to be nearer to each other than about this probably mean the same object."""
FAINT = 0.2
"""Ink that is seen half as strong as the blackest; the palest colour has twice as much."""
_STAMP = 2 * int(np.ceil(OBJECT_RADIUS * PIXELS)) + 2
_SHIFTS = 8
_SAMPLES = 8


@cache
def _stamps() -> Tensor:
    """How much of each pixel a shape covers, its middle shifted by eighths of a pixel down and to the right:
    (shapes, down, right, rows, columns)."""
    fine = (np.arange(_STAMP * _SAMPLES) + 0.5) / _SAMPLES - _STAMP / 2
    shifts = np.arange(_SHIFTS) / _SHIFTS
    down, right = (fine - shifts[:, None])[:, None, :, None], (fine - shifts[:, None])[None, :, None, :]
    stamps = []
    for shape in SHAPES:
        corners = OBJECT_RADIUS * PIXELS * outline(shape)
        inside = np.zeros((_SHIFTS, _SHIFTS, len(fine), len(fine)), dtype=bool)
        for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            if y0 != y1:  # a ray to the right crosses this edge
                between = (y0 > -down) != (y1 > -down)
                inside ^= between & (right < (x1 - x0) * (-down - y0) / (y1 - y0) + x0)
        pixels = inside.reshape(_SHIFTS, _SHIFTS, _STAMP, _SAMPLES, _STAMP, _SAMPLES)
        stamps.append(pixels.mean((3, 5), dtype=np.float32))
    return torch.from_numpy(np.stack(stamps))


@cache
def _ink() -> Tensor:
    """What each colour takes from white: (colours, 3)."""
    return torch.tensor([[int(code[i : i + 2], 16) / 255 - 1 for i in (1, 3, 5)] for code in PALETTE], device="cpu")


def paint(positions: Tensor, colours: Tensor, shapes: Tensor, shown: Tensor | None = None) -> Tensor:
    """Scenes as pictures (n, 3, 64, 64): 0 is white, less is ink. Positions (n, 8, 2), colours and shapes (n, 8).

    Objects for which ``shown`` (n, 8) is false are left out.
    """
    count, device = len(positions), positions.device
    corner = torch.stack([1 - positions[..., 1], positions[..., 0]], dim=-1) * PIXELS - _STAMP / 2
    first = corner.floor()
    shift = ((corner - first) * _SHIFTS).long()
    cover = _stamps().to(device)[shapes, shift[..., 0], shift[..., 1]]  # (n, 8, rows, columns)
    if shown is not None:
        cover = cover * shown[..., None, None]
    within = torch.arange(_STAMP, device=device)
    row, column = ((first[..., side, None].long() + within).clamp(0, PIXELS - 1) for side in (0, 1))
    places = (row[..., :, None] * PIXELS + column[..., None, :]).flatten(1)
    drawn = cover.flatten(1)[:, None] * _ink().to(device)[colours].transpose(1, 2).repeat_interleave(_STAMP**2, dim=2)
    blank = drawn.new_zeros(count, 3, PIXELS * PIXELS)
    return blank.scatter_add(2, places[:, None].expand(-1, 3, -1), drawn).view(count, 3, PIXELS, PIXELS)


class SeeingNetwork(nn.Module):
    """An eye of three convolutions, a node for each cell in which it sees something, and nodes that choose whom to
    send to.

    White paper is silence: the eye has no biases, so it sees nothing there, and where it sees nothing is no object.
    A node says where in its cell something is, so edges know distances, and how likely it has which colour and which
    shape. The same word serves to find the start, which is the node that has the name asked, and to give the answer,
    which is the other name of the node that is pointed at; all of it is learned from the answers.
    """

    def __init__(self, preset: SeeingPreset) -> None:
        super().__init__()
        seen = preset.hidden
        self.eye = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2, bias=False),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, stride=2, padding=1, bias=False),
            nn.ReLU(),
            nn.Conv2d(48, seen, 3, stride=2, padding=1, bias=False),
            nn.ReLU(),
        )
        for layer in self.eye:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        self.where = nn.Linear(seen, 2)
        self.what = nn.Linear(seen, len(NAMES))
        self.rrn = choosing_rrn(preset, features=3 + JUMPS, outputs=1, edge_features=2)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names: (steps, n, 16)."""
        seen, there, cells = self.look(paint(batch["positions"], batch["colours"], batch["shapes"], batch.get("shown")))
        names = self.names(seen)
        named = names.gather(2, batch["start"][:, None, None].expand(-1, NODES, 1))
        by_colour = (batch["start"] < OBJECTS)[:, None, None]
        question = torch.cat([by_colour.float(), F.one_hot(batch["jumps"], JUMPS)[:, None]], dim=-1)
        x = torch.cat([named * there, there, question.expand(-1, NODES, -1)], dim=-1)
        between = distances(self.positions(seen, cells))
        edges = torch.stack([between, (-(between / SAME).square()).exp()], dim=-1)
        graphs = CompleteGraphs(len(x), NODES, device=x.device)
        said, state = self.rrn.run(x.flatten(0, 1), graphs, edges, steps=steps, state=state)
        chosen = (said.view(steps, len(x), 1, -1) + (there + 1e-4).log().mT).softmax(-1)  # which node is the answer's
        is_shape = torch.arange(len(NAMES), device=x.device) >= OBJECTS
        answers = names * (is_shape == by_colour)  # a start by colour asks for a shape
        return ((chosen @ answers)[:, :, 0] + 1e-6).log(), state

    def look(self, picture: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is seen in the cells in which there is most to see (n, nodes, units), of length 1; how surely something
        is there (n, nodes, 1); and which cells these are (n, nodes)."""
        adapted = picture / (picture.norm(dim=1, keepdim=True) + FAINT)  # pale ink counts nearly as much as black
        seen = self.eye(adapted).flatten(2).transpose(1, 2)
        strength = seen.square().mean(-1)
        strength, cells = (strength / (strength.mean(1, keepdim=True) + 1e-8)).topk(NODES)
        seen = seen.gather(1, cells[..., None].expand(-1, -1, seen.shape[2]))
        return F.normalize(seen, dim=-1), (strength / (strength + 1))[..., None], cells

    def names(self, seen: Tensor) -> Tensor:
        """How likely each node has each of the eight colours, and each of the eight shapes: (n, nodes, 16)."""
        return (SHARPNESS * self.what(seen)).unflatten(2, (2, OBJECTS)).softmax(-1).flatten(2)

    def positions(self, seen: Tensor, cells: Tensor) -> Tensor:
        """Where each node believes its object to be: the middle of its cell, or up to a cell from there."""
        middle = (torch.arange(CELLS, device=seen.device) + 0.5) / CELLS
        return torch.cartesian_prod(middle, middle)[cells] + torch.tanh(self.where(seen)) / CELLS
