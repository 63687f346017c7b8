"""Beyond bAbI's own questions: those whose answer is not in the story, and stories as a person may tell them.

`widened` mixes both into the stories of a task. A question is made unanswerable by asking about somebody or something
that the facts do not name, or do not say enough of, or by leaving out a fact that the answer needs. Its answer is
`NOT_TOLD` and no fact supports it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np

from rrn.tasks.babi.carrying import (
    ACTORS,
    GIVERS,
    GIVING,
    HOW_MANY,
    THINGS,
    WHAT_CARRYING,
    WHERE_IS_THING,
    WHERE_WAS_THING,
    ask_about_give,
    ask_where_thing_is,
    ask_where_thing_was,
    ask_whether_in_place,
    how_many,
    recent_handler,
    what_carried,
)
from rrn.tasks.babi.generator import generate_stories
from rrn.tasks.babi.moving import WHERE_IS
from rrn.tasks.babi.puzzles import COMPASS, MOTIVATED, NAMED, PREY_OWNERS, SHAPES, SIZED
from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.vocabulary import NOT_TOLD, tokens
from rrn.tasks.babi.worlds import (
    DROP,
    GIVE,
    IS_IN,
    MOVE,
    NOBODY,
    PLACES,
    TOWN_PLACES,
    TOWNSPEOPLE,
    UNKNOWN,
    CarryingWorld,
    draw,
    pick,
    setting,
)

PEOPLE = tuple(dict.fromkeys((*ACTORS, *GIVERS, *TOWNSPEOPLE, *MOTIVATED)))
ROOMS = tuple(dict.fromkeys((*PLACES, *TOWN_PLACES)))
EVERYDAY_TASKS = frozenset({1, 2, 3, 5, 6, 7, 8})
"""Tasks whose questions are also asked about stories of any people, places and lengths."""
MOST_FACTS = 12
FOREIGN = 0.15
"""Share of the unanswerable questions that are of a kind that the story has nothing to do with."""
TRIES = 50

Spoiled = tuple[list[str], str] | None
"""Facts and a question that they do not answer; None where the story has no such question."""


def widened(task: int, seed: int, stream: int, unanswerable: float, everyday: float) -> Iterator[Story]:
    """Stories of a task without end: so large a share of the questions unanswerable, and, of `EVERYDAY_TASKS`, so
    large a share about stories as a person may tell them."""
    state = np.random.SeedSequence(seed, spawn_key=(stream, task, 1)).generate_state(8)
    random = Random(int.from_bytes(state.astype("<u4").tobytes(), "little"))
    for story in generate_stories(task, seed, stream):
        if task in EVERYDAY_TASKS and random.random() < everyday:
            for _ in story.questions:
                yield everyday_story(task, random, random.random() < unanswerable)
            continue
        kept: list[Question] = []
        for question in story.questions:
            spoiled = spoil(story, question, random) if random.random() < unanswerable else None
            if spoiled is None:
                kept.append(question)
            else:
                yield spoiled
        if kept:
            yield Story(task, story.facts[: kept[-1].facts], kept)


def spoil(story: Story, question: Question, random: Random) -> Story | None:
    """The story up to a question, with another question or without a fact, so that no answer follows."""
    facts = story.facts[: question.facts]
    spoiled = None
    if random.random() < FOREIGN:
        spoiled = facts, foreign_question(story.task, facts, random.random)
    for _ in range(TRIES):
        spoiled = spoiled or SPOILERS[story.task](facts, question, random.random)
        if spoiled is not None and spoiled[0]:
            return Story(story.task, spoiled[0], [Question(spoiled[1], NOT_TOLD, (), len(spoiled[0]))])
        spoiled = None
    return None


def named_in(facts: Sequence[str]) -> set[str]:
    return {word for fact in facts for word in tokens(fact)}


def unnamed(facts: Sequence[str], names: Sequence[str]) -> list[str]:
    named = named_in(facts)
    return [name for name in names if name.lower() not in named]


def untold(
    names: Sequence[str], removable: bool = True
) -> Callable[[list[str], Question, Callable[[], float]], Spoiled]:
    """Spoils a question about one of these: it is asked about another, whom no fact names, or all facts that name it
    are left out (unless others are told by pronouns)."""

    def spoil_it(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
        asked = next(name for name in names if name.lower() in tokens(question.text))
        if removable and random() < 0.5:
            return [fact for fact in facts if asked.lower() not in tokens(fact)], question.text
        others = unnamed(facts, names)
        if not others:
            return None
        return facts, re.sub(rf"\b{asked}\b", pick(random, others), question.text, flags=re.IGNORECASE)

    return spoil_it


def _before_another_place(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    """Tasks 3 and 14: before a place where it, or he or she, never was."""
    match = re.fullmatch(r"Where was (?:the )?(\w+) before the (\w+)\?", question.text)
    assert match
    of_asked = [fact for fact in facts if match[1].lower() in tokens(fact)] if match[1] in PEOPLE else facts
    others = unnamed(of_asked, ROOMS)
    if not others:
        return None
    return facts, question.text.replace(f"before the {match[2]}", f"before the {pick(random, others)}")


def _before_the_first_place(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    """Task 14: before the place of the earliest time told, which was visited once."""
    first = [fact for fact in facts if "yesterday" in tokens(fact)]
    if not first:
        return None
    fact = pick(random, first)
    person = next(name for name in TOWNSPEOPLE if name.lower() in tokens(fact))
    place = next(room for room in ROOMS if room in tokens(fact))
    visits = [other for other in facts if {person.lower(), place} <= set(tokens(other))]
    return (facts, f"Where was {person} before the {place}?") if len(visits) == 1 else None


def _somewhere_after_a_denial(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    """Task 9: said not to be in one place, asked about another."""
    latest = {fact.split()[0]: fact for fact in facts}
    denials = [fact for fact in latest.values() if re.search(r" is (?:not|no longer) in ", fact)]
    if not denials:
        return None
    fact = pick(random, denials)
    places = [place for place in PLACES if place not in tokens(fact)]
    person = fact.split()[0]
    return facts, f"Where is {person}?" if random() < 0.3 else f"Is {person} in the {pick(random, places)}?"


def _no_such_neighbour(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    """Task 4: beside a room in a direction of which nothing is told."""
    told = set()
    for fact in facts:
        _, first, _, way, _, _, second = fact.rstrip(".").split()
        told |= {(second, way), (first, _BACK[way])}
    rooms = [room for room in PLACES if room in named_in(facts)] if random() < 0.8 else PLACES
    room, way = pick(random, rooms), pick(random, tuple(_BACK))
    if random() < 0.5:
        return (facts, f"What is {way} of the {room}?") if (room, way) not in told else None
    return (facts, f"What is the {room} {way} of?") if (room, _BACK[way]) not in told else None


_BACK = {COMPASS[x, y]: COMPASS[-x, -y] for x, y in COMPASS}


def _no_such_gift(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    """Task 5."""
    matches = [re.match(r"(\w+) (?:gave|handed|passed) the (\w+) to (\w+)", fact) for fact in facts]
    text = gift_question([match.groups() for match in matches if match], GIVERS, random)
    return (facts, text) if text else None


def gift_question(
    gifts: Sequence[tuple[str | None, ...]], people: Sequence[str], random: Callable[[], float]
) -> str | None:
    """A question about a gift, drawn; None if there was such a gift. ``gifts`` are giver, thing and recipient."""
    giver, recipient = draw(random, people, 2)
    thing = pick(random, THINGS)
    text, like = pick(
        random,
        (
            (f"What did {giver} give to {recipient}?", (giver, None, recipient)),
            (f"Who gave the {thing}?", (None, thing, None)),
            (f"Who gave the {thing} to {recipient}?", (None, thing, recipient)),
            (f"Who received the {thing}?", (None, thing, None)),
            (f"Who did {giver} give the {thing} to?", (giver, thing, None)),
        ),
    )
    for gift in gifts:
        if all(part is None or part == told for part, told in zip(like, gift, strict=True)):
            return None
    return text


def _without_a_supporting_fact(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    """Tasks 15, 17 and 19, where the answer needs every one of them."""
    missing = pick(random, question.support)
    return [fact for number, fact in enumerate(facts) if number != missing], question.text


def _of_no_known_kind(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    """Task 16."""
    asked = tokens(question.text)[-1]
    return [fact for fact in facts if asked not in tokens(fact)], question.text


def _another_animal(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    asked = next(name for name in _ANIMALS if name.lower() in tokens(question.text))
    other = pick(random, unnamed(facts, _ANIMALS))
    return facts, re.sub(rf"\b{asked}\b", other, question.text, flags=re.IGNORECASE)


_ANIMALS = (*PREY_OWNERS, *NAMED)


def _another_shape(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    """Task 17."""
    asked = [shape for shape in SHAPES if f"the {shape} " in f"{question.text[:-1]} ".lower()]
    others = [shape for shape in SHAPES if not any(f"the {shape} " in f"{fact[:-1]} ".lower() for fact in facts)]
    return facts, question.text.replace(f"the {pick(random, asked)}", f"the {pick(random, others)}", 1)


def _sizes_not_compared(facts: list[str], question: Question, random: Callable[[], float]) -> Spoiled:
    """Task 18: some of the facts, and two things of which they do not say which is bigger."""
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


def either(*spoilers: Callable[[list[str], Question, Callable[[], float]], Spoiled]) -> Callable[..., Spoiled]:
    return lambda facts, question, random: pick(random, spoilers)(facts, question, random)


SPOILERS: dict[int, Callable[[list[str], Question, Callable[[], float]], Spoiled]] = {
    1: untold(PEOPLE),
    2: untold(THINGS),
    3: either(untold(THINGS), _before_another_place),
    4: _no_such_neighbour,
    5: _no_such_gift,
    6: untold(PEOPLE),
    7: untold(PEOPLE),
    8: untold(PEOPLE),
    9: either(untold(PEOPLE), _somewhere_after_a_denial),
    10: untold(PEOPLE),
    11: untold(PEOPLE, removable=False),
    12: untold(PEOPLE),
    13: untold(PEOPLE, removable=False),
    14: either(untold(PEOPLE), _before_another_place, _before_the_first_place),
    15: either(_without_a_supporting_fact, _without_a_supporting_fact, _another_animal),
    16: either(_of_no_known_kind, _of_no_known_kind, _another_animal),
    17: either(_without_a_supporting_fact, _another_shape),
    18: _sizes_not_compared,
    19: _without_a_supporting_fact,
    20: untold(PEOPLE),
}
"""By task."""


def foreign_question(task: int, facts: list[str], random: Callable[[], float]) -> str:
    """A question of a kind that the story's task has nothing to do with."""
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


ALONE = setting(ACTORS, there_after_get=0.3)
TOGETHER = setting(ACTORS, there_after_get=0.3, kinds=4)


def everyday_story(task: int, random: Random, unanswerable: bool) -> Story:
    """A short story of any people in any places, and a question of a kind that bAbI asks."""
    draws = random.random
    carried = int(draws() * (len(THINGS) + 1)) if task in (7, 8) else 0  # by somebody, so that three are seen, too
    while True:
        world = CarryingWorld(GIVING if task == 5 else TOGETHER if task in (6, 7, 8) else ALONE, draws)
        if draws() < 0.5:  # everything lies where one of them is, so that it is taken up soon
            world.thing_place = [world.place[0]] * len(THINGS)
        for _ in range(1 + int(draws() * MOST_FACTS)):
            world.act()
        if max(map(world.holder.count, range(len(ACTORS)))) < carried:
            continue
        question = _ask_unknown(task, world) if unanswerable else _ask_known(task, world)
        if question is not None:
            return _renamed(Story(task, world.facts, [question]), draws)


def _ask_known(task: int, world: CarryingWorld) -> Question | None:
    match task:
        case 1:
            movers = [actor for actor, move in enumerate(world.last_move) if move != UNKNOWN]
            if not movers:
                return None
            actor = pick(world.random, movers)
            return Question(WHERE_IS[actor], PLACES[world.place[actor]], (world.last_move[actor],), len(world.facts))
        case 2:
            return ask_where_thing_is(world)
        case 3:
            return ask_where_thing_was(world)
        case 5:
            return ask_about_give(world)
        case 6:
            return ask_whether_in_place(world)
    handler = recent_handler(world)
    if handler is None:
        return None
    most = max(range(len(ACTORS)), key=world.holder.count)
    actor = most if world.random() < 0.5 and world.holder.count(most) else handler
    return (how_many if task == 7 else what_carried)(world, actor)


def _ask_unknown(task: int, world: CarryingWorld) -> Question | None:
    random, actors, things = world.random, range(len(ACTORS)), range(len(THINGS))
    lost_actors, lost_things = whereabouts_unknown(world)
    absent = [actor for actor in actors if all(actor not in (who, to) for _, who, _, to in world.events)]
    visited = {place for kind, _, place, _ in world.events if kind == MOVE}
    text: str | None = None
    if task in (1, 6) and lost_actors:
        actor = pick(random, lost_actors)
        text = WHERE_IS[actor] if task == 1 else pick(random, IS_IN[actor])
    elif task == 2 and lost_things:
        text = WHERE_IS_THING[pick(random, lost_things)]
    elif task == 3:
        thing, place = pick(random, things), pick(random, range(len(PLACES)))
        if thing in lost_things or place not in visited:
            text = WHERE_WAS_THING[thing][place]
    elif task == 5:
        gifts = [(GIVERS[who], THINGS[what], GIVERS[to]) for kind, who, what, to in world.events if kind == GIVE]
        text = gift_question(gifts, GIVERS, random)
    elif task in (7, 8) and absent:
        text = (HOW_MANY if task == 7 else WHAT_CARRYING)[pick(random, absent)]
    return None if text is None else Question(text, NOT_TOLD, (), len(world.facts))


def whereabouts_unknown(world: CarryingWorld) -> tuple[list[int], list[int]]:
    """The people and the things of which the facts do not say where they are, not even by who met whom.

    Whoever has not moved is at a beginning of their own; meeting makes two places one.
    """
    actors, things = len(world.setting.actors), len(THINGS)
    same = list(range(len(PLACES) + actors + things))  # places, then where each person and each thing began

    def find(place: int) -> int:
        while same[place] != place:
            place = same[place]
        return place

    def meet(first: int, second: int) -> None:
        low, high = sorted((find(first), find(second)))
        same[high] = low  # a place that has a name stays the root

    at = [len(PLACES) + actor for actor in range(actors)]
    lies = [len(PLACES) + actors + thing for thing in range(things)]
    holder = [NOBODY] * things
    for kind, actor, target, recipient in world.events:
        if kind == MOVE:
            at[actor] = target
            lies = [target if held == actor else place for held, place in zip(holder, lies, strict=True)]
            continue
        if kind == GIVE:
            meet(at[actor], at[recipient])
        elif kind != DROP:
            meet(at[actor], lies[target])
        lies[target] = at[actor]
        holder[target] = recipient if kind == GIVE else NOBODY if kind == DROP else actor
    return (
        [actor for actor in range(actors) if find(at[actor]) >= len(PLACES)],
        [thing for thing in range(things) if find(lies[thing]) >= len(PLACES)],
    )


def _renamed(story: Story, random: Callable[[], float]) -> Story:
    """The same story of other people in other places."""
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
