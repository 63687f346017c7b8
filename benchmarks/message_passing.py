"""The paper's Sudoku network, ours against the same network written the plain way on PyTorch Geometric.

16 puzzles, 32 steps, forward and backward. Each form runs in a process of its own, so that its peak memory is its
own; both start from the same weights and must reach the same loss.
"""

import json
import os
import subprocess
import sys
import time

from benchmarks.memory import forget_peak, peak_since

PUZZLES, STEPS, REPEATS = 16, 32, 3


def measure() -> dict[str, object]:
    plain, ours = _in_own_process("plain"), _in_own_process("ours")
    one_thread = _in_own_process("ours", OMP_NUM_THREADS="1")
    if abs(plain["loss"] - ours["loss"]) > 1e-4:
        raise RuntimeError(f"the two forms disagree: loss {plain['loss']} and {ours['loss']}")
    return {
        "about": f"sudoku-paper, {PUZZLES} puzzles, {STEPS} steps, forward + backward, best of {REPEATS}",
        "plain": plain,
        "ours": ours,
        "loss_difference": abs(plain["loss"] - ours["loss"]),
        "speedup": plain["seconds"] / ours["seconds"],
        "gigaflops": _products() / ours["seconds"] / 1e9,
        "threads": os.cpu_count(),
        "peak_gigaflops": ours["peak_gigaflops"],
        "share_of_peak": _share_of_peak(ours),
        "one_thread": one_thread,
        "share_of_peak_on_one_thread": _share_of_peak(one_thread),
        "memory_ratio": ours["peak_megabytes"] / plain["peak_megabytes"],
    }


def _share_of_peak(figures: dict[str, float]) -> float:
    return _products() / figures["seconds"] / 1e9 / figures["peak_gigaflops"]


def _products() -> float:
    """Floating-point operations of the matrix products, forward and backward, after f's rewrite: see `MLPMessage`."""
    nodes, edges, width = PUZZLES * 81, PUZZLES * 1620, 96
    per_step = edges * 2 * width**2  # f's two middle layers
    per_step += nodes * (2 + 1) * width**2  # f's first layer, of both ends, and its last
    per_step += nodes * (2 + 3) * width**2  # g's MLP: [x, m], three more layers
    per_step += nodes * (8 * width**2 + 10 * width)  # the LSTM's gates and the readout
    once = nodes * (48 * width + 3 * width**2)  # the encoder
    return 3 * 2 * (STEPS * per_step + once)


def _peak() -> float:
    """The machine's own best at a matrix product of this size, in operations a second."""
    import torch

    a, b = torch.randn(4096, 96), torch.randn(96, 96)
    c, d = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = 0.0
    for x, y in ((a, b), (c, d)):
        for _ in range(20):
            started = time.perf_counter()
            for _ in range(10):
                x @ y
            best = max(best, 10 * 2 * x.shape[0] * x.shape[1] * y.shape[1] / (time.perf_counter() - started))
    return best


def _in_own_process(form: str, **environment: str) -> dict[str, float]:
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.message_passing", form],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    ).stdout
    return json.loads(output)


def _run(form: str) -> dict[str, float]:
    import torch

    from rrn import RRN, NeighbourTable
    from rrn._compat import keep_freed_memory
    from rrn.nn.losses import every_step

    keep_freed_memory()  # for both forms alike, as in training
    torch.manual_seed(0)
    network = RRN(48, 96, 10, edge_features=1, encoder_layers=3, message_layers=3, update_layers=3)
    table = _sudoku_neighbours()
    x = torch.randn(PUZZLES * 81, 48)
    targets = torch.randint(10, (PUZZLES * 81,))
    graph = NeighbourTable.repeat(table, PUZZLES)
    edge_attr = torch.zeros(1, 1, 1)  # the paper's edge feature that is always zero
    if form == "plain":
        network.message = _on_geometric(network.message, graph)
    before = forget_peak()  # a process begins with its parent's
    seconds = []
    for _ in range(REPEATS):
        network.zero_grad()
        started = time.perf_counter()
        loss = every_step(network(x, graph, edge_attr, steps=STEPS), targets)
        loss.backward()
        seconds.append(time.perf_counter() - started)
    peak = peak_since(before)
    return {
        "seconds": min(seconds),
        "peak_megabytes": peak,
        "loss": float(loss.detach()),
        "peak_gigaflops": _peak() / 1e9,
    }


def _sudoku_neighbours():  # type: ignore[no-untyped-def]
    """The 20 neighbours of each of 81 cells."""
    import torch

    row, column = torch.arange(81) // 9, torch.arange(81) % 9
    box = row // 3 * 3 + column // 3
    same = (row[:, None] == row) | (column[:, None] == column) | (box[:, None] == box)
    return (same & ~torch.eye(81, dtype=torch.bool)).nonzero()[:, 1].view(81, 20)


def _on_geometric(message, graph):  # type: ignore[no-untyped-def]
    """f as a MessagePassing layer that concatenates and runs the whole MLP on every edge."""
    import torch
    from torch_geometric.nn import MessagePassing

    from rrn.graphs import neighbour_edges

    class Plain(MessagePassing):
        def __init__(self) -> None:
            super().__init__(aggr="add")
            self.mlp = torch.nn.Sequential()
            for linear in message.mlp.linears:
                self.mlp.extend([linear, torch.nn.ReLU()])
            self.mlp = self.mlp[:-1]
            self.edge_index = neighbour_edges(graph.table)

        def encode_edges(self, edge_attr):
            return edge_attr.expand(*graph.edge_shape, -1).flatten(0, 1)

        def forward(self, h, graph, edge_term):
            return self.propagate(self.edge_index, h=h, edge_attr=edge_term)

        def message(self, h_i, h_j, edge_attr):
            return self.mlp(torch.cat([h_j, h_i, edge_attr], dim=-1))

    return Plain()


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1])))
