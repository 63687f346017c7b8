import numpy as np
import pytest

from rrn.inference.result import Status
from rrn.tasks.answers import answer_result, important_facts, top_choices

PROBABILITIES = np.array([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], dtype=np.float32)
RESULT = answer_result(
    PROBABILITIES,
    ("kitchen", "garden", "office"),
    "Where is Mary?",
    facts=("Mary left.", "John left.", "Mary came."),
    importance=(0.004, 0.2, 0.5),
)


def test_the_answer_is_the_most_probable_choice_after_the_last_step() -> None:
    assert (RESULT.answers, RESULT.status, RESULT.message) == ("kitchen", Status.SOLVED, "")
    assert (RESULT.steps, RESULT.attempts, RESULT.confidence) == (2, 1, pytest.approx(0.7))
    best = [[(name, round(p, 3)) for name, p in row] for row in top_choices(RESULT, 2)]
    assert best == [[("garden", 0.5), ("office", 0.3)], [("kitchen", 0.7), ("garden", 0.2)]]


def test_a_question_without_an_answer_is_unsolved() -> None:
    result = answer_result(PROBABILITIES, ("unknown", "garden", "office"), "?", no_answer="unknown")
    assert (result.answers, result.status) == ("unknown", Status.UNSOLVED)
    assert "do not contain the answer" in result.message


def test_important_facts_are_sorted_and_unimportant_ones_are_omitted() -> None:
    assert important_facts(RESULT, 3) == [("Mary came.", 0.5), ("John left.", 0.2)]
    assert important_facts(RESULT, 1) == [("Mary came.", 0.5)]
