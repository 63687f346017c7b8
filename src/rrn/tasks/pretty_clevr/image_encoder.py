"""Pretty-CLEVR from images: a convolutional image encoder finds the objects."""

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.graphs import CompleteGraphs
from rrn.nn.updates import State
from rrn.tasks.pretty_clevr.data import JUMPS, NAMES, OBJECT_RADIUS, OBJECTS, SHAPES
from rrn.tasks.pretty_clevr.figures import PALETTE, outline
from rrn.tasks.pretty_clevr.model import attention_rrn, distances
from rrn.tasks.pretty_clevr.presets import ImagePreset
from rrn.training.experiment import Batch

PIXELS = 64
"""Width and height of an image."""
CELLS = 8
"""The image encoder has 8 × 8 cells; few cells contain two objects."""
NODES = 24
"""Nodes of the graph: the cells with the strongest features. An object covers about three of them."""
SHARPNESS = 10.0
"""Scale of the name logits: large enough that nodes differ at initialisation."""
SAME = 0.08
"""Distance below which two nodes probably show the same object."""
FAINT = 0.2
"""Intensity at which the contrast normalisation gives one half; the palest colour has twice this intensity."""
_STAMP = 2 * int(np.ceil(OBJECT_RADIUS * PIXELS)) + 2
_SHIFTS = 8
_SAMPLES = 8


@cache
def _stamps() -> Tensor:
    """Pixel coverage of each shape, with its centre shifted down and right by eighths of a pixel:
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
    """Difference of each colour from white: (colours, 3)."""
    return torch.tensor([[int(code[i : i + 2], 16) / 255 - 1 for i in (1, 3, 5)] for code in PALETTE], device="cpu")


def paint(positions: Tensor, colours: Tensor, shapes: Tensor, shown: Tensor | None = None) -> Tensor:
    """Render scenes as images (n, 3, 64, 64), differences from white. Positions (n, 8, 2), colours and shapes (n, 8).

    Objects with false in ``shown`` (n, 8) are omitted.
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
    pixels = (row[..., :, None] * PIXELS + column[..., None, :]).flatten(1)
    drawn = cover.flatten(1)[:, None] * _ink().to(device)[colours].transpose(1, 2).repeat_interleave(_STAMP**2, dim=2)
    blank = drawn.new_zeros(count, 3, PIXELS * PIXELS)
    return blank.scatter_add(2, pixels[:, None].expand(-1, 3, -1), drawn).view(count, 3, PIXELS, PIXELS)


class ImageNetwork(nn.Module):
    """An image encoder of three convolutions, one node per cell with strong features, and attention over receivers.

    The encoder has no biases, so white areas have zero features. Each node predicts a position within its cell, which
    gives the distances on the edges, and the probabilities of its colour and shape. These probabilities serve to find
    the start and to name the answer. All of it is learned from the answers.
    """

    def __init__(self, preset: ImagePreset) -> None:
        super().__init__()
        width = preset.hidden
        self.eye = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2, bias=False),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, stride=2, padding=1, bias=False),
            nn.ReLU(),
            nn.Conv2d(48, width, 3, stride=2, padding=1, bias=False),
            nn.ReLU(),
        )
        for layer in self.eye:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        self.where = nn.Linear(width, 2)
        self.what = nn.Linear(width, len(NAMES))
        self.rrn = attention_rrn(preset, features=3 + JUMPS, outputs=1, edge_features=2)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names: (steps, n, 16)."""
        features, present, cells = self.encode(
            paint(batch["positions"], batch["colours"], batch["shapes"], batch.get("shown"))
        )
        names = self.names(features)
        named = names.gather(2, batch["start"][:, None, None].expand(-1, NODES, 1))
        by_colour = (batch["start"] < OBJECTS)[:, None, None]
        question = torch.cat([by_colour.float(), F.one_hot(batch["jumps"], JUMPS)[:, None]], dim=-1)
        x = torch.cat([named * present, present, question.expand(-1, NODES, -1)], dim=-1)
        between = distances(self.positions(features, cells))
        edges = torch.stack([between, (-(between / SAME).square()).exp()], dim=-1)
        graphs = CompleteGraphs(len(x), NODES, device=x.device)
        logits, state = self.rrn.run(x.flatten(0, 1), graphs, edges, steps=steps, state=state)
        chosen = (logits.view(steps, len(x), 1, -1) + (present + 1e-4).log().mT).softmax(
            -1
        )  # probability that each node is the answer
        is_shape = torch.arange(len(NAMES), device=x.device) >= OBJECTS
        answers = names * (is_shape == by_colour)  # a start by colour asks for a shape
        return ((chosen @ answers)[:, :, 0] + 1e-6).log(), state

    def encode(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The cells with the strongest features: their features, of length 1 (n, nodes, units), the probability that
        they show an object (n, nodes, 1), and their indices (n, nodes)."""
        adapted = image / (image.norm(dim=1, keepdim=True) + FAINT)  # contrast normalisation
        features = self.eye(adapted).flatten(2).transpose(1, 2)
        strength = features.square().mean(-1)
        strength, cells = (strength / (strength.mean(1, keepdim=True) + 1e-8)).topk(NODES)
        features = features.gather(1, cells[..., None].expand(-1, -1, features.shape[2]))
        return F.normalize(features, dim=-1), (strength / (strength + 1))[..., None], cells

    def names(self, features: Tensor) -> Tensor:
        """Probabilities of the eight colours and the eight shapes of each node: (n, nodes, 16)."""
        return (SHARPNESS * self.what(features)).unflatten(2, (2, OBJECTS)).softmax(-1).flatten(2)

    def positions(self, features: Tensor, cells: Tensor) -> Tensor:
        """The predicted position of each node: the centre of its cell, plus at most one cell."""
        centre = (torch.arange(CELLS, device=features.device) + 0.5) / CELLS
        return torch.cartesian_prod(centre, centre)[cells] + torch.tanh(self.where(features)) / CELLS
