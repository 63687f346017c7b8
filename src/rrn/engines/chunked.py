"""The sum over edges of f's hidden layers, a cache's worth of edges at a time.

On a CPU the time of a message step goes into moving edge tensors through memory, not into arithmetic. So the edges
are taken in chunks small enough for the cache, forward and backward. For the backward pass only what costs a matrix
product is kept; the first layer, the largest in the plain form, is computed again there.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rrn.engines import lstm
from rrn.engines.engine import Engine, differentiable_gradients, if_recorded, on_a_cpu
from rrn.graphs import EdgeList, Graph, NeighbourTable
from rrn.messages import Layers, MLPMessage, hidden_sums
from rrn.readouts import Outputs, stack
from rrn.updates import State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

CHUNK_FLOATS = 400_000
"""Numbers in one edge tensor of a chunk: a handful of such tensors stay in a core's second-level cache."""


class MessageEngine(Engine):
    """The plain loop with another way to sum f's hidden layers over the edges, and, where g is the paper's, with
    neighbouring matrices multiplied out."""

    @abstractmethod
    def sums(self, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, layers: Layers) -> Tensor:
        """As `rrn.messages.hidden_sums`."""

    def run(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Tensor | Outputs, State]:
        message, update, graph = network.message, network.update, given.graph
        assert isinstance(message, MLPMessage)
        joined = lstm.MultipliedOut(message, update, given.x, graph) if lstm.fits(update) else None
        outputs = []
        for _ in range(steps):
            total = message.before_last_layer(state.h, graph, given.edge_term, self.sums)
            if joined is None:
                state = update(state, given.x, message.last_layer(total, graph))
            else:
                state = joined.step(state, total)
            outputs.append(network.read(given, state))
        return stack(outputs), state


class Chunked(MessageEngine):
    """f with any number of hidden layers and the paper's sum, on an `EdgeList` or a `NeighbourTable`."""

    name = "chunked"

    def fits(self, network: "RRN", given: "Prepared", state: State) -> bool:
        message, term = network.message, given.edge_term
        if not isinstance(message, MLPMessage) or message.aggregate != ("sum",):
            return False
        if not isinstance(given.graph, EdgeList | NeighbourTable):
            return False
        whole = term is None or term.shape[:-1] == given.graph.edge_shape or term.numel() == term.shape[-1]
        return whole and on_a_cpu(state.h, given.x, term)

    def sums(self, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, layers: Layers) -> Tensor:
        return summed_hidden_layers(source, target, edge_term, graph, layers)


def summed_hidden_layers(
    source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, layers: Layers
) -> Tensor:
    """Σ_i z_ij with z_ij = relu(… relu(source_i + target_j + edge_term_ij) …): (nodes, hidden).

    ``layers`` are the weights and biases of the further ReLU layers.
    """
    flat = if_recorded(*(parameter for layer in layers for parameter in layer))
    return _SummedHiddenLayers.apply(source, target, edge_term, graph, *flat)


@dataclass
class _Chunk:
    """Some edges: their senders, their receivers, and how edges and receivers relate.

    ``receivers`` is a slice of nodes that hear from the same number of senders each (`NeighbourTable`), or the
    receiver of every edge.
    """

    edges: slice
    rows: slice
    senders: Tensor
    receivers: slice | Tensor


def _chunks(graph: Graph, width: int) -> list[_Chunk]:
    if isinstance(graph, NeighbourTable):
        nodes, degree = graph.table.shape
        size = max(1, CHUNK_FLOATS // (width * degree))
        spans = [slice(low, min(low + size, nodes)) for low in range(0, nodes, size)]
        rows = [slice(degree * span.start, degree * span.stop) for span in spans]
        return [_Chunk(span, row, graph.table[span].flatten(), span) for span, row in zip(spans, rows, strict=True)]
    assert isinstance(graph, EdgeList)
    count, size = graph.edge_shape[0], max(1, CHUNK_FLOATS // width)
    spans = [slice(low, min(low + size, count)) for low in range(0, count, size)]
    return [_Chunk(span, span, graph.source[span], graph.target[span]) for span in spans]


def _first_layer(chunk: _Chunk, source: Tensor, target: Tensor, edge_term: Tensor | None, buffer: Tensor) -> Tensor:
    z = torch.index_select(source, 0, chunk.senders, out=buffer[: len(chunk.senders)])
    if isinstance(chunk.receivers, slice):
        receivers = target[chunk.receivers]
        z.view(len(receivers), -1, z.shape[1]).add_(receivers[:, None])
    else:
        z += target.index_select(0, chunk.receivers)
    if edge_term is not None:
        z += edge_term[chunk.edges].reshape(z.shape)
    return z.relu_()


class _SummedHiddenLayers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, *flat: Tensor
    ) -> Tensor:
        ctx.graph = graph
        width = source.shape[1]
        learning = any(ctx.needs_input_grad)
        edges = math.prod(graph.edge_shape)
        kept = [source.new_empty(edges, width) for _ in range(len(flat) // 2)] if learning else []
        ctx.save_for_backward(source, target, edge_term, *flat, *kept)
        chunks = _chunks(graph, width)
        total = source.new_zeros(graph.num_nodes, width)
        rows = max((len(c.senders) for c in chunks), default=0)
        buffers = [source.new_empty(rows, width) for _ in range(2 if flat else 1)]
        for chunk in chunks:
            z = _first_layer(chunk, source, target, edge_term, buffers[0])
            for index in range(0, len(flat), 2):
                out = kept[index // 2][chunk.rows] if learning else buffers[(index // 2 + 1) % 2][: len(z)]
                z = torch.addmm(flat[index + 1], z, flat[index].T, out=out).relu_()
            if isinstance(chunk.receivers, slice):
                into = total[chunk.receivers]
                torch.sum(z.view(len(into), -1, width), dim=1, out=into)
            else:
                total.index_add_(0, chunk.receivers, z)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        source, target, edge_term, *rest = ctx.saved_tensors
        flat, kept = rest[: 2 * len(rest) // 3], rest[2 * len(rest) // 3 :]
        graph: Graph = ctx.graph
        if torch.is_grad_enabled():
            inputs = source, target, edge_term, *flat
            found = differentiable_gradients(_plain, inputs, graph=graph, gradient=gradient)
            return *found[:3], None, *found[3:]
        width = source.shape[1]
        chunks = _chunks(graph, width)
        to_source, to_target = torch.zeros_like(source), torch.zeros_like(target)
        to_edges = None if edge_term is None else torch.empty_like(edge_term)
        to_flat = [torch.zeros_like(parameter) for parameter in flat]
        rows = max((len(c.senders) for c in chunks), default=0)
        first = source.new_empty(rows, width)
        flows = [source.new_empty(rows, width) for _ in range(2)]
        for chunk in chunks:
            count = len(chunk.senders)
            layers = [_first_layer(chunk, source, target, edge_term, first), *(layer[chunk.rows] for layer in kept)]
            if isinstance(chunk.receivers, slice):
                arrived = gradient[chunk.receivers]
                flow = flows[0][:count]
                flow.view(len(arrived), -1, width).copy_(arrived[:, None].expand(-1, count // len(arrived), -1))
            else:
                flow = torch.index_select(gradient, 0, chunk.receivers, out=flows[0][:count])
            flow = _through_relu(flow, layers[-1])
            for index in range(len(flat) - 2, -1, -2):
                below = layers[index // 2]
                to_flat[index].addmm_(flow.T, below)
                to_flat[index + 1] += flow.sum(0)
                other = flows[1] if flow.data_ptr() == flows[0].data_ptr() else flows[0]
                flow = _through_relu(torch.mm(flow, flat[index], out=other[:count]), below)
            to_source.index_add_(0, chunk.senders, flow)
            if isinstance(chunk.receivers, slice):
                into = to_target[chunk.receivers]
                torch.sum(flow.view(len(into), -1, width), dim=1, out=into)
            else:
                to_target.index_add_(0, chunk.receivers, flow)
            if to_edges is not None:
                to_edges[chunk.edges] = flow.view_as(to_edges[chunk.edges])
        return to_source, to_target, to_edges, None, *to_flat


def _plain(source: Tensor, target: Tensor, edge_term: Tensor | None, *flat: Tensor, graph: Graph) -> Tensor:
    return hidden_sums(source, target, edge_term, graph, list(zip(flat[::2], flat[1::2], strict=True)))


def _through_relu(flow: Tensor, activation: Tensor) -> Tensor:
    """The gradient before a ReLU from the one behind it, in place."""
    return torch.ops.aten.threshold_backward.grad_input(flow, activation, 0, grad_input=flow)
