"""Presets of Pretty-CLEVR: the paper's three networks, two faster ones, and one for images."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import tyro

from rrn.training.presets import CurriculumPreset, Dropped, Range, Share, Weight, Width


@dataclass(frozen=True, kw_only=True)
class PrettyClevrPreset(CurriculumPreset):
    """Settings of all networks of this task."""

    task = "pretty-clevr"

    network: Annotated[str, tyro.conf.Suppress] = ""

    hidden: Width = 64
    """Width of the state."""
    scenes: Annotated[int, Range(least=1, most=100_000_000)] = 100_000
    """Training scenes, with 128 questions each."""
    augment: bool = False
    """Rotate, mirror and scale each sampled scene at random."""
    furthest_share: Share = 0.0
    """Share of the questions with the largest number of jumps of the curriculum; the others have any number."""
    near_tie_share: Share = 0.0
    """Share of the questions that are the most difficult third of a larger sample: two objects at nearly equal
    distance."""
    all_jumps_from: Share = 1.0
    """Share of the training budget after which all numbers of jumps are sampled uniformly."""


@dataclass(frozen=True, kw_only=True)
class PaperPreset(PrettyClevrPreset):
    """The paper's network: one-hot names, positions and distances, MLPs."""

    network: Annotated[Literal["paper"], tyro.conf.Suppress] = "paper"
    update_inputs: Literal["hxm", "xm"] = "hxm"
    """Inputs of the update: h, x and m as in the paper's equations, or x and m as in its parameter count."""
    dropout: Dropped = 0.0
    """Dropout rate of the last ReLU layer."""
    distance_scale: Annotated[float, Range(least=0.01, most=10_000)] = 16
    """Factor of the distances. A larger factor helps to distinguish nearly equal distances. Weights of --start-from are
    rescaled to their factor."""


@dataclass(frozen=True, kw_only=True)
class PerceptronPreset(PrettyClevrPreset):
    """The paper's multi-layer perceptron on the whole scene; ``hidden`` units per layer."""

    network: Annotated[Literal["mlp"], tyro.conf.Suppress] = "mlp"
    dropout: Dropped = 0.0
    """Dropout rate of the last ReLU layer."""


@dataclass(frozen=True, kw_only=True)
class AttentionPreset(PrettyClevrPreset):
    """Distances on the edges; attention over receivers."""

    network: Annotated[Literal["attention"], tyro.conf.Suppress] = "attention"
    heads: Width = 4
    """Attention heads."""
    head_width: Width = 16
    """Width of a head."""
    update_width: Width = 128
    """ReLU units of the update."""


@dataclass(frozen=True, kw_only=True)
class RanksPreset(PrettyClevrPreset):
    """Distance ranks on the edges; supervised by the whole path."""

    network: Annotated[Literal["ranks"], tyro.conf.Suppress] = "ranks"
    message_width: Width = 64
    """Width of a message."""
    update_width: Width = 128
    """ReLU units of the update."""
    path_loss: Weight = 1.0
    """Weight of the loss on the object after each jump."""


@dataclass(frozen=True, kw_only=True)
class ImagePreset(AttentionPreset):
    """An image instead of objects; the nodes are cells of a convolutional image encoder."""

    network: Annotated[Literal["image"], tyro.conf.Suppress] = "image"  # type: ignore[assignment]


KINDS = (PaperPreset, PerceptronPreset, AttentionPreset, RanksPreset, ImagePreset)
"""The settings class of each network."""

_PAPER = PaperPreset(
    name="pretty-clevr-paper",
    about="The paper's Pretty-CLEVR network by its equations (the update reads h, x and m); curriculum over jumps.",
    hidden=128,
    augment=True,
    furthest_share=0.5,
    all_jumps_from=0.8,
    steps=4,
    updates=10_000_000,
    minutes=20,
)

_LARGE: dict[str, Any] = {"batch_size": 256, "near_tie_share": 0.5, "pass_mark": 0.5}

_STAY: dict[str, Any] = {"updates": 600, "lr": 1e-3, "curriculum": False, "validate_every": 100}
"""A last stage after which the network keeps its answer."""

PRESETS = (
    RanksPreset(
        name="pretty-clevr",
        about="Pretty-CLEVR, 0 to 7 jumps: distance ranks on the edges, the answer is a pointer. Extra supervision in "
        "training: the whole path.",
        updates=30_000,
        lr=3e-3,
        weight_decay=1e-4,
        ema=0.99,
        validate_every=500,
        burn_in=56,
        stages=({"minutes": 6, "burn_in": 0}, _STAY),
    ),
    AttentionPreset(
        name="pretty-clevr-distances",
        about="Pretty-CLEVR, 0 to 7 jumps, with the inputs and supervision of the paper's network: distances on the "
        "edges, answers alone. Attention over receivers.",
        updates=4_000,
        lr=3e-3,
        weight_decay=1e-4,
        ema=0.99,
        validate_every=500,
        burn_in=56,
        stages=({"burn_in": 0}, _STAY),
    ),
    replace(
        _PAPER,
        all_jumps_from=1.0,
        distance_scale=256,
        burn_in=28,
        stages=(
            {"minutes": 20, "distance_scale": 16, "burn_in": 0},
            {"minutes": 30, "distance_scale": 64, "burn_in": 0, **_LARGE},
            {"minutes": 45, "distance_scale": 128, "burn_in": 0, **_LARGE},
            {"minutes": 45, "burn_in": 0, **_LARGE},
            {"minutes": 25, "lr": 3e-4, **_LARGE},
        ),
    ),
    replace(
        _PAPER,
        name="pretty-clevr-paper-count",
        about="As pretty-clevr-paper, but the update reads x and m: the paper's number of parameters.",
        update_inputs="xm",
    ),
    replace(
        _PAPER,
        name="pretty-clevr-rn",
        about="The paper's relational network: its network with a single step, trained with a curriculum over jumps.",
        all_jumps_from=0.65,
        pass_mark=0.98,
        steps=1,
        minutes=12,
    ),
    PerceptronPreset(
        name="pretty-clevr-mlp",
        about="The paper's perceptron on the whole scene and the question, with a curriculum over jumps.",
        hidden=256,
        augment=True,
        furthest_share=0.5,
        all_jumps_from=0.5,
        pass_mark=0.98,
        steps=1,
        updates=10_000_000,
        minutes=4,
    ),
    ImagePreset(
        name="pretty-clevr-pixels",
        about="Pretty-CLEVR from images: a convolutional image encoder, supervised by the answers alone.",
        augment=True,
        furthest_share=0.5,
        steps=4,
        updates=9_000,
        lr=2e-3,
        ema=0.998,
        validate_every=500,
    ),
)
