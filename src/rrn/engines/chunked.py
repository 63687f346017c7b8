"""The sum over edges of f's hidden layers, a cache's worth of edges at a time.

On a CPU the time of a message step goes into moving edge tensors through memory, not into arithmetic. So the edges
are taken in chunks small enough for the cache, forward and backward. For the backward pass only what costs a matrix
product is kept, of the last layer only where it is not 0; the first layer, the largest in the plain form, is computed
again there. What lies between the products is `rrn.engines.fused`, or `rrn.engines.passes` where numba is missing.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rrn._compat import COMPILED
from rrn.engines import apart, fused, lstm, passes, threads
from rrn.engines.engine import Engine, differentiable_gradients, if_recorded, on_a_cpu
from rrn.graphs import EdgeList, Graph, NeighbourTable
from rrn.nn.messages import Layers, MLPMessage, hidden_sums
from rrn.nn.readouts import Outputs, stack
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

PASSES = fused if COMPILED else passes

CHUNK_FLOATS = 130_000
"""Numbers in one edge tensor of a chunk: two such tensors fill a core's second-level cache."""


class MessageEngine(Engine):
    """The plain loop with another way to sum f's hidden layers over the edges, and, where g is the paper's, with
    neighbouring matrices multiplied out."""

    @abstractmethod
    def sums(self, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, layers: Layers) -> Tensor:
        """As `rrn.nn.messages.hidden_sums`."""

    def run(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Tensor | Outputs, State]:
        """On several threads, where the graphs fall apart into parts for them."""
        enough = math.prod(given.graph.edge_shape) * network.hidden // CHUNK_FLOATS
        graphs = apart.parts(network, given, at_most=enough)
        if graphs:
            outputs, state = apart.run(graphs, self.steps, network, given, state, steps)
        else:
            outputs, state = self.steps(network, given, state, steps)
        return stack(outputs), state

    def steps(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Sequence[Any], State]:
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
        return outputs, state


class Chunked(MessageEngine):
    """f with any number of hidden layers and the paper's sum, on an `EdgeList` or a `NeighbourTable`."""

    name = "chunked"
    message = MLPMessage

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


class _Rows:
    """A tensor with one row per edge, and the same memory as a pass over edges takes it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.view = tensor, _view(tensor)

    def __getitem__(self, chunk: slice) -> "_Rows":
        part = object.__new__(_Rows)
        part.tensor, part.view = self.tensor[chunk], self.view[chunk]
        return part


class _FirstLayer:
    """relu(source_i + target_j + edge_term_ij), a chunk of edges at a time; and three buffers of a chunk, of which it
    uses the first. Every thread has buffers of its own and an equal share of the edges."""

    def __init__(self, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph) -> None:
        self.edges, self.width = math.prod(graph.edge_shape), source.shape[1]
        terms = source.new_empty(0, self.width) if edge_term is None else edge_term.reshape(-1, self.width)
        self.given = [_view(part) for part in (source, target)]
        self.terms, self.senders, self.receivers = (_view(part) for part in (terms, *graph.ends()[:2]))
        floats = CHUNK_FLOATS * (1 if threads.shares() > 1 or threads.within() else torch.get_num_threads())
        self.size = max(1, min(floats // self.width, self.edges))
        self.shares = max(1, min(threads.shares(), self.edges // self.size))
        self.buffers = [[_Rows(source.new_empty(self.size, self.width)) for _ in range(3)] for _ in range(self.shares)]

    def chunks(self, share: int) -> Iterator[tuple[slice, list[_Rows]]]:
        """The chunks of a share, and the buffers for each, the first of them filled."""
        begin, end = (self.edges * part // self.shares for part in (share, share + 1))
        buffers = self.buffers[share]
        for low in range(begin, end, self.size):
            if end - low < self.size:
                buffers = [buffer[: end - low] for buffer in buffers]
            chunk = slice(low, min(low + self.size, end))
            ends = self.senders[chunk], self.receivers[chunk]
            PASSES.first_layer(*self.given, self.terms[chunk], *ends, buffers[0].view)
            yield chunk, buffers


def _view(tensor: Tensor) -> Any:
    """What a pass over edges takes: of a contiguous tensor, its own memory."""
    tensor = tensor.detach().contiguous()
    return tensor.numpy() if COMPILED else tensor


class _SummedHiddenLayers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, *flat: Tensor
    ) -> Tensor:
        ctx.graph = graph
        first = _FirstLayer(source, target, edge_term, graph)
        kept = []
        if flat and any(ctx.needs_input_grad):
            kept = [source.new_empty(first.edges, first.width) for _ in flat[2::2]]
            kept.append(source.new_empty(first.edges, first.width, dtype=torch.bool))
        ctx.save_for_backward(source, target, edge_term, *flat, *kept)
        totals = [source.new_zeros(graph.num_nodes, first.width) for _ in range(first.shares)]
        biases = [_view(bias) for bias in flat[1::2] or [source.new_zeros(first.width)]]
        weights, layers = [weight.T for weight in flat[::2]], [_Rows(layer) for layer in kept]
        shown = layers[-1].view if layers else _view(source[:0])

        def work(share: int) -> None:
            into = _view(totals[share])
            for chunk, (z, other, _) in first.chunks(share):
                for index, weight in enumerate(weights):
                    if index:
                        bent = layers[index - 1][chunk] if layers else z
                        PASSES.bend(z.view, biases[index - 1], bent.view)
                        other, z = z if layers else other, bent
                    torch.mm(z.tensor, weight, out=other.tensor)
                    z, other = other, z
                PASSES.collect(z.view, biases[-1], first.receivers[chunk], into, shown[chunk])

        threads.at_once(work, first.shares)
        return _sum(totals)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        source, target, edge_term, *rest = ctx.saved_tensors
        flat, kept = rest[: 2 * len(rest) // 3], rest[2 * len(rest) // 3 :]
        graph: Graph = ctx.graph
        if torch.is_grad_enabled():
            inputs = source, target, edge_term, *flat
            found = differentiable_gradients(_plain, inputs, graph=graph, gradient=gradient)
            return *found[:3], None, *found[3:]
        first = _FirstLayer(source, target, edge_term, graph)
        ends = [source.new_empty(graph.num_nodes, first.width)] * 2
        sums = [[torch.zeros_like(part) for part in (*ends, *flat)] for _ in range(first.shares)]
        to_terms = source.new_empty(0 if edge_term is None else first.edges, first.width)
        arriving, to_term, rows = _view(gradient), _view(to_terms), [_Rows(layer) for layer in kept]

        def work(share: int) -> None:
            to_source, to_target, *to_flat = sums[share]
            leaving = [_view(part) for part in (to_source, to_target)]
            to_biases = [_view(bias) for bias in to_flat[1::2] or [to_source.new_empty(first.width)]]
            for chunk, (z, flow, other) in first.chunks(share):
                layers = [z, *(layer[chunk] for layer in rows)]
                PASSES.spread(arriving, first.receivers[chunk], layers[-1].view, flow.view, to_biases[-1])
                for index in reversed(range(len(rows))):
                    to_flat[2 * index].addmm_(flow.tensor.T, layers[index].tensor)
                    torch.mm(flow.tensor, flat[2 * index], out=other.tensor)
                    flow, other = other, flow
                    if index:
                        PASSES.through_relu(flow.view, layers[index].view, to_biases[index - 1])
                ends = first.senders[chunk], first.receivers[chunk]
                PASSES.to_ends(flow.view, z.view, *ends, *leaving, to_term[chunk])

        threads.at_once(work, first.shares)
        to_source, to_target, *to_flat = (_sum(parts) for parts in zip(*sums, strict=True))
        to_edges = None if edge_term is None else to_terms.view_as(edge_term)
        return to_source, to_target, to_edges, None, *to_flat


def _sum(parts: Sequence[Tensor]) -> Tensor:
    """In the order of the shares, so that the same work gives the same bits."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def _plain(source: Tensor, target: Tensor, edge_term: Tensor | None, *flat: Tensor, graph: Graph) -> Tensor:
    return hidden_sums(source, target, edge_term, graph, list(zip(flat[::2], flat[1::2], strict=True)))
