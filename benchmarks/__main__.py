"""Run every benchmark, or those named, and write results/bench.json. Nothing else should run on the machine meanwhile.

``python -m benchmarks [NAME …]``; an entry is written when its benchmark is complete, with the load before and after.
"""

import json
import os
import sys
import time
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

from rrn.io.files import write_json
from rrn.io.machine import machine

BENCHMARKS = (
    "side_by_side",
    "default_module",
    "message_passing",
    "sudoku",
    "pretty_clevr",
    "babi",
    "belief_propagation",
    "compiled",
    "memory",
)
OUT = Path(__file__).parent.parent / "results" / "bench.json"


def main() -> None:
    names = sys.argv[1:] or BENCHMARKS
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    missed = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        entry = run(name)
        print(json.dumps(entry, indent=2), flush=True)
        results = json.loads(OUT.read_text()) if OUT.exists() else {}
        results[name] = entry
        results["speedup"] = results.get("message_passing", {}).get("speedup")
        write_json(OUT, results)
        limits: Any = entry.get("met", {})
        missed += [f"{name}: {limit}" for limit, met in limits.items() if not met]
    if missed:
        sys.exit(f"not met: {'; '.join(missed)}")


def run(name: str) -> dict[str, object]:
    """What the benchmark measures, with its command, minutes, date, machine and load."""
    load, started = os.getloadavg()[0], time.monotonic()
    measured = import_module(f"benchmarks.{name}").measure()
    return {
        **measured,
        "command": f"python -m benchmarks {name}",
        "minutes": round((time.monotonic() - started) / 60, 1),
        "date": date.today().isoformat(),
        "machine": machine(),
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
    }


if __name__ == "__main__":
    main()
