"""Whole graphs of a batch on threads of their own, for all steps: nobody waits for the others before the end.

What a thread computes is recorded there and then; its gradients are computed on threads again.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rrn._compat import torch_api
from rrn.engines import threads
from rrn.engines.engine import differentiable_gradients, if_recorded
from rrn.graphs import NeighbourTable
from rrn.nn.readouts import NodeReadout
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

_TORCH = torch_api()

Steps = Callable[["RRN", "Prepared", State, int], tuple[Sequence[Any], State]]
"""The outputs of every step and the state after the last, on the thread that asks."""


def parts(network: "RRN", given: "Prepared", at_most: int) -> list[NeighbourTable]:
    """The graphs of a batch in parts of like size, for as many threads as there are.

    None if they are to stay together: if there is but one graph; if what is read is not of single nodes, or depends on
    chance; if somebody watches what is kept for the backward pass, as `torch.utils.checkpoint` does, whom torch would
    not tell of other threads.
    """
    count, readout = min(threads.shares(), at_most), network.readout
    if count < 2 or not isinstance(given.graph, NeighbourTable) or not isinstance(readout, NodeReadout):
        return []
    if (readout.training and readout.mlp.dropout.p) or _TORCH.saved_tensor_hooks(False):
        return []
    found = given.graph.parts(count)
    return found if len(found) > 1 else []


def run(
    graphs: list[NeighbourTable], steps: Steps, network: "RRN", given: "Prepared", state: State, count: int
) -> tuple[Sequence[Tensor], State]:
    """``steps(network, given, state, count)``, with a thread for each part of the graphs."""
    loop, rows, term = _Loop(steps, network, given, count), [given.x, *state.parts()], given.edge_term
    each = term is not None and term.shape[:-1] == given.graph.edge_shape
    loop.inputs = len(rows) + (term is not None)
    loop.rows = len(rows) + each
    results = _Apart.apply(loop, graphs, *rows, *([] if term is None else [term]), *if_recorded(*loop.parameters()))
    return results[:count], State.of(results[count:])


class _Loop(nn.Module):
    """A network's steps on some graphs, as a function of its tensors.

    The first ``rows`` of its ``inputs`` have one row per node, as its results have; others are the same for all graphs.
    """

    rows: int
    inputs: int

    def __init__(self, steps: Steps, network: "RRN", given: "Prepared", count: int) -> None:
        super().__init__()
        self.used = nn.ModuleList([network.message, network.update, network.readout])
        self.run = lambda given, state: steps(network, given, state, count)
        self.given = given

    def forward(self, graph: NeighbourTable, *inputs: Tensor) -> tuple[Tensor, ...]:
        x, *rest = inputs
        term = None if self.given.edge_term is None else rest.pop()
        outputs, state = self.run(self.given._replace(x=x, graph=graph, edge_term=term), State.of(rest))
        return *outputs, *state.parts()


class _Apart(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loop: _Loop, graphs: list[NeighbourTable], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.loop, ctx.graphs, ctx.needed = loop, graphs, ctx.needs_input_grad[2:]
        shares = [_shares(tensor.detach(), graphs) for tensor in tensors[: loop.rows]]
        shares += [[tensor] * len(graphs) for tensor in tensors[loop.rows : loop.inputs]]
        ctx.given = [
            [part.detach().requires_grad_(need) for part, need in zip(own, ctx.needed, strict=False)]
            for own in zip(*shares, strict=True)
        ]
        found: list[tuple[Tensor, ...]] = [()] * len(graphs)

        def work(share: int) -> None:
            with torch.set_grad_enabled(any(ctx.needed)):
                found[share] = loop(graphs[share], *ctx.given[share])

        threads.at_once(work, len(graphs))
        ctx.save_for_backward(*tensors, *(result for results in found for result in results))
        return tuple(torch.cat([part.detach() for part in results]) for results in zip(*found, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        loop, graphs, needed = ctx.loop, ctx.graphs, ctx.needed
        tensors, results = ctx.saved_tensors[: len(needed)], ctx.saved_tensors[len(needed) :]
        if torch.is_grad_enabled():
            return None, None, *differentiable_gradients(_plain, tensors, loop, graphs, gradient=gradients)
        arriving = list(zip(*(_shares(gradient, graphs) for gradient in gradients), strict=True))
        leaving: list[tuple[Tensor, ...]] = [()] * len(graphs)

        def work(share: int) -> None:
            inputs = *ctx.given[share], *tensors[loop.inputs :]
            wanted = [tensor for tensor, need in zip(inputs, needed, strict=True) if need]
            own = results[share * len(gradients) : (share + 1) * len(gradients)]
            leaving[share] = torch.autograd.grad(
                own, wanted, arriving[share], retain_graph=True, materialize_grads=True
            )

        threads.at_once(work, len(graphs))
        by_tensor = iter(zip(*leaving, strict=True))
        joins = [torch.cat] * loop.rows + [sum] * (len(needed) - loop.rows)
        joined = [join(next(by_tensor)) if need else None for join, need in zip(joins, needed, strict=True)]
        return None, None, *joined


def _shares(rows: Tensor, graphs: list[NeighbourTable]) -> Sequence[Tensor]:
    return rows.split([graph.num_nodes for graph in graphs])


def _plain(*tensors_and_more: Any) -> tuple[Tensor, ...]:
    *tensors, loop, graphs = tensors_and_more
    graph, _ = NeighbourTable.join([(graph, None) for graph in graphs])
    names = [name for name, _ in loop.named_parameters()]
    own = dict(zip(names, tensors[loop.inputs :], strict=True))
    return torch.func.functional_call(loop, own, (graph, *tensors[: loop.inputs]))
