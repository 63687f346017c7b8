"""Questions that need fewer facts: each answer follows from its supporting facts alone."""

from itertools import islice
from random import Random

import pytest

from rrn.tasks.babi.data import EndlessQuestions
from rrn.tasks.babi.fewer_hops import FEWER_HOPS_TASKS, fewer_hops
from rrn.tasks.babi.generator import generate_stories
from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.vocabulary import unknown_words

BERNHARD = ["Lily is a swan.", "Bernhard is a lion.", "Bernhard is white.", "Brian is a lion.", "Lily is gray."]
OPPOSITES = {
    "above": "below",
    "below": "above",
    "to the left of": "to the right of",
    "to the right of": "to the left of",
}


def answer(task: int, facts: list[str], question: str) -> str:
    """The answer that follows from at most two facts, by words alone."""
    asked = question.removesuffix("?")
    stated = [fact.removesuffix(".") for fact in facts]
    if task == 16:
        name = asked.removeprefix("What color is ")
        if name.startswith("a "):
            name = next(fact.partition(" is ")[0] for fact in stated if fact.endswith(f" is {name}"))
        return next(fact.partition(" is ")[2] for fact in stated if fact.startswith(name) and " is a " not in fact)
    (fact,) = stated
    if task == 17:
        true = {fact.removeprefix("The ")}
        for words, other_words in OPPOSITES.items():
            first, found, second = fact.removeprefix("The ").partition(f" is {words} the ")
            if found:
                true.add(f"{second} is {other_words} the {first}")
        words = next(words for words in OPPOSITES if f" {words} the " in asked)
        first, _, second = asked.removeprefix("Is the ").partition(f" {words} the ")
        return "yes" if f"{first} is {words} the {second}" in true else "no"
    if " fits inside the " in fact:
        small, _, big = fact.removeprefix("The ").partition(" fits inside the ")
    else:
        big, _, small = fact.removeprefix("The ").partition(" is bigger than the ")
    return "yes" if asked in (f"Does the {small} fit in the {big}", f"Is the {big} bigger than the {small}") else "no"


@pytest.mark.parametrize("task", FEWER_HOPS_TASKS)
def test_answers_follow_from_the_supporting_facts(task: int) -> None:
    random, answers = Random(1), set()
    for story in islice(generate_stories(task, seed=4), 200):
        for question in story.questions:
            easier = fewer_hops(story, question, random)
            assert len(easier.support) < len(question.support)
            assert easier.facts == question.facts
            assert easier.answer == answer(task, [story.facts[n] for n in easier.support], easier.text)
            assert not unknown_words(easier.text)
            answers.add(easier.answer)
    assert len(answers) == (4 if task == 16 else 2)


def test_by_hand() -> None:
    story = Story(16, BERNHARD, [Question("What color is Brian?", "white", (3, 1, 2), 5)])
    made = {fewer_hops(story, story.questions[0], Random(n)) for n in range(50)}
    assert made == {
        Question("What color is a lion?", "white", (1, 2), 5),
        Question("What color is Bernhard?", "white", (2,), 5),
        Question("What color is Lily?", "gray", (4,), 5),
    }


def test_a_share_of_the_questions_of_these_tasks() -> None:
    mixed, plain = (EndlessQuestions(3, range(15, 20), fewer_hops_share=share).take(400) for share in (0.5, 0.0))
    for task in range(15, 20):
        changed = (mixed.table.words[mixed.questions[mixed.tasks == task]].numpy()).tolist()
        before = (plain.table.words[plain.questions[plain.tasks == task]].numpy()).tolist()
        share = sum(list(filter(None, a)) != list(filter(None, b)) for a, b in zip(changed, before, strict=True)) / 400
        assert (0.35 < share < 0.65) if task in FEWER_HOPS_TASKS else share == 0, task
