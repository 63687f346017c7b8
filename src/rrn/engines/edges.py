"""One hidden layer in f, on any graph: Σ_i relu(a_i + b_j + c_ij) in one compiled pass over edges sorted by receiver.

With one hidden layer no matrix product is left on the edges, so nothing has to be written down for an edge: the pass
reads two rows and adds to a third. The backward pass goes the same way again and keeps nothing but its inputs.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rrn._compat import COMPILED, compiled
from rrn.engines.chunked import MessageEngine
from rrn.engines.engine import differentiable_gradients, on_a_cpu
from rrn.graphs import Graph
from rrn.nn.messages import Layers, MLPMessage, hidden_sums
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared


class Edges(MessageEngine):
    """f with one hidden layer and the paper's sum."""

    name = "edges"
    message = MLPMessage

    def fits(self, network: "RRN", given: "Prepared", state: State) -> bool:
        message = network.message
        if not COMPILED or not isinstance(message, MLPMessage) or message.aggregate != ("sum",):
            return False
        term = given.edge_term
        whole = term is None or term.shape[:-1] == given.graph.edge_shape or term.numel() == term.shape[-1]
        return message.layers == 1 and whole and on_a_cpu(state.h, given.x, term)

    def sums(self, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, layers: Layers) -> Tensor:
        return _SummedLayer.apply(source, target, edge_term, graph)


class _SummedLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph) -> Tensor:
        ctx.save_for_backward(source, target, edge_term)
        ctx.graph = graph
        total = torch.empty_like(source, memory_format=torch.contiguous_format)
        _forward(*_arrays(source, target, edge_term), *graph.sorted_edges().arrays(), total.numpy())
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        source, target, edge_term = ctx.saved_tensors
        if torch.is_grad_enabled():
            inputs = source, target, edge_term
            return *differentiable_gradients(hidden_sums, inputs, ctx.graph, [], gradient=gradient), None
        arrays = _arrays(source, target, edge_term)
        to_source, to_target, to_terms = (np.zeros_like(array) for array in arrays)
        edges = ctx.graph.sorted_edges().arrays()
        _backward(*arrays, *edges, gradient.contiguous().numpy(), to_source, to_target, to_terms)
        to_edges = None if edge_term is None else torch.from_numpy(to_terms).view_as(edge_term)
        return torch.from_numpy(to_source), torch.from_numpy(to_target), to_edges, None


def _arrays(source: Tensor, target: Tensor, edge_term: Tensor | None) -> list[np.ndarray]:
    width = source.shape[1]
    terms = source.new_empty(0, width) if edge_term is None else edge_term.reshape(-1, width)
    return [part.detach().contiguous().numpy() for part in (source, target, terms)]


@compiled(fastmath=True)
def _forward(
    source: np.ndarray,
    target: np.ndarray,
    terms: np.ndarray,
    senders: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    total: np.ndarray,
) -> None:
    width = source.shape[1]
    for j in range(len(starts) - 1):
        for k in range(width):
            total[j, k] = 0
        for e in range(starts[j], starts[j + 1]):
            i = senders[e]
            if len(terms):
                place = places[e]
                for k in range(width):
                    total[j, k] += max(source[i, k] + target[j, k] + terms[place, k], source.dtype.type(0))
            else:
                for k in range(width):
                    total[j, k] += max(source[i, k] + target[j, k], source.dtype.type(0))


@compiled(fastmath=True)
def _backward(
    source: np.ndarray,
    target: np.ndarray,
    terms: np.ndarray,
    senders: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    flow: np.ndarray,
    to_source: np.ndarray,
    to_target: np.ndarray,
    to_terms: np.ndarray,
) -> None:
    """The gradients come in as zeros."""
    width = source.shape[1]
    for j in range(len(starts) - 1):
        for e in range(starts[j], starts[j + 1]):
            i = senders[e]
            if len(terms):
                place = places[e]
                for k in range(width):
                    z = source[i, k] + target[j, k] + terms[place, k]
                    through = flow[j, k] if z > 0 else source.dtype.type(0)
                    to_source[i, k] += through
                    to_target[j, k] += through
                    to_terms[place, k] = through
            else:
                for k in range(width):
                    through = flow[j, k] if source[i, k] + target[j, k] > 0 else source.dtype.type(0)
                    to_source[i, k] += through
                    to_target[j, k] += through
