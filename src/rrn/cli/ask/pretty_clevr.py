"""rrn ask pretty-clevr --seed 7 --start green --jumps 3"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console

from rrn.cli import parse, print_json
from rrn.cli.ask import AskOptions, steps_as_json, steps_table
from rrn.training.presets import Range, Seed


@dataclass(frozen=True)
class Options(AskOptions):
    seed: Seed = 7
    """Seed of the scene."""
    start: str = "green"
    """Where to start: a colour, then a shape is the answer; or a shape, then a colour is."""
    jumps: Annotated[int, Range(least=0, most=7)] = 3
    """How often to jump to the nearest object not visited yet, 0 to 7."""
    weights: str = "pretty-clevr"
    out: Path | None = None
    """Draw the scene with the true jumps to this file (.svg, .png, .pdf; the last two need the extra 'figures')."""


def main(arguments: list[str]) -> int:
    about = "Ask where some jumps to the nearest unvisited object lead."
    options = parse(Options, arguments, "rrn ask pretty-clevr", about)
    from rrn.tasks.answers import is_correct, top_choices
    from rrn.tasks.pretty_clevr import data
    from rrn.tasks.pretty_clevr.figures import draw_question
    from rrn.tasks.pretty_clevr.predict import parse as read
    from rrn.tasks.pretty_clevr.predict import predict

    asked = read(options.seed, options.start, options.jumps)
    network = options.network("pretty-clevr")
    result = predict(network, asked, options.steps or network.preset.steps)
    if options.out:
        draw_question(options.out, asked.scene, asked.start, asked.jumps)
    best, correct, truth = top_choices(result, 2), is_correct(result), result.details["truth"]
    if options.json:
        question = {"seed": options.seed, "start": data.NAMES[asked.start], "jumps": options.jumps}
        answered = {"answer": result.answers, "truth": truth, "right": correct}
        steps = {"path": asked.path, "steps": steps_as_json(best)}
        print_json({**question, **answered, **steps, "picture": options.out and str(options.out)})
        return 0
    console = Console(highlight=False)
    console.print(data.describe(asked.scene) + "\n")
    console.print(steps_table(best, truth=truth))
    verdict = "which is right" if correct else f"which is wrong: it is {truth}"
    console.print(f"\n{result.details['question']}: [bold]{result.answers}[/bold], {verdict}.")
    console.print("The jumps: " + " → ".join(asked.path))
    if options.out:
        print(f"drawn: {options.out}", file=sys.stderr)
    return 0
