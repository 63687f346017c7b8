"""Presets of visual Sudoku: an image encoder in front of the paper's network."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from rrn.tasks.sudoku.presets import PAPER
from rrn.tasks.sudoku.settings import PaperPreset
from rrn.training.presets import Dropped, Width


@dataclass(frozen=True, kw_only=True)
class VisualSudokuPreset(PaperPreset):
    """The puzzles and the reasoner are those of the paper's network for Sudoku."""

    task = "visual-sudoku"

    digits: Path | None = None
    """A file of images of digits (.npz with images uint8 (n, 28, 28) and labels (n,), such as MNIST). A tenth of the
    images is for validation and a tenth for testing. Unset: digits drawn from strokes."""
    digits_checksum: Annotated[str, tyro.conf.Suppress] = ""
    """Checksum of the images of --digits; training sets it. Evaluation then measures on the test part of that file."""
    filters: Width = 24
    """Filters of the image encoder's first convolution; the others have twice as many."""
    encoder_dropout: Dropped = 0.3
    """Dropout before the last layer of the image encoder."""
    train_reasoner: bool = True
    """Train the weights of the reasoner too, instead of the image encoder alone."""
    labels: bool = False
    """Also train on the digits of the given cells, as a comparison. By default no image has a label."""
    own_answers: bool = False
    """Train the image encoder, instead of on empty cells, on what the network itself answers in given cells, wherever
    its whole grid breaks no rule and its empty cells are right. No label of an image is used, unless --labels."""


KINDS = (VisualSudokuPreset,)

_ENCODER_ALONE: dict[str, Any] = {
    "train_reasoner": False,
    "segment": 1,  # at the first step only do gradients show from nothing which digit would be right
    "slot_steps": (1, 1),
    "stay": 0.0,
    "extra_givens_start": 50,
    "easy_share": 0.0,
    "batch_size": 8,
    "updates": 600,
    "schedule": "constant",
    "validate_every": 100,
}
_OWN_ANSWERS: dict[str, Any] = {
    "train_reasoner": False,
    "own_answers": True,
    "segment": 16,
    "slot_steps": (16, 16),
    "stay": 0.0,
    "extra_givens": (8, 24),
    "extra_givens_start": 12,
    "extra_givens_decrement": 0.0,
    "easy_share": 0.0,
    "minutes": 45,
}
_BOTH: dict[str, Any] = {"extra_givens_start": 12, "stay": 0.6, "lr": 5e-5, "minutes": 5, "validate_every": 60}
_SETTINGS: dict[str, Any] = {
    **vars(PAPER),
    "name": "visual-sudoku",
    "about": "Sudoku from images of digits: an image encoder in front of the paper's network, trained without labels "
    "of images. The encoder alone at first, then on its own answers, then both networks.",
    "start_from": Path(PAPER.name),
    "few_givens_pool": 0,
    "slot_steps": (24, 40),
    "stay": 0.3,
    "extra_givens_start": 30,
    "easy_share": 0.3,
    "batch_size": 12,
    "minutes": 60,
    "validate_every": 300,
    "stages": (_ENCODER_ALONE, _OWN_ANSWERS, _BOTH),
}
PRESETS = (VisualSudokuPreset(**_SETTINGS),)
