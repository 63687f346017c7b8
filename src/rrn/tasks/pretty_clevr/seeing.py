"""Pretty-CLEVR from pictures: a network that is shown pixels and told neither objects nor positions."""

from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from rrn.graphs import CompleteGraphs
from rrn.tasks.pretty_clevr.data import JUMPS, NAMES, OBJECT_RADIUS, SHAPES, STARTS
from rrn.tasks.pretty_clevr.figures import PALETTE, outline
from rrn.tasks.pretty_clevr.model import choosing_rrn, distances, question_features
from rrn.tasks.pretty_clevr.presets import SeeingPreset
from rrn.training.experiment import Batch
from rrn.updates import State

PIXELS = 64
"""Width and height of a picture."""
CELLS = 8
"""A node looks at one of 8 × 8 cells of the picture: hardly ever are two objects in one."""
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


def paint(positions: Tensor, colours: Tensor, shapes: Tensor) -> Tensor:
    """Scenes as pictures (n, 3, 64, 64): 0 is white, less is ink. Positions (n, 8, 2), colours and shapes (n, 8)."""
    count, device = len(positions), positions.device
    corner = torch.stack([1 - positions[..., 1], positions[..., 0]], dim=-1) * PIXELS - _STAMP / 2
    first = corner.floor()
    shift = ((corner - first) * _SHIFTS).long()
    cover = _stamps().to(device)[shapes, shift[..., 0], shift[..., 1]]  # (n, 8, rows, columns)
    within = torch.arange(_STAMP, device=device)
    row, column = ((first[..., side, None].long() + within).clamp(0, PIXELS - 1) for side in (0, 1))
    places = (row[..., :, None] * PIXELS + column[..., None, :]).flatten(1)
    drawn = cover.flatten(1)[:, None] * _ink().to(device)[colours].transpose(1, 2).repeat_interleave(_STAMP**2, dim=2)
    blank = drawn.new_zeros(count, 3, PIXELS * PIXELS)
    return blank.scatter_add(2, places[:, None].expand(-1, 3, -1), drawn).view(count, 3, PIXELS, PIXELS)


class SeeingNetwork(nn.Module):
    """An eye of three convolutions, one node for each cell of what it sees, and nodes that choose whom to send to.

    A node says where in its cell something is, so edges know distances; whether there is anything, and its colour and
    shape, it has to learn from the answers.
    """

    def __init__(self, preset: SeeingPreset) -> None:
        super().__init__()
        seen = preset.hidden
        self.eye = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(48, seen, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.where = nn.Linear(seen, 2)
        self.what = nn.Linear(seen, len(NAMES))
        self.rrn = choosing_rrn(preset, features=seen + STARTS + JUMPS, outputs=1, encoder_layers=1)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names: (steps, n, 16)."""
        seen = self.eye(paint(batch["positions"], batch["colours"], batch["shapes"])).flatten(2).transpose(1, 2)
        question = question_features(batch)[:, None].expand(-1, CELLS * CELLS, -1)
        x = torch.cat([seen, question], dim=-1)
        graphs = CompleteGraphs(len(x), CELLS * CELLS, device=x.device)
        between = distances(self.positions(seen))[..., None]
        said, state = self.rrn.run(x.flatten(0, 1), graphs, between, steps=steps, state=state)
        chosen = said.view(steps, len(x), -1, 1).log_softmax(2)  # which node is the answer's
        return (chosen + self.what(seen).log_softmax(-1)).logsumexp(2), state

    def positions(self, seen: Tensor) -> Tensor:
        """Where each node believes its object to be: the middle of its cell, or up to a cell from there."""
        middle = (torch.arange(CELLS, device=seen.device) + 0.5) / CELLS
        cells = torch.cartesian_prod(middle, middle)
        return cells + torch.tanh(self.where(seen)) / CELLS
