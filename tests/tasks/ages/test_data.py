import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrn.errors import InputError
from rrn.io.datasets import write_dataset
from rrn.tasks.ages import data
from rrn.tasks.ages.data import (
    AGES,
    PERSONS,
    TREES,
    Questions,
    all_trees,
    held_out_questions,
    path_lengths,
    read_questions,
    sample,
    split_trees,
    write_questions,
)


def test_all_trees_are_distinct() -> None:
    edges = np.sort(all_trees().astype(np.int64), axis=2)
    codes = np.sort(edges[..., 0] * PERSONS + edges[..., 1], axis=1)
    assert (edges[..., 0] < edges[..., 1]).all()
    assert len(np.unique(codes @ 64 ** np.arange(7, dtype=np.int64))) == TREES == 262_144


def test_all_trees_are_connected() -> None:
    """With seven edges and all eight nodes reached, a graph on eight nodes is a tree."""
    assert all_trees().shape == (TREES, PERSONS - 1, 2)
    assert path_lengths().max() == PERSONS - 1


def test_path_lengths_agree_with_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    for tree in np.random.default_rng(0).choice(TREES, 200, replace=False):
        graph = networkx.Graph(all_trees()[tree].tolist())
        assert networkx.is_tree(graph)
        for a, lengths in networkx.all_pairs_shortest_path_length(graph):
            assert [lengths[b] for b in range(PERSONS)] == path_lengths()[tree, a].tolist()


def test_trees_are_those_of_their_pruefer_sequences() -> None:
    networkx = pytest.importorskip("networkx")
    for tree in (0, 1, 262_143, 123_456):
        sequence = [int(digit) for digit in np.base_repr(tree, 8).zfill(6)]
        edges = {frozenset(edge) for edge in all_trees()[tree].tolist()}
        assert edges == {frozenset(edge) for edge in networkx.from_prufer_sequence(sequence).edges}


def test_splits_are_disjoint_and_complete() -> None:
    parts = [split_trees(split) for split in ("train", "valid", "test")]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(TREES))
    assert len(parts[2]) == TREES // 10
    assert len(parts[0]) > 0.85 * TREES


def edges_of(facts: np.ndarray) -> frozenset[frozenset[int]]:
    return frozenset(frozenset((int(a), int(b))) for a, b, sign, _ in facts if sign)


def test_questions_of_a_split_are_about_its_trees() -> None:
    tests = {frozenset(frozenset(edge) for edge in tree.tolist()) for tree in all_trees()[split_trees("test")]}
    assert all(edges_of(facts) in tests for facts in held_out_questions(200).facts)
    training = sample("train", 200, np.random.default_rng(0))
    assert not any(edges_of(facts) in tests for facts in training.facts)


@given(st.integers(0, 2**32), st.sampled_from(["train", "valid", "test"]), st.none() | st.integers(0, 7))
@settings(max_examples=30, deadline=None)
def test_facts_follow_from_ages_and_ages_from_facts(seed: int, split: str, longest: int | None) -> None:
    questions = sample(split, 20, np.random.default_rng(seed), longest)
    assert questions.facts.shape == (20, PERSONS, 4)
    for facts, asked, ages, distances, answer, length in zip(
        questions.facts,
        questions.asked,
        questions.ages,
        questions.distances,
        questions.answer,
        questions.length,
        strict=True,
    ):
        anchors = [fact for fact in facts.tolist() if fact[2] == 0]
        assert len(anchors) == 1
        known, reached = {anchors[0][0]: anchors[0][3]}, {anchors[0][0]: 0}
        for _ in range(PERSONS):
            for a, b, sign, difference in facts.tolist():
                assert 0 <= difference < AGES
                for known_one, other, step in ((b, a, sign), (a, b, -sign)):
                    if sign and known_one in known and other not in known:
                        known[other] = known[known_one] + step * difference
                        reached[other] = reached[known_one] + 1
        assert [known[person] for person in range(PERSONS)] == ages.tolist()
        assert [reached[person] for person in range(PERSONS)] == distances.tolist()
        assert answer == ages[asked]
        assert length == distances[asked]
        assert longest is None or length <= longest


def test_distances_are_uniform_as_far_as_asked() -> None:
    questions = sample("train", 8_000, np.random.default_rng(0), longest=2)
    shares = np.bincount(questions.length, minlength=3) / 8_000
    assert np.allclose(shares, 1 / 3, atol=0.03)  # every tree reaches at least 1, nearly all reach 2


@pytest.mark.parametrize("level", data.LEVELS)
def test_stories_of_a_level(level: data.Level) -> None:
    """Every age follows from the facts, and every question is about a person in them, near enough."""
    questions = data.sample_level(level, 200, np.random.default_rng(3))
    assert questions.facts.shape == (200, level.people, 4)
    assert questions.length.max() == level.longest
    assert (questions.length == level.longest).mean() > 0.6 or level.longest > 2
    for facts, asked, ages, distances, answer in zip(
        questions.facts, questions.asked, questions.ages, questions.distances, questions.answer, strict=True
    ):
        given = facts[facts[:, 2] == 0]
        assert len(given) == 1
        known, near = {int(given[0, 0]): int(given[0, 3])}, {int(given[0, 0]): 0}
        while len(known) < level.people:
            for a, b, sign, difference in facts[facts[:, 2] != 0].tolist():
                if b in known and a not in known:
                    known[a], near[a] = known[b] + sign * difference, near[b] + 1
                elif a in known and b not in known:
                    known[b], near[b] = known[a] - sign * difference, near[a] + 1
        assert known[int(asked)] == answer
        assert {person: int(ages[person]) for person in known} == known
        assert {person: int(distances[person]) for person in near} == near
        if level.form != "any":
            assert all(a != given[0, 0] for a, *_ in facts[facts[:, 2] != 0].tolist())
        if level.form == "older":
            assert (facts[:, 2] >= 0).all()


def test_held_out_questions_are_always_the_same() -> None:
    few, many = held_out_questions(10), held_out_questions(10_010)
    assert all(np.array_equal(a, b[:10]) for a, b in zip(few.arrays().values(), many.arrays().values(), strict=True))
    assert len(many) == 10_010
    assert not np.array_equal(many.facts[:10], many.facts[10_000:])


def test_same_seed_same_questions() -> None:
    a, b, c = (sample("train", 50, np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert all(np.array_equal(x, y) for x, y in itertools.zip_longest(a.arrays().values(), b.arrays().values()))
    assert not np.array_equal(a.facts, c.facts)


def test_questions_survive_the_disk(tmp_path: Path) -> None:
    write_questions(tmp_path, 12, seed=3, split="valid")
    questions = read_questions(tmp_path)
    assert isinstance(questions, Questions)
    assert len(questions) == 12
    assert len(questions[2:5]) == 3
    write_dataset(tmp_path, {"facts": questions.facts}, {})
    with pytest.raises(InputError, match="no array 'asked' in this data set; write it with 'rrn data'"):
        read_questions(tmp_path)
