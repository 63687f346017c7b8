"""Shared by the tasks: people, places, things, verbs and random choices."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Choice = TypeVar("Choice")

ACTORS = ("John", "Mary", "Sandra", "Daniel")
GIVERS = ("Mary", "Fred", "Bill", "Jeff")
"""A give has the first possible recipient in this order."""
TOWNSPEOPLE = ("Bill", "Fred", "Julie", "Mary")
PLACES = ("kitchen", "bathroom", "bedroom", "garden", "hallway", "office")
TOWN_PLACES = ("kitchen", "bedroom", "office", "school", "park", "cinema")
THINGS = ("apple", "football", "milk")
PRONOUNS = {"Mary": "she", "John": "he", "Daniel": "he", "Sandra": "she"}

MOVE_VERBS = ("went to", "went back to", "journeyed to", "moved to", "travelled to")
GET_VERBS = ("picked up", "got", "took", "grabbed")
DROP_VERBS = ("dropped", "left", "discarded", "put down")
GIVE_VERBS = ("gave", "handed", "passed")
THEN = ("Afterwards", "After that", "Following that", "Then")

QUESTIONS_PER_STORY = 5
FACTS_BETWEEN_QUESTIONS = 2
RECENT = 5
"""Number of latest facts that a question can be about."""


def pick(random: Callable[[], float], choices: Sequence[Choice]) -> Choice:
    return choices[int(random() * len(choices))]


def other(random: Callable[[], float], count: int, excluded: int) -> int:
    """A uniform random number in ``range(count)`` other than ``excluded``."""
    drawn = int(random() * (count - 1))
    return drawn if drawn < excluded else drawn + 1


def draw(random: Callable[[], float], choices: Sequence[Choice], count: int) -> list[Choice]:
    """``count`` of the choices in random order. (`Random.sample` may differ between Python versions.)"""
    shuffled = list(choices)
    for position in range(count):
        swapped = position + int(random() * (len(shuffled) - position))
        shuffled[position], shuffled[swapped] = shuffled[swapped], shuffled[position]
    return shuffled[:count]


def moves_to(random: Callable[[], float], who: str, place: str) -> str:
    return f"{who} {pick(random, MOVE_VERBS)} the {place}."
