"""Whether networks keep their answers: accuracy at 1, 2, 4 and 8 times the steps of training.

python -m benchmarks.staying [--limit N] [NAME …]

It writes results/staying.json; with names, their rows alone are renewed.
"""

import json
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import tyro

from rrn import tasks
from rrn.io.files import write_json
from rrn.io.machine import machine
from rrn.io.pretrained import shipped
from rrn.tasks.evaluation import no_progress
from rrn.tasks.weights import from_pretrained, read_config

TIMES = (1, 2, 4, 8)
MOST_LOST = 0.005
"""A network keeps its answers if its accuracy at later steps is at most this much lower."""
OUT = Path(__file__).parent.parent / "results" / "staying.json"


@dataclass(frozen=True)
class Options:
    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Shipped weights. None: all of recurrent networks."""
    limit: int = 1000
    """Problems of the task's own test set; a tenth as many Sudokus."""


def recurrent() -> list[str]:
    """The shipped weights of networks that are trained to run for several steps."""
    return [name for name in shipped() if read_config(name)[0].steps > 1]


def measure(name: str, limit: int) -> dict[str, Any]:
    """Accuracy at multiples of the steps of training, and whether the network keeps its answers."""
    preset, _ = read_config(name)
    module, steps = tasks.folder(preset.task, "evaluate"), [times * preset.steps for times in TIMES]
    limit = limit // 5 if preset.task == "sudoku" else limit
    options = module.Options(limit=limit, steps=",".join(map(str, steps)))
    result = module.evaluate(from_pretrained(name), preset, options, no_progress)
    if "mean_error_by_steps" in result:
        at = {t: 1 - error for t, error in result["mean_error_by_steps"].items()}
    else:
        at = result["accuracy_at_step"]
    stays = min(at.values()) >= at[str(steps[0])] - MOST_LOST
    return {"training_steps": preset.steps, "n": result["n"], "accuracy_at_step": at, "stays": stays}


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    result = json.loads(OUT.read_text()) if OUT.exists() and options.names else {"networks": {}}
    for name in options.names or recurrent():
        row = measure(name, options.limit)
        result["networks"][name] = row
        print(name, json.dumps(row), file=sys.stderr, flush=True)
        result |= {"command": "python -m benchmarks.staying", "date": date.today().isoformat(), "machine": machine()}
        write_json(OUT, result)


if __name__ == "__main__":
    main()
