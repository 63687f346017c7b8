"""Small work beside two busy loops: torch's default threads against one thread.

``python -m benchmarks.busy [--repeats 3]`` writes results/busy.json. It starts two processes that compute without end
(``--loops 0`` where other jobs keep the machine busy), then runs each workload with torch's default number of threads
and with one, each in a process of its own, some times. The ratio of the medians is at most 1.5 if small work does not
wait for threads. Estimators choose one thread by themselves; examples that are run set it. The last workload is a
training loop that leaves the threads as they are, for comparison: the network runs on one thread, but not the user's
loss and optimizer.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import torch

from rrn.io.files import write_json
from rrn.io.machine import machine

OUT = Path(__file__).parent.parent / "results" / "busy.json"
WORKLOADS = {
    "RRNClassifier.fit, 500 graphs, 2 epochs": """
import numpy as np
from rrn import RRNClassifier
rng = np.random.default_rng(0)
graphs = [(rng.random((n, 4), np.float32), rng.integers(0, n, (2, 3 * n))) for n in rng.integers(5, 15, 500)]
labels = rng.integers(0, 2, 500)
RRNClassifier(epochs=1, progress=False).fit(graphs[:40], labels[:40])
work = lambda: RRNClassifier(epochs=2, random_state=0, progress=False).fit(graphs, labels)
""",
    "examples.graph_colouring as it is run, 20 updates": """
import torch
from examples.graph_colouring import train
torch.set_num_threads(1)  # as the example does
train(5)
work = lambda: train(20)
""",
    "the same training loop, threads not set": """
from examples.graph_colouring import train
train(5)
work = lambda: train(20)
""",
}
MEASURE = """
import contextlib, io, json, sys, time
taken = []
with contextlib.redirect_stdout(io.StringIO()):
    for _ in range(int(sys.argv[1])):
        wall, processor = time.monotonic(), time.process_time()
        work()
        taken.append((time.monotonic() - wall, time.process_time() - processor))
print(json.dumps(taken))
"""


def run(work: str, threads: int | None, repeats: int) -> list[list[float]]:
    """Seconds and processor seconds of each repetition."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    }
    environment |= {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-c", work + MEASURE, str(repeats)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    taken: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--loops", type=int, default=2)
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.loops)]
    try:
        for name, work in WORKLOADS.items():
            taken = {which: run(work, threads, options.repeats) for which, threads in (("one", 1), ("default", None))}
            median = {
                which: [statistics.median(part) for part in zip(*runs, strict=True)] for which, runs in taken.items()
            }
            rows[name] = {
                "ratio": round(median["default"][0] / median["one"][0], 2),
                "ratio_of_processor_time": round(median["default"][1] / median["one"][1], 2),
                "seconds": {which: [round(each, 2) for each, _ in runs] for which, runs in taken.items()},
                "processor_seconds": {which: [round(each, 2) for _, each in runs] for which, runs in taken.items()},
            }
            print(name, json.dumps(rows[name]), flush=True)
    finally:
        for loop in loops:
            loop.kill()
    about = {"command": "python -m benchmarks.busy", "repeats": options.repeats, "busy_loops": options.loops}
    about |= {"default_threads": torch.get_num_threads(), "processors": len(os.sched_getaffinity(0))}
    about |= {"load_before": round(os.getloadavg()[0], 1), "date": date.today().isoformat(), "machine": machine()}
    write_json(OUT, {"workloads": rows, **about})


if __name__ == "__main__":
    main()
