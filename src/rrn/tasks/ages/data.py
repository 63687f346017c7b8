"""Data of age arithmetic: one age, seven age differences, and a question for the age of a person.

Eight persons (0-7) have ages (0-99). The seven differences are the edges of a tree on the persons, so every age follows
from the one age given. There are 8⁶ = 262,144 such trees, one for each Prüfer sequence of six persons. A tenth of them
is the test set.
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
"""Seed of the split into training, validation and test trees; fixed."""

VERSION = 1
Split = Literal["train", "valid", "test"]
VALIDATION_TREES = 2_000


@dataclass(frozen=True)
class Questions:
    """``facts`` (n, 8, 4): person A, person B, sign, difference, as "A is d older (+1) or younger (-1) than B".

    One fact has sign 0 and A = B: "A is d years old". ``asked`` (n,) is a person, ``ages`` (n, 8) are the ages of all
    persons, ``distances`` (n, 8) the number of differences between each person and the one whose age is given.
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
    """Indices of the trees of a split: a tenth for test, a few for validation, all others for training."""
    order = np.random.default_rng(SPLIT_SEED).permutation(TREES)
    tests = TREES // 10
    test, valid, train = np.split(order, [tests, tests + VALIDATION_TREES])
    return np.sort({"test": test, "valid": valid, "train": train}[split])


def sample(split: Split, count: int, rng: np.random.Generator, longest: int | None = None) -> Questions:
    """Random questions on trees of a split.

    The person whose age is given and the person asked are uniform. With ``longest``, the *distance* between them is
    uniform from 0 to ``longest``, or the largest distance in the tree.
    """
    trees = rng.choice(split_trees(split), count)
    anchor = rng.integers(PERSONS, size=count)
    distances = path_lengths()[trees, anchor].astype(np.int64)
    chance = rng.random((count, PERSONS))
    asked = chance.argmax(1) if longest is None else _furthest(distances, rng.integers(longest + 1, size=count), chance)
    ages = rng.integers(AGES, size=(count, PERSONS))
    return Questions(_facts(trees, ages, anchor, rng), asked, ages, distances)


class Level(NamedTuple):
    """A level of the curriculum: stories with fewer people and fewer forms of sentences."""

    people: int
    longest: int
    """Largest number of differences between the age given and the age asked."""
    form: Literal["older", "first", "any"] = "any"
    """Form of the differences: the person further from the age given is named first and is older ("older"), is named
    first ("first"), or neither ("any")."""
    chain: bool = False
    """Each person is compared with the one before, not with a random earlier one."""


LEVELS = (
    Level(1, 0),
    Level(2, 1, "older"),
    Level(2, 1, "first"),
    *(Level(people, 1) for people in (2, 3, 4, 6)),
    Level(3, 2, chain=True),
    *(Level(PERSONS, longest) for longest in range(1, PERSONS)),
)
"""From copying a number, over addition with two people, to the questions of the test set."""
FURTHEST_SHARE = 0.7
"""Share of a level's questions that ask for a person at the largest distance."""


def sample_level(level: Level, count: int, rng: np.random.Generator) -> Questions:
    """Random stories of a level with ``people`` facts each; stories of eight people use training trees.

    People without a fact have distance 8.
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
    """Facts that compare each new person with a random earlier one, and the distances of all from the first person.

    With the form "older", ages are exchanged in place where necessary.
    """
    count, rows = len(ages), np.arange(len(ages))
    people = rng.permuted(np.tile(np.arange(PERSONS), (count, 1)), axis=1)[:, : level.people]
    first = people[:, 0]
    distances = np.full((count, PERSONS), PERSONS)
    distances[rows, first] = 0
    facts = np.empty((count, level.people, 4), np.int64)
    for index in range(1, level.people):
        earlier = np.full(count, index - 1) if level.chain else rng.integers(index, size=count)
        new, known = people[:, index], people[rows, earlier]
        distances[rows, new] = distances[rows, known] + 1
        if level.form == "older":
            pair = ages[rows, known], ages[rows, new]
            ages[rows, known], ages[rows, new] = np.minimum(*pair), np.maximum(*pair)
        swapped = (rng.random(count) < 0.5) & (level.form == "any")
        facts[:, index] = _difference(ages, np.where(swapped, known, new), np.where(swapped, new, known))
    facts[:, 0] = np.stack([first, first, np.zeros_like(first), ages[rows, first]], axis=-1)
    return facts, distances


def _furthest(distances: np.ndarray, wanted: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """For each row a person at the largest distance up to ``wanted``; ``chance`` breaks ties."""
    return (chance + np.where(distances <= wanted[:, None], distances, -1)).argmax(1)


def held_out_questions(count: int, seed: int = 0) -> Questions:
    """The test set: the first ``count`` questions of a fixed endless list on test trees.

    Persons are uniform, so a distance of 7 is rare; results are reported by distance.
    """
    block = 10_000
    blocks = [sample("test", block, np.random.default_rng([SPLIT_SEED, seed, b])) for b in range(-(-count // block))]
    joined = [np.concatenate([getattr(b, field.name) for b in blocks]) for field in fields(Questions)]
    return Questions(*joined)[:count]


def write_questions(folder: str | Path, count: int, seed: int, split: Split) -> None:
    """Write random questions as a data set."""
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
    """Facts (n, 4) with the age difference of A and B."""
    rows = np.arange(len(ages))
    difference = ages[rows, a] - ages[rows, b]
    return np.stack([a, b, np.where(difference < 0, -1, 1), abs(difference)], axis=-1)
