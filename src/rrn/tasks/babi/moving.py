"""Tasks 1 and 9-14: people move. The facts use plain sentences, negation, alternatives, pronouns, pairs or times."""

from collections.abc import Callable
from random import Random

from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.worlds import (
    ACTORS,
    FACTS_BETWEEN_QUESTIONS,
    MOVE_VERBS,
    PLACES,
    PRONOUNS,
    QUESTIONS_PER_STORY,
    RECENT,
    THEN,
    TOWN_PLACES,
    TOWNSPEOPLE,
    moves_to,
    other,
    pick,
)

PEOPLE = len(ACTORS)
ROOMS = len(PLACES)
PAIRS = tuple((first, second) for first in range(PEOPLE) for second in range(PEOPLE) if first != second)
THEN_MOVES = [f"{then} {{who}} {verb} the {{place}}." for then in THEN for verb in MOVE_VERBS]
TIMES = ("yesterday", "this morning", "this afternoon", "this evening")
TIMED_MOVES = [
    [f"{time.capitalize()} {{who}} {verb} the {{place}}." for verb in MOVE_VERBS]
    + [f"{{who}} {verb} the {{place}} {time}." for verb in MOVE_VERBS]
    for time in TIMES
]
"""Sentences for each time of day."""


class MovingWorld:
    """People who move. Their initial places are random and not stated."""

    def __init__(self, random: Callable[[], float]) -> None:
        self.random = random
        self.place = [int(random() * ROOMS) for _ in range(PEOPLE)]
        self.stated: list[tuple[int, ...]] = [()] * PEOPLE
        """The places in the latest fact about each person, if it is a negation or an alternative."""
        self.facts: list[str] = []
        self.support: list[tuple[int, ...]] = [()] * PEOPLE
        """Indices of the latest facts about each person."""
        self.mentioned: list[int] = []

    def move(self) -> tuple[int, int, int]:
        """Move a random person; returns the person, the place left and the destination."""
        actor = int(self.random() * PEOPLE)
        left = self.place[actor]
        self.place[actor] = destination = other(self.random, ROOMS, left)
        return actor, left, destination

    def move_pair(self) -> tuple[tuple[int, int], int]:
        """Move two people, in the order named, to a place where neither of them is."""
        place = self.place
        while True:
            first, second = pair = pick(self.random, PAIRS)
            destination = int(self.random() * ROOMS)
            if place[first] != destination != place[second]:
                place[first] = place[second] = destination
                return pair, destination

    def add(self, people: tuple[int, ...], *sentences: str) -> None:
        """Add facts, each of which mentions these people."""
        index = len(self.facts)
        self.facts += sentences
        support = (index,) if len(sentences) == 1 else (index, index + 1)
        for actor in people:
            self.support[actor] = support
        self.mentioned += people * len(sentences)


def make_story(
    task: int, act: Callable[[MovingWorld], None], ask: Callable[[MovingWorld, int], tuple[str, str]], rng: Random
) -> Story:
    """A story of five questions with two facts before each; ``ask`` returns a question about a person, and its answer.

    The person is one of the latest mentions: "they" mentions both people of a pair.
    """
    world, questions = MovingWorld(rng.random), []
    for facts in range(FACTS_BETWEEN_QUESTIONS, FACTS_BETWEEN_QUESTIONS * QUESTIONS_PER_STORY + 1, 2):
        while len(world.facts) < facts:
            act(world)
        mentions = len(world.mentioned)
        actor = world.mentioned[mentions - 1 - int(world.random() * min(RECENT, mentions))]
        text, answer = ask(world, actor)
        questions.append(Question(text, answer, world.support[actor], facts))
    return Story(task, world.facts, questions)


def ask_where(world: MovingWorld, actor: int) -> tuple[str, str]:
    return f"Where is {ACTORS[actor]}?", PLACES[world.place[actor]]


def act_plainly(world: MovingWorld) -> None:
    actor, _, destination = world.move()
    world.add((actor,), moves_to(world.random, ACTORS[actor], PLACES[destination]))


def act_with_negation(world: MovingWorld) -> None:
    actor, left, destination = world.move()
    form = world.random()
    world.stated[actor] = (left,) if form >= 0.75 else ()
    if form < 0.5:
        sentence = moves_to(world.random, ACTORS[actor], PLACES[destination])
    elif form < 0.75:
        sentence = f"{ACTORS[actor]} is in the {PLACES[destination]}."
    else:
        sentence = f"{ACTORS[actor]} is {pick(world.random, ('not', 'no longer'))} in the {PLACES[left]}."
    world.add((actor,), sentence)


def ask_after_negation(world: MovingWorld, actor: int) -> tuple[str, str]:
    place, answer = world.place[actor], "no"
    if world.stated[actor]:
        asked = world.stated[actor][0]
    elif world.random() < 0.5:
        asked, answer = place, "yes"
    else:
        asked = other(world.random, ROOMS, place)
    return f"Is {ACTORS[actor]} in the {PLACES[asked]}?", answer


def act_with_alternative(world: MovingWorld) -> None:
    """The two places of an alternative may be equal."""
    actor, _, destination = world.move()
    who, form, world.stated[actor] = TOWNSPEOPLE[actor], world.random(), ()
    if form < 0.5:
        sentence = moves_to(world.random, who, TOWN_PLACES[destination])
    elif form < 0.75:
        sentence = f"{who} is in the {TOWN_PLACES[destination]}."
    else:
        decoy = int(world.random() * ROOMS)
        first, second = (destination, decoy) if world.random() < 0.5 else (decoy, destination)
        world.stated[actor] = (first, second)
        sentence = f"{who} is either in the {TOWN_PLACES[first]} or the {TOWN_PLACES[second]}."
    world.add((actor,), sentence)


def ask_after_alternative(world: MovingWorld, actor: int) -> tuple[str, str]:
    place, possible = world.place[actor], world.stated[actor]
    asked = place if world.random() < 0.5 else other(world.random, ROOMS, place)
    answer = "no" if asked not in (possible or (place,)) else "maybe" if possible else "yes"
    return f"Is {TOWNSPEOPLE[actor]} in the {TOWN_PLACES[asked]}?", answer


def act_with_pronoun(world: MovingWorld) -> None:
    actor, _, first = world.move()
    world.place[actor] = second = other(world.random, ROOMS, first)
    moved = moves_to(world.random, ACTORS[actor], PLACES[first])
    then = pick(world.random, THEN_MOVES).format(who=PRONOUNS[ACTORS[actor]], place=PLACES[second])
    world.add((actor,), moved, then)


def both(pair: tuple[int, int]) -> str:
    return f"{ACTORS[pair[0]]} and {ACTORS[pair[1]]}"


def act_in_pairs(world: MovingWorld) -> None:
    pair, destination = world.move_pair()
    world.add(pair, moves_to(world.random, both(pair), PLACES[destination]))


def act_in_pairs_with_pronoun(world: MovingWorld) -> None:
    pair, first = world.move_pair()
    world.place[pair[0]] = world.place[pair[1]] = second = other(world.random, ROOMS, first)
    moved = moves_to(world.random, both(pair), PLACES[first])
    world.add(pair, moved, pick(world.random, THEN_MOVES).format(who="they", place=PLACES[second]))


def cyclic_shuffle(random: Callable[[], float], items: list[int]) -> None:
    """Shuffle in place by a uniform cyclic permutation (Sattolo), so that no item stays where it was."""
    for last in range(len(items) - 1, 0, -1):
        swapped = int(random() * last)
        items[last], items[swapped] = items[swapped], items[last]


def time_reasoning(rng: Random) -> Story:
    """The facts of each person are ordered in time; the facts between two questions are shuffled."""
    random = rng.random
    visits: list[list[tuple[int, int]]] = [[] for _ in range(PEOPLE)]
    """For each person and time of day: the place, and the index of the event in order of time."""
    happened: list[tuple[int, int]] = []
    """For each event in order of time: the person and the time of day."""
    shown_at: list[int] = []
    sentences: list[str] = []
    facts: list[str] = []
    questions: list[Question] = []
    while len(questions) < QUESTIONS_PER_STORY:
        for _ in range(FACTS_BETWEEN_QUESTIONS):
            person = pick(random, [p for p in range(PEOPLE) if len(visits[p]) < len(TIMES)])
            slot = len(visits[person])
            place = other(random, ROOMS, visits[person][-1][0]) if slot else int(random() * ROOMS)
            visits[person].append((place, len(happened)))
            happened.append((person, slot))
            sentence = pick(random, TIMED_MOVES[slot])
            sentences.append(sentence.format(who=TOWNSPEOPLE[person], place=TOWN_PLACES[place]))
        candidates = [(person, slot) for person, slot in happened[-RECENT:] if slot > 0]
        if not candidates:
            continue
        hidden = list(range(len(facts), len(sentences)))
        cyclic_shuffle(random, hidden)
        shown_at += [0] * len(hidden)
        for number in hidden:
            shown_at[number] = len(facts)
            facts.append(sentences[number])
        person, slot = pick(random, candidates)
        place = visits[person][slot][0]
        latest = max(s for s, (visited, _) in enumerate(visits[person]) if visited == place)
        before, number_before = visits[person][latest - 1]
        support = (shown_at[visits[person][latest][1]], shown_at[number_before])
        text = f"Where was {TOWNSPEOPLE[person]} before the {TOWN_PLACES[place]}?"
        questions.append(Question(text, TOWN_PLACES[before], support, len(facts)))
    return Story(14, facts, questions)
