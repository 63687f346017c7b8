import numpy as np
import pytest
from tests.tasks.pretty_clevr.test_evaluate import AsFarAsItsSteps

from rrn.errors import InputError
from rrn.inference.result import Status
from rrn.tasks.answers import is_correct, top_choices
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.predict import parse, predict, probabilities


def test_probabilities_of_the_names_after_each_step() -> None:
    scenes = data.scenes("test", 2)
    numbers = np.array([5, 128 + 17])
    said = probabilities(AsFarAsItsSteps(), scenes, numbers, 7)
    assert said.shape == (7, 2, 16)
    np.testing.assert_allclose(said.sum(-1), 1, atol=1e-5)
    assert said[-1].argmax(-1).tolist() == [scenes.scene(0).answer(0, 5), scenes.scene(1).answer(2, 1)]


def test_the_result_of_a_question() -> None:
    asked = parse(7, " Green", 3)
    result = predict(AsFarAsItsSteps(), asked, 4)
    truth = result.details["truth"]
    assert result.details["question"] == "green, 3 jumps"
    assert truth == data.NAMES[asked.scene.answer(3, 3)]
    assert (result.status, result.answers, is_correct(result)) == (Status.SOLVED, truth, True)
    assert [best[0][0] == truth for best in top_choices(result, 1)] == [False, False, True, True]
    assert len(asked.path) == 4
    assert asked.path[0].startswith("green ")
    assert asked.path[-1].endswith(truth)
    assert predict(AsFarAsItsSteps(), parse(7, "star", 1), 1).details["question"] == "star, 1 jump"


@pytest.mark.parametrize(
    ("seed", "start", "jumps", "named"),
    [
        (-1, "green", 3, "--seed: expected 0 or more"),
        (0, "gren", 3, "'gren' is no colour"),
        (0, "red", 8, "0 to 7, got 8"),
    ],
)
def test_what_cannot_be_asked_is_named(seed: int, start: str, jumps: int, named: str) -> None:
    with pytest.raises(InputError, match=named):
        parse(seed, start, jumps)
