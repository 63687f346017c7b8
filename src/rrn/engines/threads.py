"""Work in parallel on the threads that torch computes with: shares of a loop, or whole graphs of a batch.

Each thread computes all steps of its graphs, and records them; gradients are computed on threads again.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rrn._compat import has_hooks, run_on_openmp_threads, torch_api
from rrn.engines.plain import detach_without_grad, differentiable_gradients, is_unmodified
from rrn.graphs import NeighbourTable
from rrn.nn.readouts import NodeReadout
from rrn.nn.updates import GRUUpdate, LSTMUpdate, MLPUpdate, NoUpdate, ResidualUpdate, State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

Steps = Callable[["RRN", "Prepared", State, int], tuple[Sequence[Any], State]]
"""The outputs of every step and the state after the last, computed on the current thread."""

_BY_NODE = (LSTMUpdate, GRUUpdate, MLPUpdate, NoUpdate, ResidualUpdate)
"""Updates that compute each node independently."""

MOST = 8
"""Largest number of shares: more would wait for Python's lock between the matrix products."""
CHUNK_FLOATS = 130_000
"""Numbers in one edge tensor of a chunk: two such tensors fill a core's second-level cache."""

_TORCH = torch_api()
_current = threading.local()


def shares() -> int:
    """The number of shares that can run in parallel now."""
    return 1 if _TORCH.openmp_parallel is None or within_share() else min(torch.get_num_threads(), MOST)


def within_share() -> bool:
    """Whether this code runs as one of several shares, on one thread."""
    return getattr(_current, "in_share", False)


def run_by_rows(work: Callable[..., None], count: int, *arrays: Any) -> None:
    """``work(share, *arrays)``, which computes each row independently, in parallel on ``count`` shares of the rows."""
    rows = len(arrays[0])
    cuts = [rows * share // count for share in range(count + 1)]
    run_shares(lambda share: work(share, *(array[cuts[share] : cuts[share + 1]] for array in arrays)), count)


def run_shares(work: Callable[[int], None], count: int) -> None:
    """Run ``work(0)`` to ``work(count - 1)`` in parallel. Each uses one thread and records no gradients.

    Any thread may take any share, so two shares must not write to the same memory.
    """
    if count == 1:
        return work(0)
    waiting, failed, inference = iter(range(count)), [], torch.is_inference_mode_enabled()

    def run() -> None:
        try:
            _current.in_share = True
            with torch.inference_mode(inference), torch.no_grad():
                for share in waiting:
                    work(share)
        except BaseException as error:
            failed.append(error)
        finally:
            _current.in_share = False

    try:
        run_on_openmp_threads(run, count)
    finally:
        _current.in_share = False
    if failed:
        raise failed[0]


def split_graphs(network: "RRN", given: "Prepared", at_most: int) -> list[NeighbourTable]:
    """The graphs of a batch in parts of similar size, one for each thread; empty if they cannot be split.

    They cannot if there is one graph, if a part of the network may mix nodes or is random, or if a parameter has a
    gradient hook, which each thread would call. Nor if saved-tensor hooks are active, as in `torch.utils.checkpoint`:
    torch does not apply them on other threads.
    """
    count, readout = min(shares(), at_most), network.readout
    if count < 2 or type(given.graph) is not NeighbourTable:
        return []
    if not is_unmodified(readout, NodeReadout) or not is_unmodified(network.update, *_BY_NODE):
        return []
    assert isinstance(readout, NodeReadout)
    if (readout.training and readout.mlp.dropout.p) or _TORCH.saved_tensor_hooks(False):
        return []
    if torch.is_grad_enabled() and any(map(has_hooks, network.parameters())):
        return []
    found = given.graph.parts(count)
    return found if len(found) > 1 else []


def run_graphs(
    graphs: list[NeighbourTable], steps: Steps, network: "RRN", given: "Prepared", state: State, count: int
) -> tuple[Sequence[Tensor], State]:
    """``steps(network, given, state, count)``, each part of the graphs on one thread."""
    loop, rows, term = _Loop(steps, network, given, count), [given.x, *state.parts()], given.edge_term
    per_edge = term is not None and term.shape[:-1] == given.graph.edge_shape
    loop.inputs = len(rows) + (term is not None)
    loop.rows = len(rows) + per_edge
    results = _SplitGraphs.apply(
        loop, graphs, *rows, *([] if term is None else [term]), *detach_without_grad(*loop.parameters())
    )
    return results[:count], State.of(results[count:])


class _Loop(nn.Module):
    """A network's steps on some graphs, as a function of its tensors.

    The first ``rows`` of its ``inputs`` have one row per node, like its results; all graphs share the others.
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


class _SplitGraphs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loop: _Loop, graphs: list[NeighbourTable], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.loop, ctx.graphs, ctx.needed = loop, graphs, ctx.needs_input_grad[2:]
        ctx.set_materialize_grads(False)  # a tensor without influence on the loss has no gradient
        split = [_split(tensor.detach(), graphs) for tensor in tensors[: loop.rows]]
        split += [[tensor] * len(graphs) for tensor in tensors[loop.rows : loop.inputs]]
        ctx.given = [
            [part.detach().requires_grad_(need) for part, need in zip(inputs, ctx.needed, strict=False)]
            for inputs in zip(*split, strict=True)
        ]
        found: list[tuple[Tensor, ...]] = [()] * len(graphs)

        def work(share: int) -> None:
            with torch.set_grad_enabled(any(ctx.needed)):
                found[share] = loop(graphs[share], *ctx.given[share])

        run_shares(work, len(graphs))
        ctx.save_for_backward(*tensors, *(result for results in found for result in results))
        return tuple(torch.cat([part.detach() for part in results]) for results in zip(*found, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        loop, graphs, needed = ctx.loop, ctx.graphs, ctx.needed
        tensors, results = ctx.saved_tensors[: len(needed)], ctx.saved_tensors[len(needed) :]
        if torch.is_grad_enabled():
            return None, None, *differentiable_gradients(_plain, tensors, loop, graphs, gradient=gradients)
        arriving = {index: gradient for index, gradient in enumerate(gradients) if gradient is not None}
        output_gradients = list(zip(*(_split(gradient, graphs) for gradient in arriving.values()), strict=True))
        input_gradients: list[tuple[Tensor | None, ...]] = [()] * len(graphs)

        def work(share: int) -> None:
            inputs = *ctx.given[share], *tensors[loop.inputs :]
            wanted = [tensor for tensor, need in zip(inputs, needed, strict=True) if need]
            outputs = [results[share * len(gradients) + index] for index in arriving]
            input_gradients[share] = torch.autograd.grad(
                outputs, wanted, output_gradients[share], retain_graph=True, allow_unused=True
            )

        run_shares(work, len(graphs))
        by_tensor = iter(zip(*input_gradients, strict=True))
        joins = [torch.cat] * loop.rows + [sum] * (len(needed) - loop.rows)
        joined = [_join(join, next(by_tensor)) if need else None for join, need in zip(joins, needed, strict=True)]
        return None, None, *joined


def _join(join: Callable[..., Tensor], parts: tuple[Tensor | None, ...]) -> Tensor | None:
    """The parts joined; None if all are, which depends on the loss alone, not on the part."""
    return None if parts[0] is None else join(parts)


def _split(rows: Tensor, graphs: list[NeighbourTable]) -> Sequence[Tensor]:
    return rows.split([graph.num_nodes for graph in graphs])


def _plain(*tensors_and_more: Any) -> tuple[Tensor, ...]:
    *tensors, loop, graphs = tensors_and_more
    graph, _ = NeighbourTable.join([(graph, None) for graph in graphs])
    names = [name for name, _ in loop.named_parameters()]
    parameters = dict(zip(names, tensors[loop.inputs :], strict=True))
    return torch.func.functional_call(loop, parameters, (graph, *tensors[: loop.inputs]))
