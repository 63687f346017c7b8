"""rrn ask ages "Ann is 20. Ann is 4 older than Bob. How old is Bob?" """

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console

from rrn.cli import parse, print_json
from rrn.cli.ask import AskOptions, steps_as_json, steps_table
from rrn.errors import plural
from rrn.training.presets import Seed

EXAMPLE = (
    "Ann is 20. Ann is 4 years older than Bob. Cleo is 6 years younger than Bob. Dan is 31 years older than Cleo. "
    "Eve is 12 years younger than Dan. How old is Eve?"
)


@dataclass(frozen=True)
class Options(AskOptions):
    story: Annotated[str, tyro.conf.Positional] = ""
    """Facts in words, with the question at the end. Unset: standard input, or an example on a terminal."""
    question: str | None = None
    """The person asked about, if the story does not end with a question."""
    weights: str = "ages"
    seed: Seed = 0
    """Seed of the generated people that fill a short story up to eight facts."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn ask ages", "Ask for the age of a person. Facts look like: " + EXAMPLE)
    story = options.story or (EXAMPLE if sys.stdin.isatty() else sys.stdin.read())
    from rrn.tasks.ages.predict import parse as read
    from rrn.tasks.ages.predict import predict
    from rrn.tasks.answers import is_correct, top_choices

    asked = read(story, options.question, options.seed)
    network = options.network("ages")
    result = predict(network, asked, options.steps or network.preset.steps)
    name, best, correct = asked.asked, top_choices(result, 2), is_correct(result)
    truth = result.details["truth"]
    if options.json:
        steps = [step | {"answer": int(step["answer"])} for step in steps_as_json(best)]
        print_json({"question": name, "answer": int(result.answers), "right": correct, "steps": steps})
        return 0
    console = Console(highlight=False)
    console.print(story.strip(), markup=False)
    console.print(steps_table(best, f"{name} is", truth))
    verdict = "which is right" if correct else f"which is wrong: the facts make it {truth}"
    far = plural(int(asked.questions.length[0]), "difference")
    console.print(f"\n{name} is [bold]{result.answers}[/bold], {verdict} ({far} away from the age given).")
    return 0
