"""The preset of the digit reader: a small convolutional network for the cells of photos."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rrn.training.presets import Dropped, Preset, Width


@dataclass(frozen=True, kw_only=True)
class DigitReaderPreset(Preset):
    task = "photo"

    network: Annotated[Literal["reader"], tyro.conf.Suppress] = "reader"
    steps: Annotated[Literal[1], tyro.conf.Suppress] = 1
    segment: Annotated[Literal[None], tyro.conf.Suppress] = None
    filters: Width = 24
    """Filters of the first convolution; the others have twice as many."""
    dropout: Dropped = 0.2
    """Dropout before the last layer."""
    handwriting: Path | None = None
    """A file of images of digits (.npz with images uint8 (n, 28, 28) and labels (n,), such as MNIST); digits drawn from
    strokes are trained on as well. Unset: these alone."""
    fonts: Path | None = None
    """A folder of fonts (.ttf) to train on besides those of matplotlib."""


KINDS = (DigitReaderPreset,)
PRESETS = (
    DigitReaderPreset(
        name="photo",
        about="Reads the digits of Sudokus in photos: a convolutional network, trained on rendered cells with printed "
        "and handwritten digits.",
        batch_size=162,
        updates=6000,
        lr=2e-3,
        ema=0.995,
        validate_every=500,
    ),
)
