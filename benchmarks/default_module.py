"""`RRN(features=16, hidden=96, outputs=9)` against the same equations on PyTorch Geometric's MessagePassing.

Eight steps, forward and backward, one thread, on 32 Sudoku graphs (as a neighbour table and as an edge list) and on a
random graph of 10,000 nodes and 80,000 edges. PyTorch Geometric's form runs plain and through `torch.compile`, which
compiles for each size of a graph. All forms start from the same weights and must reach the same loss.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

STEPS, REPEATS = 8, 5
FEATURES, HIDDEN, OUTPUTS = 16, 96, 9


def measure() -> dict[str, object]:
    from rrn._compat import keep_freed_memory
    from rrn.graphs import EdgeList, NeighbourTable, neighbour_edges
    from rrn.tasks.sudoku.grid import neighbours

    keep_freed_memory()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    table = NeighbourTable.repeat(torch.from_numpy(neighbours()), 32)
    generator = torch.Generator().manual_seed(0)
    random = torch.randint(10_000, (2, 80_000), generator=generator)
    graphs: dict[str, Any] = {
        "32 Sudokus, neighbour table": table,
        "32 Sudokus, edge list": EdgeList(neighbour_edges(table.table), len(table.table)),
        "random, 10,000 nodes, 80,000 edges": EdgeList(random, 10_000),
    }
    try:
        results = {name: _compare(graph) for name, graph in graphs.items()}
    finally:
        torch.set_num_threads(threads)
    return {
        "about": f"RRN({FEATURES}, {HIDDEN}, {OUTPUTS}), {STEPS} steps, forward + backward, one thread, "
        f"best of {REPEATS}",
        **results,
    }


def _compare(graph: Any) -> dict[str, float]:
    from rrn import RRN
    from rrn.nn.losses import every_step

    torch.manual_seed(0)
    network = RRN(FEATURES, HIDDEN, OUTPUTS)
    x, targets = torch.randn(graph.num_nodes, FEATURES), torch.randint(OUTPUTS, (graph.num_nodes,))
    plain = _OnGeometric(network, torch.stack(graph.ends()[:2]))
    compiled = torch.compile(plain, dynamic=False)
    forms: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: network(x, graph, steps=STEPS),
        "plain": lambda: plain(x),
        "compiled": lambda: compiled(x),
    }
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    losses: dict[str, float] = {}
    for repeat in range(REPEATS + 1):  # in turn, so that a busy moment hits all
        print(f"  {graph.num_nodes} nodes: {repeat} of {REPEATS}", file=sys.stderr, flush=True)
        for name, outputs in forms.items():
            network.zero_grad()
            started = time.perf_counter()
            loss = every_step(outputs(), targets)
            loss.backward()
            seconds[name].append(time.perf_counter() - started)
            losses[name] = float(loss.detach())
    if max(losses.values()) - min(losses.values()) > 1e-4:
        raise RuntimeError(f"the forms disagree: losses {losses}")
    best = {name: min(times) for name, times in seconds.items()}
    return {
        "speedup": best["plain"] / best["ours"],
        "speedup_over_compiled": best["compiled"] / best["ours"],
        "ours_seconds": best["ours"],
        "plain_seconds": best["plain"],
        "compiled_seconds": best["compiled"],
        "seconds_to_compile": seconds["compiled"][0],
        "loss_difference": max(losses.values()) - min(losses.values()),
    }


class _OnGeometric(nn.Module):
    """Eq. 1 to 4 with the weights of an `RRN`, written the plain way."""

    def __init__(self, network: Any, edge_index: Tensor) -> None:
        super().__init__()
        from torch_geometric.nn import MessagePassing

        class Message(MessagePassing):
            def __init__(self) -> None:
                super().__init__(aggr="add")

            def forward(self, h: Tensor) -> Tensor:
                return self.propagate(edge_index, h=h)

            def message(self, h_i: Tensor, h_j: Tensor) -> Tensor:
                return network.message.mlp(torch.cat([h_j, h_i], dim=-1))

        self.network, self.message = network, Message()

    def forward(self, x: Tensor) -> Tensor:
        network = self.network
        x = network.encoder(x)
        state, outputs = network.update.initial_state(x), []
        for _ in range(STEPS):
            state = network.update(state, x, self.message(state.h))
            outputs.append(network.readout.mlp(state.h))
        return torch.stack(outputs)
