import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.tasks.babi.predict import StoryQuestion, dialogue, predict
from rrn.tasks.babi.vocabulary import WORD_IDS, WORDS


class LastPlaceOfMary(nn.Module):
    """Answers with the last word of the last fact that begins with Mary, nine tenths sure; 'nothing' if none does."""

    def forward(self, batch: dict[str, Tensor], *, steps: int, state: object = None) -> tuple[Tensor, None]:
        logits = torch.zeros(steps, len(batch["words"]), len(WORDS))
        for row, (words, count) in enumerate(zip(batch["words"], batch["fact_counts"], strict=True)):
            said = WORD_IDS["nothing"]
            for fact in words[:count]:
                if fact[0] == WORD_IDS["mary"] + 1:
                    said = int(fact[fact > 0][-1]) - 1
            logits[:, row, said] = float(np.log(9 * (len(WORDS) - 1)))
        return logits, None


FACTS = ["Mary went to the kitchen.", "John went to the garden.", "Mary went to the office.", "John moved to the park."]


def test_the_answer_and_the_facts_it_comes_from() -> None:
    result = predict(LastPlaceOfMary(), StoryQuestion(FACTS, "Where is Mary?"), steps=3, max_facts=20)
    assert result.answers == "office"
    assert result.record.shape == (3, len(WORDS))
    assert result.record[-1, WORD_IDS["office"]] == pytest.approx(0.9)
    np.testing.assert_allclose(result.details["importance"], [0, 0, 0.9, 0], atol=0.01)


def test_only_the_last_facts_are_read() -> None:
    result = predict(LastPlaceOfMary(), StoryQuestion(FACTS, "Where is Mary?"), steps=1, max_facts=1)
    assert result.answers == "nothing"
    assert result.details["facts"] == (FACTS[-1],)
    assert result.details["importance"] == (1.0,)


@pytest.mark.parametrize(
    ("facts", "question", "named"),
    [
        (["Mary went to the kitchn."], "Where is Mary?", "'kitchn'; did you mean 'kitchen'"),
        (["Mary went to the kitchen."], "Where is xyzzy?", "does not know the word 'xyzzy'$"),
        ([], "Where is Mary?", "no facts"),
        (["Mary went to the kitchen."], " ", "the question: empty"),
    ],
)
def test_what_cannot_be_asked_is_named(facts: list[str], question: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        predict(LastPlaceOfMary(), StoryQuestion(facts, question), steps=1, max_facts=20)


def test_the_question_may_be_the_last_sentence() -> None:
    [asked] = dialogue("Mary went to the kitchen. John moved to the garden.\nWhere is Mary?")
    assert asked == (["Mary went to the kitchen.", "John moved to the garden."], "Where is Mary?", ())
    expected = (["Mary went to the kitchen."], "Where is Mary?", ())
    assert dialogue("Mary went to the kitchen.", "Where is Mary?") == [expected]
    with pytest.raises(InputError, match="the question: none"):
        dialogue("Mary went to the kitchen.")
    with pytest.raises(InputError, match="'kitchn'"):
        dialogue("Mary went to the kitchn. Where is Mary?")
