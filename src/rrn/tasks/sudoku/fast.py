"""Many steps of the candidate network at once, forward and backward written out by hand.

What `CandidateUpdate`, `GroupMessage` and `CandidateReadout` say in plain torch, on the open candidates alone, with
every elementwise pass of a step fused into two loops that numba compiles. Several times as fast; the same to rounding.
Without numba, or on Sudokus of another size, the plain form runs.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rrn.compiled import COMPILED

if COMPILED and not TYPE_CHECKING:
    import numba

    def compiled(function: Any) -> Any:
        options = {"fastmath": True, "nogil": True, "error_model": "numpy"}
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # nowhere to keep the cache
            return numba.njit(**options)(function)

else:

    def compiled(function: Any) -> Any:
        return function


NODES, KINDS = 729, 6
LARGEST = np.float32(6)


def _groups() -> tuple[np.ndarray, int]:
    """The group of each kind that each candidate stands in (729, 6), all counted through, and how many there are."""
    row, column, digit = np.unravel_index(np.arange(NODES), (9, 9, 9))
    places = (9 * row + column, row, column, row // 3 * 3 + column // 3, 3 * row + column // 3, 3 * column + row // 3)
    kinds = [places[0], *(9 * place + digit for place in places[1:])]
    offsets = np.cumsum([0, *(kind.max() + 1 for kind in kinds)])
    return np.stack([kind + low for kind, low in zip(kinds, offsets[:-1], strict=True)], axis=1), int(offsets[-1])


GROUP_OF, GROUPS = _groups()


def fits(x: Tensor, box: tuple[int, int]) -> bool:
    return COMPILED and box == (3, 3) and x.device.type == "cpu" and x.dtype == torch.float32 and not _traced()


def _traced() -> bool:
    return torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu") or torch.jit.is_tracing()


def run_steps(
    h: Tensor, s: Tensor, still_open: Tensor, first: Tensor, second: Tensor, readout: Tensor, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of each candidate at every step, (steps, nodes), and h and s after the last; 0 where it is not open.

    Gradients reach the three weights through the logits; the states at both ends are detached.
    """
    rows = still_open.nonzero()[:, 0]
    puzzles = len(still_open) // NODES
    ends = still_open.view(puzzles, NODES).sum(1).cumsum(0).numpy()
    groups = GROUP_OF[rows.numpy() % NODES]
    logits, part_h, part_s = _Steps.apply(h[rows], s[rows], groups, ends, first, second, readout, steps)
    every = logits.new_zeros(steps, len(still_open)).index_copy(1, rows, logits)
    return every, torch.zeros_like(h).index_copy_(0, rows, part_h), torch.zeros_like(s).index_copy_(0, rows, part_s)


@compiled
def _sum_groups(
    values: np.ndarray, into: np.ndarray, offset: int, width: int, groups: np.ndarray, ends: np.ndarray
) -> None:
    """Part k of the first columns of ``values``, summed over each node's group of kind k. A puzzle's nodes lie
    together; ``ends`` says where they end."""
    sums = np.empty((GROUPS, width), np.float32)
    low = 0
    for high in ends:
        sums[:] = 0
        for n in range(low, high):
            for k in range(KINDS):
                group = groups[n, k]
                for j in range(width):
                    sums[group, j] += values[n, k * width + j]
        for n in range(low, high):
            for k in range(KINDS):
                group = groups[n, k]
                for j in range(width):
                    into[n, offset + k * width + j] = sums[group, j]
        low = high


@compiled
def _clamp_and_sum_groups(
    z: np.ndarray, bias: np.ndarray, into: np.ndarray, offset: int, width: int, groups: np.ndarray, ends: np.ndarray
) -> None:
    for n in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[n, j] = min(max(z[n, j] + bias[j], np.float32(0)), LARGEST)
    _sum_groups(z, into, offset, width, groups, ends)


@compiled
def _unit_and_logits(
    s: np.ndarray, into: np.ndarray, scales: np.ndarray, logits: np.ndarray, weight: np.ndarray
) -> None:
    hidden = s.shape[1]
    for n in range(s.shape[0]):
        square = np.float32(0)
        for j in range(hidden):
            square += s[n, j] * s[n, j]
        scale = np.float32(1) / np.sqrt(square / np.float32(hidden) + np.float32(1e-6))
        scales[n] = scale
        logit = np.float32(0)
        for j in range(hidden):
            value = s[n, j] * scale
            into[n, j] = value
            logit += value * weight[j]
        logits[n] = logit


@compiled
def _back_through_unit(
    to_s: np.ndarray,
    to_inputs: np.ndarray,
    to_logits: np.ndarray,
    weight: np.ndarray,
    to_weight: np.ndarray,
    unit: np.ndarray,
    scales: np.ndarray,
) -> None:
    """``to_s`` comes in with what flows along the residual and leaves with the gradient before unit()."""
    hidden = to_s.shape[1]
    for n in range(to_s.shape[0]):
        along = np.float32(0)
        from_logit = to_logits[n]
        for j in range(hidden):
            value = to_s[n, j] + to_inputs[n, j] + from_logit * weight[j]
            to_s[n, j] = value
            along += value * unit[n, j]
            to_weight[j] += from_logit * unit[n, j]
        along /= np.float32(hidden)
        for j in range(hidden):
            to_s[n, j] = scales[n] * (to_s[n, j] - unit[n, j] * along)


@compiled
def _back_through_messages(
    to_z: np.ndarray,
    to_inputs: np.ndarray,
    to_bias: np.ndarray,
    z: np.ndarray,
    offset: int,
    width: int,
    groups: np.ndarray,
    ends: np.ndarray,
) -> None:
    """``to_z`` gains what flows back from the groups, and loses what the clamp cut off."""
    sums = np.empty((GROUPS, width), np.float32)
    low = 0
    for high in ends:
        sums[:] = 0
        for n in range(low, high):
            for k in range(KINDS):
                group = groups[n, k]
                for j in range(width):
                    sums[group, j] += to_inputs[n, offset + k * width + j]
        for n in range(low, high):
            for k in range(KINDS):
                group = groups[n, k]
                for j in range(width):
                    to_z[n, k * width + j] += sums[group, j]
            for j in range(z.shape[1]):
                if z[n, j] <= 0 or z[n, j] >= LARGEST:
                    to_z[n, j] = 0
                to_bias[j] += to_z[n, j]
        low = high


class Weights(NamedTuple):
    """What a step reads, without gradients."""

    first: Tensor
    bias: np.ndarray
    second: Tensor
    readout: np.ndarray

    @classmethod
    def of(cls, first: Tensor, second: Tensor, readout: Tensor) -> "Weights":
        """The last row of ``first`` is the bias."""
        return cls(first[:-1].detach(), first[-1].detach().numpy(), second.detach(), readout.detach().numpy())


def step(
    now: Tensor,
    after: Tensor,
    z: Tensor,
    changed: Tensor,
    scales: Tensor,
    logits: Tensor,
    weights: Weights,
    groups: np.ndarray,
    ends: np.ndarray,
) -> None:
    """One step from [s, m] ``now`` to that ``after`` it; all tensors but the first are written to."""
    hidden = changed.shape[1]
    width = (now.shape[1] - hidden) // KINDS
    torch.mm(now, weights.first, out=z)
    _clamp_and_sum_groups(z.numpy(), weights.bias, after.numpy(), hidden, width, groups, ends)
    torch.addmm(now[:, :hidden], z, weights.second, out=changed)
    _unit_and_logits(changed.numpy(), after.numpy(), scales.numpy(), logits.numpy(), weights.readout)


class _Steps(torch.autograd.Function):
    """``inputs[t]`` holds [s, m] before step t; ``layers[t]`` z of step t. The last row of ``first`` is the bias."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        s: Tensor,
        groups: np.ndarray,
        ends: np.ndarray,
        first: Tensor,
        second: Tensor,
        readout: Tensor,
        steps: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        learning = any(ctx.needs_input_grad)
        nodes, hidden = s.shape
        messages = h.shape[1]
        width = messages // KINDS
        kept = steps if learning else 1
        inputs = torch.empty(kept + 1, nodes, hidden + messages)
        layers = torch.empty(kept, nodes, first.shape[1])
        scales, logits = torch.empty(kept, nodes), torch.empty(steps, nodes)
        inputs[0, :, :hidden] = s
        _sum_groups(h.numpy(), inputs[0].numpy(), hidden, width, groups, ends)
        changed = torch.empty_like(s)
        weights = Weights.of(first, second, readout)
        for t in range(steps):
            now, after, layer = (t, t + 1, t) if learning else (t % 2, (t + 1) % 2, 0)
            z = layers[layer]
            step(inputs[now], inputs[after], z, changed, scales[layer], logits[t], weights, groups, ends)
        last = inputs[steps if learning else steps % 2]
        if learning:
            ctx.save_for_backward(inputs, layers, scales, first, second, readout)
            ctx.groups, ctx.ends = groups, ends
        h, s = layers[-1, :, :messages].clone(), last[:, :hidden].clone()
        ctx.mark_non_differentiable(h, s)
        return logits, h, s

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, to_logits: Tensor, to_h: Tensor, to_last: Tensor) -> tuple[Tensor | None, ...]:
        inputs, layers, scales, first, second, readout = ctx.saved_tensors
        steps, nodes, layer_width = layers.shape
        hidden = second.shape[1]
        messages = first.shape[0] - 1 - hidden
        to_logits = to_logits.contiguous()
        to_first, to_second, to_readout = (torch.zeros_like(weight) for weight in (first, second, readout))
        to_s, to_z = torch.zeros(nodes, hidden), torch.empty(nodes, layer_width)
        to_inputs = torch.zeros(nodes, hidden + messages)
        back_first, back_second = first[:-1].T.contiguous(), second.T.contiguous()
        weight = readout.detach().numpy()
        for t in range(steps - 1, -1, -1):
            _back_through_unit(
                to_s.numpy(),
                to_inputs.numpy(),
                to_logits[t].numpy(),
                weight,
                to_readout.numpy(),
                inputs[t + 1].numpy(),
                scales[t].numpy(),
            )
            torch.mm(to_s, back_second, out=to_z)
            to_second.addmm_(layers[t].T, to_s)
            _back_through_messages(
                to_z.numpy(),
                to_inputs.numpy(),
                to_first[-1].numpy(),
                layers[t].numpy(),
                hidden,
                messages // KINDS,
                ctx.groups,
                ctx.ends,
            )
            torch.mm(to_z, back_first, out=to_inputs)
            to_first[:-1].addmm_(inputs[t].T, to_z)
        return None, None, None, None, to_first, to_second, to_readout, None
