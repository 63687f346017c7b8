"""Many steps of a shared-layer network on `Groups`, with forward and backward passes written by hand.

It computes `GroupMessage`, `SharedLayerUpdate` and `DotReadout`. The elementwise passes of a step are fused into two
loops that numba compiles.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rrn._compat import COMPILED, compiled
from rrn.engines.plain import Engine, differentiable_gradients, fits_compiled
from rrn.graphs import Groups as GroupsGraph
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout, Outputs
from rrn.nn.updates import CLAMP, SharedLayerUpdate, State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

_CLAMP = np.float32(CLAMP)
ROWS = 1600
"""Nodes per part in inference: enough for a matrix product, few enough for a cache."""


class Groups(Engine):
    """`GroupMessage`, `SharedLayerUpdate` and `DotReadout` on `rrn.graphs.Groups`, in float32, with constant x = 1."""

    name = "groups"
    message = GroupMessage

    def fits(self, network: "RRN", given: "Prepared", state: State) -> bool:
        if not COMPILED or given.x.dtype != torch.float32 or type(given.graph) is not GroupsGraph:
            return False
        if not fits_compiled(network, given, state, GroupMessage, SharedLayerUpdate, DotReadout):
            return False
        message, update, readout = network.message, network.update, network.readout
        assert isinstance(message, GroupMessage)
        assert isinstance(update, SharedLayerUpdate)
        assert isinstance(readout, DotReadout)
        layer, inputs = update.second.shape[0], update.hidden + update.messages + 1
        if (
            given.graph.group_types != message.group_types
            or update.messages != message.outputs
            or (
                update.first.shape != (inputs, layer)
                or update.second.shape != (layer, update.hidden)
                or readout.weight.shape != (update.hidden,)
            )
        ):
            return False
        if torch.is_grad_enabled() and given.x.requires_grad:
            return False
        return given.x.shape[1] == 1 and bool((given.x == 1).all())

    def run(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Tensor | Outputs, State]:
        graph, update, readout = given.graph, network.update, network.readout
        assert isinstance(graph, GroupsGraph)
        assert isinstance(update, SharedLayerUpdate)
        assert isinstance(readout, DotReadout)
        tensors = state.h, state.memory[0], update.first, update.second, readout.weight
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            logits, h, s = _Steps.apply(*tensors, graph, steps)
        else:
            h, s, first, second, weight = (tensor.detach() for tensor in tensors)
            logits, h, s = _infer(h, s, first, second, weight, graph, steps)
        return logits[..., None], State(h, (s,))


class _Layout(NamedTuple):
    """A `Groups` graph as the loops read it: groups of all types have one numbering within a graph."""

    groups: np.ndarray
    stops: np.ndarray
    total: int
    group_types: int

    @classmethod
    def of(cls, graph: GroupsGraph) -> "_Layout":
        offsets = np.cumsum([0, *graph.counts[:-1]])
        return cls(graph.member_of.numpy() + offsets, graph.stops.numpy(), sum(graph.counts), len(graph.counts))


@compiled(fastmath=True)
def _sum_groups(
    values: np.ndarray,
    start: int,
    into: np.ndarray,
    offset: int,
    width: int,
    groups: np.ndarray,
    stops: np.ndarray,
    count: int,
    add: bool,
) -> None:
    """Part k of the columns of ``values`` from ``start`` on, summed over each node's group of type k.

    Unsigned indices spare the compiled code a test for negative indices: a third of the time.
    """
    sums = np.empty((count, width), np.float32)
    group_types, part = np.uint64(groups.shape[1]), np.uint64(width)
    low = np.uint64(0)
    for stop in stops:
        high = np.uint64(stop)
        sums[:] = 0
        for n in range(low, high):
            for k in range(group_types):
                group, first = np.uint64(groups[n, k]), np.uint64(start) + k * part
                for j in range(part):
                    sums[group, j] += values[n, first + j]
        for n in range(low, high):
            for k in range(group_types):
                group, first = np.uint64(groups[n, k]), np.uint64(offset) + k * part
                if add:
                    for j in range(part):
                        into[n, first + j] += sums[group, j]
                else:
                    for j in range(part):
                        into[n, first + j] = sums[group, j]
        low = high


@compiled(fastmath=True)
def _clamp(z: np.ndarray, bias: np.ndarray) -> None:
    for n in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[n, j] = min(max(z[n, j] + bias[j], np.float32(0)), _CLAMP)


@compiled(fastmath=True)
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


@compiled(fastmath=True)
def _back_through_unit(
    to_s: np.ndarray,
    to_inputs: np.ndarray,
    to_logits: np.ndarray,
    weight: np.ndarray,
    to_weight: np.ndarray,
    unit: np.ndarray,
    scales: np.ndarray,
) -> None:
    """``to_s`` holds the gradient of the residual at first, and the gradient before unit() at the end."""
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


@compiled(fastmath=True)
def _back_through_clamp(to_z: np.ndarray, to_bias: np.ndarray, z: np.ndarray) -> None:
    for n in range(z.shape[0]):
        for j in range(z.shape[1]):
            if z[n, j] <= 0 or z[n, j] >= _CLAMP:
                to_z[n, j] = 0
            to_bias[j] += to_z[n, j]


def _infer(
    h: Tensor, s: Tensor, first: Tensor, second: Tensor, readout: Tensor, graph: GroupsGraph, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Steps without gradients: a few graphs at a time, so that their tensors stay in the cache."""
    layout, hidden = _Layout.of(graph), s.shape[1]
    width = h.shape[1] // layout.group_types
    parts = _parts(layout.stops)
    rows = max((high - low for low, high, _ in parts), default=0)
    buffers = s.new_empty(2, rows, hidden + h.shape[1])
    layer, changing, scales = s.new_empty(rows, first.shape[1]), s.new_empty(rows, hidden), s.new_empty(rows).numpy()
    to_z, bias, weight = first[:-1], first[-1].numpy(), readout.numpy()
    logits, last_h, last_s = s.new_empty(steps, len(s)), torch.empty_like(h), torch.empty_like(s)
    logit_rows, sent = logits.numpy(), h.contiguous().numpy()
    for low, high, stops in parts:
        count, groups = high - low, (layout.groups[low:high], stops, layout.total)
        both = [part[:count] for part in buffers.unbind()]
        own, arrays = [part[:, :hidden] for part in both], [part.numpy() for part in both]
        z, changed = layer[:count], changing[:count]
        z_array, changed_array = z.numpy(), changed.numpy()
        own[0].copy_(s[low:high])
        _sum_groups(sent[low:high], 0, arrays[0], hidden, width, *groups, False)
        for t in range(steps):
            now, after = t % 2, (t + 1) % 2
            torch.mm(both[now], to_z, out=z)
            _clamp(z_array, bias)
            _sum_groups(z_array, 0, arrays[after], hidden, width, *groups, False)
            torch.addmm(own[now], z, second, out=changed)
            _unit_and_logits(changed_array, arrays[after], scales, logit_rows[t, low:high], weight)
        last_h[low:high] = z[:, : h.shape[1]]
        last_s[low:high] = own[steps % 2]
    return logits, last_h, last_s


def _parts(stops: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Parts of a few graphs: first node, end, and the ends of the graphs relative to the first node."""
    parts, low, first = [], 0, 0
    for index, stop in enumerate(stops):
        if stop - low >= ROWS or index == len(stops) - 1:
            parts.append((low, int(stop), stops[first : index + 1] - low))
            low, first = int(stop), index + 1
    return parts


class _Steps(torch.autograd.Function):
    """``inputs[t]`` holds [s, m] before step t; ``layers[t]`` z of step t. The last row of ``first`` is the bias."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        s: Tensor,
        first: Tensor,
        second: Tensor,
        readout: Tensor,
        graph: GroupsGraph,
        steps: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        nodes, hidden = s.shape
        messages = h.shape[1]
        layout = _Layout.of(graph)
        width, groups = messages // layout.group_types, (layout.groups, layout.stops, layout.total)
        inputs = s.new_empty(steps + 1, nodes, hidden + messages)
        layers = s.new_empty(steps, nodes, first.shape[1])
        scales, logits = s.new_empty(steps, nodes), s.new_empty(steps, nodes)
        inputs[0, :, :hidden] = s
        both, own = inputs.unbind(), inputs[..., :hidden].unbind()  # [s, m] and s
        arrays = [part.numpy() for part in both]
        _sum_groups(h.contiguous().numpy(), 0, arrays[0], hidden, width, *groups, False)
        changed = torch.empty_like(s)
        bias, weight = first[-1].detach().numpy(), readout.detach().numpy()
        to_z, logit_rows = first[:-1].detach(), logits.numpy()
        for t, (z, scale) in enumerate(zip(layers.unbind(), scales.numpy(), strict=True)):
            torch.mm(both[t], to_z, out=z)
            _clamp(z.numpy(), bias)
            _sum_groups(z.numpy(), 0, arrays[t + 1], hidden, width, *groups, False)
            torch.addmm(own[t], z, second, out=changed)
            _unit_and_logits(changed.numpy(), arrays[t + 1], scale, logit_rows[t], weight)
        ctx.save_for_backward(h, s, first, second, readout, inputs, layers, scales)
        ctx.graph, ctx.layout = graph, layout
        ctx.set_materialize_grads(False)
        return logits, layers[-1, :, :messages].clone(), own[steps].clone()

    @staticmethod
    def backward(
        ctx: Any, to_logits: Tensor | None, to_h: Tensor | None, to_last: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        h, s, first, second, readout, inputs, layers, scales = ctx.saved_tensors
        ctx.graph.check_unchanged()
        if torch.is_grad_enabled():
            given, arriving = (h, s, first, second, readout), (to_logits, to_h, to_last)
            again = differentiable_gradients(_plain, given, ctx.graph, len(layers), gradient=arriving)
            return *again, None, None
        layout: _Layout = ctx.layout
        groups = layout.groups, layout.stops, layout.total
        steps, nodes, layer_width = layers.shape
        hidden, messages = second.shape[1], h.shape[1]
        width = messages // layout.group_types
        of_logits = to_logits is not None  # else the readout has no gradient
        to_logits = to_logits.contiguous() if to_logits is not None else s.new_zeros(steps, nodes)
        to_first, to_second, to_readout = (torch.zeros_like(weight) for weight in (first, second, readout))
        to_s = torch.zeros_like(s) if to_last is None else to_last.clone(memory_format=torch.contiguous_format)
        to_z = s.new_empty(nodes, layer_width)
        to_inputs = s.new_zeros(nodes, hidden + messages)
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
            if t == steps - 1 and to_h is not None:
                to_z[:, :messages] += to_h
            to_second.addmm_(layers[t].T, to_s)
            _sum_groups(to_inputs.numpy(), hidden, to_z.numpy(), 0, width, *groups, True)
            _back_through_clamp(to_z.numpy(), to_first[-1].numpy(), layers[t].numpy())
            torch.mm(to_z, back_first, out=to_inputs)
            to_first[:-1].addmm_(inputs[t].T, to_z)
        to_start, to_sent = None, None
        if ctx.needs_input_grad[1]:
            to_start = to_s + to_inputs[:, :hidden]
        if ctx.needs_input_grad[0]:
            to_sent = torch.empty_like(h)
            _sum_groups(to_inputs.numpy(), hidden, to_sent.numpy(), 0, width, *groups, False)
        return to_sent, to_start, to_first, to_second, to_readout if of_logits else None, None, None


def _plain(
    h: Tensor, s: Tensor, first: Tensor, second: Tensor, readout: Tensor, graph: GroupsGraph, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    logits, one = [], s.new_ones(s.shape[0], 1)
    for _ in range(steps):
        z = (torch.cat([s, graph.sums(h), one], dim=-1) @ first).clamp(0.0, CLAMP)
        s = s + z @ second
        s = s * torch.rsqrt(s.square().mean(-1, keepdim=True) + 1e-6)
        h = z[:, : h.shape[1]]
        logits.append(s @ readout)
    return torch.stack(logits), h, s
