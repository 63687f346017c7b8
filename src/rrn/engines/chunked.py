"""The sum over edges of f's hidden layers, with edges processed in cache-sized chunks.

On a CPU a message step spends its time moving edge tensors through memory. So edges are processed in chunks that fit
the cache, forward and backward. For the backward pass only the results of matrix products are saved, of the last layer
only their signs; the first layer is computed again. Between the matrix products, each pass over the edges of a chunk
is one compiled function. Gradients are added in place.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rrn._compat import compiled
from rrn.engines import threads
from rrn.engines.edges import MessageEngine, Sums
from rrn.engines.plain import detach_without_grad, differentiable_gradients
from rrn.graphs import EdgeList, Graph, NeighbourTable
from rrn.nn.messages import Layers, hidden_sums

Array = np.ndarray


class Chunked(MessageEngine):
    """f with any number of hidden layers and the paper's sum, on an `EdgeList` or a `NeighbourTable`."""

    name = "chunked"
    layouts = EdgeList, NeighbourTable

    def sums(self, edge_term: Tensor | None, graph: Graph, layers: Layers) -> Sums:
        def sums(both: Tensor) -> Tensor:
            source, target = both.chunk(2, dim=1)
            return summed_hidden_layers(source, target, edge_term, graph, layers)

        return sums


def summed_hidden_layers(
    source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, layers: Layers
) -> Tensor:
    """Σ_i z_ij with z_ij = relu(… relu(source_i + target_j + edge_term_ij) …): (nodes, hidden).

    ``layers`` are the weights and biases of the further ReLU layers.
    """
    flat = detach_without_grad(*(parameter for layer in layers for parameter in layer))
    return _SummedHiddenLayers.apply(source, target, edge_term, graph, *flat)


class _Rows:
    """A tensor with one row per edge, and an array of the same memory."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.view = tensor, _view(tensor)

    def __getitem__(self, chunk: slice) -> "_Rows":
        part = object.__new__(_Rows)
        part.tensor, part.view = self.tensor[chunk], self.view[chunk]
        return part


class _FirstLayer:
    """relu(source_i + target_j + edge_term_ij), one chunk of edges at a time, in the first of three buffers of a chunk.
    Every share has separate buffers and an equal number of edges."""

    def __init__(self, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph) -> None:
        self.edges, self.width = math.prod(graph.edge_shape), source.shape[1]
        terms = source.new_empty(0, self.width) if edge_term is None else edge_term.reshape(-1, self.width)
        self.given = [_view(part) for part in (source, target)]
        self.terms, self.senders, self.receivers = (_view(part) for part in (terms, *graph.ends()[:2]))
        shares = threads.shares()
        floats = threads.CHUNK_FLOATS * (1 if shares > 1 or threads.within_share() else torch.get_num_threads())
        self.size = max(1, min(floats // self.width, self.edges))
        self.shares = max(1, min(shares, self.edges // self.size))
        self.buffers = [[_Rows(source.new_empty(self.size, self.width)) for _ in range(3)] for _ in range(self.shares)]

    def chunks(self, share: int) -> Iterator[tuple[slice, list[_Rows]]]:
        """The chunks of a share, each with its buffers; the first buffer is filled."""
        begin, end = (self.edges * part // self.shares for part in (share, share + 1))
        buffers = self.buffers[share]
        for low in range(begin, end, self.size):
            if end - low < self.size:
                buffers = [buffer[: end - low] for buffer in buffers]
            chunk = slice(low, min(low + self.size, end))
            ends = self.senders[chunk], self.receivers[chunk]
            _first_layer(*self.given, self.terms[chunk], *ends, buffers[0].view)
            yield chunk, buffers


def _view(tensor: Tensor) -> Array:
    """The tensor as an array; a contiguous tensor shares its memory."""
    return tensor.detach().contiguous().numpy()


class _SummedHiddenLayers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, *flat: Tensor
    ) -> Tensor:
        ctx.graph = graph
        first = _FirstLayer(source, target, edge_term, graph)
        saved = []
        if flat and any(ctx.needs_input_grad):
            saved = [source.new_empty(first.edges, first.width) for _ in flat[2::2]]
            saved.append(source.new_empty(first.edges, first.width, dtype=torch.bool))
        ctx.save_for_backward(source, target, edge_term, *flat, *saved)
        totals = [source.new_zeros(graph.num_nodes, first.width) for _ in range(first.shares)]
        biases = [_view(bias) for bias in flat[1::2] or [source.new_zeros(first.width)]]
        weights, layers = [weight.T for weight in flat[::2]], [_Rows(layer) for layer in saved]
        positive = layers[-1].view if layers else _view(source[:0])

        def work(share: int) -> None:
            into = _view(totals[share])
            for chunk, (z, other, _) in first.chunks(share):
                for index, weight in enumerate(weights):
                    if index:
                        activated = layers[index - 1][chunk] if layers else z
                        _add_relu(z.view, biases[index - 1], activated.view)
                        other, z = z if layers else other, activated
                    torch.mm(z.tensor, weight, out=other.tensor)
                    z, other = other, z
                _collect(z.view, biases[-1], first.receivers[chunk], into, positive[chunk])

        threads.run_shares(work, first.shares)
        return _sum(totals)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        source, target, edge_term, *rest = ctx.saved_tensors
        flat, saved = rest[: 2 * len(rest) // 3], rest[2 * len(rest) // 3 :]
        graph: Graph = ctx.graph
        graph.check_unchanged()
        if torch.is_grad_enabled():
            inputs = source, target, edge_term, *flat
            found = differentiable_gradients(_plain, inputs, graph=graph, gradient=gradient)
            return *found[:3], None, *found[3:]
        first = _FirstLayer(source, target, edge_term, graph)
        ends = [source.new_empty(graph.num_nodes, first.width)] * 2
        sums = [[torch.zeros_like(part) for part in (*ends, *flat)] for _ in range(first.shares)]
        to_terms = source.new_empty(0 if edge_term is None else first.edges, first.width)
        flow_in, to_term, rows = _view(gradient), _view(to_terms), [_Rows(layer) for layer in saved]

        def work(share: int) -> None:
            to_source, to_target, *to_flat = sums[share]
            to_ends = [_view(part) for part in (to_source, to_target)]
            to_biases = [_view(bias) for bias in to_flat[1::2] or [to_source.new_empty(first.width)]]
            for chunk, (z, flow, other) in first.chunks(share):
                layers = [z, *(layer[chunk] for layer in rows)]
                _spread(flow_in, first.receivers[chunk], layers[-1].view, flow.view, to_biases[-1])
                for index in reversed(range(len(rows))):
                    to_flat[2 * index].addmm_(flow.tensor.T, layers[index].tensor)
                    torch.mm(flow.tensor, flat[2 * index], out=other.tensor)
                    flow, other = other, flow
                    if index:
                        _through_relu(flow.view, layers[index].view, to_biases[index - 1])
                edge_ends = first.senders[chunk], first.receivers[chunk]
                _to_ends(flow.view, z.view, *edge_ends, *to_ends, to_term[chunk])

        threads.run_shares(work, first.shares)
        to_source, to_target, *to_flat = (_sum(parts) for parts in zip(*sums, strict=True))
        to_edges = None if edge_term is None else to_terms.view_as(edge_term)
        return to_source, to_target, to_edges, None, *to_flat


def _sum(parts: Sequence[Tensor]) -> Tensor:
    """In the order of the shares, so that results are reproducible to the bit."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def _plain(source: Tensor, target: Tensor, edge_term: Tensor | None, *flat: Tensor, graph: Graph) -> Tensor:
    return hidden_sums(source, target, edge_term, graph, list(zip(flat[::2], flat[1::2], strict=True)))


@compiled
def _first_layer(source: Array, target: Array, terms: Array, senders: Array, receivers: Array, out: Array) -> None:
    """relu(source_i + target_j + term_ij) of every edge; ``terms`` has no rows if there are no edge terms."""
    zero = out.dtype.type(0)
    for e in range(len(out)):
        i, j = senders[e], receivers[e]
        if len(terms):
            for k in range(out.shape[1]):
                z = source[i, k] + target[j, k] + terms[e, k]
                out[e, k] = zero if z < zero else z
        else:
            for k in range(out.shape[1]):
                z = source[i, k] + target[j, k]
                out[e, k] = zero if z < zero else z


@compiled
def _add_relu(z: Array, bias: Array, out: Array) -> None:
    """relu(z + bias) of a matrix product z."""
    zero = z.dtype.type(0)
    for e in range(len(z)):
        for k in range(z.shape[1]):
            value = z[e, k] + bias[k]
            out[e, k] = zero if value < zero else value


@compiled
def _collect(z: Array, bias: Array, receivers: Array, total: Array, positive: Array) -> None:
    """Add relu(z + bias) to the receivers. ``positive``, unless it is empty, becomes the mask of values above 0."""
    zero = z.dtype.type(0)
    for e in range(len(z)):
        j = receivers[e]
        for k in range(z.shape[1]):
            value = z[e, k] + bias[k]
            total[j, k] += zero if value < zero else value
        if len(positive):
            for k in range(z.shape[1]):
                positive[e, k] = z[e, k] + bias[k] > zero


@compiled
def _spread(gradient: Array, receivers: Array, positive: Array, flow: Array, to_bias: Array) -> None:
    """`_collect` backwards: ``flow`` becomes the gradient of z."""
    zero = flow.dtype.type(0)
    for e in range(len(flow)):
        j = receivers[e]
        for k in range(flow.shape[1]):
            flow[e, k] = gradient[j, k] if positive[e, k] > 0 else zero
            to_bias[k] += flow[e, k]


@compiled
def _through_relu(flow: Array, z: Array, to_bias: Array) -> None:
    """``flow``, the gradient behind a ReLU, becomes the one before it."""
    zero = flow.dtype.type(0)
    for e in range(len(flow)):
        for k in range(flow.shape[1]):
            flow[e, k] = flow[e, k] if z[e, k] > zero else zero
            to_bias[k] += flow[e, k]


@compiled
def _to_ends(
    flow: Array, z: Array, senders: Array, receivers: Array, to_source: Array, to_target: Array, to_terms: Array
) -> None:
    """`_first_layer` backwards; z is its result."""
    zero = flow.dtype.type(0)
    for e in range(len(flow)):
        i, j = senders[e], receivers[e]
        for k in range(flow.shape[1]):
            through = flow[e, k] if z[e, k] > zero else zero
            to_source[i, k] += through
            to_target[j, k] += through
        if len(to_terms):
            for k in range(flow.shape[1]):
                to_terms[e, k] = flow[e, k] if z[e, k] > zero else zero
