"""torch.compile on the module: what it costs, and what it gives, beside the module as it is.

A graph of 500 nodes and 4,000 edges, 8 steps, on one thread; seconds of the processor, the best of several.
"""

import time
from collections.abc import Callable

import torch

from rrn import RRN
from rrn.nn.losses import every_step

NODES, EDGES, STEPS, REPEATS = 500, 4000, 8, 10


def measure() -> dict[str, object]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = RRN(features=16, hidden=64, outputs=4, message_layers=2)
    x, edge_index = torch.randn(NODES, 16), torch.randint(NODES, (2, EDGES))
    targets = torch.randint(4, (NODES,))
    compiled = torch.compile(network)

    def train(module: Callable[..., torch.Tensor]) -> None:
        network.zero_grad()
        every_step(module(x, edge_index, steps=STEPS), targets).backward()

    @torch.no_grad()
    def infer(module: Callable[..., torch.Tensor]) -> torch.Tensor:
        return module(x, edge_index, steps=STEPS)

    started = time.perf_counter()
    train(compiled)
    difference = (infer(compiled) - infer(network)).abs().max().item()
    compiling = time.perf_counter() - started
    if difference > 1e-4:
        raise RuntimeError(f"compiled and plain differ by {difference}")
    return {
        "about": f"{NODES} nodes, {EDGES} edges, {STEPS} steps, 64 units, two message layers, one thread",
        "seconds_to_compile": compiling,
        "largest_difference": difference,
        "train_seconds": {"plain": _best(train, network), "compiled": _best(train, compiled)},
        "infer_seconds": {"plain": _best(infer, network), "compiled": _best(infer, compiled)},
    }


def _best(run: Callable[..., object], module: Callable[..., torch.Tensor]) -> float:
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        run(module)
        seconds.append(time.process_time() - started)
    return min(seconds)


if __name__ == "__main__":
    print(measure())
