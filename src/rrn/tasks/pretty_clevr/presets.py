"""Pretty-CLEVR: the paper's three networks, and one that walks all seven jumps."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from rrn.presets import Dropped, Preset, Range, Share, Weight, Width


@dataclass(frozen=True, kw_only=True)
class PrettyClevrPreset(Preset):
    task = "pretty-clevr"

    network: Literal["walking", "paper", "mlp"] = "walking"
    """walking: who is how near to whom, and a pointer as answer. paper: one-hot names, positions and distances, MLPs.
    mlp: one perceptron on the whole scene."""
    hidden: Width = 64
    """Units of the state (of each layer, with mlp)."""
    message_width: Width = 64
    """walking: units of a message."""
    update_width: Width = 128
    """walking: ReLU units in g."""
    update_inputs: Literal["hxm", "xm"] = "hxm"
    """paper: what g reads: h, x and m as the text has it, or the two that the paper's parameter count has room for."""
    walk_loss: Weight = 1.0
    """walking: weight of the loss on which object every jump so far has reached, whatever is asked."""
    dropout: Dropped = 0.0
    """paper, mlp: share dropped in the last ReLU layer."""
    scenes: Annotated[int, Range(least=1, most=100_000_000)] = 100_000
    """Scenes to train on, each with its 128 questions."""
    augment: bool = False
    """Turn, mirror and scale every scene anew each time it is seen."""
    curriculum: bool = True
    """Begin with questions of no jump; go one further whenever the furthest are answered right."""
    furthest_share: Share = 0.0
    """Share of the questions that ask for as many jumps as the curriculum allows; the others ask for any number."""
    all_jumps_from: Share = 1.0
    """Share of the budget after which questions of all numbers of jumps are asked alike, passed or not."""
    pass_mark: Share = 0.93
    """The running accuracy on the furthest questions at which the curriculum goes on."""


_PAPER = PrettyClevrPreset(
    name="pretty-clevr-paper",
    about="The paper's Pretty-CLEVR network by its equations (g reads h, x and m), with a curriculum over jumps.",
    network="paper",
    hidden=128,
    walk_loss=0.0,
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
    PrettyClevrPreset(
        name="pretty-clevr",
        about="Pretty-CLEVR, all eight numbers of jumps: edges say who is how near to whom, the answer is a pointer.",
        steps=8,
        batch_size=64,
        updates=30_000,
        minutes=6,
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
    replace(
        _PAPER,
        name="pretty-clevr-mlp",
        about="The paper's perceptron on the whole scene and the question, with a curriculum over jumps.",
        network="mlp",
        hidden=256,
        all_jumps_from=0.5,
        pass_mark=0.98,
        steps=1,
        minutes=4,
    ),
)
