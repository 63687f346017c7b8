"""A question about a story of one's own: what the network answers, and which facts it owes the answer to."""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from rrn.errors import InputError
from rrn.tasks.babi.data import SentenceTable, encode
from rrn.tasks.babi.model import as_batch
from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.vocabulary import WORDS, nearest_known_words, unknown_words


class Answer(NamedTuple):
    """``probabilities`` (steps, 177) of the words after each step; ``facts``, those the network was given, and how
    far the probability of its answer falls without each of them (``importance``, (facts,))."""

    probabilities: np.ndarray
    facts: list[str]
    importance: np.ndarray

    @property
    def word(self) -> str:
        return WORDS[int(self.probabilities[-1].argmax())]


def ask(network: nn.Module, facts: list[str], question: str, steps: int, max_facts: int) -> Answer:
    """Also asks once without each fact in turn, all in one batch, to see which of them matter."""
    check_words([*facts, question])
    if not facts:
        raise InputError("the story: no facts; give at least one sentence before the question")
    if not question.strip():
        raise InputError("the question: empty; ask something such as 'Where is Mary?'")
    facts = facts[-max_facts:]
    stories = [facts] + ([facts[:i] + facts[i + 1 :] for i in range(len(facts))] if len(facts) > 1 else [])
    table = SentenceTable()
    asked = [Story(1, story, [Question(question, "yes", (), len(story))]) for story in stories]
    batch = as_batch(encode(asked, table).batch(slice(None), max_facts), table)
    with torch.no_grad():
        probabilities = network(batch, steps=steps)[0].softmax(-1).numpy()
    whole, without = probabilities[:, 0], probabilities[-1, 1:]
    best = whole[-1].argmax()
    importance = whole[-1, best] - without[:, best] if len(facts) > 1 else np.ones(1, dtype=np.float32)
    return Answer(whole, facts, importance)


def check_words(sentences: list[str]) -> None:
    for sentence in sentences:
        unknown = unknown_words(sentence)
        if unknown:
            near = nearest_known_words(unknown[0])
            hint = f"did you mean {' or '.join(repr(word) for word in near)}?" if near else "bAbI has only 177 words."
            raise InputError(f"{sentence!r}: the network does not know the word {unknown[0]!r}; {hint}")
