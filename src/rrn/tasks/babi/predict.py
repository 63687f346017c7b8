"""A question about a story of one's own: what a network answers, and which facts it owes the answer to."""

from typing import NamedTuple

from torch import nn

from rrn.errors import InputError, quote
from rrn.tasks.answers import answer_logits
from rrn.tasks.babi.data import SentenceTable, encode
from rrn.tasks.babi.model import as_batch
from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.vocabulary import WORDS, nearest_known_words, split_sentences, unknown_words
from rrn.tasks.trace import Trace


class Asked(NamedTuple):
    """Facts, oldest first, and the question about them: a sentence each."""

    facts: list[str]
    question: str


def parse(story: str, question: str = "") -> Asked:
    """Facts, and the question if it is not given apart: then it is the story's last sentence."""
    facts = split_sentences(story)
    if not question:
        if not facts or not facts[-1].endswith("?"):
            raise InputError("the question: none; give it as a second argument, or as the story's last sentence")
        question = facts.pop()
    check_words([*facts, question])
    return Asked(facts, question)


def predict(network: nn.Module, asked: Asked, steps: int, max_facts: int) -> Trace:
    """Also asks once without each fact in turn, all in one batch, to see which of them matter."""
    facts, question = asked
    check_words([*facts, question])
    if not facts:
        raise InputError("the story: no facts; give at least one sentence before the question")
    if not question.strip():
        raise InputError("the question: empty; ask something such as 'Where is Mary?'")
    facts = facts[-max_facts:]
    stories = [facts] + ([facts[:i] + facts[i + 1 :] for i in range(len(facts))] if len(facts) > 1 else [])
    table = SentenceTable()
    questions = [Story(1, story, [Question(question, "yes", (), len(story))]) for story in stories]
    batch = as_batch(encode(questions, table).batch(slice(None), max_facts), table)
    probabilities = answer_logits(network, batch, steps).softmax(-1).numpy()
    whole, without = probabilities[:, 0], probabilities[-1, 1:]
    best = whole[-1].argmax()
    importance = (whole[-1, best] - without[:, best]).tolist() if len(facts) > 1 else [1.0]
    return Trace(question, WORDS, whole, facts=tuple(facts), importance=tuple(importance))


def check_words(sentences: list[str]) -> None:
    for sentence in sentences:
        unknown = unknown_words(sentence)
        if unknown:
            near = nearest_known_words(unknown[0])
            hint = f"did you mean {' or '.join(repr(word) for word in near)}?" if near else "bAbI has only 177 words."
            raise InputError(f"{quote(sentence)}: the network does not know the word {quote(unknown[0])}; {hint}")
