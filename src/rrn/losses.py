"""The loss at every step, which makes the message passing converge; or at the last step only."""

import torch
import torch.nn.functional as F
from torch import Tensor

from rrn.errors import InputError


def step_losses(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy at each step: logits (steps, n, classes) and classes (n,) → (steps,)."""
    if outputs.dim() != 3 or targets.shape != outputs.shape[1:2]:
        raise InputError(
            f"targets: expected shape {tuple(outputs.shape[1:2])} for outputs of shape (steps, n, classes) = "
            f"{tuple(outputs.shape)}, got {tuple(targets.shape)}"
        )
    steps, count, _ = outputs.shape
    every = F.cross_entropy(outputs.flatten(0, 1), targets.repeat(steps), reduction="none")
    return every.view(steps, count).mean(1)


def every_step(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean of the losses of all steps: the paper's loss, and the default."""
    return step_losses(outputs, targets).mean()


def last_step(outputs: Tensor, targets: Tensor) -> Tensor:
    return step_losses(outputs[-1:], targets).mean()


def accuracy_by_step(outputs: Tensor, targets: Tensor) -> Tensor:
    """The share of right answers at each step: (steps,)."""
    return (outputs.argmax(-1) == targets).to(torch.float32).mean(1)
