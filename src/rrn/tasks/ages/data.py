"""Age arithmetic: one age, seven age differences, and how old is somebody?

Eight persons (0-7) have ages (0-99). The seven differences stated are the edges of a tree on the persons, so that
every age follows from the one age given. There are 8⁶ = 262,144 such trees, one for each Prüfer sequence of six
persons; a tenth of them is kept for testing.
"""

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from rrn.errors import InputError
from rrn.io.datasets import expected_array, read_dataset, write_dataset

PERSONS = 8
AGES = 100
TREES = PERSONS ** (PERSONS - 2)
SPLIT_SEED = 2018
"""Which trees are for testing is the same in every run."""

VERSION = 1
Split = Literal["train", "valid", "test"]
VALIDATION_TREES = 2_000


@dataclass(frozen=True)
class Questions:
    """``facts`` (n, 8, 4): person A, person B, sign, difference, as "A is d older (+1) or younger (-1) than B".

    One fact has sign 0: "A is d years old", A and B the same. ``asked`` (n,) is a person, ``ages`` (n, 8) are the
    ages of all, ``distances`` (n, 8) how many differences lie between each and the person whose age is given.
    """

    facts: np.ndarray
    asked: np.ndarray
    ages: np.ndarray
    distances: np.ndarray

    @property
    def answer(self) -> np.ndarray:
        return self.ages[np.arange(len(self)), self.asked]

    @property
    def length(self) -> np.ndarray:
        return self.distances[np.arange(len(self)), self.asked]

    def __len__(self) -> int:
        return len(self.asked)

    def __getitem__(self, rows: slice) -> "Questions":
        return Questions(*(array[rows] for array in self.arrays().values()))

    def arrays(self) -> dict[str, np.ndarray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@cache
def all_trees() -> np.ndarray:
    """The edges of every labelled tree on eight nodes: (262144, 7, 2), in the order of their Prüfer sequences."""
    sequences = np.stack(np.unravel_index(np.arange(TREES), [PERSONS] * (PERSONS - 2)), axis=1)
    rows = np.arange(TREES)
    degree = np.ones((TREES, PERSONS), np.int8)
    for column in sequences.T:
        degree[rows, column] += 1
    edges = np.empty((TREES, PERSONS - 1, 2), np.uint8)
    for index, parent in enumerate(sequences.T):
        leaf = (degree == 1).argmax(1)
        edges[:, index] = np.stack([leaf, parent], axis=1)
        degree[rows, leaf] -= 1
        degree[rows, parent] -= 1
    last = np.argsort(degree, axis=1, kind="stable")[:, -2:]
    edges[:, -1] = last
    return edges


@cache
def path_lengths() -> np.ndarray:
    """The number of edges between any two nodes of every tree: (262144, 8, 8)."""
    edges = all_trees().astype(int)
    rows = np.arange(TREES)
    length = np.full((TREES, PERSONS, PERSONS), PERSONS, np.uint8)
    length[:, range(PERSONS), range(PERSONS)] = 0
    for a, b in edges.transpose(1, 2, 0):
        length[rows, a, b] = length[rows, b, a] = 1
    for middle in range(PERSONS):
        np.minimum(length, length[:, :, middle, None] + length[:, middle, None, :], out=length)
    return length


@cache
def split_trees(split: Split) -> np.ndarray:
    """The numbers of the trees of a split: a tenth for testing, a few for validation, all others for training."""
    order = np.random.default_rng(SPLIT_SEED).permutation(TREES)
    tests = TREES // 10
    test, valid, train = np.split(order, [tests, tests + VALIDATION_TREES])
    return np.sort({"test": test, "valid": valid, "train": train}[split])


def sample(split: Split, count: int, rng: np.random.Generator, longest: int | None = None) -> Questions:
    """Trees of a split with fresh ages, a fresh anchor and a fresh question.

    Anchor and question are uniform over the persons. With ``longest`` the *distance* between them is uniform from 0
    to ``longest`` instead, as far as the tree reaches.
    """
    trees = rng.choice(split_trees(split), count)
    anchor = rng.integers(PERSONS, size=count)
    distances = path_lengths()[trees, anchor].astype(np.int64)
    chance = rng.random((count, PERSONS))
    asked = chance.argmax(1) if longest is None else _furthest(distances, rng.integers(longest + 1, size=count), chance)
    ages = rng.integers(AGES, size=(count, PERSONS))
    return Questions(_facts(trees, ages, anchor, rng), asked, ages, distances)


class Level(NamedTuple):
    """Stories for who has yet to learn what a story is: of fewer people, and told in fewer ways."""

    people: int
    longest: int
    """The most differences between the age given and the age asked."""
    told: Literal["older", "first", "any"] = "any"
    """How the differences are told: the one further from the age given comes first and is the older, comes first, or
    either way round."""


LEVELS = (
    Level(1, 0),
    Level(2, 1, "older"),
    Level(2, 1, "first"),
    *(Level(people, 1) for people in (2, 3, 4, 6)),
    *(Level(PERSONS, longest) for longest in range(1, PERSONS)),
)
"""From copying a number to questions as they are tested: adding is learned with two people, whom it is about with more
of them."""
FURTHEST_SHARE = 0.7
"""Share of a level's questions that ask for its furthest person; the others ask for any within reach."""


def sample_level(level: Level, count: int, rng: np.random.Generator) -> Questions:
    """Fresh stories of a level, with ``people`` facts each; stories of all eight people are of training trees.

    People who are in no fact are at distance 8.
    """
    ages = rng.integers(AGES, size=(count, PERSONS))
    if level.people == PERSONS:
        trees, anchor = rng.choice(split_trees("train"), count), rng.integers(PERSONS, size=count)
        distances = path_lengths()[trees, anchor].astype(np.int64)
        facts = _facts(trees, ages, anchor, rng)
    else:
        facts, distances = _few_facts(level, ages, rng)
    wanted = np.where(rng.random(count) < FURTHEST_SHARE, level.longest, rng.integers(level.longest + 1, size=count))
    return Questions(facts, _furthest(distances, wanted, rng.random((count, PERSONS))), ages, distances)


def _few_facts(level: Level, ages: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Facts about some of the people, each compared with a random earlier one; everybody's distance from the first.

    Where differences are told from the older one, ages are exchanged, in place, until they are.
    """
    count, rows = len(ages), np.arange(len(ages))
    people = rng.permuted(np.tile(np.arange(PERSONS), (count, 1)), axis=1)[:, : level.people]
    first = people[:, 0]
    distances = np.full((count, PERSONS), PERSONS)
    distances[rows, first] = 0
    facts = np.empty((count, level.people, 4), np.int64)
    for index in range(1, level.people):
        new, known = people[:, index], people[rows, rng.integers(index, size=count)]
        distances[rows, new] = distances[rows, known] + 1
        if level.told == "older":
            pair = ages[rows, known], ages[rows, new]
            ages[rows, known], ages[rows, new] = np.minimum(*pair), np.maximum(*pair)
        swapped = (rng.random(count) < 0.5) & (level.told == "any")
        facts[:, index] = _difference(ages, np.where(swapped, known, new), np.where(swapped, new, known))
    facts[:, 0] = np.stack([first, first, np.zeros_like(first), ages[rows, first]], axis=-1)
    return facts, distances


def _furthest(distances: np.ndarray, wanted: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """For each row somebody as far as ``wanted``, or as far as there is anybody within it; whom, ``chance`` decides."""
    return (chance + np.where(distances <= wanted[:, None], distances, -1)).argmax(1)


def held_out_questions(count: int, seed: int = 0) -> Questions:
    """The same questions in every run: the first ``count`` of an endless list over trees never trained on.

    Distances are those that chance gives (7 is rare), so results are reported by distance.
    """
    block = 10_000
    blocks = [sample("test", block, np.random.default_rng([SPLIT_SEED, seed, b])) for b in range(-(-count // block))]
    joined = [np.concatenate([getattr(b, field.name) for b in blocks]) for field in fields(Questions)]
    return Questions(*joined)[:count]


def write_questions(folder: str | Path, count: int, seed: int, split: Split) -> None:
    """Questions as a data set on disk."""
    questions = sample(split, count, np.random.default_rng([SPLIT_SEED, 1, seed]))
    about = {"task": "ages", "split": split, "count": count, "seed": seed, "version": VERSION}
    write_dataset(folder, questions.arrays(), about)


def read_questions(folder: str | Path) -> Questions:
    arrays, _ = read_dataset(folder)
    bounds = {
        "facts": ((PERSONS, 4), -1, AGES - 1),
        "asked": ((), 0, PERSONS - 1),
        "ages": ((PERSONS,), 0, AGES - 1),
        "distances": ((PERSONS,), 0, PERSONS - 1),
    }
    read = {name: expected_array(arrays, name, folder, np.int64, *bound) for name, bound in bounds.items()}
    persons = read["facts"][..., :2]
    if persons.min() < 0 or persons.max() >= PERSONS or len({len(array) for array in read.values()}) > 1:
        raise InputError(f"{folder}: not questions of age arithmetic; write a data set with 'rrn data ages'")
    return Questions(**read)


def _facts(trees: np.ndarray, ages: np.ndarray, anchor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    count, rows = len(trees), np.arange(len(trees))
    edges = all_trees()[trees].astype(np.int64)
    swapped = rng.random((count, PERSONS - 1)) < 0.5
    facts = np.empty((count, PERSONS, 4), np.int64)
    for index, (one, other) in enumerate(edges.transpose(1, 2, 0)):
        swap = swapped[:, index]
        facts[:, index] = _difference(ages, np.where(swap, other, one), np.where(swap, one, other))
    facts[:, -1] = np.stack([anchor, anchor, np.zeros_like(anchor), ages[rows, anchor]], axis=-1)
    return facts


def _difference(ages: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The facts (n, 4) of how much older or younger A is than B."""
    rows = np.arange(len(ages))
    difference = ages[rows, a] - ages[rows, b]
    return np.stack([a, b, np.where(difference < 0, -1, 1), abs(difference)], axis=-1)
