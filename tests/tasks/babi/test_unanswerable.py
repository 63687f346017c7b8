"""Questions whose answer is not in the story, held against the reasoner that knows English."""

import re
from itertools import islice
from random import Random

import numpy as np
import pytest
from tests.tasks.babi import test_reasoner as reasoner

from rrn.tasks.babi.carrying import DROP, GET, GIVE, MOVE, NO_PERSON, CarryingWorld, Setting
from rrn.tasks.babi.data import EndlessQuestions
from rrn.tasks.babi.evaluate import calibration_error
from rrn.tasks.babi.stories import TASKS, Question, Story
from rrn.tasks.babi.unanswerable import (
    VARIED_TASKS,
    extended_stories,
    foreign_question,
    named_in,
    varied_story,
    whereabouts_unknown,
    without_answer,
)
from rrn.tasks.babi.vocabulary import ANSWERS, NO_ANSWER, UNKNOWN_ID, WORDS, answer_id, unknown_words

BY_FORM = (
    (r"(How many objects|What) is (\w+) carrying\?", None),
    (r"Where was [A-Z]\w+ before the \w+\?", reasoner.answer_from_times),
    (r"What is \w+ afraid of\?", reasoner.answer_from_fears),
    (r"What color is \w+\?", reasoner.answer_from_likeness),
    (r"(Does|Is) the .+ (fit in|bigger than) the .+\?", reasoner.answer_from_sizes),
    (r"(Where will|Why did) .+\?", reasoner.answer_from_motives),
    (r"(What is (\w+ of the \w+|the \w+ \w+ of)|How do you go .+|Is the .+)\?", reasoner.answer_on_map),
    (r".+", reasoner.answer_from_diary),
)


def follows(story: Story, question: Question) -> str | None:
    """What a reader of English finds, whatever the task of the question; None if nothing, or facts of another kind."""
    facts = story.facts[: question.facts]
    form, find = next((form, find) for form, find in BY_FORM if re.fullmatch(form, question.text))
    if find is None:
        match = re.fullmatch(form, question.text)
        assert match
        return "something" if match[2].lower() in named_in(facts) else None
    try:
        return find(facts, question.text)
    except (AssertionError, KeyError, ValueError):
        return None


@pytest.mark.parametrize("task", TASKS)
def test_what_is_not_told_does_not_follow_and_the_rest_does(task: int) -> None:
    untold = asked = 0
    for story in islice(extended_stories(task, seed=5, stream=0, unanswerable_share=0.4, varied_share=0.3), 400):
        for question in story.questions:
            asked += 1
            given = story.facts[: question.facts]
            assert not unknown_words(" ".join((*given, question.text)))
            if question.answer == NO_ANSWER:
                untold += 1
                assert question.support == ()
                assert follows(story, question) is None, f"{given} {question.text}"
            elif task != 5:  # of which some are ambiguous, see the reasoner
                assert reasoner.answer(task, given, question.text) == question.answer
    assert 0.3 < untold / asked < 0.5


@pytest.mark.parametrize("task", TASKS)
def test_the_reader_of_english_answers_what_can_be_answered(task: int) -> None:
    """Otherwise it would hold anything to be untold."""
    stories = list(islice(extended_stories(task, seed=6, stream=0, unanswerable_share=0, varied_share=0), 40))
    found = [follows(story, question) for story in stories for question in story.questions]
    assert sum(answer is not None for answer in found) > 0.95 * len(found)


@pytest.mark.parametrize("task", sorted(VARIED_TASKS))
def test_varied_stories_have_any_people_and_places(task: int) -> None:
    random = Random(3)
    stories = [varied_story(task, random, unanswerable=False) for _ in range(300)]
    named = named_in([fact for story in stories for fact in story.facts])
    assert {"julie", "yann", "fred", "sandra", "cinema", "school", "bathroom"} <= named
    assert max(len(story.facts) for story in stories) == 12
    answers = {story.questions[0].answer for story in stories}
    if task == 7:
        assert answers == {"none", "one", "two", "three"}
        assert sum(story.questions[0].answer == "three" for story in stories) > 15
    assert all(answer_id(answer) != UNKNOWN_ID for answer in answers)


def test_meetings_determine_places() -> None:
    """John, Mary, Sandra and Daniel; the kitchen is place 0 and the garden 3; apple, football and milk."""
    world = CarryingWorld(Setting(("John", "Mary", "Sandra", "Daniel"), kinds=4), Random(0).random)
    assert whereabouts_unknown(world) == ([0, 1, 2, 3], [0, 1, 2])
    world.events = [(GET, 0, 0, NO_PERSON)]
    assert whereabouts_unknown(world) == ([0, 1, 2, 3], [0, 1, 2])
    world.events += [(GIVE, 0, 0, 1), (MOVE, 1, 3, NO_PERSON)]
    assert whereabouts_unknown(world) == ([0, 2, 3], [1, 2]), "Mary took the apple to the garden; John stayed"
    world.events += [(DROP, 1, 0, NO_PERSON), (GET, 2, 0, NO_PERSON)]
    assert whereabouts_unknown(world) == ([0, 3], [1, 2]), "Sandra took it where Mary left it"
    world.events += [(GET, 0, 1, NO_PERSON), (DROP, 0, 1, NO_PERSON), (GET, 3, 1, NO_PERSON), (MOVE, 3, 0, NO_PERSON)]
    assert whereabouts_unknown(world) == ([0], [2])
    before = CarryingWorld(world.setting, Random(0).random)
    before.events = [(GET, 0, 1, NO_PERSON), (DROP, 0, 1, NO_PERSON), (MOVE, 3, 0, NO_PERSON), (GET, 3, 1, NO_PERSON)]
    assert whereabouts_unknown(before) == ([1, 2], [0, 2]), "Daniel found the football in the kitchen, so John is there"


def test_a_foreign_question_is_not_of_the_story_s_kind() -> None:
    random = Random(1)
    facts = ["The box is bigger than the chest.", "The chest fits inside the suitcase."]
    assert not any("bigger" in foreign_question(18, facts, random.random) for _ in range(200))
    assert any("bigger" in foreign_question(1, ["Mary went to the park."], random.random) for _ in range(200))


def test_an_unanswerable_story_has_at_least_one_fact() -> None:
    story = Story(2, ["Mary took the milk."], [Question("Where is the milk?", "kitchen", (0,), 1)])
    for seed in range(30):
        changed = without_answer(story, story.questions[0], Random(seed))
        assert changed is not None
        assert changed.facts, "at least one fact is left"


def test_the_answer_has_the_number_of_the_unknown_word() -> None:
    assert answer_id(NO_ANSWER) == UNKNOWN_ID == 0
    assert ANSWERS[UNKNOWN_ID] == NO_ANSWER
    assert ANSWERS[1:] == WORDS[1:]


def test_questions_come_mixed_and_the_same_for_the_same_seed() -> None:
    first, again = (EndlessQuestions(3, [2, 18], unanswerable_share=0.5, varied_share=0.5).take(200) for _ in range(2))
    np.testing.assert_array_equal(first.answers, again.answers)
    np.testing.assert_array_equal(first.story_facts, again.story_facts)
    assert 0.4 < (first.answers == UNKNOWN_ID).mean() < 0.6
    assert not (EndlessQuestions(3, [2, 18]).take(200).answers == UNKNOWN_ID).any()


def test_calibration_error_by_hand() -> None:
    probability = np.array([0.95, 0.95, 0.95, 0.95, 0.15, 1.0])
    happened = np.array([1, 1, 1, 0, 0, 1])
    # the bin from 0.9 holds five (0.96 on average, 0.8 of them happened), that from 0.1 one
    assert calibration_error(probability, happened, bins=10) == pytest.approx((5 * (0.96 - 0.8) + 0.15) / 6)
    assert calibration_error(np.ones(4), np.ones(4)) == 0
