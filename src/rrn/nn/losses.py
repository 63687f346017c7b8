"""Losses at every step, which make the message passing converge, or at the last step only.

Losses and accuracies skip unknown targets: integers equal to ``ignore_index``, and floats that are NaN.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rrn.errors import InputError

IGNORE = -100
"""The integer target that marks an unknown class, as in `torch.nn.functional.cross_entropy`."""

Criterion = Callable[[Tensor, Tensor], Tensor]
"""Outputs (rows, width) and targets (rows, …) → losses of the shape of the targets."""


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy per row: logits (rows, classes) and classes (rows,) → (rows,)."""
    if targets.is_floating_point():
        raise InputError(f"targets: expected classes as integers, got {targets.dtype}; for numbers: squared_error")
    try:
        return F.cross_entropy(logits, targets.long(), reduction="none")
    except IndexError as error:
        low, high = (int(value) for value in targets.aminmax())
        wrong, classes = low if low < 0 else high, logits.shape[-1]
        raise InputError(f"targets: expected classes 0 to {classes - 1}, or ignore_index, got {wrong}") from error


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """(output - target)²: (rows, width) and (rows, width), or (rows, 1) and (rows,) → the shape of the targets."""
    if outputs.numel() != targets.numel():
        raise InputError(f"targets: expected {outputs.shape[-1]} numbers per answer, got shape {tuple(targets.shape)}")
    return (outputs.view(targets.shape) - targets) ** 2


def known(targets: Tensor, ignore_index: int = IGNORE) -> Tensor:
    """The mask of known targets: those that are neither ``ignore_index`` nor NaN."""
    return ~targets.isnan() if targets.is_floating_point() else targets != ignore_index


def any_known(targets: Tensor) -> Tensor:
    """Which labels have at least one known number: (labels,)."""
    return known(targets).reshape(len(targets), -1).any(1)


def step_losses(
    outputs: Tensor,
    targets: Tensor,
    *,
    ignore_index: int = IGNORE,
    weights: Tensor | None = None,
    criterion: Criterion = cross_entropy,
) -> Tensor:
    """The mean loss over the known targets at each step: (steps,). Without known targets it is 0.

    Args:
        outputs: (steps, n, width), logits or numbers; (steps, …, width) for edge outputs of a dense graph layout.
        targets: classes (n,), the same at every step, or (steps, n), one for each step; for `squared_error` numbers
            (n, width), or (n,) if width is 1.
        ignore_index: the class that marks an unknown target; for numbers it is NaN.
        weights: the weight of each target, (n,), or (steps, n) if it differs between steps.
        criterion: the loss of each target: `cross_entropy`, `squared_error` or a custom function.
    """
    shape = _check_targets(outputs, targets)
    steps, rows = outputs.shape[0], outputs.flatten(0, -2)
    counts = known(targets, ignore_index)
    repeated = torch.where(counts, targets, 0)
    if not _differ_by_step(outputs, targets):
        repeated = repeated.expand(steps, *targets.shape)
    losses = criterion(rows, repeated.flatten(0, len(shape))).view(repeated.shape)
    share = counts.to(losses.dtype).expand_as(losses)
    if weights is not None:
        if tuple(weights.shape) not in (shape, (steps, *shape)):
            raise InputError(f"weights: expected shape {shape} or {(steps, *shape)}, got {tuple(weights.shape)}")
        weights = weights.to(losses).expand(steps, *shape)
        share = share * (weights if losses.dim() == weights.dim() else weights[..., None])
    counted = share.flatten(1).sum(1)
    return (losses * share).flatten(1).sum(1) / torch.where(counted > 0, counted, 1)


def every_step(outputs: Tensor, targets: Tensor, *, weights: Tensor | None = None, **options: Any) -> Tensor:
    """The mean loss over all steps, as in the paper. Arguments as in `step_losses`."""
    return step_losses(outputs, targets, weights=weights, **options).mean()


def last_step(outputs: Tensor, targets: Tensor, *, weights: Tensor | None = None, **options: Any) -> Tensor:
    """The loss of the last step. Arguments as in `step_losses`."""
    _check_targets(outputs, targets)
    if weights is not None and weights.dim() == outputs.dim() - 1:
        weights = weights[-1:]
    if _differ_by_step(outputs, targets):
        targets = targets[-1]
    return step_losses(outputs[-1:], targets, weights=weights, **options).mean()


def mean_when_due(outputs: Tensor, targets: Tensor, due: Tensor) -> Tensor:
    """The mean over questions of the mean cross-entropy over the steps at which the question is ``due``.

    Outputs (steps, n, …, classes), targets (n, …), due (steps, n, …), true at least once per question. The mean is
    taken per question first, so that the parts of a batch on several processes average to the loss of the whole.
    """
    every = F.cross_entropy(outputs.movedim(-1, 1), targets.expand(len(outputs), *targets.shape), reduction="none")
    by_question = (every * due).transpose(0, 1).flatten(1).sum(1) / due.transpose(0, 1).flatten(1).sum(1)
    return by_question.mean()


def accuracy_by_step(outputs: Tensor, targets: Tensor, *, ignore_index: int = IGNORE) -> Tensor:
    """Accuracy over the known targets at each step: (steps,). NaN if no target is known."""
    _check_targets(outputs, targets)
    counts = known(targets, ignore_index)
    right = (outputs.argmax(-1) == targets) & counts
    return right.flatten(1).sum(1) / counts.expand_as(right).flatten(1).sum(1)


def _differ_by_step(outputs: Tensor, targets: Tensor) -> bool:
    """Whether there is a class for each step: (steps, n)."""
    return not targets.is_floating_point() and targets.shape == outputs.shape[:-1]


def _check_targets(outputs: Tensor, targets: Tensor) -> tuple[int, ...]:
    """Check outputs and targets; returns the shape of one step's answers."""
    for name, values in (("outputs", outputs), ("targets", targets)):
        if not isinstance(values, Tensor) or values.is_complex():
            raise InputError(f"{name}: expected a tensor of real numbers, got {type(values).__name__}")
    if not outputs.is_floating_point() or outputs.dim() < 2 or 0 in (outputs.shape[0], outputs.shape[-1]):
        what = f"{outputs.dtype} {tuple(outputs.shape)}"
        raise InputError(f"outputs: expected floats of shape (steps, n, classes), got {what}")
    if outputs.device != targets.device:
        raise InputError(f"targets: expected device {outputs.device}, as the outputs are, got {targets.device}")
    shape, found = tuple(outputs.shape[1:-1]), tuple(targets.shape)
    numbers = targets.is_floating_point() and found == tuple(outputs.shape[1:])
    if not shape or not (found == shape or numbers or _differ_by_step(outputs, targets)):
        raise InputError(
            f"targets: expected shape {shape or tuple(outputs.shape[:1])} for outputs of shape (steps, n, classes) = "
            f"{tuple(outputs.shape)}, got {found}"
        )
    return shape
