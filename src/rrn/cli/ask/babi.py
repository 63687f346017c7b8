"""rrn ask babi "Mary went to the kitchen. Mary took the milk there." "Where is the milk?" """

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.text import Text

from rrn.cli import parse, print_json
from rrn.cli.ask import AskOptions, steps_as_json, steps_table
from rrn.errors import InputError
from rrn.tasks.babi.presets import ASK_WEIGHTS
from rrn.tasks.babi.vocabulary import NO_ANSWER, UNKNOWN_ID

if TYPE_CHECKING:
    from rrn.inference.result import Result
    from rrn.tasks.babi.predict import StoryQuestion

EXAMPLE = (
    "Mary went to the kitchen. John moved to the garden. Mary took the milk there. Mary travelled to the office. "
    "John went back to the bathroom. Mary put down the milk. Mary journeyed to the hallway."
)
EXAMPLE_QUESTION = "Where is the milk?"
WELCOME = (
    "One fact or question per line. A question ends with '?'. 'new' begins another story, 'words' lists the words the "
    "network knows, 'end' ends."
)
DOUBT = 0.01
"""Least probability of "not in the story" that is printed beside another answer."""
SHOWN = 3
"""Printed answers per step, and printed facts."""


@dataclass(frozen=True)
class Options(AskOptions):
    story: Annotated[str, tyro.conf.Positional] = ""
    """Facts and questions; a question is about the facts before it. Unset: a prompt, or standard input."""
    question: Annotated[str, tyro.conf.Positional] = ""
    weights: str = ASK_WEIGHTS
    example: bool = False
    """Use the built-in example."""
    words: bool = False
    """List the vocabulary, and the words that are replaced by words of the vocabulary."""


def main(arguments: list[str]) -> int:
    about = "Ask about a story in bAbI's words. Without a story: a prompt for facts and questions."
    options = parse(Options, arguments, "rrn ask babi", about)
    if options.words:
        _list_words(options.json)
        return 0
    from rrn.tasks.babi.predict import UnknownWord, dialogue

    story, question = (EXAMPLE, EXAMPLE_QUESTION) if options.example else (options.story, options.question)
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


def _predict(options: Options, asked: "StoryQuestion") -> "Result":
    from rrn.tasks.babi.predict import predict

    network = options.network("babi")
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


def _prompt(options: Options) -> int:
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
    from rrn.tasks.babi.vocabulary import GROUPS, READ_AS, written

    if as_json:
        print_json({"words": {title: written(title) for title in GROUPS}, "read_as": READ_AS})
        return
    console = Console(highlight=False)
    for title in GROUPS:
        console.print(Text.assemble((f"{title}: ", "bold"), ", ".join(written(title))))
    meant: dict[str, list[str]] = {}
    for word, known in READ_AS.items():
        meant.setdefault(known, []).append(word)
    console.print(Text("\nRead as one of these:", "bold"))
    for known, words in meant.items():
        console.print(Text(f"  {known}: {', '.join(words)}"))
