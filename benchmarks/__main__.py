"""Run every benchmark and write results/bench.json. Nothing else should run on the machine meanwhile."""

import json
import os
import sys
from importlib import import_module
from pathlib import Path

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
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        results[name] = import_module(f"benchmarks.{name}").measure()
        print(json.dumps(results[name], indent=2))
    results["speedup"] = results.get("message_passing", {}).get("speedup")
    results["machine"] = f"{machine()}, load before {os.getloadavg()[0]:.1f}"
    write_json(OUT, results)


if __name__ == "__main__":
    main()
