"""``network.compile()``: what it costs, and what it gives, beside the plain steps and the engines.

A graph of 500 nodes and 4,000 edges, 8 steps, on one thread; seconds of the processor, the best of several. Then ten
sizes of graphs and three numbers of steps: how many programs torch compiled. For CPUs, the compiler of torch
writes another loop for sums of more than 4,096 numbers, so graphs with more edges are counted apart. torch's cache of
compiled programs is empty at the start.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from torch._dynamo.utils import counters

from rrn import RRN, engines
from rrn.nn.losses import every_step

NODES, EDGES, STEPS, REPEATS = 500, 4000, 8, 10
SIZES = (7, 20, 33, 50, 64, 100, 200, 300, 400, 500)
LARGER = (700, 1000)
"""Graphs with more than 4,096 edges."""


def measure() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:  # in a process of its own, with an empty cache
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.compiled", "measure"]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def _figures() -> dict[str, object]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    plain = RRN(features=16, hidden=64, outputs=4, message_layers=2)
    network = RRN(features=16, hidden=64, outputs=4, message_layers=2)
    network.load_state_dict(plain.state_dict())
    network.compile()
    x, edge_index = torch.randn(NODES, 16), torch.randint(NODES, (2, EDGES))

    started = time.perf_counter()
    train(network, x, edge_index)
    training = time.perf_counter() - started
    print(f"  compiled for training in {training:.1f} s", file=sys.stderr, flush=True)
    infer(network, x, edge_index)
    compiling = time.perf_counter() - started
    programs = {"one size": counters["stats"]["unique_graphs"]}
    difference, relative = {"values": 0.0, "gradients": 0.0}, {"values": 0.0, "gradients": 0.0}
    for nodes in SIZES + LARGER:
        print(f"  {nodes} nodes", file=sys.stderr, flush=True)
        for steps in (1, 4, 16):
            arguments = torch.randn(nodes, 16), torch.randint(nodes, (2, 8 * nodes)), steps
            found = train(network, *arguments)
            with engines.only("plain"):
                expected = train(plain, *arguments)
            for name, ours, theirs in zip(difference, found, expected, strict=True):
                largest = (ours - theirs).abs().max().item()
                difference[name] = max(difference[name], largest)
                relative[name] = max(relative[name], largest / max(1.0, theirs.abs().max().item()))
        which = "ten sizes" if nodes in SIZES else "sizes of more than 4,096 edges"
        programs[which] = counters["stats"]["unique_graphs"]
    if max(relative.values()) > 1e-5:
        raise RuntimeError(f"compiled and plain differ: {difference}, relative to the largest {relative}")

    def seconds(run: Callable[..., object]) -> dict[str, float]:
        with engines.only("plain"):
            found = {"plain": _best(run, plain, x, edge_index)}
        return found | {"compiled": _best(run, network, x, edge_index), "engine": _best(run, plain, x, edge_index)}

    return {
        "about": f"{NODES} nodes, {EDGES} edges, {STEPS} steps, 64 units, two message layers, one thread",
        "seconds_to_compile": {"training": training, "training and inference": compiling},
        "programs_after": programs,
        "graph_breaks": sum(counters["graph_break"].values()),
        "largest_difference": difference,
        "relative_to_the_largest": relative,
        "train_seconds": seconds(train),
        "infer_seconds": seconds(infer),
    }


def train(module: RRN, x: torch.Tensor, edge_index: torch.Tensor, steps: int = STEPS) -> tuple[torch.Tensor, ...]:
    """The outputs and all gradients."""
    module.zero_grad()
    outputs = module(x, edge_index, steps=steps)
    every_step(outputs, torch.arange(len(x)) % 4).backward()
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    return outputs.detach(), torch.cat([gradient.flatten() for gradient in gradients])


@torch.no_grad()
def infer(module: RRN, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    return module(x, edge_index, steps=STEPS)


def _best(run: Callable[..., object], *arguments: object) -> float:
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        run(*arguments)
        seconds.append(time.process_time() - started)
    return min(seconds)


if __name__ == "__main__":
    print(json.dumps(_figures() if sys.argv[1:] == ["measure"] else measure(), indent=2))
