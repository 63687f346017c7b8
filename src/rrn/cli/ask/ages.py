"""rrn ask ages "Ann is 20. Ann is 4 older than Bob. How old is Bob?" """

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from rrn.cli.options import parse, print_json
from rrn.errors import counted
from rrn.training.presets import Seed, Steps

EXAMPLE = (
    "Ann is 20. Ann is 4 years older than Bob. Cleo is 6 years younger than Bob. Dan is 31 years older than Cleo. "
    "Eve is 12 years younger than Dan. How old is Eve?"
)


@dataclass(frozen=True)
class Options:
    story: Annotated[str, tyro.conf.Positional] = ""
    """Facts in words, with the question at the end. Unset: standard input, or an example on a terminal."""
    question: str | None = None
    """The person asked about, if the story does not end with a question."""
    steps: Steps | None = None
    """Steps to think. Unset: as many as in training."""
    weights: str = "ages"
    seed: Seed = 0
    """Seed of the made-up people who fill a short story up to eight facts."""
    device: str = "auto"
    """Where to compute: auto (a GPU where there is one), cpu, cuda, cuda:1, mps …"""
    json: bool = False
    """Print one JSON object and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn ask ages", "Ask how old somebody is. Facts look like: " + EXAMPLE)
    story = options.story or (EXAMPLE if sys.stdin.isatty() else sys.stdin.read())
    from rrn.inference.devices import find_device, host
    from rrn.io.pretrained import from_pretrained
    from rrn.tasks.ages.predict import parse as read
    from rrn.tasks.ages.predict import predict

    asked = read(story, options.question, options.seed)
    network, preset = from_pretrained(options.weights, task="ages")
    host(network, find_device(options.device))
    trace = predict(network, asked, options.steps or preset.steps)
    name, guesses = asked.asked, trace.guesses(2)
    if options.json:
        steps = [
            {"step": t, "answer": int(first), "probability": round(p, 4)}
            for t, ((first, p), _) in enumerate(guesses, 1)
        ]
        print_json({"question": name, "answer": int(trace.answer), "right": trace.right, "steps": steps})
        return 0
    console = Console(highlight=False)
    console.print(story.strip(), markup=False)
    table = Table("step", f"{name} is", "probability", "runner-up", box=None, header_style="bold")
    for t, ((first, p), (second, q)) in enumerate(guesses, start=1):
        table.add_row(str(t), first, f"{p:6.1%}", f"{second} ({q:.1%})", style="green" if first == trace.truth else "")
    console.print(table)
    verdict = "which is right" if trace.right else f"which is wrong: the facts make it {trace.truth}"
    far = counted(int(asked.questions.length[0]), "difference")
    console.print(f"\n{name} is [bold]{trace.answer}[/bold], {verdict} ({far} away from the age given).")
    return 0
