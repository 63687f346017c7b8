"""Tasks 1 and 9-14: people move. The facts use plain sentences, negation, alternatives, pronouns, pairs or times."""

from collections.abc import Callable
from functools import partial
from random import Random

from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.worlds import (
    ACTORS,
    FACTS_BETWEEN_QUESTIONS,
    IS_IN,
    MOVE_VERBS,
    MOVES,
    PLACES,
    PRONOUNS,
    QUESTIONS_PER_STORY,
    RECENT,
    THEN,
    TOWN_PLACES,
    TOWNSPEOPLE,
    WHERE_IS,
    is_in,
    moves,
    other,
    pick,
    table,
)

PEOPLE = len(ACTORS)
ROOMS = len(PLACES)

IS_HERE = table(ACTORS, PLACES, ["{who} is in the {what}."])
IS_NOT_HERE = table(ACTORS, PLACES, ["{who} is not in the {what}.", "{who} is no longer in the {what}."])

TOWN_MOVES = moves(TOWNSPEOPLE, TOWN_PLACES)
TOWN_IS_HERE = table(TOWNSPEOPLE, TOWN_PLACES, ["{who} is in the {what}."])
TOWN_IS_IN = is_in(TOWNSPEOPLE, TOWN_PLACES)
EITHER = tuple(
    tuple(tuple(f"{who} is either in the {first} or the {second}." for second in TOWN_PLACES) for first in TOWN_PLACES)
    for who in TOWNSPEOPLE
)

THEN_MOVES = [f"{then} {{who}} {verb} the {{what}}." for then in THEN for verb in MOVE_VERBS]
PRONOUN_MOVES = {pronoun: table([pronoun], PLACES, THEN_MOVES)[0] for pronoun in ("he", "she", "they")}
PAIRS = tuple((first, second) for first in range(PEOPLE) for second in range(PEOPLE) if first != second)
PAIR_MOVES = dict(
    zip(PAIRS, moves([f"{ACTORS[first]} and {ACTORS[second]}" for first, second in PAIRS], PLACES), strict=True)
)

TIMES = ("yesterday", "this morning", "this afternoon", "this evening")
TIMED_MOVES = tuple(
    table(
        TOWNSPEOPLE,
        TOWN_PLACES,
        [f"{time.capitalize()} {{who}} {verb} the {{what}}." for verb in MOVE_VERBS]
        + [f"{{who}} {verb} the {{what}} {time}." for verb in MOVE_VERBS],
    )
    for time in TIMES
)
WHERE_WAS = tuple(tuple(f"Where was {who} before the {place}?" for place in TOWN_PLACES) for who in TOWNSPEOPLE)


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
        for actor in people:
            self.support[actor] = (index,) if len(sentences) == 1 else (index, index + 1)
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
    return WHERE_IS[actor], PLACES[world.place[actor]]


def act_plainly(world: MovingWorld) -> None:
    actor, _, destination = world.move()
    world.add((actor,), pick(world.random, MOVES[actor][destination]))


def act_with_negation(world: MovingWorld) -> None:
    actor, left, destination = world.move()
    form = world.random()
    world.stated[actor] = (left,) if form >= 0.75 else ()
    if form < 0.5:
        sentence = pick(world.random, MOVES[actor][destination])
    elif form < 0.75:
        sentence = IS_HERE[actor][destination][0]
    else:
        sentence = pick(world.random, IS_NOT_HERE[actor][left])
    world.add((actor,), sentence)


def ask_after_negation(world: MovingWorld, actor: int) -> tuple[str, str]:
    place = world.place[actor]
    if world.stated[actor]:
        return IS_IN[actor][world.stated[actor][0]], "no"
    if world.random() < 0.5:
        return IS_IN[actor][place], "yes"
    return IS_IN[actor][other(world.random, ROOMS, place)], "no"


def act_with_alternative(world: MovingWorld) -> None:
    """The two places of an alternative may be equal."""
    actor, _, destination = world.move()
    form, world.stated[actor] = world.random(), ()
    if form < 0.5:
        sentence = pick(world.random, TOWN_MOVES[actor][destination])
    elif form < 0.75:
        sentence = TOWN_IS_HERE[actor][destination][0]
    else:
        decoy = int(world.random() * ROOMS)
        first, second = (destination, decoy) if world.random() < 0.5 else (decoy, destination)
        world.stated[actor] = (first, second)
        sentence = EITHER[actor][first][second]
    world.add((actor,), sentence)


def ask_after_alternative(world: MovingWorld, actor: int) -> tuple[str, str]:
    place, possible = world.place[actor], world.stated[actor]
    asked = place if world.random() < 0.5 else other(world.random, ROOMS, place)
    answer = "no" if asked not in (possible or (place,)) else "maybe" if possible else "yes"
    return TOWN_IS_IN[actor][asked], answer


def act_with_pronoun(world: MovingWorld) -> None:
    actor, _, first = world.move()
    world.place[actor] = second = other(world.random, ROOMS, first)
    moved = pick(world.random, MOVES[actor][first])
    world.add((actor,), moved, pick(world.random, PRONOUN_MOVES[PRONOUNS[ACTORS[actor]]][second]))


def act_in_pairs(world: MovingWorld) -> None:
    pair, destination = world.move_pair()
    world.add(pair, pick(world.random, PAIR_MOVES[pair][destination]))


def act_in_pairs_with_pronoun(world: MovingWorld) -> None:
    pair, first = world.move_pair()
    world.place[pair[0]] = world.place[pair[1]] = second = other(world.random, ROOMS, first)
    moved = pick(world.random, PAIR_MOVES[pair][first])
    world.add(pair, moved, pick(world.random, PRONOUN_MOVES["they"][second]))


single_supporting_fact = partial(make_story, 1, act_plainly, ask_where)
simple_negation = partial(make_story, 9, act_with_negation, ask_after_negation)
indefinite_knowledge = partial(make_story, 10, act_with_alternative, ask_after_alternative)
basic_coreference = partial(make_story, 11, act_with_pronoun, ask_where)
conjunction = partial(make_story, 12, act_in_pairs, ask_where)
compound_coreference = partial(make_story, 13, act_in_pairs_with_pronoun, ask_where)


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
            sentences.append(pick(random, TIMED_MOVES[slot][person][place]))
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
        questions.append(Question(WHERE_WAS[person][place], TOWN_PLACES[before], support, len(facts)))
    return Story(14, facts, questions)
