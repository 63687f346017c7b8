"""Train the examples and write what they reach to results/examples.json.

python -m examples                     # all of them
python -m examples shortest_paths      # one
"""

import json
import sys
import time
from datetime import date
from importlib import import_module
from pathlib import Path

import torch

from rrn.io.files import write_json
from rrn.tasks.evaluation import machine

EXAMPLES = (
    "graph_colouring",
    "shortest_paths",
    "digit_sudoku",
    "latin_squares",
    "queens",
    "timetable",
    "mazes",
    "algorithms",
)
OUT = Path(__file__).parent.parent / "results" / "examples.json"


def main() -> None:
    names = sys.argv[1:] or EXAMPLES
    unknown = [name for name in names if name not in EXAMPLES]
    if unknown:
        sys.exit(f"no example {unknown[0]!r}; there are {', '.join(EXAMPLES)}")
    torch.set_num_threads(1)  # the graphs are small, and other programs may use the cores
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        started, processor_before = time.monotonic(), time.process_time()
        result = import_module(f"examples.{name}").main()
        figures = {
            "result": result,
            "minutes": round((time.monotonic() - started) / 60, 2),
            "processor_minutes": round((time.process_time() - processor_before) / 60, 2),
            "command": f"python -m examples {name}",
            "seed": 0,
            "date": date.today().isoformat(),
            "machine": f"{machine()}, {torch.get_num_threads()} used",
        }
        print(json.dumps(figures, indent=2))
        earlier = json.loads(OUT.read_text()) if OUT.exists() else {}
        write_json(OUT, earlier | {name: figures})


if __name__ == "__main__":
    main()
