"""Questions of tasks 16 to 18 that need fewer facts than the task's own, as a curriculum.

The stories and the words are those of the task. A question is about one fact; in task 16 it may also need two, where
the task's own need three: it asks for the colour of a species.
"""

from collections.abc import Iterator
from random import Random

import numpy as np

from rrn.tasks.babi.puzzles import RELATIVE, opposite
from rrn.tasks.babi.stories import Question, Story

FEWER_HOPS_TASKS = (16, 17, 18)


def with_fewer_hops(stories: Iterator[Story], seed: int, stream: int, share: float) -> Iterator[Story]:
    """The stories, with a ``share`` of the questions of `FEWER_HOPS_TASKS` replaced."""
    state = np.random.SeedSequence(seed, spawn_key=(stream, 0, 2)).generate_state(8)
    random = Random(int.from_bytes(state.astype("<u4").tobytes(), "little"))
    for story in stories:
        changed = [fewer_hops(story, each, random) if random.random() < share else each for each in story.questions]
        yield Story(story.task, story.facts, changed)


def fewer_hops(story: Story, question: Question, random: Random) -> Question:
    """A question about the facts before this one that needs fewer of them."""
    if story.task == 16 and random.random() < 0.5:
        _, species_fact, colour_fact = question.support
        species = story.facts[species_fact].removesuffix(".").rpartition(" ")[2]
        return Question(f"What color is a {species}?", question.answer, (species_fact, colour_fact), question.facts)
    ask = {16: _ask_colour, 17: _ask_position, 18: _ask_size}[story.task]
    known = [n for n in range(question.facts) if story.task != 16 or " is a " not in story.facts[n]]
    index = random.choice(known)
    text, answer = ask(story.facts[index].removesuffix("."), random)
    return Question(text, answer, (index,), question.facts)


def _ask_colour(fact: str, random: Random) -> tuple[str, str]:
    name, _, colour = fact.partition(" is ")
    return f"What color is {name}?", colour


def _ask_position(fact: str, random: Random) -> tuple[str, str]:
    offset, relation = next((offset, words) for offset, words in RELATIVE.items() if f" is {words} the " in fact)
    first, _, second = fact.removeprefix("The ").partition(f" is {relation} the ")
    if random.random() < 0.5:
        first, second, offset = second, first, opposite(offset)
    answer = random.random() < 0.5
    asked = offset if answer else random.choice([side for side in RELATIVE if side != offset])
    return f"Is the {first} {RELATIVE[asked]} the {second}?", "yes" if answer else "no"


def _ask_size(fact: str, random: Random) -> tuple[str, str]:
    small, found, big = fact.removeprefix("The ").partition(" fits inside the ")
    if not found:
        big, _, small = fact.removeprefix("The ").partition(" is bigger than the ")
    answer = random.random() < 0.5
    if not answer:
        small, big = big, small
    text = random.choice((f"Does the {small} fit in the {big}?", f"Is the {big} bigger than the {small}?"))
    return text, "yes" if answer else "no"
