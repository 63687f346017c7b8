"""Extensions of the bAbI generator: unanswerable questions, and short stories with any people in any places.

`extended_stories` mixes these, and stories of `rrn.tasks.babi.composed`, into the stories of a task. A question becomes
unanswerable in one of three ways: it names a person or thing that no fact names, it asks for a detail that no fact
contains, or a fact that it needs is removed. The answer is then `NO_ANSWER`, without supporting facts.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np

from rrn.tasks.babi import carrying
from rrn.tasks.babi.carrying import GIVE, MOVE, UNKNOWN, CarryingWorld, Setting
from rrn.tasks.babi.composed import Asked, Event, composed_story, gift_questions, is_named, what_follows
from rrn.tasks.babi.generator import generate_stories
from rrn.tasks.babi.puzzles import COMPASS, MOTIVATED, NAMED, PREY_OWNERS, SHAPES, SIZED
from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.vocabulary import NO_ANSWER, tokens
from rrn.tasks.babi.worlds import (
    ACTORS,
    GIVERS,
    PLACES,
    THINGS,
    TOWN_PLACES,
    TOWNSPEOPLE,
    draw,
    pick,
)

PEOPLE = tuple(dict.fromkeys((*ACTORS, *GIVERS, *TOWNSPEOPLE, *MOTIVATED)))
ROOMS = tuple(dict.fromkeys((*PLACES, *TOWN_PLACES)))
VARIED_TASKS = frozenset({1, 2, 3, 5, 6, 7, 8})
"""Tasks with varied stories: any people, places and lengths."""
MOST_FACTS = 12
FOREIGN_SHARE = 0.15
"""Share of the unanswerable questions that belong to another task than the story."""
TRIES = 50

Unanswerable = tuple[list[str], str] | None
"""Facts and a question that they do not answer; None if there is no such question about the story."""
Remover = Callable[[list[str], Question, Callable[[], float]], Unanswerable]
"""Makes a question unanswerable: (facts, question, random) → `Unanswerable`."""


def extended_stories(
    task: int, seed: int, stream: int, unanswerable_share: float, varied_share: float, composed_share: float = 0.0
) -> Iterator[Story]:
    """An endless stream of stories, with shares of unanswerable questions, `varied_story` and `composed_story`."""
    state = np.random.SeedSequence(seed, spawn_key=(stream, task, 1)).generate_state(8)
    random = Random(int.from_bytes(state.astype("<u4").tobytes(), "little"))
    for story in generate_stories(task, seed, stream):
        if composed_share and task in VARIED_TASKS and random.random() < composed_share:
            for _ in story.questions:
                unanswerable = random.random() < unanswerable_share
                yield composed_story(task, random, unanswerable, PEOPLE, ROOMS, MOST_FACTS)
            continue
        if task in VARIED_TASKS and random.random() < varied_share:
            for _ in story.questions:
                yield varied_story(task, random, random.random() < unanswerable_share)
            continue
        answerable: list[Question] = []
        for question in story.questions:
            changed = without_answer(story, question, random) if random.random() < unanswerable_share else None
            if changed is None:
                answerable.append(question)
            else:
                yield changed
        if answerable:
            yield Story(task, story.facts[: answerable[-1].facts], answerable)


def without_answer(story: Story, question: Question, random: Random) -> Story | None:
    """The story up to the question, with another question or fewer facts, so that no answer follows."""
    facts = story.facts[: question.facts]
    found: Unanswerable = None
    if random.random() < FOREIGN_SHARE:
        found = facts, foreign_question(story.task, facts, random.random)
    for _ in range(TRIES):
        found = found or REMOVERS[story.task](facts, question, random.random)
        if found is not None and found[0]:
            return Story(story.task, found[0], [Question(found[1], NO_ANSWER, (), len(found[0]))])
        found = None
    return None


def named_in(facts: Sequence[str]) -> set[str]:
    return {word for fact in facts for word in tokens(fact)}


def unnamed(facts: Sequence[str], names: Sequence[str]) -> list[str]:
    named = named_in(facts)
    return [name for name in names if name.lower() not in named]


def another_name(names: Sequence[str], removable: bool = True) -> Remover:
    """For questions about one of ``names``: replaces it by a name that no fact contains, or removes the facts with it.

    ``removable`` is False where other facts refer to those facts.
    """

    def remove(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
        asked = next(name for name in names if name.lower() in tokens(question.text))
        if removable and random() < 0.5:
            return [fact for fact in facts if asked.lower() not in tokens(fact)], question.text
        others = unnamed(facts, names)
        if not others:
            return None
        return facts, re.sub(rf"\b{asked}\b", pick(random, others), question.text, flags=re.IGNORECASE)

    return remove


def _before_another_place(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
    """Tasks 3 and 14: ask about a place that the person or thing never visited."""
    match = re.fullmatch(r"Where was (?:the )?(\w+) before the (\w+)\?", question.text)
    assert match
    of_asked = [fact for fact in facts if match[1].lower() in tokens(fact)] if match[1] in PEOPLE else facts
    others = unnamed(of_asked, ROOMS)
    if not others:
        return None
    return facts, question.text.replace(f"before the {match[2]}", f"before the {pick(random, others)}")


def _before_the_first_place(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
    """Task 14: ask what came before the earliest place, if it was visited once."""
    first = [fact for fact in facts if "yesterday" in tokens(fact)]
    if not first:
        return None
    fact = pick(random, first)
    person = next(name for name in TOWNSPEOPLE if name.lower() in tokens(fact))
    place = next(room for room in ROOMS if room in tokens(fact))
    visits = [other for other in facts if {person.lower(), place} <= set(tokens(other))]
    return (facts, f"Where was {person} before the {place}?") if len(visits) == 1 else None


def _somewhere_after_a_denial(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
    """Task 9: the person is not in one place; ask about another place."""
    latest = {fact.split()[0]: fact for fact in facts}
    denials = [fact for fact in latest.values() if re.search(r" is (?:not|no longer) in ", fact)]
    if not denials:
        return None
    fact = pick(random, denials)
    places = [place for place in PLACES if place not in tokens(fact)]
    person = fact.split()[0]
    return facts, f"Where is {person}?" if random() < 0.3 else f"Is {person} in the {pick(random, places)}?"


def _no_such_neighbour(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
    """Task 4: ask about a direction of a room that no fact contains."""
    stated = set()
    for fact in facts:
        _, first, _, direction, _, _, second = fact.rstrip(".").split()
        stated |= {(second, direction), (first, _BACK[direction])}
    rooms = [room for room in PLACES if room in named_in(facts)] if random() < 0.8 else PLACES
    room, direction = pick(random, rooms), pick(random, tuple(_BACK))
    if random() < 0.5:
        return (facts, f"What is {direction} of the {room}?") if (room, direction) not in stated else None
    return (facts, f"What is the {room} {direction} of?") if (room, _BACK[direction]) not in stated else None


_BACK = {COMPASS[x, y]: COMPASS[-x, -y] for x, y in COMPASS}


def _no_such_gift(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
    """Task 5: ask about a gift that no fact contains."""
    matches = [re.match(r"(\w+) (?:gave|handed|passed) the (\w+) to (\w+)", fact) for fact in facts]
    text = gift_question([match.groups() for match in matches if match], random)
    return (facts, text) if text else None


def gift_question(gifts: Sequence[Sequence[str]], random: Callable[[], float]) -> str | None:
    """A random question about a gift; None if there is such a gift. ``gifts`` are (giver, thing, recipient)."""
    giver, recipient = draw(random, GIVERS, 2)
    names, _, text = pick(random, gift_questions(giver, pick(random, THINGS), recipient))
    return None if any(is_named(gift, names) for gift in gifts) else text


def _without_a_supporting_fact(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
    """Tasks 15, 17 and 19: remove one supporting fact; the answer needs all of them."""
    missing = pick(random, question.support)
    return [fact for number, fact in enumerate(facts) if number != missing], question.text


def _of_no_known_kind(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
    """Task 16: remove all facts about the animal."""
    asked = tokens(question.text)[-1]
    return [fact for fact in facts if asked not in tokens(fact)], question.text


_another_animal = another_name((*PREY_OWNERS, *NAMED), removable=False)
"""Tasks 15 and 16: ask about an animal that no fact names."""


def _another_shape(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
    """Task 17: ask about a shape that no fact names."""
    asked = [shape for shape in SHAPES if f"the {shape} " in f"{question.text[:-1]} ".lower()]
    others = [shape for shape in SHAPES if not any(f"the {shape} " in f"{fact[:-1]} ".lower() for fact in facts)]
    return facts, question.text.replace(f"the {pick(random, asked)}", f"the {pick(random, others)}", 1)


def _sizes_not_compared(facts: list[str], question: Question, random: Callable[[], float]) -> Unanswerable:
    """Task 18: remove facts, and ask about two things that the others do not compare."""
    kept = [fact for fact in facts if random() < pick(random, (0.3, 0.6, 0.9))]
    bigger: dict[str, set[str]] = {thing: set() for thing in SIZED}
    for fact in kept:
        if match := re.fullmatch(r"The (.+) fits inside the (.+)\.", fact):
            bigger[match[1]].add(match[2])
        elif match := re.fullmatch(r"The (.+) is bigger than the (.+)\.", fact):
            bigger[match[2]].add(match[1])
    for middle in SIZED:
        for small in SIZED:
            if middle in bigger[small]:
                bigger[small] |= bigger[middle]
    small, big = draw(random, SIZED, 2)
    if big in bigger[small] or small in bigger[big]:
        return None
    return kept, pick(random, (f"Does the {small} fit in the {big}?", f"Is the {big} bigger than the {small}?"))


def either(*removers: Remover) -> Remover:
    return lambda facts, question, random: pick(random, removers)(facts, question, random)


REMOVERS: dict[int, Remover] = {
    1: another_name(PEOPLE),
    2: another_name(THINGS),
    3: either(another_name(THINGS), _before_another_place),
    4: _no_such_neighbour,
    5: _no_such_gift,
    6: another_name(PEOPLE),
    7: another_name(PEOPLE),
    8: another_name(PEOPLE),
    9: either(another_name(PEOPLE), _somewhere_after_a_denial),
    10: another_name(PEOPLE),
    11: another_name(PEOPLE, removable=False),
    12: another_name(PEOPLE),
    13: another_name(PEOPLE, removable=False),
    14: either(another_name(PEOPLE), _before_another_place, _before_the_first_place),
    15: either(_without_a_supporting_fact, _without_a_supporting_fact, _another_animal),
    16: either(_of_no_known_kind, _of_no_known_kind, _another_animal),
    17: either(_without_a_supporting_fact, _another_shape),
    18: _sizes_not_compared,
    19: _without_a_supporting_fact,
    20: another_name(PEOPLE),
}
"""How a question of each task is made unanswerable."""


def foreign_question(task: int, facts: list[str], random: Callable[[], float]) -> str:
    """A question that belongs to another task than the story."""
    person = pick(random, unnamed(facts, PEOPLE))
    here, there = draw(random, PLACES, 2)
    small, big = draw(random, SIZED, 2)
    one, other = draw(random, SHAPES, 2)
    kinds: list[tuple[frozenset[int], str]] = [
        (frozenset({4, 19}), f"What is {pick(random, tuple(_BACK))} of the {here}?"),
        (frozenset({4, 19}), f"How do you go from the {here} to the {there}?"),
        (frozenset({15}), f"What is {pick(random, PREY_OWNERS)} afraid of?"),
        (frozenset({16}), f"What color is {pick(random, NAMED)}?"),
        (frozenset({17}), f"Is the {one} {pick(random, ('above', 'below'))} the {other}?"),
        (frozenset({18}), f"Is the {big} bigger than the {small}?"),
        (frozenset(), f"Where is {person}?"),
        (frozenset(), f"Is {person} in the {here}?"),
        (frozenset(), f"What is {person} carrying?"),
        (frozenset(), f"How many objects is {person} carrying?"),
        (frozenset(), f"Where will {person} go?"),
        (frozenset(), f"Why did {person} go to the {here}?"),
        *[(frozenset(), f"Where is the {thing}?") for thing in unnamed(facts, THINGS)],
    ]
    return pick(random, [text for owners, text in kinds if task not in owners])


ALONE = Setting(ACTORS, there_after_get=0.3)
TOGETHER = Setting(ACTORS, there_after_get=0.3, kinds=4)
GIVING = Setting(GIVERS, kinds=4)


def varied_story(task: int, random: Random, unanswerable: bool) -> Story:
    """A short story with any people in any places, and one question of the task."""
    draws = random.random
    carried = int(draws() * (len(THINGS) + 1)) if task in (7, 8) else 0  # least number of things that a person carries
    while True:
        world = CarryingWorld(GIVING if task == 5 else TOGETHER if task in (6, 7, 8) else ALONE, draws)
        if draws() < 0.5:  # all things are at the place of the first person, who takes them soon
            world.thing_place = [world.place[0]] * len(THINGS)
        for _ in range(1 + int(draws() * MOST_FACTS)):
            world.act()
        if max(map(world.holder.count, range(len(ACTORS)))) < carried:
            continue
        question = _ask_unknown(task, world) if unanswerable else _ask_known(task, world)
        if question is not None:
            return _with_random_names(Story(task, world.facts, [question]), draws)


ASKED = {
    2: carrying.ask_where_thing_is,
    3: carrying.ask_where_thing_was,
    5: carrying.ask_about_give,
    6: carrying.ask_whether_in_place,
}


def _ask_known(task: int, world: CarryingWorld) -> Question | None:
    if task in ASKED:
        return ASKED[task](world)
    if task == 1:
        movers = [actor for actor, move in enumerate(world.last_move) if move != UNKNOWN]
        if not movers:
            return None
        actor = pick(world.random, movers)
        text, place = f"Where is {ACTORS[actor]}?", PLACES[world.place[actor]]
        return Question(text, place, (world.last_move[actor],), len(world.facts))
    handler = carrying.recent_handler(world)
    if handler is None:
        return None
    most = max(range(len(ACTORS)), key=world.holder.count)
    actor = most if world.random() < 0.5 and world.holder.count(most) else handler
    return (carrying.how_many if task == 7 else carrying.what_carried)(world, actor)


def _ask_unknown(task: int, world: CarryingWorld) -> Question | None:
    random, actors, things = world.random, range(len(ACTORS)), range(len(THINGS))
    lost_actors, lost_things = whereabouts_unknown(world)
    absent = [actor for actor in actors if all(actor not in (who, to) for _, who, _, to in world.events)]
    visited = {place for kind, _, place, _ in world.events if kind == MOVE}
    text: str | None = None
    if task in (1, 6) and lost_actors:
        person = ACTORS[pick(random, lost_actors)]
        text = f"Where is {person}?" if task == 1 else f"Is {person} in the {pick(random, PLACES)}?"
    elif task == 2 and lost_things:
        text = f"Where is the {THINGS[pick(random, lost_things)]}?"
    elif task == 3:
        thing, place = pick(random, things), pick(random, range(len(PLACES)))
        if thing in lost_things or place not in visited:
            text = f"Where was the {THINGS[thing]} before the {PLACES[place]}?"
    elif task == 5:
        gifts = [(GIVERS[who], THINGS[what], GIVERS[to]) for kind, who, what, to in world.events if kind == GIVE]
        text = gift_question(gifts, random)
    elif task in (7, 8) and absent:
        person = ACTORS[pick(random, absent)]
        text = f"How many objects is {person} carrying?" if task == 7 else f"What is {person} carrying?"
    return None if text is None else Question(text, NO_ANSWER, (), len(world.facts))


def whereabouts_unknown(world: CarryingWorld) -> tuple[list[int], list[int]]:
    """The people and the things whose place does not follow from the facts, nor from meetings of people and things."""
    people = (*world.setting.actors, "")  # the last for no recipient
    targets = {MOVE: PLACES}
    events = [
        Event(kind, (people[actor],), targets.get(kind, THINGS)[target], people[recipient])
        for kind, actor, target, recipient in world.events
    ]

    def unknown(names: Sequence[str]) -> list[int]:
        return [n for n, name in enumerate(names) if what_follows(events, Asked(1, (name,))) == NO_ANSWER]

    return unknown(world.setting.actors), unknown(THINGS)


def _with_random_names(story: Story, random: Callable[[], float]) -> Story:
    """The same story with random people and places."""
    cast = GIVERS if story.task == 5 else ACTORS
    names = dict(zip(cast, draw(random, PEOPLE, len(cast)), strict=True))
    names |= dict(zip(PLACES, draw(random, ROOMS, len(PLACES)), strict=True))
    (question,) = story.questions
    text, answer, *facts = (
        _NAME.sub(lambda match: names.get(match[0], match[0]), sentence)
        for sentence in (question.text, question.answer, *story.facts)
    )
    return Story(story.task, facts, [question._replace(text=text, answer=answer)])


_NAME = re.compile(rf"\b({'|'.join((*PEOPLE, *ROOMS))})\b")
