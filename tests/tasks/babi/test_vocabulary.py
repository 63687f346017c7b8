from pathlib import Path

import pytest

from rrn.tasks.babi.generator import generate_stories
from rrn.tasks.babi.reader import read_babi
from rrn.tasks.babi.stories import TASKS, cut
from rrn.tasks.babi.vocabulary import (
    GROUPS,
    PLAIN_WORDS,
    READ_AS,
    TOPIC_EXAMPLES,
    UNKNOWN_ID,
    UNKNOWN_WORD,
    WORD_IDS,
    WORDS,
    answer_id,
    hint_for,
    nearest_known_words,
    read_as,
    split_sentences,
    tokens,
    unknown_words,
    word_ids,
)

OFFICIAL = Path(__file__).parents[4] / "shared/data/babi/en-valid-10k-train-valid.tar.gz"


def words_of(stories) -> set[str]:
    words: set[str] = set()
    sentences: set[str] = set()
    for story in stories:
        sentences.update(story.facts)
        for question in story.questions:
            sentences.add(question.text)
            words.add(question.answer.lower())
    for sentence in sentences:
        words.update(tokens(sentence))
    return words


def test_there_are_177_words() -> None:
    assert len(WORDS) == len(set(WORDS)) == 177
    assert WORDS[UNKNOWN_ID] == UNKNOWN_WORD


def test_the_words_are_those_of_the_generator() -> None:
    used = set()
    for task in TASKS:
        used |= words_of(cut(generate_stories(task, seed=3), 1000 if task != 8 else 12000))
    assert used == set(WORDS) - {UNKNOWN_WORD}


@pytest.mark.skipif(not OFFICIAL.exists(), reason=f"WORDS ARE NOT COMPARED WITH OFFICIAL DATA: {OFFICIAL} is not there")
def test_the_words_are_those_of_the_official_files() -> None:
    used = set()
    for split in ("train", "valid"):
        for stories in read_babi(OFFICIAL, split).values():
            used |= words_of(stories)
    assert used == set(WORDS) - {UNKNOWN_WORD}


def test_encoding() -> None:
    assert word_ids("Mary went to the Kitchen.") == [WORD_IDS[w] for w in ("mary", "went", "to", "the", "kitchen")]
    assert word_ids("Mary ate") == [WORD_IDS["mary"], UNKNOWN_ID]
    assert answer_id("milk,football") == answer_id("milk, football") == WORD_IDS["milk,football"] != UNKNOWN_ID
    assert answer_id("Bill") == WORD_IDS["bill"]
    assert answer_id("banana") == UNKNOWN_ID


def test_unknown_words_are_named_and_near_ones_offered() -> None:
    assert unknown_words("Mary wnet to the kitchin, Mary wnet.") == ["wnet", "kitchin"]
    assert nearest_known_words("kitchin")[0] == "kitchen"
    assert "went" in nearest_known_words("Wnet")
    assert nearest_known_words("zzzzzz") == []
    assert not any("," in word for word in nearest_known_words("milk football"))


def test_typed_text_is_split_into_sentences() -> None:
    assert split_sentences("Mary went to the kitchen. Mary took the milk there.\nWhere is the milk?  ") == [
        "Mary went to the kitchen.",
        "Mary took the milk there.",
        "Where is the milk?",
    ]
    assert split_sentences("John moved to the office …  ") == ["John moved to the office …"]
    assert split_sentences(" . ") == []


def test_every_word_stands_in_one_group() -> None:
    grouped = [word.lower() for words in GROUPS.values() for word in words]
    assert sorted(grouped) == sorted(PLAIN_WORDS.split())


def test_everyday_words_are_read_as_words_of_babi() -> None:
    known = set(PLAIN_WORDS.split())
    assert all(set(meant.split()) <= known for meant in READ_AS.values())
    assert not known & set(READ_AS), "a word that is known is left alone"
    said, replaced = read_as("Mary Walked into the corridor and put down the ball. Where’s the ball?")
    assert said == "Mary Went to the hallway and put down the football. Where is the football?"
    assert dict(replaced) == {
        "walked": "went", "into": "to", "corridor": "hallway", "ball": "football", "where's": "where is",
    }  # fmt: skip
    assert unknown_words(said) == []
    assert read_as("Mary went to the kitchen.") == ("Mary went to the kitchen.", [])
    assert read_as("Mary put the milk down.") == (
        "Mary put down the milk.",
        [("put the milk down", "put down the milk")],
    )
    assert read_as("John picked the ball up there.")[0] == "John picked up the football there."


@pytest.mark.parametrize(
    ("word", "sentence", "hint"),
    [
        ("ofice", "Mary went to the ofice.", "did you mean 'office'?"),
        ("wnet", "Mary wnet to the office.", "did you mean 'west' or 'went'?"),
        ("anna", "Anna went to the office.", "it knows Mary, John, Sandra, Daniel, Bill, Fred, Jeff, Julie, Antoine …"),
        ("book", "Mary took the book.", "it knows apple, football, milk, pajamas, box, chest, chocolate"),
        ("garage", "Mary went to the garage.", "it knows bathroom, bedroom, kitchen"),
        ("unicorn", "Where is the unicorn?", ""),
    ],
)
def test_hints_are_near_in_spelling_or_meaning_or_not_made(word: str, sentence: str, hint: str) -> None:
    assert hint_for(word, sentence).startswith(hint)
    assert bool(hint) == bool(hint_for(word, sentence))
    assert not {word for like in TOPIC_EXAMPLES.values() for word in like.split()} & {*PLAIN_WORDS.split(), *READ_AS}
