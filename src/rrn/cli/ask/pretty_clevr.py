"""rrn ask pretty-clevr --seed 7 --start green --jumps 3"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table

from rrn.cli import parse, print_json
from rrn.training.presets import Range, Seed, Steps


@dataclass(frozen=True)
class Options:
    seed: Seed = 7
    """Seed of the scene."""
    start: str = "green"
    """Where to start: a colour, then a shape is the answer; or a shape, then a colour is."""
    jumps: Annotated[int, Range(least=0, most=7)] = 3
    """How often to jump to the nearest object not visited yet, 0 to 7."""
    steps: Steps | None = None
    """Message-passing steps. Unset: as in training."""
    weights: str = "pretty-clevr"
    """A folder of weights, shipped weights by name, or a hub id."""
    out: Path | None = None
    """Draw the scene with the true jumps to this file (.svg, .png, .pdf; the last two need the extra 'figures')."""
    device: str = "auto"
    """Device: auto (a GPU if available), cpu, cuda, cuda:1, mps …"""
    json: bool = False
    """Print one JSON object and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(
        Options, arguments, "rrn ask pretty-clevr", "Ask where some jumps to the nearest unvisited object lead."
    )
    from rrn.inference.devices import find_device, host
    from rrn.tasks.answers import is_correct, top_choices
    from rrn.tasks.pretty_clevr import data
    from rrn.tasks.pretty_clevr.figures import draw_question
    from rrn.tasks.pretty_clevr.predict import parse as read
    from rrn.tasks.pretty_clevr.predict import predict
    from rrn.tasks.weights import from_pretrained

    asked = read(options.seed, options.start, options.jumps)
    network = from_pretrained(options.weights, task="pretty-clevr")
    host(network, find_device(options.device))
    result = predict(network, asked, options.steps or network.preset.steps)
    if options.out:
        draw_question(options.out, asked.scene, asked.start, asked.jumps)
    best, correct, truth = top_choices(result, 2), is_correct(result), result.details["truth"]
    if options.json:
        steps = [
            {"step": t, "answer": first, "probability": round(p, 4)} for t, ((first, p), _) in enumerate(best, start=1)
        ]
        question = {"seed": options.seed, "start": data.NAMES[asked.start], "jumps": options.jumps}
        answered = {"answer": result.answers, "truth": truth, "right": correct}
        print_json(
            {**question, **answered, "path": asked.path, "steps": steps, "picture": options.out and str(options.out)}
        )
        return 0
    console = Console(highlight=False)
    console.print(data.describe(asked.scene) + "\n")
    table = Table("step", "answer", "probability", "runner-up", box=None, header_style="bold")
    for t, ((first, p), (second, q)) in enumerate(best, start=1):
        table.add_row(str(t), first, f"{p:6.1%}", f"{second} ({q:.1%})", style="green" if first == truth else "")
    console.print(table)
    verdict = "which is right" if correct else f"which is wrong: it is {truth}"
    console.print(f"\n{result.details['question']}: [bold]{result.answers}[/bold], {verdict}.")
    console.print("The jumps: " + " → ".join(asked.path))
    if options.out:
        print(f"drawn: {options.out}", file=sys.stderr)
    return 0
