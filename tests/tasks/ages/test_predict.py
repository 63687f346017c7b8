from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tasks.ages.test_evaluate import Knowing

from rrn.errors import InputError
from rrn.tasks.ages.data import AGES, PERSONS, held_out_questions, sample
from rrn.tasks.ages.predict import parse, predict, probabilities
from rrn.tasks.answers import top_choices


def answer(text: str, question: str | None = None) -> int:
    return int(parse(text, question).questions.answer[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann is 20. How old is Ann?", 20),
        ("Ann is 20 years old. How old is Ann?", 20),
        ("Ann is 1 year old! How old is ann?", 1),
        ("0 is 20. 0 is 4 older than 1. How old is 1?", 16),
        ("Ann is 20. Ann is 4 years older than Bob. How old is Bob?", 16),
        ("Ann is 20. Bob is 1 year younger than Ann. How old is Bob?", 19),
        ("Ann is 20. ANN is 4 older than bob. how old is BOB", 16),
        ("Ann is 20; Ann is as old as Bob\nBob is the same age as Cleo. How old is Cleo?", 20),
        ("How old is Cleo? Bob is 30 younger than Cleo. Ann is 20. Ann is 4 older than Bob.", 46),
        ("Zoë is 7. Zoë is 7 older than Łukasz. How old is Łukasz?", 0),
    ],
)
def test_forms(text: str, expected: int) -> None:
    assert answer(text) == expected


@pytest.mark.parametrize("question", ["Bob", "bob?", "How old is Bob?"])
def test_the_question_may_come_apart(question: str) -> None:
    assert answer("Ann is 20. Ann is 4 older than Bob.", question) == 16


def test_names_and_distances() -> None:
    story = parse("Ann is 20. Ann is 4 older than Bob. Cleo is 1 older than Bob. How old is Cleo?")
    assert story.names == ["Ann", "Bob", "Cleo"]
    assert story.questions.length.tolist() == [2]
    assert story.questions.distances[0, :3].tolist() == [0, 1, 2]


@given(st.integers(0, 10_000), st.integers(1, PERSONS))
@settings(max_examples=30, deadline=None)
def test_short_stories_are_filled_up_with_consistent_facts(seed: int, persons: int) -> None:
    names = [f"p{index}" for index in range(persons)]
    text = "p0 is 50. " + " ".join(f"{name} is 1 older than {before}." for before, name in pairwise(names))
    questions = parse(text, names[-1], seed).questions
    assert questions.facts.shape == (1, PERSONS, 4)
    assert questions.answer[0] == 50 + persons - 1
    assert ((questions.ages >= 0) & (questions.ages < AGES)).all()
    for a, b, sign, number in questions.facts[0].tolist():
        difference = questions.ages[0, a] - questions.ages[0, b]
        assert questions.ages[0, a] == number if sign == 0 else difference == sign * number
    assert len({(min(a, b), max(a, b)) for a, b, _, _ in questions.facts[0].tolist()}) == PERSONS


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_generated_questions_put_into_words_are_read_back(seed: int) -> None:
    questions = sample("test", 1, np.random.default_rng(seed))
    words = {1: "is {2} older than", -1: "is {2} younger than"}
    sentences = [
        f"n{a} is {number}." if sign == 0 else f"n{a} {words[sign].format(0, 0, number)} n{b}."
        for a, b, sign, number in questions.facts[0].tolist()
    ]
    story = parse(" ".join(sentences), f"n{questions.asked[0]}")
    assert story.questions.answer[0] == questions.answer[0]
    assert story.questions.length[0] == questions.length[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ann is tall. How old is Ann?", "cannot read 'Ann is tall'; facts look like 'Ann is 20'.*questions like"),
        ("Ann is 20.", "no question: end with one such as 'How old is Ann\\?'"),
        ("", "no question"),
        ("How old is Ann?", "'Ann' is in no fact; the facts name no one"),
        ("Ann is 20. How old is Bob?", "'Bob' is in no fact; the facts name Ann"),
        ("Ann is 2 older than Bob. How old is Bob?", "expected exactly one fact that states an age .*, got 0"),
        ("Ann is 2. Bob is 3. How old is Bob?", "expected exactly one fact that states an age .*, got 2"),
        (
            "Ann is 20. Ann is 4 older than Bob. Bob is 4 older than Ann. How old is Bob?",
            "the facts contradict each other: Bob is 16 and 24",
        ),
        ("Ann is 20. Ann is 4 older than Ann. How old is Ann?", "the facts contradict each other: Ann is 20 and 16"),
        ("Ann is 20. Bob is 2 older than Cleo. How old is Bob?", "nothing connects Bob to Ann, whose age is given"),
        ("Ann is 20. Ann is 30 older than Bob. How old is Bob?", "Bob would be -10; ages go from 0 to 99"),
        ("Ann is 100. How old is Ann?", "Ann would be 100; ages go from 0 to 99"),
        (
            "Ann is 20. Ann is 4 older than Bob. Bob is 4 younger than Ann. How old is Bob?",
            "3 facts about 2 people: one is redundant; leave it out",
        ),
        (
            "a is 1. " + " ".join(f"{name} is as old as a." for name in "bcdefghi") + " How old is b?",
            "'i' is one too many; the network knows stories of at most 8 people",
        ),
    ],
)
def test_bad_stories_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text)


def test_probabilities() -> None:
    questions = held_out_questions(9)
    said = probabilities(Knowing(), questions, 7)
    assert said.shape == (7, 9, AGES)
    np.testing.assert_allclose(said.sum(-1), 1, rtol=1e-5)
    assert (said[-1].argmax(-1) == questions.answer).all()


def test_the_result_of_a_story() -> None:
    """The network that knows ages t differences away after t steps says one more before that."""
    story = parse("Ann is 20. Ann is 4 older than Bob. Cleo is 6 younger than Bob. How old is Cleo?")
    assert story.asked == "Cleo"
    result = predict(Knowing(), story, 3)
    details = result.details
    assert (details["question"], details["truth"], result.answers) == ("How old is Cleo?", "10", "10")
    assert (result.steps, result.attempts, result.record.shape) == (3, 1, (3, AGES))
    assert [best[0][0] for best in top_choices(result, 1)] == ["11", "10", "10"]
    assert predict(Knowing(), story, 1).answers != "10"


@pytest.mark.parametrize(
    "text",
    ["Ann is 20, Bob is 4 older than Ann, how old is Bob?", "Ann is 20 and Bob is 4 older than Ann. How old is Bob?"],
)
def test_commas_and_conjunctions_end_a_fact(text: str) -> None:
    assert int(parse(text).questions.answer[0]) == 24


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ("Bob is 4.5 years older than Ann", "cannot read 'Bob is 4.5 years older than Ann'; ages .* are whole years"),
        ("Bob is 4,5 years older than Ann", "whole years"),
        ("Bob is twice as old as Ann", "cannot read 'Bob is twice as old as Ann'; the network knows differences"),
    ],
)
def test_fractions_and_ratios_are_refused_in_a_sentence(fact: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(f"Ann is 20. {fact}. How old is Bob?")
