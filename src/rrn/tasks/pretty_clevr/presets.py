"""Pretty-CLEVR: the paper's three networks, one that chooses where to jump, and one that is told more."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import tyro

from rrn.training.presets import CurriculumPreset, Dropped, Range, Share, Weight, Width


@dataclass(frozen=True, kw_only=True)
class PrettyClevrPreset(CurriculumPreset):
    """What all networks of this task share."""

    task = "pretty-clevr"

    network: Annotated[str, tyro.conf.Suppress] = ""

    hidden: Width = 64
    """Units of the state."""
    scenes: Annotated[int, Range(least=1, most=100_000_000)] = 100_000
    """Scenes to train on, each with its 128 questions."""
    augment: bool = False
    """Turn, mirror and scale every scene anew each time it is seen."""
    furthest_share: Share = 0.0
    """Share of the questions that ask for as many jumps as the curriculum has come to; the others ask for fewer too. It
    does not go beyond the number of steps."""
    near_ties: Share = 0.0
    """Share of the questions chosen, from three times as many, for how nearly two objects on their way are equally
    far: these are learned last."""
    all_jumps_from: Share = 1.0
    """Share of the budget after which questions of all numbers of jumps are asked alike, passed or not."""


@dataclass(frozen=True, kw_only=True)
class PaperPreset(PrettyClevrPreset):
    """One-hot names, positions and distances, MLPs."""

    network: Annotated[Literal["paper"], tyro.conf.Suppress] = "paper"
    update_inputs: Literal["hxm", "xm"] = "hxm"
    """What g reads: h, x and m as the text has it, or the two that the paper's parameter count has room for."""
    dropout: Dropped = 0.0
    """Share dropped in the last ReLU layer."""
    magnify: Annotated[float, Range(least=0.01, most=10_000)] = 16
    """What distances are multiplied by: the more, the sooner small differences between them are told apart, and the
    later large ones. Weights to start from are divided by as much, so that they compute what they did."""


@dataclass(frozen=True, kw_only=True)
class PerceptronPreset(PrettyClevrPreset):
    """One perceptron on the whole scene; ``hidden`` units in each layer."""

    network: Annotated[Literal["mlp"], tyro.conf.Suppress] = "mlp"
    dropout: Dropped = 0.0
    """Share dropped in the last ReLU layer."""


@dataclass(frozen=True, kw_only=True)
class ChoosingPreset(PrettyClevrPreset):
    """Distances on the edges; objects choose whom to send to."""

    network: Annotated[Literal["choosing"], tyro.conf.Suppress] = "choosing"
    heads: Width = 4
    """Choices of each object per step."""
    head_width: Width = 16
    """Units that go with each choice."""
    update_width: Width = 128
    """ReLU units in g."""


@dataclass(frozen=True, kw_only=True)
class WalkingPreset(PrettyClevrPreset):
    """Ranks on the edges: who is how near to whom."""

    network: Annotated[Literal["walking"], tyro.conf.Suppress] = "walking"
    message_width: Width = 64
    """Units of a message."""
    update_width: Width = 128
    """ReLU units in g."""
    walk_loss: Weight = 1.0
    """Weight of the loss on which object every jump so far has reached, whatever is asked."""


@dataclass(frozen=True, kw_only=True)
class SeeingPreset(ChoosingPreset):
    """A picture instead of objects: one node per cell of what a small convolutional network sees."""

    network: Annotated[Literal["seeing"], tyro.conf.Suppress] = "seeing"  # type: ignore[assignment]
    sparse: Share = 0.8
    """Share of the training pictures that leave out objects that the walk does not come to: half of them all."""


KINDS = (PaperPreset, PerceptronPreset, ChoosingPreset, WalkingPreset, SeeingPreset)
"""Each network's own settings."""

_PAPER = PaperPreset(
    name="pretty-clevr-paper",
    about="The paper's Pretty-CLEVR network by its equations (g reads h, x and m), with a curriculum over jumps.",
    hidden=128,
    augment=True,
    furthest_share=0.5,
    all_jumps_from=0.8,
    steps=4,
    batch_size=64,
    updates=10_000_000,
    minutes=20,
    lr=1e-3,
    ema=0.999,
    validate_every=1000,
)

PRESETS = (
    WalkingPreset(
        name="pretty-clevr",
        about="Pretty-CLEVR, all eight numbers of jumps: edges say who is how near to whom, the answer is a pointer. "
        "In training it is told the whole walk.",
        steps=8,
        batch_size=64,
        updates=30_000,
        minutes=6,
        lr=3e-3,
        weight_decay=1e-4,
        ema=0.99,
        validate_every=500,
    ),
    ChoosingPreset(
        name="pretty-clevr-distances",
        about="Pretty-CLEVR, all eight numbers of jumps, told what the paper's network is told: distances on the "
        "edges, and answers alone. Objects choose whom to send to.",
        steps=8,
        batch_size=64,
        updates=4_000,
        lr=3e-3,
        weight_decay=1e-4,
        ema=0.99,
        validate_every=500,
    ),
    _PAPER,
    replace(
        _PAPER,
        name="pretty-clevr-paper-count",
        about="As pretty-clevr-paper, but g reads x and m: the paper's number of parameters.",
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
        batch_size=64,
        updates=10_000_000,
        minutes=4,
        lr=1e-3,
        ema=0.999,
        validate_every=1000,
    ),
    SeeingPreset(
        name="pretty-clevr-pixels",
        about="From pictures: convolutions find the objects, trained from the answers alone.",
        augment=True,
        furthest_share=0.5,
        steps=4,
        batch_size=64,
        updates=9_000,
        lr=2e-3,
        ema=0.998,
        validate_every=500,
    ),
)
