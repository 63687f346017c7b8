"""rrn ask TASK …: ask a trained network a question."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rrn.cli import Task, load, parse, print_json, run_task
from rrn.errors import InputError, plural
from rrn.tasks.babi.presets import ASK_WEIGHTS
from rrn.tasks.babi.vocabulary import NO_ANSWER, UNKNOWN_ID
from rrn.training.presets import Device, Json, Range, Seed, Steps

if TYPE_CHECKING:
    from rrn.inference.result import Result
    from rrn.tasks.babi.predict import StoryQuestion

RIDDLE = (
    "Ann is 20. Ann is 4 years older than Bob. Cleo is 6 years younger than Bob. Dan is 31 years older than Cleo. "
    "Eve is 12 years younger than Dan. How old is Eve?"
)
STORY = (
    "Mary went to the kitchen. John moved to the garden. Mary took the milk there. Mary travelled to the office. "
    "John went back to the bathroom. Mary put down the milk. Mary journeyed to the hallway."
)
STORY_QUESTION = "Where is the milk?"
WELCOME = (
    "One fact or question per line. A question ends with '?'. 'new' begins another story, 'words' lists the words the "
    "network knows, 'end' ends."
)
DOUBT = 0.01
"""Least probability of "not in the story" that is printed beside another answer."""
SHOWN = 3
"""Printed answers per step, and printed facts, of bAbI."""
Choices = list[list[tuple[str, float]]]
"""For each step the most probable answers with their probabilities."""


@dataclass(frozen=True)
class AskOptions:
    """The flags that all tasks share."""

    steps: Steps | None = None
    """Message-passing steps. Unset: as in training."""
    weights: str = ""
    """A folder of weights, shipped weights by name, or a hub id."""
    device: Device = "auto"
    json: Json = False


@dataclass(frozen=True)
class AgesOptions(AskOptions):
    story: Annotated[str, tyro.conf.Positional] = ""
    """Facts in words, with the question at the end. Unset: standard input, or an example on a terminal."""
    question: str | None = None
    """The person asked about, if the story does not end with a question."""
    weights: str = "ages"
    seed: Seed = 0
    """Seed of the generated people that fill a short story up to eight facts."""


@dataclass(frozen=True)
class BabiOptions(AskOptions):
    story: Annotated[str, tyro.conf.Positional] = ""
    """Facts and questions; a question is about the facts before it. Unset: a prompt, or standard input."""
    question: Annotated[str, tyro.conf.Positional] = ""
    weights: str = ASK_WEIGHTS
    example: bool = False
    """Use the built-in example."""
    words: bool = False
    """List the vocabulary, and the words that are replaced by words of the vocabulary."""


@dataclass(frozen=True)
class PrettyClevrOptions(AskOptions):
    seed: Seed = 7
    """Seed of the scene."""
    start: str = "green"
    """Where to start: a colour, then a shape is the answer; or a shape, then a colour is."""
    jumps: Annotated[int, Range(least=0, most=7)] = 3
    """How often to jump to the nearest object not visited yet, 0 to 7."""
    weights: str = "pretty-clevr"
    out: Path | None = None
    """Draw the scene with the true jumps to this file (.svg, .png, .pdf; the last two need the extra 'figures')."""


def ask_ages(arguments: list[str]) -> int:
    """rrn ask ages "Ann is 20. Ann is 4 older than Bob. How old is Bob?" """
    options = parse(AgesOptions, arguments, "rrn ask ages", "Ask for the age of a person. Facts look like: " + RIDDLE)
    story = options.story or (RIDDLE if sys.stdin.isatty() else sys.stdin.read())
    from rrn.tasks.ages.predict import parse as read
    from rrn.tasks.ages.predict import predict
    from rrn.tasks.answers import top_choices

    asked = read(story, options.question, options.seed)
    network = load(options.weights, "ages", options.device)
    result = predict(network, asked, options.steps or network.preset.steps)
    name, best, truth = asked.asked, top_choices(result, 2), result.details["truth"]
    correct = result.answers == truth
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


def ask_pretty_clevr(arguments: list[str]) -> int:
    """rrn ask pretty-clevr --seed 7 --start green --jumps 3"""
    about = "Ask where some jumps to the nearest unvisited object lead."
    options = parse(PrettyClevrOptions, arguments, "rrn ask pretty-clevr", about)
    from rrn.tasks.answers import top_choices
    from rrn.tasks.pretty_clevr import data
    from rrn.tasks.pretty_clevr.figures import draw_question
    from rrn.tasks.pretty_clevr.predict import parse as read
    from rrn.tasks.pretty_clevr.predict import predict

    asked = read(options.seed, options.start, options.jumps)
    network = load(options.weights, "pretty-clevr", options.device)
    result = predict(network, asked, options.steps or network.preset.steps)
    if options.out:
        draw_question(options.out, asked.scene, asked.start, asked.jumps)
    best, truth = top_choices(result, 2), result.details["truth"]
    correct = result.answers == truth
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


def ask_babi(arguments: list[str]) -> int:
    """rrn ask babi "Mary went to the kitchen. Mary took the milk there." "Where is the milk?" """
    about = "Ask about a story in bAbI's words. Without a story: a prompt for facts and questions."
    options = parse(BabiOptions, arguments, "rrn ask babi", about)
    if options.words:
        _list_words(options.json)
        return 0
    from rrn.tasks.babi.predict import UnknownWord, dialogue

    story, question = (STORY, STORY_QUESTION) if options.example else (options.story, options.question)
    if not story and sys.stdin.isatty():
        return _prompt(options)
    try:
        every = dialogue(story or sys.stdin.read(), question)
    except UnknownWord as error:
        raise InputError(f"{error} (rrn ask babi --words lists those it knows)") from error
    results = [(_predict(options, asked), asked) for asked in every]
    if options.json:
        answered = [_as_json(*each) for each in results]
        print_json(answered if len(answered) > 1 else answered[0])
        return 0
    for result, asked in results:
        _print_result(result, asked)
    return 0


def _predict(options: BabiOptions, asked: "StoryQuestion") -> "Result":
    from rrn.tasks.babi.predict import predict

    network = load(options.weights, "babi", options.device)
    return predict(network, asked, options.steps or network.preset.steps, network.preset.max_facts)


def _as_json(result: "Result", asked: "StoryQuestion") -> dict[str, Any]:
    from rrn.tasks.answers import important_facts, top_choices

    best = top_choices(result, SHOWN)
    runners_up = [{"runners_up": {word: round(p, 4) for word, p in row[1:]}} for row in best]
    return {
        "question": result.details["question"],
        "answer": result.answers,
        "not_in_the_story": round(float(result.record[-1, UNKNOWN_ID]), 4),
        "steps": [step | others for step, others in zip(steps_as_json(best), runners_up, strict=True)],
        "facts": [{"fact": fact, "importance": round(value, 4)} for fact, value in important_facts(result, SHOWN)],
        "read_as": dict(asked.replaced),
    }


def _print_result(result: "Result", asked: "StoryQuestion") -> None:
    from rrn.tasks.answers import important_facts, top_choices

    important, best = important_facts(result, SHOWN), top_choices(result, SHOWN)
    question, facts = result.details["question"], result.details["facts"]
    not_in_story = float(result.record[-1, UNKNOWN_ID])
    console = Console(highlight=False)
    console.print(Text.assemble(" ".join(asked.facts), "\n", (question, "bold")))
    if asked.replaced:
        console.print(f"(read: {', '.join(f'{word} as {meant}' for word, meant in asked.replaced)})", markup=False)
    console.print(steps_table(best))
    doubt = ""
    if result.answers != NO_ANSWER and not_in_story >= DOUBT:
        doubt = f" (that the story does not say is {not_in_story:.1%} probable)"
    console.print(Text.assemble("\n", (result.answers, "bold"), doubt))
    if len(asked.facts) > len(facts):
        console.print(f"(The network read the last {len(facts)} of {len(asked.facts)} facts.)")
    if important:
        console.print("Facts that mattered most, by how far the answer's probability falls without each:")
        for fact, value in important:
            console.print(f"  {value:6.1%}  {fact}", markup=False)


def _prompt(options: BabiOptions) -> int:
    """Read facts and questions from a prompt; errors are printed and the prompt continues."""
    from rrn.tasks.babi.predict import StoryQuestion, normalise
    from rrn.tasks.babi.vocabulary import split_sentences

    print(WELCOME, file=sys.stderr)
    facts: list[str] = []
    replaced: dict[str, str] = {}
    while True:
        try:
            line = input(f"{len(facts) + 1}> ").strip()
        except EOFError:
            return 0
        if line.lower() in ("end", "exit", "quit"):
            return 0
        if line.lower() == "new":
            facts, replaced = [], {}
            continue
        if line.lower() == "words":
            _list_words(options.json)
            continue
        for sentence in split_sentences(line):
            try:
                read = normalise([], sentence)
                if sentence.endswith("?"):
                    asked = StoryQuestion(
                        list(facts), read.question, tuple({**replaced, **dict(read.replaced)}.items())
                    )
                    result = _predict(options, asked)
                    print_json(_as_json(result, asked)) if options.json else _print_result(result, asked)
                else:
                    facts.append(read.question)
                    replaced |= dict(read.replaced)
            except InputError as error:
                print(f"rrn: {error}", file=sys.stderr)


def _list_words(as_json: bool) -> None:
    from rrn.tasks.babi.vocabulary import GROUPS, READ_AS

    if as_json:
        print_json({"words": GROUPS, "read_as": READ_AS})
        return
    console = Console(highlight=False)
    for title, listed in GROUPS.items():
        console.print(Text.assemble((f"{title}: ", "bold"), ", ".join(listed)))
    meant: dict[str, list[str]] = {}
    for word, known in READ_AS.items():
        meant.setdefault(known, []).append(word)
    console.print(Text("\nRead as one of these:", "bold"))
    for known, words in meant.items():
        console.print(Text(f"  {known}: {', '.join(words)}"))


def steps_as_json(best: Choices) -> list[dict[str, Any]]:
    return [{"step": t, "answer": row[0][0], "probability": round(row[0][1], 4)} for t, row in enumerate(best, start=1)]


def steps_table(best: Choices, title: str = "answer", truth: str | None = None) -> Table:
    """The most probable answers after each step; steps with the true answer are green."""
    others = "runner-up" if len(best[0]) == 2 else "runners-up"
    table = Table("step", title, "probability", others, box=None, header_style="bold")
    for t, ((first, p), *next_best) in enumerate(best, start=1):
        listed = ", ".join(f"{word} ({q:.1%})" for word, q in next_best)
        table.add_row(str(t), first, f"{p:6.1%}", listed, style="green" if first == truth else "")
    return table


TASKS = {
    "ages": Task("facts about ages, in words", ask_ages),
    "babi": Task("a story in bAbI's words, in a line or at a prompt", ask_babi),
    "pretty-clevr": Task("a scene of eight objects, and where some jumps lead", ask_pretty_clevr),
}


def main(arguments: list[str]) -> int:
    return run_task("ask", TASKS, arguments)
