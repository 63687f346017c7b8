"""Many steps of a shared-layer network on `Groups`, with forward and backward passes written by hand.

It computes `GroupMessage`, `SharedLayerUpdate` and `DotReadout`. The elementwise passes of a step are fused into two
loops that numba compiles.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rrn._compat import compiled
from rrn.engines.plain import Engine, differentiable_gradients
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
    """`GroupMessage`, `SharedLayerUpdate` and `DotReadout` on `rrn.graphs.Groups`, in float32; all nodes send."""

    name = "groups"
    message, update, readout = GroupMessage, SharedLayerUpdate, DotReadout

    def supports(self, network: "RRN", given: "Prepared") -> bool:
        if given.x.dtype != torch.float32 or type(given.graph) is not GroupsGraph:
            return False
        message, update, readout = network.message, network.update, network.readout
        assert isinstance(message, GroupMessage)
        assert isinstance(update, SharedLayerUpdate)
        assert isinstance(readout, DotReadout)
        layer, inputs = update.second.shape[0], update.hidden + update.messages + given.x.shape[1]
        if (
            len(given.graph.counts) != message.group_types
            or update.messages != message.outputs
            or (
                update.first.shape != (inputs, layer)
                or update.second.shape != (layer, update.hidden)
                or readout.weight.shape != (update.hidden,)
            )
        ):
            return False
        if torch.is_grad_enabled() and given.x.requires_grad:  # that of the last column is not computed here
            return False
        return bool((given.x[:, -1] == 1).all())

    def run(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Tensor | Outputs, State]:
        graph, update, readout = given.graph, network.update, network.readout
        assert isinstance(graph, GroupsGraph)
        assert isinstance(update, SharedLayerUpdate)
        assert isinstance(readout, DotReadout)
        inputs = update.hidden + update.messages
        bias = update.first[-1:]
        if given.x.shape[1] > 1:
            bias = bias + given.x[:, :-1] @ update.first[inputs:-1]
        tensors = state.h, state.memory[0], update.first[:inputs], bias, update.second, readout.weight
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            logits, h, s = _Steps.apply(*tensors, graph, steps)
        else:
            h, s, first, bias, second, weight = (tensor.detach() for tensor in tensors)
            logits, h, s = _infer(h, s, first, bias, second, weight, graph, steps)
        return logits[..., None], State(h, (s,))


class _Layout(NamedTuple):
    """A `Groups` graph as the loops read it: groups of all types have one numbering within a graph.

    Where a node has no group, its group is ``total``, whose sum is zero. ``types`` is the type of each column;
    ``first`` is whether it is the first column of its type.
    """

    groups: np.ndarray
    stops: np.ndarray
    total: int
    types: np.ndarray
    first: np.ndarray
    group_types: int

    @classmethod
    def of(cls, graph: GroupsGraph) -> "_Layout":
        offsets, total = np.cumsum([0, *graph.counts[:-1]]), sum(graph.counts)
        types, member_of = np.array(graph.column_types, np.int64), graph.member_of.numpy()
        groups = member_of + offsets[types]
        groups = groups if graph.one_group_each else np.where(member_of >= 0, groups, total)
        first = np.diff(types, prepend=-1) > 0
        return cls(groups, graph.stops.numpy(), total, types, first, len(graph.counts))

    def part(self, low: int, high: int, stops: np.ndarray) -> "tuple[np.ndarray | int, ...]":
        """What `_sum_groups` reads of some whole graphs."""
        return self.groups[low:high], stops, self.total, self.types, self.first


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
    types: np.ndarray,
    first_of_type: np.ndarray,
    add: bool,
) -> None:
    """Part k of the columns of ``values`` from ``start`` on, summed over each node's groups of type k.

    Unsigned indices spare the compiled code a test for negative indices: a third of the time.
    """
    sums = np.empty((count + 1, width), np.float32)
    columns, part = np.uint64(groups.shape[1]), np.uint64(width)
    low = np.uint64(0)
    for stop in stops:
        high = np.uint64(stop)
        sums[:] = 0
        for n in range(low, high):
            for k in range(columns):
                group, first = np.uint64(groups[n, k]), np.uint64(start) + np.uint64(types[k]) * part
                for j in range(part):
                    sums[group, j] += values[n, first + j]
        sums[count] = 0
        for n in range(low, high):
            for k in range(columns):
                group, first = np.uint64(groups[n, k]), np.uint64(offset) + np.uint64(types[k]) * part
                if add or not first_of_type[k]:
                    for j in range(part):
                        into[n, first + j] += sums[group, j]
                else:
                    for j in range(part):
                        into[n, first + j] = sums[group, j]
        low = high


@compiled(fastmath=True)
def _clamp(z: np.ndarray, bias: np.ndarray) -> None:
    """``bias`` is (1, layer), or (nodes, layer) if it differs between nodes."""
    for n in range(z.shape[0]):
        row = n if bias.shape[0] > 1 else 0
        for j in range(z.shape[1]):
            z[n, j] = min(max(z[n, j] + bias[row, j], np.float32(0)), _CLAMP)


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
        row = n if to_bias.shape[0] > 1 else 0
        for j in range(z.shape[1]):
            if z[n, j] <= 0 or z[n, j] >= _CLAMP:
                to_z[n, j] = 0
            to_bias[row, j] += to_z[n, j]


def _infer(
    h: Tensor, s: Tensor, first: Tensor, bias: Tensor, second: Tensor, readout: Tensor, graph: GroupsGraph, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Steps without gradients: a few graphs at a time, so that their tensors stay in the cache."""
    layout, hidden = _Layout.of(graph), s.shape[1]
    width = h.shape[1] // layout.group_types
    parts = _parts(layout.stops)
    rows = max((high - low for low, high, _ in parts), default=0)
    buffers = s.new_empty(2, rows, hidden + h.shape[1])
    layer, changing, scales = s.new_empty(rows, first.shape[1]), s.new_empty(rows, hidden), s.new_empty(rows).numpy()
    bias_rows, weight = bias.numpy(), readout.numpy()
    logits, last_h, last_s = s.new_empty(steps, len(s)), torch.empty_like(h), torch.empty_like(s)
    logit_rows, sent = logits.numpy(), h.contiguous().numpy()
    for low, high, stops in parts:
        count, groups = high - low, layout.part(low, high, stops)
        own_bias = bias_rows[low:high] if len(bias) > 1 else bias_rows
        both = [part[:count] for part in buffers.unbind()]
        own, arrays = [part[:, :hidden] for part in both], [part.numpy() for part in both]
        z, changed = layer[:count], changing[:count]
        z_array, changed_array = z.numpy(), changed.numpy()
        own[0].copy_(s[low:high])
        _sum_groups(sent[low:high], 0, arrays[0], hidden, width, *groups, False)
        for t in range(steps):
            now, after = t % 2, (t + 1) % 2
            torch.mm(both[now], first, out=z)
            _clamp(z_array, own_bias)
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
    """``inputs[t]`` holds [s, m] before step t; ``layers[t]`` z of step t."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        s: Tensor,
        first: Tensor,
        bias: Tensor,
        second: Tensor,
        readout: Tensor,
        graph: GroupsGraph,
        steps: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        nodes, hidden = s.shape
        messages = h.shape[1]
        layout = _Layout.of(graph)
        width, groups = messages // layout.group_types, layout.part(0, nodes, layout.stops)
        inputs = s.new_empty(steps + 1, nodes, hidden + messages)
        layers = s.new_empty(steps, nodes, first.shape[1])
        scales, logits = s.new_empty(steps, nodes), s.new_empty(steps, nodes)
        inputs[0, :, :hidden] = s
        both, own = inputs.unbind(), inputs[..., :hidden].unbind()  # [s, m] and s
        arrays = [part.numpy() for part in both]
        _sum_groups(h.contiguous().numpy(), 0, arrays[0], hidden, width, *groups, False)
        changed = torch.empty_like(s)
        bias_rows, weight = bias.detach().numpy(), readout.detach().numpy()
        to_z, logit_rows = first.detach(), logits.numpy()
        for t, (z, scale) in enumerate(zip(layers.unbind(), scales.numpy(), strict=True)):
            torch.mm(both[t], to_z, out=z)
            _clamp(z.numpy(), bias_rows)
            _sum_groups(z.numpy(), 0, arrays[t + 1], hidden, width, *groups, False)
            torch.addmm(own[t], z, second, out=changed)
            _unit_and_logits(changed.numpy(), arrays[t + 1], scale, logit_rows[t], weight)
        ctx.save_for_backward(h, s, first, bias, second, readout, inputs, layers, scales)
        ctx.graph, ctx.layout = graph, layout
        ctx.set_materialize_grads(False)
        return logits, layers[-1, :, :messages].clone(), own[steps].clone()

    @staticmethod
    def backward(
        ctx: Any, to_logits: Tensor | None, to_h: Tensor | None, to_last: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        h, s, first, bias, second, readout, inputs, layers, scales = ctx.saved_tensors
        ctx.graph.check_unchanged()
        if torch.is_grad_enabled():
            given, arriving = (h, s, first, bias, second, readout), (to_logits, to_h, to_last)
            again = differentiable_gradients(_plain, given, ctx.graph, len(layers), gradient=arriving)
            return *again, None, None
        layout: _Layout = ctx.layout
        steps, nodes, layer_width = layers.shape
        groups = layout.part(0, nodes, layout.stops)
        hidden, messages = second.shape[1], h.shape[1]
        width = messages // layout.group_types
        of_logits = to_logits is not None  # else the readout has no gradient
        to_logits = to_logits.contiguous() if to_logits is not None else s.new_zeros(steps, nodes)
        weights = first, bias, second, readout
        to_first, to_bias, to_second, to_readout = (torch.zeros_like(weight) for weight in weights)
        to_s = torch.zeros_like(s) if to_last is None else to_last.clone(memory_format=torch.contiguous_format)
        to_z = s.new_empty(nodes, layer_width)
        to_inputs = s.new_zeros(nodes, hidden + messages)
        back_first, back_second = first.T.contiguous(), second.T.contiguous()
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
            _back_through_clamp(to_z.numpy(), to_bias.numpy(), layers[t].numpy())
            torch.mm(to_z, back_first, out=to_inputs)
            to_first.addmm_(inputs[t].T, to_z)
        to_start, to_sent = None, None
        if ctx.needs_input_grad[1]:
            to_start = to_s + to_inputs[:, :hidden]
        if ctx.needs_input_grad[0]:
            to_sent = torch.empty_like(h)
            _sum_groups(to_inputs.numpy(), hidden, to_sent.numpy(), 0, width, *groups, False)
        return to_sent, to_start, to_first, to_bias, to_second, to_readout if of_logits else None, None, None


def _plain(
    h: Tensor, s: Tensor, first: Tensor, bias: Tensor, second: Tensor, readout: Tensor, graph: GroupsGraph, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    logits = []
    for _ in range(steps):
        z = (torch.cat([s, graph.sums(h)], dim=-1) @ first + bias).clamp(0.0, CLAMP)
        s = s + z @ second
        s = s * torch.rsqrt(s.square().mean(-1, keepdim=True) + 1e-6)
        h = z[:, : h.shape[1]]
        logits.append(s @ readout)
    return torch.stack(logits), h, s
