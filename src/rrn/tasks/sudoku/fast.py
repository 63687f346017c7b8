"""Many steps of the candidate network at once, forward and backward written out by hand.

What `CandidateUpdate`, `GroupMessage` and `CandidateReadout` say in plain torch, with every elementwise pass of a
step fused into two loops that numba compiles. About twice as fast; the same to rounding. Without numba, or on
Sudokus of another size, the plain form runs.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from rrn.tasks.sudoku.kernels import COMPILED

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


NODES, GROUPS = 729, 324
LARGEST = np.float32(6)
_row, _column, _digit = np.unravel_index(np.arange(NODES), (9, 9, 9))
GROUP_OF = np.stack(
    [
        9 * _row + _column,
        81 + 9 * _row + _digit,
        162 + 9 * _column + _digit,
        243 + 9 * (_row // 3 * 3 + _column // 3) + _digit,
    ],
    axis=1,
).astype(np.int32)


def fits(x: Tensor, box: tuple[int, int]) -> bool:
    return COMPILED and box == (3, 3) and x.device.type == "cpu" and x.dtype == torch.float32 and not _traced()


def _traced() -> bool:
    return torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu") or torch.jit.is_tracing()


def run_steps(
    h: Tensor, s: Tensor, x: Tensor, first: Tensor, second: Tensor, readout: Tensor, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of each candidate at every step, (steps, nodes), and h and s after the last.

    Gradients reach the three weights through the logits; the states at both ends are detached.
    """
    return _Steps.apply(h, s, x, first, second, readout, steps)


@compiled
def _sum_groups(values: np.ndarray, into: np.ndarray, offset: int, width: int) -> None:
    """Part k of the first 4 · width columns of ``values``, summed over each node's group of kind k."""
    sums = np.empty((GROUPS, width), np.float32)
    for low in range(0, values.shape[0], NODES):
        sums[:] = 0
        for i in range(NODES):
            for k in range(4):
                group = GROUP_OF[i, k]
                for j in range(width):
                    sums[group, j] += values[low + i, k * width + j]
        for i in range(NODES):
            for k in range(4):
                group = GROUP_OF[i, k]
                for j in range(width):
                    into[low + i, offset + k * width + j] = sums[group, j]


@compiled
def _clamp_and_sum_groups(z: np.ndarray, into: np.ndarray, offset: int, width: int) -> None:
    sums = np.empty((GROUPS, width), np.float32)
    for low in range(0, z.shape[0], NODES):
        sums[:] = 0
        for i in range(NODES):
            n = low + i
            for j in range(z.shape[1]):
                z[n, j] = min(max(z[n, j], np.float32(0)), LARGEST)
            for k in range(4):
                group = GROUP_OF[i, k]
                for j in range(width):
                    sums[group, j] += z[n, k * width + j]
        for i in range(NODES):
            for k in range(4):
                group = GROUP_OF[i, k]
                for j in range(width):
                    into[low + i, offset + k * width + j] = sums[group, j]


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
def _back_through_messages(to_z: np.ndarray, to_inputs: np.ndarray, z: np.ndarray, offset: int, width: int) -> None:
    """``to_z`` gains what flows back from the groups, and loses what the clamp cut off."""
    sums = np.empty((GROUPS, width), np.float32)
    for low in range(0, z.shape[0], NODES):
        sums[:] = 0
        for i in range(NODES):
            for k in range(4):
                group = GROUP_OF[i, k]
                for j in range(width):
                    sums[group, j] += to_inputs[low + i, offset + k * width + j]
        for i in range(NODES):
            n = low + i
            for k in range(4):
                group = GROUP_OF[i, k]
                for j in range(width):
                    to_z[n, k * width + j] += sums[group, j]
            for j in range(z.shape[1]):
                if z[n, j] <= 0 or z[n, j] >= LARGEST:
                    to_z[n, j] = 0


class _Steps(torch.autograd.Function):
    """``inputs[t]`` holds [s, m, x] before step t; ``layers[t]`` z of step t."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        h: Tensor,
        s: Tensor,
        x: Tensor,
        first: Tensor,
        second: Tensor,
        readout: Tensor,
        steps: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        learning = any(ctx.needs_input_grad)  # type: ignore[attr-defined]
        nodes, hidden = s.shape
        messages = first.shape[0] - hidden - x.shape[1]
        kept = steps if learning else 1
        inputs = torch.empty(kept + 1, nodes, first.shape[0])
        layers = torch.empty(kept, nodes, first.shape[1])
        scales, logits = torch.empty(kept, nodes), torch.empty(steps, nodes)
        inputs[0, :, :hidden] = s
        inputs[:, :, hidden + messages :] = x
        _sum_groups(h.contiguous().numpy(), inputs[0].numpy(), hidden, messages // 4)
        changed = torch.empty_like(s)
        weight = readout.detach().numpy()
        for t in range(steps):
            now, after, layer = (t, t + 1, t) if learning else (t % 2, (t + 1) % 2, 0)
            z = torch.mm(inputs[now], first, out=layers[layer])
            _clamp_and_sum_groups(z.numpy(), inputs[after].numpy(), hidden, messages // 4)
            torch.addmm(inputs[now, :, :hidden], z, second, out=changed)
            _unit_and_logits(changed.numpy(), inputs[after].numpy(), scales[layer].numpy(), logits[t].numpy(), weight)
        last = inputs[steps if learning else steps % 2]
        if learning:
            ctx.save_for_backward(inputs, layers, scales, first, second, readout)
        h, s = layers[-1].clone(), last[:, :hidden].clone()
        ctx.mark_non_differentiable(h, s)
        return logits, h, s

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, to_logits: Tensor, to_h: Tensor, to_last: Tensor) -> tuple[Tensor | None, ...]:
        inputs, layers, scales, first, second, readout = ctx.saved_tensors  # type: ignore[attr-defined]
        steps, nodes, width = layers.shape
        hidden = second.shape[1]
        messages = first.shape[0] - hidden - 4
        to_logits = to_logits.contiguous()
        to_first, to_second, to_readout = (torch.zeros_like(weight) for weight in (first, second, readout))
        to_s, to_z = torch.zeros(nodes, hidden), torch.empty(nodes, width)
        to_inputs = torch.zeros(nodes, hidden + messages)
        back_first, back_second = first[: hidden + messages].T.contiguous(), second.T.contiguous()
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
            _back_through_messages(to_z.numpy(), to_inputs.numpy(), layers[t].numpy(), hidden, messages // 4)
            torch.mm(to_z, back_first, out=to_inputs)
            to_first.addmm_(inputs[t].T, to_z)
        return None, None, None, to_first, to_second, to_readout, None
