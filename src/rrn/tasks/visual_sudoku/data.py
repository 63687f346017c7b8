"""Images of digits: read from a file or drawn by us, split by image, distorted, and put into the cells of puzzles."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F

from rrn.errors import InputError, as_input_error
from rrn.tasks.visual_sudoku.strokes import draw_digits

SIZE = 28
"""Rows and columns of an image."""
DRAWN, DRAWN_SEED = 6_300, 28
"""Number of digits drawn from strokes, if there is no file, and their seed."""
MOST_BYTES = 1 << 30
Part = Literal["train", "valid", "test", "all"]
_SHARES = {"train": range(8), "valid": range(8, 9), "test": range(9, 10), "all": range(10)}
"""Tenths of the images, by a checksum of their pixels: a copy of an image is always in the same part."""


@dataclass(frozen=True)
class Digits:
    """Images uint8 (n, 28, 28), 255 is ink, and the digit of each, 1 to 9. Only puzzles are made with the digits."""

    images: np.ndarray
    labels: np.ndarray
    name: str

    def part(self, part: Part) -> "Digits":
        """The images of one part of the split."""
        tenth = np.array([hashlib.sha256(image.tobytes()).digest()[0] % 10 for image in self.images])
        rows = np.isin(tenth, _SHARES[part])
        if len(np.unique(self.labels[rows])) < 9:
            raise InputError(
                f"{self.name}: the {part} part has no image of some digits; it needs about 200 images or more"
            )
        return Digits(self.images[rows], self.labels[rows], self.name)

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.images.tobytes()).hexdigest()[:16]

    def draw_cells(self, puzzles: np.ndarray, rng: np.random.Generator, distort: bool = False) -> np.ndarray:
        """An image of its digit for every given, zeros for empty cells: (n, 81) → uint8 (n, 81, 28, 28)."""
        cells = np.zeros((*puzzles.shape, SIZE, SIZE), np.uint8)
        given = puzzles > 0
        of_digit = [np.flatnonzero(self.labels == digit) for digit in range(1, 10)]
        wanted = puzzles[given]
        counts = np.array([len(rows) for rows in of_digit])[wanted - 1]
        picked = rng.integers(1 << 30, size=len(wanted)) % counts
        rows = np.array([of_digit[digit - 1][at] for digit, at in zip(wanted, picked, strict=True)], dtype=np.int64)
        images = self.images[rows]
        cells[given] = distorted(images, rng) if distort else images
        return cells


def read_digits(path: str | Path | None) -> Digits:
    """The digits 1 to 9 of an .npz file with ``images`` uint8 (n, 28, 28) and ``labels`` (n,); None: drawn by us."""
    if path is None:
        return drawn_digits()
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file of digits (.npz with images and labels)")
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path}: exceeds the size limit of {MOST_BYTES:,} bytes")
    damaged = f"{path}: not a file of digits (.npz with images uint8 (n, 28, 28) and labels (n,))"
    with as_input_error(damaged), np.load(path, allow_pickle=False) as file:
        images, labels = np.asarray(file["images"]), np.asarray(file["labels"])
    if images.dtype != np.uint8 or images.shape[1:] != (SIZE, SIZE) or labels.shape != images.shape[:1]:
        raise InputError(
            f"{path}: expected images uint8 (n, {SIZE}, {SIZE}) and labels (n,), "
            f"got {images.dtype} {images.shape} and {labels.shape}"
        )
    kept = (labels >= 1) & (labels <= 9) & images.any((1, 2))
    if len(np.unique(labels[kept])) < 9:
        raise InputError(f"{path}: expected images of all digits from 1 to 9")
    return Digits(images[kept], labels[kept].astype(np.int64), path.name)


@cache
def drawn_digits() -> Digits:
    labels = np.arange(DRAWN) % 9 + 1
    return Digits(draw_digits(labels, np.random.default_rng(DRAWN_SEED)), labels, "digits drawn from strokes")


def distorted(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Images (n, 28, 28) shifted, turned, scaled, sheared and bent a little, each differently."""
    n = len(images)
    angle, shear = np.radians(rng.uniform(-13, 13, n)), rng.uniform(-0.15, 0.15, n)
    high, wide = rng.uniform(0.87, 1.13, (2, n))
    turn = np.stack([np.cos(angle), -np.sin(angle) + shear, np.sin(angle), np.cos(angle)], 1).reshape(n, 2, 2)
    matrix = np.concatenate([turn / np.stack([wide, high], 1)[:, :, None], rng.uniform(-0.12, 0.12, (n, 2, 1))], 2)
    where = F.affine_grid(torch.from_numpy(matrix).float(), [n, 1, SIZE, SIZE], align_corners=False)
    bends = torch.from_numpy(rng.normal(0, 0.045, (n, 2, 4, 4))).float()
    where = where + F.interpolate(bends, (SIZE, SIZE), mode="bicubic", align_corners=False).permute(0, 2, 3, 1)
    moved = F.grid_sample(torch.from_numpy(images)[:, None].float(), where, align_corners=False)[:, 0]
    return moved.clamp(0, 255).round().to(torch.uint8).numpy()
