"""Tasks 2, 3 and 5-8: people carry things. Each ``ask_*`` returns a question about the world, or None."""

from functools import partial

from rrn.tasks.babi.stories import Question
from rrn.tasks.babi.worlds import (
    ACTORS,
    DROP,
    GET,
    GIVE,
    GIVERS,
    IS_IN,
    MOVE,
    NO_PERSON,
    PLACES,
    THINGS,
    TRIES,
    UNKNOWN,
    CarryingWorld,
    Setting,
    make_story,
    other,
    pick,
)

NUMBERS = ("none", "one", "two", "three")
WHERE_IS_THING = tuple(f"Where is the {thing}?" for thing in THINGS)
WHERE_WAS_THING = tuple(tuple(f"Where was the {thing} before the {place}?" for place in PLACES) for thing in THINGS)
HOW_MANY = tuple(f"How many objects is {actor} carrying?" for actor in ACTORS)
WHAT_CARRYING = tuple(f"What is {actor} carrying?" for actor in ACTORS)


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
    return Question(WHERE_IS_THING[thing], answer, (world.last_handling[thing], move), len(world.facts))


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
            return Question(WHERE_WAS_THING[thing][place], PLACES[events[before][2]], support, len(world.facts))
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
    return Question(IS_IN[actor][asked], "yes" if true else "no", (world.last_move[actor],), len(world.facts))


def recent_handler(world: CarryingWorld) -> int | None:
    """A random actor of the recent gets, drops and gives."""
    actors = [world.events[index][1] for index in world.recent() if world.events[index][0] in (GET, DROP, GIVE)]
    return pick(world.random, actors) if actors else None


def ask_how_many(world: CarryingWorld) -> Question | None:
    actor = recent_handler(world)
    return None if actor is None else how_many(world, actor)


def how_many(world: CarryingWorld, actor: int) -> Question:
    support = sorted(index for indices in world.handlings[actor].values() for index in indices)
    return Question(HOW_MANY[actor], NUMBERS[world.holder.count(actor)], tuple(support), len(world.facts))


def ask_what_carried(world: CarryingWorld) -> Question | None:
    actor = recent_handler(world)
    return None if actor is None else what_carried(world, actor)


def what_carried(world: CarryingWorld, actor: int) -> Question:
    handled = world.handlings[actor]
    answer = ",".join(THINGS[thing] for thing in handled if world.holder[thing] == actor) or "nothing"
    support = tuple(index for indices in handled.values() for index in indices)
    return Question(WHAT_CARRYING[actor], answer, support, len(world.facts))


CARRYING = Setting(ACTORS)
SELDOM_THERE = Setting(ACTORS, there_after_get=0.2)
GIVING = Setting(GIVERS, kinds=4)
COUNTED = Setting(ACTORS, kinds=4)


two_supporting_facts = partial(make_story, 2, CARRYING, ask_where_thing_is)
three_supporting_facts = partial(make_story, 3, SELDOM_THERE, ask_where_thing_was)
three_arg_relations = partial(make_story, 5, GIVING, ask_about_give)
yes_no_questions = partial(make_story, 6, CARRYING, ask_whether_in_place)
counting = partial(make_story, 7, COUNTED, ask_how_many)
lists_sets = partial(make_story, 8, CARRYING, ask_what_carried)
