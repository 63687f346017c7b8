"""The loss at every step, which makes the message passing converge; or at the last step only.

Targets are masked one way everywhere: an integer target equal to ``ignore_index``, or a number that is NaN, is not
known, and neither losses nor accuracies count it.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from rrn.errors import InputError

IGNORE = -100
"""The integer target that means "not known", as in `torch.nn.functional.cross_entropy`."""

Criterion = Callable[[Tensor, Tensor], Tensor]
"""Outputs (rows, width) and targets (rows, …) → losses of the shape of the targets."""


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """-log of the chance of the right class: (rows, classes) and (rows,) → (rows,)."""
    if targets.is_floating_point():
        raise InputError(f"targets: expected classes as integers, got {targets.dtype}; for numbers: squared_error")
    try:
        return F.cross_entropy(logits, targets.long(), reduction="none")
    except IndexError as error:
        low, high = (int(value) for value in targets.aminmax())
        wrong, classes = low if low < 0 else high, logits.shape[-1]
        raise InputError(f"targets: expected classes 0 to {classes - 1}, or ignore_index, got {wrong}") from error


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """(output - target)²: (rows, width) and (rows, width), or (rows, 1) and (rows,), → as the targets."""
    if outputs.numel() != targets.numel():
        raise InputError(f"targets: expected {outputs.shape[-1]} numbers per answer, got shape {tuple(targets.shape)}")
    return (outputs.view(targets.shape) - targets) ** 2


def known(targets: Tensor, ignore_index: int = IGNORE) -> Tensor:
    """Which targets count: those that are not ``ignore_index``, or not NaN."""
    return ~targets.isnan() if targets.is_floating_point() else targets != ignore_index


def step_losses(
    outputs: Tensor,
    targets: Tensor,
    *,
    ignore_index: int = IGNORE,
    weights: Tensor | None = None,
    criterion: Criterion = cross_entropy,
) -> Tensor:
    """The mean loss of what counts, at each step: (steps,). Where nothing counts it is 0.

    Args:
        outputs: (steps, n, width), logits or numbers; for answers per edge of a graph that is no edge list,
            (steps, …, width).
        targets: classes (n,), the same at every step; for `squared_error` numbers (n, width), or (n,) if width is 1.
        ignore_index: the class that means "not known". Of numbers, it is NaN.
        weights: how much each target counts, (n,), or (steps, n) if that changes from step to step.
        criterion: the loss of each target: `cross_entropy`, `squared_error` or one of your own.
    """
    shape = _check_targets(outputs, targets)
    steps, rows = outputs.shape[0], outputs.flatten(0, -2)
    counts = known(targets, ignore_index)
    repeated = torch.where(counts, targets, 0).expand(steps, *targets.shape)
    losses = criterion(rows, repeated.flatten(0, len(shape))).view(repeated.shape)
    share = counts.to(losses.dtype).expand_as(losses)
    if weights is not None:
        if tuple(weights.shape) not in (shape, (steps, *shape)):
            raise InputError(f"weights: expected shape {shape} or {(steps, *shape)}, got {tuple(weights.shape)}")
        weights = weights.to(losses).expand(steps, *shape)
        share = share * (weights if losses.dim() == weights.dim() else weights[..., None])
    counted = share.flatten(1).sum(1)
    return (losses * share).flatten(1).sum(1) / torch.where(counted > 0, counted, 1)


def every_step(
    outputs: Tensor,
    targets: Tensor,
    *,
    ignore_index: int = IGNORE,
    weights: Tensor | None = None,
    criterion: Criterion = cross_entropy,
) -> Tensor:
    """The mean of the losses of all steps: the paper's loss, and the default. Arguments as of `step_losses`."""
    return step_losses(outputs, targets, ignore_index=ignore_index, weights=weights, criterion=criterion).mean()


def last_step(
    outputs: Tensor,
    targets: Tensor,
    *,
    ignore_index: int = IGNORE,
    weights: Tensor | None = None,
    criterion: Criterion = cross_entropy,
) -> Tensor:
    """The loss of the last step alone. Arguments as of `step_losses`."""
    if weights is not None and weights.dim() == outputs.dim() - 1:
        weights = weights[-1:]
    return step_losses(outputs[-1:], targets, ignore_index=ignore_index, weights=weights, criterion=criterion).mean()


def mean_when_due(outputs: Tensor, targets: Tensor, due: Tensor) -> Tensor:
    """The mean over questions of each one's mean cross-entropy where it is ``due``.

    Outputs (steps, n, …, classes), targets (n, …), due (steps, n, …), true at least once per question. A mean per
    question first, so that the shares of a batch that several processes work on add up to the whole.
    """
    every = F.cross_entropy(outputs.movedim(-1, 1), targets.expand(len(outputs), *targets.shape), reduction="none")
    by_question = (every * due).transpose(0, 1).flatten(1).sum(1) / due.transpose(0, 1).flatten(1).sum(1)
    return by_question.mean()


def winners(losses: Tensor, copies: int, others: float = 0.0) -> Tensor:
    """How much each of several attempts at the same problem counts: (n,) losses, ``copies`` after one another → (n,).

    1 for the attempt with the smallest loss, ``others`` for the rest. A loss on every attempt at what a network cannot
    solve yet teaches it to say how likely everything is; a loss on the best attempt alone teaches it to try.
    """
    best = losses.detach().view(-1, copies).argmin(1)
    won = F.one_hot(best, copies).flatten().to(losses)
    return won + others * (1 - won)


def accuracy_by_step(outputs: Tensor, targets: Tensor, *, ignore_index: int = IGNORE) -> Tensor:
    """The share of right answers among the targets that are known, at each step: (steps,). NaN if none is known."""
    _check_targets(outputs, targets)
    counts = known(targets, ignore_index)
    right = (outputs.argmax(-1) == targets) & counts
    return right.flatten(1).sum(1) / counts.sum()


def _check_targets(outputs: Tensor, targets: Tensor) -> tuple[int, ...]:
    """The shape of the answers of one step."""
    shape, found = tuple(outputs.shape[1:-1]), tuple(targets.shape)
    if not shape or (found != shape and not (targets.is_floating_point() and found == tuple(outputs.shape[1:]))):
        raise InputError(
            f"targets: expected shape {shape or tuple(outputs.shape[:1])} for outputs of shape (steps, n, classes) = "
            f"{tuple(outputs.shape)}, got {found}"
        )
    return shape
