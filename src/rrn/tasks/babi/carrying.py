"""Tasks 2, 3 and 5-8: people carry things. Each ``ask_*`` returns a question about the world, or None."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.worlds import (
    ACTORS,
    DROP_VERBS,
    FACTS_BETWEEN_QUESTIONS,
    GET_VERBS,
    GIVE_VERBS,
    GIVERS,
    MOVE_VERBS,
    PLACES,
    QUESTIONS_PER_STORY,
    RECENT,
    THINGS,
    other,
    pick,
)

MOVE, GET, DROP, GIVE = range(4)
NO_PERSON = UNKNOWN = -1
THERE_AFTER_DROP = 0.2
TRIES = 100
NUMBERS = ("none", "one", "two", "three")


class Setting(NamedTuple):
    """People and probabilities of a `CarryingWorld`. ``kinds``: move, get, drop and, with 4, give."""

    actors: tuple[str, ...]
    there_after_get: float = 1.0
    kinds: int = 3


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
        holder, places = self.holder, self.place
        index = len(self.facts)
        verbs: tuple[str, ...]
        while True:
            kind = int(random() * setting.kinds)
            actor = int(random() * 4)
            recipient = NO_PERSON
            if kind == MOVE:
                target = int(random() * 6)
                if target == places[actor]:
                    continue
                places[actor] = target
                self.last_move[actor] = index
                if actor in holder:
                    for thing in (0, 1, 2):
                        if holder[thing] == actor:
                            self.carried_moves[thing].append(index)
                verbs, rest = MOVE_VERBS, PLACES[target]
            elif kind == GET:
                here = places[actor]
                if here not in self.thing_place:
                    continue
                things = [t for t in (0, 1, 2) if holder[t] == NO_PERSON and self.thing_place[t] == here]
                if not things:
                    continue
                target = things[0] if len(things) == 1 else pick(random, things)
                holder[target] = actor
                self.carried_moves[target] = []
                self.last_handling[target] = index
                self.handlings[actor].setdefault(target, []).append(index)
                there = setting.there_after_get == 1 or random() < setting.there_after_get
                verbs, rest = GET_VERBS, f"{THINGS[target]} there" if there else THINGS[target]
            elif kind == DROP:
                if actor not in holder:
                    continue
                things = [t for t in (0, 1, 2) if holder[t] == actor]
                target = things[0] if len(things) == 1 else pick(random, things)
                holder[target] = NO_PERSON
                self.thing_place[target] = places[actor]
                self.move_before_drop[target] = self.last_move[actor]
                self.last_handling[target] = index
                self.handlings[actor][target].append(index)
                there = random() < THERE_AFTER_DROP
                verbs, rest = DROP_VERBS, f"{THINGS[target]} there" if there else THINGS[target]
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
                verbs, rest = GIVE_VERBS, f"{THINGS[target]} to {setting.actors[recipient]}"
            self.facts.append(f"{setting.actors[actor]} {pick(random, verbs)} the {rest}.")
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


def ask_where_thing_is(world: CarryingWorld) -> Question | None:
    candidates: list[tuple[int, int]] = []
    for index in world.recent():
        kind, _, thing, _ = world.events[index]
        if kind == MOVE:
            continue
        if world.holder[thing] == NO_PERSON:
            move = world.move_before_drop[thing]
        else:
            carried = world.carried_moves[thing]
            move = carried[-1] if carried else UNKNOWN
        if move != UNKNOWN:
            candidates.append((thing, move))
    if not candidates:
        return None
    thing, move = pick(world.random, candidates)
    answer = PLACES[world.events[move][2]]
    return Question(f"Where is the {THINGS[thing]}?", answer, (world.last_handling[thing], move), len(world.facts))


def ask_where_thing_was(world: CarryingWorld) -> Question | None:
    events = world.events
    things = [
        event[2]
        for event in events[world.recent().start :]
        if event[0] != MOVE and len(world.carried_moves[event[2]]) > 1
    ]
    if not things:
        return None
    random = world.random
    for _ in range(TRIES):
        thing = pick(random, things)
        carried = world.carried_moves[thing]
        place = events[pick(random, carried)][2]
        visit = max(n for n, move in enumerate(carried) if events[move][2] == place)
        if visit > 0:
            before = carried[visit - 1]
            support = (world.last_handling[thing], carried[visit], before)
            text = f"Where was the {THINGS[thing]} before the {PLACES[place]}?"
            return Question(text, PLACES[events[before][2]], support, len(world.facts))
    return None


def ask_about_give(world: CarryingWorld) -> Question | None:
    gives = [
        index
        for index in world.recent()
        if world.events[index][0] == GIVE and world.last_give[world.events[index][2]] == index
    ]
    if not gives:
        return None
    index = pick(world.random, gives)
    _, giver_number, thing_number, recipient_number = world.events[index]
    giver, recipient, thing = GIVERS[giver_number], GIVERS[recipient_number], THINGS[thing_number]
    what = (f"What did {giver} give to {recipient}?", thing)
    who = (f"Who gave the {thing}?", giver), (f"Who gave the {thing} to {recipient}?", giver)
    to = (f"Who received the {thing}?", recipient), (f"Who did {giver} give the {thing} to?", recipient)
    text, answer = pick(world.random, (what, what, *who, *to))
    return Question(text, answer, (index,), len(world.facts))


def ask_whether_in_place(world: CarryingWorld) -> Question | None:
    movers = [world.events[index][1] for index in world.recent() if world.events[index][0] == MOVE]
    if not movers:
        return None
    actor = pick(world.random, movers)
    place = world.place[actor]
    true = world.random() < 0.5
    asked = place if true else other(world.random, len(PLACES), place)
    text = f"Is {ACTORS[actor]} in the {PLACES[asked]}?"
    return Question(text, "yes" if true else "no", (world.last_move[actor],), len(world.facts))


def recent_handler(world: CarryingWorld) -> int | None:
    """A random actor of the recent gets, drops and gives."""
    actors = [world.events[index][1] for index in world.recent() if world.events[index][0] in (GET, DROP, GIVE)]
    return pick(world.random, actors) if actors else None


def ask_how_many(world: CarryingWorld) -> Question | None:
    actor = recent_handler(world)
    return None if actor is None else how_many(world, actor)


def how_many(world: CarryingWorld, actor: int) -> Question:
    support = sorted(index for indices in world.handlings[actor].values() for index in indices)
    text = f"How many objects is {ACTORS[actor]} carrying?"
    return Question(text, NUMBERS[world.holder.count(actor)], tuple(support), len(world.facts))


def ask_what_carried(world: CarryingWorld) -> Question | None:
    actor = recent_handler(world)
    return None if actor is None else what_carried(world, actor)


def what_carried(world: CarryingWorld, actor: int) -> Question:
    handled = world.handlings[actor]
    answer = ",".join(THINGS[thing] for thing in handled if world.holder[thing] == actor) or "nothing"
    support = tuple(index for indices in handled.values() for index in indices)
    return Question(f"What is {ACTORS[actor]} carrying?", answer, support, len(world.facts))
