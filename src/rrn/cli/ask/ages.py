"""rrn ask ages "Ann is 20. Ann is 4 older than Bob. How old is Bob?" """

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from rrn.cli.options import parse, print_json
from rrn.errors import InputError

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
    steps: int | None = None
    """Steps to think. Unset: as many as in training."""
    weights: str = "ages"
    seed: int = 0
    """Of the made-up persons that fill a short story up to eight facts."""
    json: bool = False
    """Print one JSON object and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn ask ages", "Ask how old somebody is. Facts look like: " + EXAMPLE)
    story = options.story or (EXAMPLE if sys.stdin.isatty() else sys.stdin.read())
    from rrn.pretrained import from_pretrained
    from rrn.tasks.ages.evaluate import answer
    from rrn.tasks.ages.words import parse as read

    if options.steps is not None and options.steps < 1:
        raise InputError(f"--steps: expected at least 1, got {options.steps}")
    asked = read(story, options.question, options.seed)
    network, preset = from_pretrained(options.weights)
    probabilities = answer(network, asked.questions, options.steps or preset.steps)[:, 0]
    name, truth = asked.names[int(asked.questions.asked[0])], int(asked.questions.answer[0])
    best = probabilities.argmax(-1)
    if options.json:
        steps = [
            {"step": t + 1, "answer": int(best[t]), "probability": round(float(probabilities[t, best[t]]), 4)}
            for t in range(len(best))
        ]
        print_json({"question": name, "answer": int(best[-1]), "right": bool(best[-1] == truth), "steps": steps})
        return 0
    console = Console(highlight=False)
    console.print(story.strip())
    table = Table("step", f"{name} is", "probability", "runner-up", box=None, header_style="bold")
    for t, row in enumerate(probabilities):
        first, second = row.argsort()[::-1][:2]
        style = "green" if first == truth else ""
        table.add_row(str(t + 1), f"{first}", f"{row[first]:6.1%}", f"{second} ({row[second]:.1%})", style=style)
    console.print(table)
    verdict = "which is right" if best[-1] == truth else f"which is wrong: the facts make it {truth}"
    length = int(asked.questions.length[0])
    console.print(f"\n{name} is [bold]{best[-1]}[/bold], {verdict} ({length} differences away from the age given).")
    return 0
