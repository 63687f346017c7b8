"""``network.compile()``: what it costs, and what it gives, beside the plain steps and the engines.

A graph of 500 nodes and 4,000 edges, 8 steps, on one thread; seconds of the processor, the best of several. Then ten
sizes of graphs and three numbers of steps: how many programs torch compiled before and after.
"""

import os
import time

import torch
from torch._dynamo.utils import counters

from rrn import RRN, engines
from rrn.nn.losses import every_step

NODES, EDGES, STEPS, REPEATS = 500, 4000, 8, 10
SIZES = (7, 20, 33, 50, 64, 100, 200, 300, 700, 1000)


def measure() -> dict[str, object]:
    threads, load = torch.get_num_threads(), os.getloadavg()[0]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    plain = RRN(features=16, hidden=64, outputs=4, message_layers=2)
    network = RRN(features=16, hidden=64, outputs=4, message_layers=2)
    network.load_state_dict(plain.state_dict())
    network.compile()
    x, edge_index = torch.randn(NODES, 16), torch.randint(NODES, (2, EDGES))

    started = time.perf_counter()
    train(network, x, edge_index)
    infer(network, x, edge_index)
    compiling = time.perf_counter() - started
    programs = counters["stats"]["unique_graphs"]
    for nodes in SIZES:
        for steps in (1, 4, 16):
            train(network, torch.randn(nodes, 16), torch.randint(nodes, (2, 8 * nodes)), steps)
    with engines.only("plain"):
        difference = (infer(network, x, edge_index) - infer(plain, x, edge_index)).abs().max().item()
    if difference > 1e-4:
        raise RuntimeError(f"compiled and plain differ by {difference}")

    def seconds(run: "object") -> dict[str, float]:
        with engines.only("plain"):
            found = {"plain": _best(run, plain, x, edge_index)}
        return found | {"compiled": _best(run, network, x, edge_index), "engine": _best(run, plain, x, edge_index)}

    measured = {
        "about": f"{NODES} nodes, {EDGES} edges, {STEPS} steps, 64 units, two message layers, one thread",
        "seconds_to_compile": compiling,
        "programs": {"after one size": programs, "after ten sizes": counters["stats"]["unique_graphs"]},
        "largest_difference": difference,
        "train_seconds": seconds(train),
        "infer_seconds": seconds(infer),
        "load": {"before": load, "after": os.getloadavg()[0]},
    }
    torch.set_num_threads(threads)
    return measured


def train(module: RRN, x: torch.Tensor, edge_index: torch.Tensor, steps: int = STEPS) -> None:
    module.zero_grad()
    every_step(module(x, edge_index, steps=steps), torch.arange(len(x)) % 4).backward()


@torch.no_grad()
def infer(module: RRN, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    return module(x, edge_index, steps=STEPS)


def _best(run: object, *arguments: object) -> float:
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        run(*arguments)  # type: ignore[operator]
        seconds.append(time.process_time() - started)
    return min(seconds)


if __name__ == "__main__":
    print(measure())
