"""Tasks 4 and 15-20: relations of rooms, deduction, induction, positions, sizes, paths and motivations."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.worlds import GET_VERBS, PLACES, draw, moves_to, other, pick

Offset = tuple[int, int]
Edge = tuple[int, int]

COMPASS: dict[Offset, str] = {(0, 1): "north", (0, -1): "south", (1, 0): "east", (-1, 0): "west"}
DIRECTIONS = tuple(COMPASS)


def opposite(offset: Offset) -> Offset:
    return (-offset[0], -offset[1])


def edges_in_random_order(rng: Random, neighbours: Sequence[Sequence[int]], edges: int) -> list[Edge]:
    """Each edge of a graph once, as (node, neighbour), in the order of repeated draws of a node and a neighbour."""
    random = rng.random
    drawn: list[Edge] = []
    while len(drawn) < edges:
        node = int(random() * len(neighbours))
        neighbour = pick(random, neighbours[node])
        if (node, neighbour) not in drawn and (neighbour, node) not in drawn:
            drawn.append((node, neighbour))
    return drawn


LINE = ((1,), (0, 2), (1,))
"""Neighbours of three nodes in a row; node 1 is in the middle."""


def two_arg_relations(rng: Random) -> Story:
    random = rng.random
    rooms = draw(random, PLACES, 3)
    along = pick(random, DIRECTIONS)
    back = opposite(along)
    relations = [
        (rooms[first], along if first > second else back, rooms[second])
        for first, second in edges_in_random_order(rng, LINE, 2)
    ]
    asked = int(random() * 2)
    subject, direction, place = relations[asked]
    if random() < 0.5:
        text = f"What is {COMPASS[direction]} of the {place}?"
    else:
        text = f"What is the {place} {COMPASS[opposite(direction)]} of?"
    facts = [f"The {upper} is {COMPASS[offset]} of the {lower}." for upper, offset, lower in relations]
    return Story(4, facts, [Question(text, subject, (asked,), 2)])


PREY = ("mouse", "sheep", "wolf", "cat")
PREY_PLURAL = ("mice", "sheep", "wolves", "cats")
PREY_OWNERS = ("Gertrude", "Winona", "Jessica", "Emily")


def basic_deduction(rng: Random) -> Story:
    random = rng.random
    fears: dict[int, tuple[int, int]] = {}
    """For each species: the species that it is afraid of, and the index of the fact."""
    kinds: dict[int, tuple[int, int]] = {}
    facts: list[str] = []
    while len(facts) < 8:
        if random() < 0.5:
            animal = int(random() * 4)
            if animal not in fears:
                feared = other(random, 4, animal)
                fears[animal] = (feared, len(facts))
                facts.append(f"{PREY_PLURAL[animal].capitalize()} are afraid of {PREY_PLURAL[feared]}.")
        else:
            person, animal = int(random() * 4), int(random() * 4)
            if person not in kinds and animal in fears:
                kinds[person] = (animal, len(facts))
                facts.append(f"{PREY_OWNERS[person]} is a {PREY[animal]}.")
    questions = []
    for _ in range(4):
        person = int(random() * 4)
        animal, is_fact = kinds[person]
        feared, fear_fact = fears[animal]
        text = f"What is {PREY_OWNERS[person].lower()} afraid of?"
        questions.append(Question(text, PREY[feared], (is_fact, fear_fact), 8))
    return Story(15, facts, questions)


SPECIES = ("swan", "lion", "frog", "rhino")
COLOURS = ("gray", "white", "yellow", "green")
NAMED = ("Lily", "Bernhard", "Greg", "Julius", "Brian")


def basic_induction(rng: Random) -> Story:
    """Each new animal redraws the colour of its species, so animals of a species can differ in colour."""
    random = rng.random
    while True:
        colour_of_species = [0] * 4
        species: dict[int, tuple[int, int]] = {}
        """For each animal: the species, and the index of the fact."""
        colours: dict[int, tuple[int, int]] = {}
        facts: list[str] = []
        while len(facts) < 9:
            person = int(random() * 5)
            if random() < 0.5:
                if person not in species:
                    kind = int(random() * 4)
                    colour_of_species[kind] = int(random() * 4)
                    species[person] = (kind, len(facts))
                    facts.append(f"{NAMED[person]} is a {SPECIES[kind]}.")
            elif person in species and person not in colours and len(colours) < 4:
                colour = colour_of_species[species[person][0]]
                colours[person] = (colour, len(facts))
                facts.append(f"{NAMED[person]} is {COLOURS[colour]}.")
        asked = next(person for person in range(5) if person not in colours)
        kind, asked_fact = species[asked]
        same_species = [person for person in range(5) if person != asked and species[person][0] == kind]
        if len(same_species) in (1, 3, 4):
            break
    latest = max(same_species, key=lambda person: species[person][1])
    colour, colour_fact = colours[latest]
    support = (asked_fact, species[latest][1], colour_fact)
    return Story(16, facts, [Question(f"What color is {NAMED[asked]}?", COLOURS[colour], support, 9)])


SHAPES = ("triangle", "pink rectangle", "red square", "blue square", "yellow square", "red sphere")
RELATIVE: dict[Offset, str] = {(0, 1): "above", (0, -1): "below", (-1, 0): "to the left of", (1, 0): "to the right of"}


def positional_reasoning(rng: Random) -> Story:
    """Unlike in the tasks with rooms, the node of an edge that was drawn first is named second."""
    random = rng.random
    shapes = draw(random, SHAPES, 3)
    ends = draw(random, DIRECTIONS, 2)
    cells = (ends[0], (0, 0), ends[1])
    facts: list[str] = []
    fact_of_end = [0, 0, 0]
    for neighbour, node in edges_in_random_order(rng, LINE, 2):
        offset = (cells[node][0] - cells[neighbour][0], cells[node][1] - cells[neighbour][1])
        fact_of_end[neighbour if node == 1 else node] = len(facts)
        facts.append(f"The {shapes[node]} is {RELATIVE[offset]} the {shapes[neighbour]}.")
    questions = []
    for _ in range(8):
        first, second = (0, 2) if random() < 0.5 else (2, 0)
        x, y = cells[first][0] - cells[second][0], cells[first][1] - cells[second][1]
        answer = random() < 0.5
        relation = pick(random, [side for side in RELATIVE if (side[0] * x + side[1] * y > 0) == answer])
        text = f"Is the {shapes[first]} {RELATIVE[relation]} the {shapes[second]}?"
        questions.append(Question(text, "yes" if answer else "no", (fact_of_end[first], fact_of_end[second]), 2))
    return Story(17, facts, questions)


SMALL_THINGS = ("chocolate", "box of chocolates")
BIG_THINGS = ("box", "chest", "container", "suitcase")
SIZED = SMALL_THINGS + BIG_THINGS
SIZE_TRIES = 100
RESTATED = 0.6
"""Probability that the support of a repeated fact is its last repetition."""


def size_question(rng: Random, order: Sequence[str], pairs: list[Edge]) -> Question | None:
    """A question that needs two facts: a random one, and the first other fact that shares a thing with it.

    ``pairs`` holds the facts as (smaller, bigger), indices into ``order``. None if the two facts are not a chain of
    three sizes.
    """
    random = rng.random
    index = int(random() * len(pairs))
    pair = pairs[index]
    if pairs.count(pair) > 1 and random() < RESTATED:
        index = max(n for n, stated in enumerate(pairs) if stated == pair)
    end = int(random() * 2)
    bigger, middle = pair[end], pair[1 - end]
    for onward, (low, high) in enumerate(pairs):
        if onward != index and middle in (low, high):
            smaller = high if middle == low else low
            if (bigger < middle) != (middle < smaller):
                return None
            small, big = order[smaller], order[bigger]
            text = pick(random, (f"Does the {small} fit in the {big}?", f"Is the {big} bigger than the {small}?"))
            return Question(text, "yes" if smaller < bigger else "no", (index, onward), len(pairs))
    return None


def size_reasoning(rng: Random) -> Story:
    random = rng.random
    order = SMALL_THINGS + tuple(draw(random, BIG_THINGS, 4))
    pairs: list[Edge] = []
    facts: list[str] = []
    questions: list[Question] = []
    asked = 0
    while asked < 5:
        for _ in range(5):
            first = int(random() * 6)
            second = other(random, 6, first)
            pair = (first, second) if first < second else (second, first)
            pairs.append(pair)
            small, big = order[pair[0]], order[pair[1]]
            facts.append(
                pick(random, (f"The {small} fits inside the {big}.", f"The {big} is bigger than the {small}."))
            )
        asked = 0
        for _ in range(SIZE_TRIES):
            question = size_question(rng, order, pairs)
            if question is not None:
                questions.append(question)
                asked += 1
                if asked == 5:
                    break
    return Story(18, facts, questions)


DECOYS = 3


def path_finding(rng: Random) -> Story:
    """The path 0-1-2 among six rooms; 3 to 5 are decoys, each beside a room of the path."""
    random = rng.random
    rooms = draw(random, PLACES, 6)
    there = pick(random, DIRECTIONS)
    onward = pick(random, [way for way in DIRECTIONS if way != opposite(there)])
    towards: dict[Edge, Offset] = {}
    """For each edge in both directions: the direction from the first room to the second."""
    neighbours: list[list[int]] = [[] for _ in rooms]

    def join(room: int, way: Offset, neighbour: int) -> None:
        towards[room, neighbour] = way
        towards[neighbour, room] = opposite(way)
        neighbours[room].append(neighbour)
        neighbours[neighbour].append(room)

    join(0, there, 1)
    join(1, onward, 2)
    taken = {(0, there), (1, opposite(there)), (1, onward), (2, opposite(onward))}
    free = [(room, way) for room in range(3) for way in DIRECTIONS if (room, way) not in taken]
    for decoy, (room, way) in enumerate(draw(random, free, DECOYS), start=3):
        join(room, way, decoy)
    facts: list[str] = []
    support = [0, 0]
    for room, neighbour in edges_in_random_order(rng, neighbours, 5):
        for step, path_edge in enumerate(pairwise((0, 1, 2))):
            if path_edge in ((room, neighbour), (neighbour, room)):
                support[step] = len(facts)
        facts.append(f"The {rooms[room]} is {COMPASS[towards[neighbour, room]]} of the {rooms[neighbour]}.")
    answer = f"{COMPASS[there][0]},{COMPASS[onward][0]}"
    text = f"How do you go from the {rooms[0]} to the {rooms[2]}?"
    return Story(19, facts, [Question(text, answer, tuple(support), 5)])


MOTIVATED = ("Jason", "Antoine", "Sumit", "Yann")
MOTIVES = ("hungry", "thirsty", "bored", "tired")
GOALS = ("kitchen", "kitchen", "garden", "bedroom")
WANTED = ("apple", "milk", "football", "pajamas")


def agents_motivations(rng: Random) -> Story:
    random = rng.random
    motive = [int(random() * 4) for _ in MOTIVATED]
    steps = [0] * 4
    taken = [False] * 4
    first_fact = [0] * 4
    facts: list[str] = []
    questions: list[Question] = []
    while True:
        able = [p for p in range(4) if steps[p] < 2 or (steps[p] == 2 and not taken[motive[p]])]
        if not able:
            return Story(20, facts, questions)
        person = pick(random, able)
        who, feeling = MOTIVATED[person], motive[person]
        if steps[person] == 0:
            first_fact[person] = len(facts)
            facts.append(f"{who} is {MOTIVES[feeling]}.")
            text, answer = f"Where will {who.lower()} go?", GOALS[feeling]
        elif steps[person] == 1:
            facts.append(moves_to(random, who, GOALS[feeling]))
            text, answer = f"Why did {who.lower()} go to the {GOALS[feeling]}?", MOTIVES[feeling]
        else:
            taken[feeling] = True
            facts.append(f"{who} {pick(random, GET_VERBS)} the {WANTED[feeling]} there.")
            text, answer = f"Why did {who.lower()} get the {WANTED[feeling]}?", MOTIVES[feeling]
        steps[person] += 1
        questions.append(Question(text, answer, (first_fact[person],), len(facts)))
