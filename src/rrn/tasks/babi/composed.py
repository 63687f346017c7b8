"""Stories that mix sentences of tasks 1-3, 5-8 and 11-13, with a question of tasks 1-3 or 5-8.

In bAbI each task has its own kinds of sentences. Here people move, alone or in pairs, take, drop and give things in the
same story, and may hold a thing from the beginning. `what_follows` answers questions from the events alone.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from rrn.tasks.babi.carrying import DROP, GET, GIVE, MOVE, NUMBERS
from rrn.tasks.babi.moving import THEN_MOVES
from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.vocabulary import NO_ANSWER
from rrn.tasks.babi.worlds import (
    DROP_VERBS,
    GET_VERBS,
    GIVE_VERBS,
    MOVE_VERBS,
    PRONOUNS,
    THINGS,
    draw,
    pick,
)

VERBS = {GET: GET_VERBS, DROP: DROP_VERBS, GIVE: GIVE_VERBS}
THERE = 0.2
"""Share of gets and drops that end with "there"."""


class Event(NamedTuple):
    """An action of one person, or a move of two; ``target`` is a place or a thing."""

    kind: int
    people: tuple[str, ...]
    target: str
    recipient: str = ""


class Asked(NamedTuple):
    """A question of a task: what it names, and for gifts which of giver, thing and recipient it asks for."""

    task: int
    names: tuple[str, ...]
    wanted: int = 0


def composed_story(
    task: int, random: Random, unanswerable: bool, people: Sequence[str], places: Sequence[str], most_facts: int
) -> Story:
    """A short story with some of the people and places, and one question of the task."""
    draws = random.random
    while True:
        cast = draw(draws, people, 2 + int(3 * draws()))
        rooms = draw(draws, places, 2 + int(4 * draws()))
        events = _act(cast, rooms, 1 + int(draws() * most_facts), draws)
        asked, text = _ask(task, events, [*cast, pick(draws, people)], rooms, draws)
        answer = what_follows(events, asked)
        if answer is not None and (answer == NO_ANSWER) == unanswerable:
            facts, pronouns = _sentences(events, draws)
            support = () if unanswerable else _support(events, asked, answer, pronouns)
            return Story(task, facts, [Question(text, answer, support, len(facts))])


def what_follows(events: Sequence[Event], asked: Asked) -> str | None:
    """The answer that follows from the events; `NO_ANSWER` if none does, None if the events contradict each other.

    People and things start at unknown places. A person who takes a thing is where it lies; a person who gets it from
    another is where the other is. Such places are merged (union-find).
    """
    same: dict[str, str] = {}
    at: dict[str, str] = {}
    holder: dict[str, str] = {}
    had: dict[str, dict[str, None]] = {}
    trail: dict[str, list[str]] = {}
    gifts: list[tuple[str, ...]] = []

    def find(place: str) -> str:
        while place in same:
            place = same[place]
        return place

    def of(name: str) -> str:
        return find(at.setdefault(name, f"?{name}"))

    for kind, people, target, recipient in events:
        if kind == MOVE:
            moved = [*people, *(thing for thing, person in holder.items() if person in people)]
            at |= dict.fromkeys(moved, target)
            for thing in moved[len(people) :]:
                trail[thing].append(target)
            continue
        (person,) = people
        meets = recipient if kind == GIVE else target if kind == GET else person
        unknown, known = sorted((of(person), of(meets)), key=lambda place: not place.startswith("?"))
        if unknown != known:
            if not unknown.startswith("?"):
                return None
            same[unknown] = known
        at[target] = of(person)
        trail.setdefault(target, []).append(at[target])
        if kind == DROP:
            holder.pop(target, None)
        else:
            holder[target] = recipient or person
            had.setdefault(holder[target], {})[target] = None
        gifts += [(person, target, recipient)] if kind == GIVE else []
    name, *others = asked.names
    if asked.task == 5:
        named = [gift for gift in gifts if is_named(gift, asked.names)]
        return named[-1][asked.wanted] if named else NO_ANSWER
    if asked.task in (7, 8):
        if not any(name in (*event.people, event.recipient) for event in events):
            return NO_ANSWER
        held = [thing for thing in had.get(name, ()) if holder.get(thing) == name]
        return NUMBERS[len(held)] if asked.task == 7 else ",".join(held) or "nothing"
    if asked.task == 3:
        places = [find(place) for place in trail.get(name, ())]
        visits = [n for n, place in enumerate(places) if n and place == others[0] != places[n - 1]]
        place = places[visits[-1] - 1] if visits else "?"
    else:
        place = of(name)
    if place.startswith("?"):
        return NO_ANSWER
    return place if asked.task != 6 else "yes" if place == others[0] else "no"


def gift_questions(giver: str, thing: str, recipient: str) -> list[tuple[tuple[str, ...], int, str]]:
    """Questions about a gift: the parts that it names ("" for others), which part is the answer, and the text."""
    return [
        ((giver, "", recipient), 1, f"What did {giver} give to {recipient}?"),
        (("", thing, ""), 0, f"Who gave the {thing}?"),
        (("", thing, recipient), 0, f"Who gave the {thing} to {recipient}?"),
        (("", thing, ""), 2, f"Who received the {thing}?"),
        ((giver, thing, ""), 2, f"Who did {giver} give the {thing} to?"),
    ]


def is_named(gift: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a gift (giver, thing, recipient) has all parts that a question names."""
    return all(name in ("", part) for part, name in zip(gift, names, strict=True))


def _act(people: list[str], places: list[str], count: int, random: Callable[[], float]) -> list[Event]:
    """Random events. Half of the time all people and things begin at one place."""
    together = random() < 0.5
    at = {name: places[0] if together else pick(random, places) for name in (*people, *THINGS)}
    holder = {thing: pick(random, people) for thing in THINGS if random() < 0.3}
    at |= {thing: at[person] for thing, person in holder.items()}
    events: list[Event] = []
    while len(events) < count:
        kind, person, thing = int(4 * random()), pick(random, people), pick(random, THINGS)
        event = Event(kind, (person,), thing)
        if kind == MOVE:
            movers = draw(random, people, 2) if random() < 0.2 else [person]
            place = pick(random, places)
            if any(at[mover] == place for mover in movers):
                continue
            event = Event(kind, tuple(movers), place)
            at |= dict.fromkeys((*movers, *(t for t in holder if holder[t] in movers)), place)
        elif kind == GET and thing not in holder and at[thing] == at[person]:
            holder[thing] = person
        elif kind == DROP and holder.get(thing) == person:
            del holder[thing]
        elif kind == GIVE and thing in holder and person != holder[thing] and at[person] == at[thing]:
            event = Event(kind, (holder[thing],), thing, person)
            holder[thing] = person
        else:
            continue
        events.append(event)
    return events


def _ask(
    task: int, events: list[Event], people: list[str], places: list[str], random: Callable[[], float]
) -> tuple[Asked, str]:
    person, thing, place = pick(random, people), pick(random, THINGS), pick(random, places)
    if task == 5:
        gifts = [event for event in events if event.kind == GIVE]
        giver, recipient = draw(random, people[:-1], 2)
        if gifts and random() < 0.8:
            chosen = pick(random, gifts)
            giver, thing, recipient = chosen.people[0], chosen.target, chosen.recipient
        names, wanted, text = pick(random, gift_questions(giver, thing, recipient))
        return Asked(task, names, wanted), text
    forms = {
        1: ((person,), f"Where is {person}?"),
        2: ((thing,), f"Where is the {thing}?"),
        3: ((thing, place), f"Where was the {thing} before the {place}?"),
        6: ((person, place), f"Is {person} in the {place}?"),
        7: ((person,), f"How many objects is {person} carrying?"),
        8: ((person,), f"What is {person} carrying?"),
    }
    named, text = forms[task]
    return Asked(task, named), text


def _sentences(events: list[Event], random: Callable[[], float]) -> tuple[list[str], set[int]]:
    """The events in words, and the numbers of those that refer to the people before by a pronoun."""
    facts: list[str] = []
    pronouns: set[int] = set()
    for number, event in enumerate(events):
        who, before = " and ".join(event.people), events[number - 1] if number else None
        if event.kind == MOVE:
            pronoun = "they" if len(event.people) == 2 else PRONOUNS.get(who)
            refers = before is not None and before.kind == MOVE and set(before.people) == set(event.people)
            if pronoun and refers and number - 1 not in pronouns and random() < 0.5:
                facts.append(pick(random, THEN_MOVES).format(who=pronoun, place=event.target))
                pronouns.add(number)
                continue
            facts.append(f"{who} {pick(random, MOVE_VERBS)} the {event.target}.")
            continue
        end = f" to {event.recipient}" if event.recipient else " there" if random() < THERE else ""
        facts.append(f"{who} {pick(random, VERBS[event.kind])} the {event.target}{end}.")
    return facts, pronouns


def _support(events: list[Event], asked: Asked, answer: str, pronouns: set[int]) -> tuple[int, ...]:
    """Facts from which the answer follows, such that it does not without any of them; older ones are left out first."""
    if asked.task in (7, 8):
        (name,) = asked.names
        named = [n for n, event in enumerate(events) if name in (*event.people, event.recipient)]
        return tuple(n for n in named if events[n].kind != MOVE) or (named[-1],)
    kept = list(range(len(events)))
    for number in range(len(events)):
        fewer = [n for n in kept if n != number]
        if what_follows([events[n] for n in fewer], asked) == answer:
            kept = fewer
    return tuple(sorted({*kept, *(number - 1 for number in kept if number in pronouns)}))
