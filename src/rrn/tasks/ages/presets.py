"""Age arithmetic: the paper's network, one that learns to add from answers alone, and one that is told more."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from rrn.training.presets import PAPERS_OPTIMIZER, CurriculumPreset, Dropped, Needs, Range, Weight, Width

LAST_LEVEL = 13


@dataclass(frozen=True, kw_only=True)
class AgesPreset(CurriculumPreset):
    """What all networks of this task share."""

    task = "ages"

    network: Annotated[str, tyro.conf.Suppress] = ""

    hidden: Width = 96
    """Units of the state."""


@dataclass(frozen=True, kw_only=True)
class PaperAgesPreset(AgesPreset):
    """One-hot numbers, MLPs and an LSTM."""

    network: Annotated[Literal["paper"], tyro.conf.Suppress] = "paper"
    layers: Annotated[int, Range(least=1, most=100)] = 3
    """ReLU layers of each MLP."""
    dropout: Dropped = 0.0
    """Share dropped in the last two layers of r."""
    level: Annotated[int, Range(least=0, most=LAST_LEVEL), Needs("curriculum")] = 0
    """Where the curriculum begins, for weights that have come so far: from 0 (one person) by 7 (eight people, one
    difference) to 13 (seven differences)."""


@dataclass(frozen=True, kw_only=True)
class BeliefsPreset(AgesPreset):
    """Numbers as angles, products in g; each fact holds beliefs about its two people."""

    network: Annotated[Literal["beliefs"], tyro.conf.Suppress] = "beliefs"
    message_width: Width = 96
    """Units of a message."""
    update_width: Width = 128
    """Products in g."""


@dataclass(frozen=True, kw_only=True)
class TurningPreset(AgesPreset):
    """Numbers as angles, products in f, g and r."""

    network: Annotated[Literal["turning"], tyro.conf.Suppress] = "turning"
    message_width: Width = 96
    """Units of a message."""
    update_width: Width = 128
    """Products in g."""
    facts_loss: Weight = 1.0
    """Weight of the loss on what every fact thinks the ages of its two people are."""


KINDS = (PaperAgesPreset, BeliefsPreset, TurningPreset)
"""Each network's own settings."""

_PAPER = PaperAgesPreset(
    name="ages-paper",
    about="Age arithmetic as in the paper's appendix: one-hot numbers, 3-layer MLPs of 128 units, an LSTM. Stories "
    "of one and two people first. Grown: --layers 1 --lr 2e-3 --pass-mark 0.5, then --start-from it and --level 7.",
    hidden=128,
    steps=8,
    batch_size=64,
    updates=1_000_000,
    minutes=20,
    lr=1e-3,
    beta2=0.98,
    ema=0.998,
    pass_mark=0.9,
    validate_every=1_000,
)

PRESETS = (
    TurningPreset(
        name="ages",
        about="Age arithmetic: numbers as angles and products in f, g and r, so that adding is easy to learn. "
        "In training it is told the ages of all people of all facts.",
        steps=8,
        batch_size=64,
        updates=30_000,
        minutes=9,
        lr=3e-3,
        weight_decay=1e-4,
        ema=0.99,
        validate_every=500,
    ),
    BeliefsPreset(
        name="ages-answers",
        about="Age arithmetic from answers alone, which is all that the paper's network is told: each fact holds "
        "beliefs about its two people, and the answer adds up what is believed of the person asked.",
        steps=8,
        batch_size=64,
        updates=6_000,
        lr=2e-3,
        weight_decay=1e-4,
        ema=0.995,
        pass_mark=0.7,
        validate_every=500,
    ),
    _PAPER,
    PaperAgesPreset(
        name="ages-paper-original",
        about="The paper's network with the paper's own hyperparameters: for a GPU, and days.",
        hidden=128,
        curriculum=False,
        dropout=0.5,
        steps=8,
        batch_size=512,
        updates=5_000_000,
        l2=1e-5,
        **PAPERS_OPTIMIZER,
        validate_every=500,
    ),
)
