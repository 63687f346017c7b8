import numpy as np
import pytest
from tests.tasks.pretty_clevr.test_evaluate import AsFarAsItsSteps

from rrn.errors import InputError
from rrn.inference.result import Status
from rrn.tasks.answers import top_choices
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
    assert (result.status, result.answers) == (Status.SOLVED, truth)
    assert [best[0][0] == truth for best in top_choices(result, 1)] == [False, False, True, True]
    assert len(asked.path) == 4
    assert asked.path[0].startswith("green ")
    assert asked.path[-1].endswith(truth)
    assert predict(AsFarAsItsSteps(), parse(7, "star", 1), 1).details["question"] == "star, 1 jump"


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(InputError, match="'gren' is no colour"):
        parse(0, "gren", 3)
