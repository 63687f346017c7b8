"""Stories that mix the sentences of several tasks, compared with the reasoner that knows English."""

from random import Random

import pytest
from tests.tasks.babi import test_reasoner as reasoner

from rrn.tasks.babi.carrying import DROP, GET, GIVE, MOVE
from rrn.tasks.babi.composed import Asked, Event, composed_story, what_follows
from rrn.tasks.babi.data import EndlessQuestions
from rrn.tasks.babi.unanswerable import MOST_FACTS, PEOPLE, ROOMS, VARIED_TASKS
from rrn.tasks.babi.vocabulary import NO_ANSWER, UNKNOWN_ID, answer_id, unknown_words

WHERE_IS_THE_MILK = Asked(2, ("milk",))


def test_answers_by_hand() -> None:
    events = [Event(GIVE, ("John",), "milk", "Mary"), Event(MOVE, ("Mary",), "garden")]
    assert what_follows(events, WHERE_IS_THE_MILK) == "garden"
    assert what_follows(events, Asked(1, ("John",))) == NO_ANSWER
    assert what_follows(events[:1], WHERE_IS_THE_MILK) == NO_ANSWER
    assert what_follows(events, Asked(5, ("", "milk", ""), 2)) == "Mary"
    assert what_follows(events, Asked(8, ("John",))) == "nothing"
    assert what_follows(events, Asked(7, ("Mary",))) == "one"
    assert what_follows(events, Asked(7, ("Fred",))) == NO_ANSWER
    events = [Event(MOVE, ("John", "Fred"), "office"), *events[:1]]
    assert what_follows(events, Asked(1, ("Mary",))) == "office", "whoever is given a thing is where the giver is"
    events += [Event(MOVE, ("Mary",), "garden"), Event(DROP, ("Mary",), "milk"), Event(MOVE, ("Mary",), "park")]
    assert what_follows(events, WHERE_IS_THE_MILK) == "garden"
    assert what_follows(events, Asked(3, ("milk", "garden"))) == "office"
    assert what_follows(events, Asked(6, ("Mary", "garden"))) == "no"
    assert what_follows([*events, Event(GET, ("Fred",), "milk")], WHERE_IS_THE_MILK) is None, "Fred is in the office"


@pytest.mark.parametrize("task", sorted(VARIED_TASKS))
def test_composed_answers_follow_from_the_story(task: int) -> None:
    random, kinds = Random(task), set()
    for number in range(300):
        story = composed_story(task, random, number % 4 == 0, PEOPLE, ROOMS, MOST_FACTS)
        (question,) = story.questions
        assert 1 <= len(story.facts) <= MOST_FACTS
        assert not unknown_words(" ".join((*story.facts, question.text)))
        assert (question.answer == NO_ANSWER) == (number % 4 == 0) == (not question.support)
        if question.answer != NO_ANSWER:
            assert answer_id(question.answer) != UNKNOWN_ID
            kinds |= {word for word in ("gave", "took", "left", " and ", "Then") if word in " ".join(story.facts)}
        found = reasoner.answer_from_diary(story.facts, question.text)
        if task in (7, 8) and question.answer == NO_ANSWER:
            continue  # the reader of English holds that absent people carry nothing
        if found is not None:  # it does not conclude from meetings
            assert found == question.answer, f"{story.facts} {question}"
        else:
            assert question.answer == NO_ANSWER or question.answer in (*ROOMS, "yes", "no")
    assert kinds == {"gave", "took", "left", " and ", "Then"}


def test_the_share_of_composed_stories() -> None:
    """Other shares are drawn as before, so that earlier stages of training stay the same."""
    plain, none = (
        EndlessQuestions(3, [2], varied_share=0.5, **more).take(50) for more in ({}, {"composed_share": 0.0})
    )
    assert plain.answers.tolist() == none.answers.tolist()
    composed = EndlessQuestions(3, [2], composed_share=1.0).take(200)
    assert (composed.ends - composed.starts).max() <= MOST_FACTS
