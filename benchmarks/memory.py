"""Peak memory of many steps, forward and backward, with every state kept and with every k-th (``run(checkpoint=k)``).

A random graph, f with one hidden layer and with three. Each is measured in a process of its own: how far the peak
rises above what the process holds before. Linux only.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

NODES, EDGES, HIDDEN, STEPS = 2_500, 20_000, 96, 64
CHECKPOINTS = (None, 32, 16, 8, 4, 2)


def measure() -> dict[str, object]:
    settings = [(layers, k) for layers in (1, 3) for k in CHECKPOINTS]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as one_at_a_time:
        peaks = dict(zip(settings, one_at_a_time.map(peak, *zip(*settings, strict=True)), strict=True))
    return {
        "about": f"megabytes that forward + backward add at their peak: RRN(16, {HIDDEN}, 9), {STEPS} steps, "
        f"{NODES:,} nodes, {EDGES:,} edges; by hidden layers of f and checkpoint",
        **{str(layers): {str(k): peaks[layers, k] for k in CHECKPOINTS} for layers in (1, 3)},
    }


def peak(layers: int, checkpoint: int | None, nodes: int = NODES, edges: int = EDGES, steps: int = STEPS) -> int:
    """In megabytes."""
    from rrn import RRN
    from rrn.nn.losses import every_step

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(nodes, (2, edges), generator=generator)
    x, targets = torch.randn(nodes, 16, generator=generator), torch.randint(9, (nodes,), generator=generator)
    network = RRN(16, HIDDEN, 9, message_layers=layers, update_layers=layers)
    every_step(network(x, edge_index, steps=1), targets).backward()  # compiles what has to be compiled
    before = forget_peak()
    every_step(network(x, edge_index, steps=steps, checkpoint=checkpoint), targets).backward()
    return round(peak_since(before))


def forget_peak() -> float:
    """Resident megabytes of this process now, from which its peak is counted anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return _megabytes("VmRSS")


def peak_since(before: float) -> float:
    """In megabytes."""
    return _megabytes("VmHWM") - before


def _megabytes(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
