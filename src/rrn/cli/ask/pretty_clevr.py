"""rrn ask pretty-clevr --seed 7 --start green --jumps 3"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from rrn.cli.options import parse, print_json
from rrn.errors import InputError


@dataclass(frozen=True)
class Options:
    seed: int = 7
    """Of the scene."""
    start: str = "green"
    """Where to start: a colour, then a shape is the answer; or a shape, then a colour is."""
    jumps: int = 3
    """How often to jump to the nearest object not visited yet, 0 to 7."""
    steps: int | None = None
    """Steps to think. Unset: as many as in training."""
    weights: str = "pretty-clevr"
    """A folder of weights, shipped weights by name, or a hub id."""
    out: Path = Path("scene.svg")
    """The picture of the scene with the true jumps (.svg, .png, .pdf; the last two need the extra 'figures')."""
    json: bool = False
    """Print one JSON object and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(
        Options, arguments, "rrn ask pretty-clevr", "Ask where some jumps to the nearest unvisited object lead."
    )
    from rrn.tasks.pretty_clevr import data

    if options.steps is not None and options.steps < 1:
        raise InputError(f"--steps: expected at least 1, got {options.steps}")
    if not 0 <= options.jumps < data.JUMPS:
        raise InputError(f"--jumps: expected 0 to {data.JUMPS - 1}, got {options.jumps}")
    if options.seed < 0:
        raise InputError(f"--seed: expected 0 or more, got {options.seed}")
    start = data.number_of(options.start)
    scenes = data.sample_scenes(1, np.random.default_rng(options.seed))
    scene = scenes.scene(0)

    from rrn.pretrained import from_pretrained
    from rrn.tasks.pretty_clevr.evaluate import answer
    from rrn.tasks.pretty_clevr.figures import draw_question

    network, preset = from_pretrained(options.weights)
    if preset.task != "pretty-clevr":
        raise InputError(f"--weights {options.weights}: for the task {preset.task!r}, not for 'pretty-clevr'")
    numbers = np.array([data.question_number(start, options.jumps)])
    probabilities = answer(network, scenes, numbers, options.steps or preset.steps)[:, 0]
    draw_question(options.out, scene, start, options.jumps)

    truth = scene.answer(start, options.jumps)
    path = [
        f"{data.COLOURS[scene.colours[visited]]} {data.SHAPES[scene.shapes[visited]]}"
        for visited in scene.path(start, options.jumps)
    ]
    best = probabilities.argmax(-1)
    if options.json:
        steps = [
            {"step": t + 1, "answer": data.NAMES[best[t]], "probability": round(float(probabilities[t, best[t]]), 4)}
            for t in range(len(best))
        ]
        answered = {"answer": data.NAMES[best[-1]], "truth": data.NAMES[truth], "right": bool(best[-1] == truth)}
        asked = {"seed": options.seed, "start": data.NAMES[start], "jumps": options.jumps}
        print_json({**asked, **answered, "path": path, "steps": steps, "picture": str(options.out)})
        return 0
    console = Console(highlight=False)
    console.print(data.describe(scene) + "\n")
    table = Table("step", "answer", "probability", "runner-up", box=None, header_style="bold")
    for t, row in enumerate(probabilities):
        first, second = row.argsort()[::-1][:2]
        style = "green" if first == truth else ""
        runner_up = f"{data.NAMES[second]} ({row[second]:.1%})"
        table.add_row(str(t + 1), data.NAMES[first], f"{row[first]:6.1%}", runner_up, style=style)
    console.print(table)
    verdict = "which is right" if best[-1] == truth else f"which is wrong: it is {data.NAMES[truth]}"
    jumps = f"{options.jumps} jump{'s' * (options.jumps != 1)}"
    console.print(f"\n{data.NAMES[start]}, {jumps}: [bold]{data.NAMES[best[-1]]}[/bold], {verdict}.")
    console.print("The jumps: " + " → ".join(path))
    print(f"drawn: {options.out}", file=sys.stderr)
    return 0
