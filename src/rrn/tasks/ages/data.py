"""Age arithmetic: one age, seven age differences, and how old is somebody?

Eight persons (0-7) have ages (0-99). The seven differences stated are the edges of a tree on the persons, so that
every age follows from the one age given. There are 8⁶ = 262,144 such trees, one for each Prüfer sequence of six
persons; a tenth of them is kept for testing.
"""

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from rrn.errors import InputError
from rrn.storage import expected_array, read_dataset, write_dataset

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
    nearness = rng.random((count, PERSONS))
    if longest is not None:
        wanted = rng.integers(longest + 1, size=(count, 1))
        nearness += np.where(distances <= wanted, distances, -1)
    asked = nearness.argmax(1)
    ages = rng.integers(AGES, size=(count, PERSONS))
    return Questions(_facts(trees, ages, anchor, rng), asked, ages, distances)


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
    a = np.where(swapped, edges[..., 1], edges[..., 0])
    b = np.where(swapped, edges[..., 0], edges[..., 1])
    difference = np.take_along_axis(ages, a, 1) - np.take_along_axis(ages, b, 1)
    facts = np.empty((count, PERSONS, 4), np.int64)
    facts[:, :-1] = np.stack([a, b, np.where(difference < 0, -1, 1), abs(difference)], axis=-1)
    facts[:, -1] = np.stack([anchor, anchor, np.zeros_like(anchor), ages[rows, anchor]], axis=-1)
    return facts
