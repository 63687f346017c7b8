"""A bAbI story as every module here passes it on, and its official text form."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

TASKS = range(1, 21)
TASKS_WITHOUT_SPACE_BEFORE_TAB = frozenset({4, *range(15, 21)})
"""The released files put a space between the question mark and the tab, except in these tasks."""


class Question(NamedTuple):
    """Asked when the first ``facts`` facts of its story are known; ``support`` holds indices (from 0) into them."""

    text: str
    answer: str
    support: tuple[int, ...]
    facts: int


class Story(NamedTuple):
    """All facts of a story in order, and its questions in the order asked (``Question.facts`` never falls)."""

    task: int
    facts: list[str]
    questions: list[Question]


def cut(stories: Iterable[Story], questions: int) -> Iterator[Story]:
    """The first stories that hold ``questions`` questions; the last one ends with the last question wanted."""
    left = questions
    for story in stories:
        if left <= 0:
            return
        if len(story.questions) > left:
            kept = story.questions[:left]
            story = Story(story.task, story.facts[: kept[-1].facts], kept)
        left -= len(story.questions)
        yield story


def story_text(story: Story) -> str:
    """The story in the official format: numbered lines, a question as ``question<tab>answer<tab>supporting lines``."""
    space = "" if story.task in TASKS_WITHOUT_SPACE_BEFORE_TAB else " "
    lines: list[str] = []
    line_of_fact: list[int] = []
    for question in story.questions:
        for fact in story.facts[len(line_of_fact) : question.facts]:
            lines.append(f"{len(lines) + 1} {fact}\n")
            line_of_fact.append(len(lines))
        support = " ".join(str(line_of_fact[index]) for index in question.support)
        lines.append(f"{len(lines) + 1} {question.text}{space}\t{question.answer}\t{support}\n")
    return "".join(lines)
