"""Where the time of `RRN(16, 96, 9)` goes, beside the peak of matrix products: ``python -m benchmarks.roofline``.

The random graph of `benchmarks.default_module`, 8 steps, forward and backward, one thread. The shares are those of
torch's profiler; the peak is that of a product of the gates' shape, measured in the same run. Writes
results/roofline.json.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.default_module import FEATURES, HIDDEN, OUTPUTS, STEPS
from rrn import RRN
from rrn._compat import keep_freed_memory
from rrn.graphs import EdgeList
from rrn.io.files import write_json
from rrn.io.machine import machine
from rrn.nn.losses import every_step

OUT = Path(__file__).parent.parent / "results" / "roofline.json"
NODES, EDGES, REPEATS = 10_000, 80_000, 8
PARTS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::addmm_"),
    "passes over the edges": ("_SummedLayer", "_SummedLayerBackward"),
    "passes over the gates": ("_Cell", "_CellBackward"),
    "copies": ("aten::copy_", "aten::cat"),
}
PRODUCTS = {"first layer of f": 2 * HIDDEN, "last layer of f with g's": HIDDEN, "gates": 2 * 4 * HIDDEN}
"""Columns of each product of a step, per row of `HIDDEN` numbers."""
NOT_MULTIPLIED = 4 * HIDDEN
"""Of the gates, before the first step, where the hidden state is zero."""


def main() -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    edge_index = torch.randint(NODES, (2, EDGES), generator=torch.Generator().manual_seed(0))
    network, graph = RRN(FEATURES, HIDDEN, OUTPUTS), EdgeList(edge_index, NODES)
    x, targets = torch.randn(NODES, FEATURES), torch.randint(OUTPUTS, (NODES,))

    def run() -> None:
        network.zero_grad()
        every_step(network(x, graph, steps=STEPS), targets).backward()

    load = os.getloadavg()[0]
    run()
    seconds = _best(run)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        run()
    times = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    shares = {part: sum(times.get(name, 0) for name in names) / sum(times.values()) for part, names in PARTS.items()}
    a, b = torch.randn(NODES, 2 * HIDDEN), torch.randn(2 * HIDDEN, 4 * HIDDEN)
    seconds_of_one = _best(lambda: torch.mm(a, b))
    peak = 2 * NODES * 2 * HIDDEN * 4 * HIDDEN / seconds_of_one / 1e9
    columns = STEPS * sum(PRODUCTS.values()) - NOT_MULTIPLIED
    operations = 3 * 2 * NODES * HIDDEN * columns / 1e9  # forward, and two products backward
    result = {
        "command": "python -m benchmarks.roofline",
        "about": f"RRN({FEATURES}, {HIDDEN}, {OUTPUTS}), {STEPS} steps, forward + backward, one thread, "
        f"{NODES:,} nodes, {EDGES:,} edges; best of {REPEATS}, seconds of the processor",
        "seconds": seconds,
        "shares": shares | {"rest": 1 - sum(shares.values())},
        "giga_operations_of_products": operations,
        "gigaflops": operations / (seconds * shares["matrix products"]),
        "peak_gigaflops": peak,
        "seconds_of_products_at_the_peak": operations / peak,
        "date": date.today().isoformat(),
        "machine": machine(),
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
    }
    print(json.dumps(result, indent=2))
    write_json(OUT, result)


def _best(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        run()
        seconds.append(time.process_time() - started)
    return min(seconds)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
