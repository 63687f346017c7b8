"""Tasks 1 and 9-14: people move. The facts use plain sentences, negation, alternatives, pronouns, pairs or times."""

from collections.abc import Callable
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


def hidden_places(random: Callable[[], float]) -> list[int]:
    return [int(random() * ROOMS) for _ in range(PEOPLE)]


def recent_index(random: Callable[[], float], count: int) -> int:
    """A random index among the latest of ``count`` facts or mentions."""
    return count - 1 - int(random() * min(RECENT, count))


def single_supporting_fact(rng: Random) -> Story:
    random = rng.random
    place = hidden_places(random)
    last_move = [0] * PEOPLE
    movers: list[int] = []
    facts: list[str] = []
    questions: list[Question] = []
    while len(questions) < QUESTIONS_PER_STORY:
        for _ in range(FACTS_BETWEEN_QUESTIONS):
            actor = int(random() * PEOPLE)
            place[actor] = destination = other(random, ROOMS, place[actor])
            last_move[actor] = len(facts)
            movers.append(actor)
            facts.append(pick(random, MOVES[actor][destination]))
        actor = movers[recent_index(random, len(facts))]
        questions.append(Question(WHERE_IS[actor], PLACES[place[actor]], (last_move[actor],), len(facts)))
    return Story(1, facts, questions)


def simple_negation(rng: Random) -> Story:
    random = rng.random
    place = hidden_places(random)
    denied: list[int | None] = [None] * PEOPLE
    """The place that each actor has left according to a negation in the latest fact."""
    last_fact = [0] * PEOPLE
    movers: list[int] = []
    facts: list[str] = []
    questions: list[Question] = []
    while len(questions) < QUESTIONS_PER_STORY:
        for _ in range(FACTS_BETWEEN_QUESTIONS):
            actor = int(random() * PEOPLE)
            left = place[actor]
            place[actor] = destination = other(random, ROOMS, left)
            last_fact[actor] = len(facts)
            movers.append(actor)
            form = random()
            denied[actor] = left if form >= 0.75 else None
            if form < 0.5:
                facts.append(pick(random, MOVES[actor][destination]))
            elif form < 0.75:
                facts.append(IS_HERE[actor][destination][0])
            else:
                facts.append(pick(random, IS_NOT_HERE[actor][left]))
        actor = movers[recent_index(random, len(facts))]
        asked, answer = denied[actor], "no"
        if asked is None:
            if random() < 0.5:
                asked, answer = place[actor], "yes"
            else:
                asked = other(random, ROOMS, place[actor])
        questions.append(Question(IS_IN[actor][asked], answer, (last_fact[actor],), len(facts)))
    return Story(9, facts, questions)


def indefinite_knowledge(rng: Random) -> Story:
    random = rng.random
    place = hidden_places(random)
    possible: list[tuple[int, int] | None] = [None] * PEOPLE
    """The two places in the latest fact about each actor, if it is an alternative; they may be equal."""
    last_fact = [0] * PEOPLE
    movers: list[int] = []
    facts: list[str] = []
    questions: list[Question] = []
    while len(questions) < QUESTIONS_PER_STORY:
        for _ in range(FACTS_BETWEEN_QUESTIONS):
            actor = int(random() * PEOPLE)
            place[actor] = destination = other(random, ROOMS, place[actor])
            last_fact[actor] = len(facts)
            movers.append(actor)
            possible[actor] = None
            form = random()
            if form < 0.5:
                facts.append(pick(random, TOWN_MOVES[actor][destination]))
            elif form < 0.75:
                facts.append(TOWN_IS_HERE[actor][destination][0])
            else:
                decoy = int(random() * ROOMS)
                first, second = (destination, decoy) if random() < 0.5 else (decoy, destination)
                possible[actor] = (first, second)
                facts.append(EITHER[actor][first][second])
        actor = movers[recent_index(random, len(facts))]
        asked = place[actor] if random() < 0.5 else other(random, ROOMS, place[actor])
        open_places = possible[actor]
        if open_places is not None:
            answer = "maybe" if asked in open_places else "no"
        else:
            answer = "yes" if asked == place[actor] else "no"
        questions.append(Question(TOWN_IS_IN[actor][asked], answer, (last_fact[actor],), len(facts)))
    return Story(10, facts, questions)


def basic_coreference(rng: Random) -> Story:
    random = rng.random
    place = hidden_places(random)
    last_pair = [0] * PEOPLE
    movers: list[int] = []
    facts: list[str] = []
    questions: list[Question] = []
    while len(questions) < QUESTIONS_PER_STORY:
        actor = int(random() * PEOPLE)
        first = other(random, ROOMS, place[actor])
        place[actor] = second = other(random, ROOMS, first)
        last_pair[actor] = len(facts)
        facts.append(pick(random, MOVES[actor][first]))
        facts.append(pick(random, PRONOUN_MOVES[PRONOUNS[ACTORS[actor]]][second]))
        movers += (actor, actor)
        actor = movers[recent_index(random, len(facts))]
        support = (last_pair[actor], last_pair[actor] + 1)
        questions.append(Question(WHERE_IS[actor], PLACES[place[actor]], support, len(facts)))
    return Story(11, facts, questions)


def joint_move(random: Callable[[], float], place: list[int]) -> tuple[tuple[int, int], int]:
    """A pair of people, in the order named, and a place where neither of them is."""
    while True:
        pair = pick(random, PAIRS)
        destination = int(random() * ROOMS)
        if place[pair[0]] != destination != place[pair[1]]:
            return pair, destination


def conjunction(rng: Random) -> Story:
    """The question is about one of the latest mentions of people, of which each fact has two."""
    random = rng.random
    place = hidden_places(random)
    last_fact = [0] * PEOPLE
    mentioned: list[int] = []
    facts: list[str] = []
    questions: list[Question] = []
    while len(questions) < QUESTIONS_PER_STORY:
        for _ in range(FACTS_BETWEEN_QUESTIONS):
            pair, destination = joint_move(random, place)
            for actor in pair:
                place[actor] = destination
                last_fact[actor] = len(facts)
                mentioned.append(actor)
            facts.append(pick(random, PAIR_MOVES[pair][destination]))
        actor = mentioned[recent_index(random, len(mentioned))]
        questions.append(Question(WHERE_IS[actor], PLACES[place[actor]], (last_fact[actor],), len(facts)))
    return Story(12, facts, questions)


def compound_coreference(rng: Random) -> Story:
    """As in `conjunction`; "they" mentions both people."""
    random = rng.random
    place = hidden_places(random)
    last_block = [0] * PEOPLE
    mentioned: list[int] = []
    facts: list[str] = []
    questions: list[Question] = []
    while len(questions) < QUESTIONS_PER_STORY:
        pair, first = joint_move(random, place)
        second = other(random, ROOMS, first)
        for actor in pair:
            place[actor] = second
            last_block[actor] = len(facts)
        mentioned += pair + pair
        facts.append(pick(random, PAIR_MOVES[pair][first]))
        facts.append(pick(random, PRONOUN_MOVES["they"][second]))
        actor = mentioned[recent_index(random, len(mentioned))]
        support = (last_block[actor], last_block[actor] + 1)
        questions.append(Question(WHERE_IS[actor], PLACES[place[actor]], support, len(facts)))
    return Story(13, facts, questions)


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
