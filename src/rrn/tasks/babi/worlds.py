"""Shared by tasks 1-3 and 5-14: people, places, things, verbs, and a simulated world in which people carry things.

Sentences come from tables that are built once. Equal sentences are the same string object, which makes the generator
and `rrn.tasks.babi.data.SentenceTable` fast.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from rrn.tasks.babi.stories import Question, Story

Choice = TypeVar("Choice")
Table = tuple[tuple[tuple[str, ...], ...], ...]
"""``table[actor][place or thing]`` is a tuple of equally likely sentences."""

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
TRIES = 100

THERE_AFTER_DROP = 0.2
MOVE, GET, DROP, GIVE = range(4)
NO_PERSON = -1
UNKNOWN = -1


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


def table(actors: Sequence[str], objects: Sequence[str], templates: Sequence[str]) -> Table:
    """Fill every template's ``{who}`` and ``{what}``."""
    return tuple(
        tuple(tuple(template.format(who=who, what=what) for template in templates) for what in objects)
        for who in actors
    )


def moves(actors: Sequence[str], places: Sequence[str]) -> Table:
    return table(actors, places, [f"{{who}} {verb} the {{what}}." for verb in MOVE_VERBS])


MOVES = moves(ACTORS, PLACES)
WHERE_IS = tuple(f"Where is {actor}?" for actor in ACTORS)


def is_in(actors: Sequence[str], places: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(f"Is {actor} in the {place}?" for place in places) for actor in actors)


IS_IN = is_in(ACTORS, PLACES)


class Setting:
    """People, probabilities and sentences of a `CarryingWorld`. ``kinds``: move, get, drop and, with 4, give."""

    def __init__(self, actors: tuple[str, ...], there_after_get: float = 1.0, kinds: int = 3) -> None:
        self.actors, self.there_after_get, self.kinds = actors, there_after_get, kinds
        self.moves = moves(actors, PLACES)
        self.gets, self.drops, self.gets_there, self.drops_there = (
            table(actors, THINGS, [f"{{who}} {verb} the {{what}}{end}" for verb in verbs])
            for end in (".", " there.")
            for verbs in (GET_VERBS, DROP_VERBS)
        )
        gives = [
            table(actors, THINGS, [f"{{who}} {verb} the {{what}} to {to}." for verb in GIVE_VERBS]) for to in actors
        ]
        self.gives = [
            [[of[giver][thing] for of in gives] for thing in range(len(THINGS))] for giver in range(len(actors))
        ]
        """``gives[giver][thing][recipient]``: equally likely sentences."""


class CarryingWorld:
    """Four people who move and carry things. The initial places of people and things are random and not stated.

    Actions (type, actor, arguments) are rejected until one is possible. A give has no random arguments: it is the first
    possible pair of thing and recipient (`possible_give`).

    Beside the state, the world stores the indices of facts that questions need.
    """

    def __init__(self, setting: Setting, random: Callable[[], float]) -> None:
        self.setting = setting
        self.random = random
        self.facts: list[str] = []
        self.events: list[tuple[int, int, int, int]] = []
        """One per fact: action type, actor, place or thing, recipient (or `NO_PERSON`)."""
        self.place = [int(random() * len(PLACES)) for _ in setting.actors]
        self.thing_place = [int(random() * len(PLACES)) for _ in THINGS]
        self.holder = [NO_PERSON] * len(THINGS)
        self.last_move = [UNKNOWN] * len(setting.actors)
        self.last_handling = [UNKNOWN] * len(THINGS)
        """Latest get, drop or give of each thing."""
        self.carried_moves: list[list[int]] = [[] for _ in THINGS]
        """Moves of each thing since its current or last holder got it."""
        self.move_before_drop = [UNKNOWN] * len(THINGS)
        self.last_give = [UNKNOWN] * len(THINGS)
        self.handlings: list[dict[int, list[int]]] = [{} for _ in setting.actors]
        """For each actor and thing, in order of acquisition: the facts in which the actor got or lost the thing."""

    def act(self) -> None:
        """Perform one random action and state it as a fact."""
        random = self.random
        setting = self.setting
        holder = self.holder
        index = len(self.facts)
        while True:
            kind = int(random() * setting.kinds)
            actor = int(random() * 4)
            recipient = NO_PERSON
            if kind == MOVE:
                target = int(random() * 6)
                if target == self.place[actor]:
                    continue
                self.place[actor] = target
                self.last_move[actor] = index
                for thing in (0, 1, 2):
                    if holder[thing] == actor:
                        self.carried_moves[thing].append(index)
                sentences = setting.moves[actor][target]
            elif kind == GET:
                here = self.place[actor]
                things = [t for t in (0, 1, 2) if holder[t] == NO_PERSON and self.thing_place[t] == here]
                if not things:
                    continue
                target = things[0] if len(things) == 1 else pick(random, things)
                holder[target] = actor
                self.carried_moves[target] = []
                self.last_handling[target] = index
                self.handlings[actor].setdefault(target, []).append(index)
                there = setting.there_after_get == 1 or random() < setting.there_after_get
                sentences = (setting.gets_there if there else setting.gets)[actor][target]
            elif kind == DROP:
                things = [t for t in (0, 1, 2) if holder[t] == actor]
                if not things:
                    continue
                target = things[0] if len(things) == 1 else pick(random, things)
                holder[target] = NO_PERSON
                self.thing_place[target] = self.place[actor]
                self.move_before_drop[target] = self.last_move[actor]
                self.last_handling[target] = index
                self.handlings[actor][target].append(index)
                sentences = (setting.drops_there if random() < THERE_AFTER_DROP else setting.drops)[actor][target]
            else:
                gift = self.possible_give()
                if gift is None:
                    continue
                actor, target, recipient = gift
                holder[target] = recipient
                self.carried_moves[target] = []
                self.last_handling[target] = self.last_give[target] = index
                self.handlings[actor][target].append(index)
                self.handlings[recipient].setdefault(target, []).append(index)
                sentences = setting.gives[actor][target][recipient]
            self.facts.append(sentences[int(random() * len(sentences))])
            self.events.append((kind, actor, target, recipient))
            return

    def possible_give(self) -> tuple[int, int, int] | None:
        """Giver, thing and recipient of the first possible give."""
        for thing, giver in enumerate(self.holder):
            if giver != NO_PERSON:
                for recipient, place in enumerate(self.place):
                    if recipient != giver and place == self.place[giver]:
                        return giver, thing, recipient
        return None

    def recent(self) -> range:
        """Indices of the facts that a question can be about."""
        count = len(self.facts)
        return range(count - RECENT if count > RECENT else 0, count)


def make_story(task: int, setting: Setting, ask: Callable[[CarryingWorld], Question | None], random: Random) -> Story:
    """A story of five questions with two or more facts before each; ``ask`` returns None if there is no question."""
    world = CarryingWorld(setting, random.random)
    questions: list[Question] = []
    while len(questions) < QUESTIONS_PER_STORY:
        for _ in range(FACTS_BETWEEN_QUESTIONS):
            world.act()
        question = ask(world)
        if question is not None:
            questions.append(question)
    return Story(task, world.facts, questions)
