"""What an experiment is: a frozen dataclass that says all of it. Every field is a flag of ``rrn train``.

Nothing here imports torch, so that listing and parsing presets is instant.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The settings that all experiments share. A task adds those of its network and its data."""

    task: ClassVar[str]

    name: Annotated[str, tyro.conf.Suppress]
    about: Annotated[str, tyro.conf.Suppress]

    steps: int = 8
    """Steps of message passing in training."""
    segment: int | None = None
    """Back-propagate through this many steps, then update and go on from the detached state. Unset: all steps."""
    loss: Literal["every", "last"] = "every"
    """The steps that have a loss."""

    batch_size: int = 64
    """Graphs an update, over all processes together."""
    updates: int = 100_000
    """Gradient updates at most."""
    minutes: float | None = None
    """Wall-clock budget of training; the schedule ends with it. Unset: updates alone decide."""

    optimizer: Literal["adam", "adamw"] = "adamw"
    lr: float = 1e-3
    """Learning rate after warm-up."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """The learning rate after warm-up: falling to 0 at the end, or constant."""
    warmup: int = 100
    """Updates over which the learning rate rises from 0."""
    weight_decay: float = 0.0
    """adamw: share of each weight matrix taken off an update, times the learning rate."""
    beta2: float = 0.999
    """Memory of Adam's running mean of squared gradients."""
    l2: float = 0.0
    """adam: the paper's L2 term, l2/2 times the sum of squares of all weight matrices, added to the loss."""
    clip: float | None = 1.0
    """Gradients are scaled down to this norm."""
    ema: float | None = 0.999
    """Decay of the running average of the weights that is validated and kept. Unset: the weights themselves."""

    start_from: Path | None = None
    """A folder of weights of the same network, or of a shallower one, to start from. Unset: random weights."""
    seed: int = 0
    validate_every: int = 1000
    """Updates between validations."""
    checkpoint_minutes: float = 3.0
    """Minutes between checkpoints."""
    threads: int = 1
    """Threads of each process."""
