"""The story type of all bAbI modules, and its official text format."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

TASKS = range(1, 21)
TASK_NAMES = (
    "single supporting fact", "two supporting facts", "three supporting facts", "two-argument relations",
    "three-argument relations", "yes/no questions", "counting", "lists and sets", "simple negation",
    "indefinite knowledge", "basic coreference", "conjunction", "compound coreference", "time reasoning",
    "basic deduction", "basic induction", "positional reasoning", "size reasoning", "path finding",
    "agents' motivations",
)  # fmt: skip
TASKS_WITHOUT_SPACE_BEFORE_TAB = frozenset({4, *range(15, 21)})
"""The released files put a space between the question mark and the tab, except in these tasks."""


class Question(NamedTuple):
    """A question about the first ``facts`` facts of its story; ``support`` holds indices of facts, from 0."""

    text: str
    answer: str
    support: tuple[int, ...]
    facts: int


class Story(NamedTuple):
    """All facts in order, and the questions in order of ``Question.facts``."""

    task: int
    facts: list[str]
    questions: list[Question]


def cut(stories: Iterable[Story], questions: int) -> Iterator[Story]:
    """The first stories with ``questions`` questions in total; the last story is cut after the last question."""
    left = questions
    for story in stories:
        if left <= 0:
            return
        if len(story.questions) > left:
            first = story.questions[:left]
            story = Story(story.task, story.facts[: first[-1].facts], first)
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
