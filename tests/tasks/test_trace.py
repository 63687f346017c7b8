import numpy as np

from rrn.tasks.trace import Trace

TRACE = Trace(
    "Where is Mary?",
    ("kitchen", "garden", "office"),
    np.array([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], dtype=np.float32),
    facts=("Mary left.", "John left.", "Mary came."),
    importance=(0.004, 0.2, 0.5),
)


def test_the_answer_is_the_best_after_the_last_step() -> None:
    assert TRACE.answer == "kitchen"
    guesses = [[(name, round(p, 3)) for name, p in best] for best in TRACE.guesses(2)]
    assert guesses == [[("garden", 0.5), ("office", 0.3)], [("kitchen", 0.7), ("garden", 0.2)]]


def test_right_only_where_the_truth_is_known() -> None:
    assert TRACE.right is None
    assert Trace("?", "ab", np.array([[0.6, 0.4]]), truth="a").right is True
    assert Trace("?", "ab", np.array([[0.6, 0.4]]), truth="b").right is False


def test_facts_that_mattered_come_first_and_the_others_not_at_all() -> None:
    assert TRACE.mattered(3) == [("Mary came.", 0.5), ("John left.", 0.2)]
    assert TRACE.mattered(1) == [("Mary came.", 0.5)]
