"""Presets of age arithmetic: the paper's network, and two networks with numbers encoded as angles."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from rrn.training.presets import PAPERS_OPTIMIZER, CurriculumPreset, Dropped, Needs, Range, Share, Width

LAST_LEVEL = 14


@dataclass(frozen=True, kw_only=True)
class AgesPreset(CurriculumPreset):
    """Settings of all networks of this task."""

    task = "ages"

    network: Annotated[str, tyro.conf.Suppress] = ""

    hidden: Width = 96
    """Units of the state."""


@dataclass(frozen=True, kw_only=True)
class PaperPreset(AgesPreset):
    """The paper's network: one-hot numbers, MLPs and an LSTM."""

    network: Annotated[Literal["paper"], tyro.conf.Suppress] = "paper"
    layers: Annotated[int, Range(least=1, most=100)] = 3
    """ReLU layers of each MLP."""
    dropout: Dropped = 0.0
    """Dropout rate of the last two layers of the readout."""
    curriculum_level: Annotated[int, Range(least=0, most=LAST_LEVEL), Needs("curriculum")] = 0
    """First level of the curriculum: 0 (one person), …, 7 (three people in a chain), 8 (eight people, one difference),
    …, 14 (seven differences)."""
    repeat_share: Annotated[Share, Needs("curriculum")] = 0.125
    """Share of the updates that repeat an earlier level of the curriculum."""
    number_waves: bool = False
    """Initialise the weights of the one-hot numbers and of the answers as waves along the numbers, so that close
    numbers start out alike. Otherwise each number starts at random."""


@dataclass(frozen=True, kw_only=True)
class EstimatesPreset(AgesPreset):
    """Numbers as angles, products in the update; each fact estimates the ages of its two people."""

    network: Annotated[Literal["estimates"], tyro.conf.Suppress] = "estimates"
    message_width: Width = 96
    """Width of a message."""
    update_width: Width = 128
    """Product units of the update."""


@dataclass(frozen=True, kw_only=True)
class AnglesPreset(EstimatesPreset):
    """Numbers as angles, products in message, update and readout; supervised by the ages of all people."""

    network: Annotated[Literal["angles"], tyro.conf.Suppress] = "angles"  # type: ignore[assignment]


KINDS = (PaperPreset, EstimatesPreset, AnglesPreset)
"""The settings class of each network."""

PRESETS = (
    AnglesPreset(
        name="ages",
        about="Age arithmetic: numbers as angles and products, so that addition is easy to learn. Extra supervision in "
        "training: the ages of all people.",
        updates=30_000,
        lr=3e-3,
        weight_decay=1e-4,
        ema=0.99,
        validate_every=500,
        burn_in=56,
        stages=(
            {"minutes": 9, "burn_in": 0},
            {"updates": 600, "lr": 1e-3, "curriculum": False, "validate_every": 100},
            {"updates": 500, "lr": 5e-4, "curriculum": False, "validate_every": 100},
        ),
    ),
    EstimatesPreset(
        name="ages-answers",
        about="Age arithmetic supervised by the answers alone, as the paper's network is: each fact estimates the ages "
        "of its two people, and the answer adds up the estimates for the person asked.",
        updates=6_000,
        lr=2e-3,
        weight_decay=1e-4,
        ema=0.995,
        pass_mark=0.7,
        validate_every=500,
        stages=({"updates": 4_113, "lr": 3e-3, "pass_mark": 0.93}, {"updates": 4_000}),
    ),
    PaperPreset(
        name="ages-paper",
        about="Age arithmetic as in the paper's appendix: one-hot numbers, 3-layer MLPs of 128 units, an LSTM. One "
        "ReLU layer and few people at first, chains of three people before stories of eight; grown last.",
        hidden=128,
        updates=1_000_000,
        minutes=20,
        beta2=0.98,
        ema=0.998,
        pass_mark=0.9,
        repeat_share=0.25,
        burn_in=56,
        stages=(
            {"layers": 1, "lr": 2e-3, "pass_mark": 0.5, "minutes": 15, "burn_in": 0},
            {
                "layers": 1,
                "curriculum_level": 2,
                "pass_mark": 0.8,
                "minutes": 75,
                "schedule": "constant",
                "burn_in": 0,
            },
            {"layers": 1, "curriculum_level": 7, "lr": 3e-4, "minutes": 75, "burn_in": 0},
            {"curriculum_level": 8, "lr": 1e-4, "pass_mark": 0.5, "minutes": 15},
        ),
    ),
    PaperPreset(
        name="ages-paper-original",
        about="The paper's network with the paper's hyperparameters, for days of training on a GPU.",
        hidden=128,
        curriculum=False,
        dropout=0.5,
        batch_size=512,
        updates=5_000_000,
        l2=1e-5,
        **PAPERS_OPTIMIZER,
        validate_every=500,
    ),
)
