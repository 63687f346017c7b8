"""Age arithmetic: the paper's network, and one that learns to add in minutes."""

from dataclasses import dataclass
from typing import Literal

from rrn.presets import Dropped, Preset, Share, Weight, Width


@dataclass(frozen=True, kw_only=True)
class AgesPreset(Preset):
    task = "ages"

    network: Literal["paper", "turning"] = "turning"
    """paper: one-hot numbers, MLPs and an LSTM. turning: numbers as angles, products in f, g and r."""
    hidden: Width = 96
    """Units of the state."""
    message_width: Width = 96
    """turning: units of a message."""
    update_width: Width = 128
    """turning: products in g."""
    facts_loss: Weight = 1.0
    """turning: weight of the loss on what every fact thinks the ages of its two persons are."""
    curriculum: bool = True
    """Begin with questions no difference away; go one further whenever the furthest are answered right."""
    pass_mark: Share = 0.93
    """The running accuracy on the furthest questions at which the curriculum goes on."""
    dropout: Dropped = 0.0
    """paper: share dropped in the last two layers of r."""


PRESETS = (
    AgesPreset(
        name="ages",
        about="Age arithmetic: numbers as angles and products in f, g and r, so that adding is easy to learn.",
        steps=8,
        batch_size=64,
        updates=30_000,
        minutes=9,
        lr=3e-3,
        weight_decay=1e-4,
        ema=0.99,
        validate_every=500,
    ),
    AgesPreset(
        name="ages-paper",
        about="Age arithmetic as in the paper's appendix: one-hot numbers, 3-layer MLPs of 128 units, an LSTM.",
        network="paper",
        hidden=128,
        facts_loss=0.0,
        curriculum=False,
        dropout=0.5,
        steps=8,
        batch_size=512,
        updates=5_000_000,
        optimizer="adam",
        lr=2e-4,
        l2=1e-5,
        schedule="constant",
        warmup=0,
        clip=None,
        ema=None,
        validate_every=500,
    ),
)
