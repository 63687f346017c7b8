"""``network.compile()``: what it costs, and what it gives, beside the plain steps and the engines.

A graph of 500 nodes and 4,000 edges, 8 steps, on one thread; seconds of the processor, the best of several. Then ten
sizes of graphs and three numbers of steps: how many programs torch compiled. For CPUs, the compiler of torch
writes another loop for sums of more than 4,096 numbers, so graphs with more edges are counted apart.

torch's cache of compiled programs is empty at the start. For the first program of all, here one line without a network,
torch tests the instructions of the machine and precompiles its headers: its seconds are apart from those of a step.

``met`` has the limits: a step compiles in 15 s, no recompilation over ten sizes and three numbers of steps, and outputs
and gradients of all these runs equal the plain ones to 1e-5, absolutely, in 32 bits and in 64. A limit that is not met
is an error, after the entry is written. Beside it, for information: differences relative to the largest number, and of
32 bits from 64, which are as large for plain steps.
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

import torch
from torch._dynamo.utils import counters

from rrn import RRN, engines
from rrn.nn.losses import every_step

NODES, EDGES, STEPS, REPEATS = 500, 4000, 8, 10
SECONDS, DIFFERENCE = 15, 1e-5
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
    exact, exact_compiled = copy.deepcopy(plain).double(), copy.deepcopy(plain).double()
    exact_compiled.compile()
    x, edge_index = torch.randn(NODES, 16), torch.randint(NODES, (2, EDGES))

    started = time.perf_counter()
    torch.compile(lambda values: values.exp() + 1, dynamic=True)(x)
    seconds_to_compile = {"one line, the first program of all": time.perf_counter() - started}
    before, started = counters["stats"]["unique_graphs"], time.perf_counter()
    train(network, x, edge_index)
    seconds_to_compile["a step, training"] = time.perf_counter() - started
    infer(network, x, edge_index)
    seconds_to_compile["a step, training and inference"] = time.perf_counter() - started
    print(f"  compiled: {seconds_to_compile}", file=sys.stderr, flush=True)
    programs = {"one size": counters["stats"]["unique_graphs"] - before}
    runs, close = 0, 0
    difference, relative, errors = Largest(), Largest(), {"plain": Largest(), "compiled": Largest()}
    for nodes in SIZES + LARGER:
        print(f"  {nodes} nodes", file=sys.stderr, flush=True)
        for steps in (1, 4, 16):
            arguments = torch.randn(nodes, 16), torch.randint(nodes, (2, 8 * nodes)), steps
            found = train(network, *arguments)
            with engines.only("plain"):
                expected = train(plain, *arguments)
                true = train(exact, arguments[0].double(), *arguments[1:])
            difference.add(found, expected)
            runs += 1
            close += all(torch.allclose(*both, atol=DIFFERENCE, rtol=0) for both in zip(found, expected, strict=True))
            relative.add(found, expected, [max(1.0, part.abs().max().item()) for part in expected])
            errors["plain"].add(expected, true)
            errors["compiled"].add(found, true)
        which = "ten sizes" if nodes in SIZES else "sizes of more than 4,096 edges"
        programs[which] = counters["stats"]["unique_graphs"] - before
    difference_in_64_bits = Largest()
    for nodes in SIZES + LARGER:
        for steps in (1, 4, 16):
            wide = torch.randn(nodes, 16).double(), torch.randint(nodes, (2, 8 * nodes)), steps
            found = train(exact_compiled, *wide)
            with engines.only("plain"):
                difference_in_64_bits.add(found, train(exact, *wide))

    def seconds(run: Callable[..., object]) -> dict[str, float]:
        with engines.only("plain"):
            found = {"plain": _best(run, plain, x, edge_index)}
        return found | {"compiled": _best(run, network, x, edge_index), "engine": _best(run, plain, x, edge_index)}

    return {
        "about": f"{NODES} nodes, {EDGES} edges, {STEPS} steps, 64 units, two message layers, one thread",
        "met": {
            "a step compiles in 15 s": seconds_to_compile["a step, training"] <= SECONDS,
            "no recompilation over ten sizes": programs["ten sizes"] == programs["one size"],
            "equal to 1e-5": close == runs,
            "equal to 1e-5 in 64 bits": max(difference_in_64_bits.values()) <= DIFFERENCE,
        },
        "seconds_to_compile": seconds_to_compile,
        "programs_after": programs,
        "graph_breaks": sum(counters["graph_break"].values()),
        "largest_difference": difference,
        "within_1e-5": f"{close} of {runs} runs",
        "largest_difference_in_64_bits": difference_in_64_bits,
        "relative_to_the_largest": relative,
        "difference_from_64_bits": errors,
        "train_seconds": seconds(train),
        "infer_seconds": seconds(infer),
    }


class Largest(dict[str, float]):
    """The largest difference of values and of gradients so far."""

    def add(
        self, found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], scales: Sequence[float] = (1, 1)
    ) -> None:
        for name, ours, theirs, scale in zip(("values", "gradients"), found, expected, scales, strict=True):
            self[name] = max(self.get(name, 0.0), (ours - theirs).abs().max().item() / scale)


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
