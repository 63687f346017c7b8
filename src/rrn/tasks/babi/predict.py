"""Questions about custom stories: the answer of a network, and the importance of each fact."""

from typing import NamedTuple

from torch import nn

from rrn.errors import InputError, quote
from rrn.inference.result import Result
from rrn.tasks.answers import answer_logits, answer_result
from rrn.tasks.babi.data import SentenceTable, encode
from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.vocabulary import ANSWERS, NO_ANSWER, hint_for, read_as, split_sentences, unknown_words


class UnknownWord(InputError):
    """A sentence contains a word outside the vocabulary."""


class StoryQuestion(NamedTuple):
    """Facts, oldest first, and a question, one sentence each; and the words replaced by `read_as`."""

    facts: list[str]
    question: str
    replaced: tuple[tuple[str, str], ...] = ()


def dialogue(story: str, question: str = "") -> list[StoryQuestion]:
    """The questions of a story, each with the facts before it; or ``question`` with all the facts."""
    facts: list[str] = []
    every = []
    for sentence in split_sentences(story):
        if not sentence.endswith("?"):
            facts.append(sentence)
        elif not question:
            every.append(normalise(facts, sentence))
    if question:
        every.append(normalise(facts, question))
    if not every:
        raise InputError("the question: none; give it as the second argument or in the story, ending with '?'")
    return every


def normalise(facts: list[str], question: str) -> StoryQuestion:
    """Replace words by those of the vocabulary; raises `UnknownWord` for other words."""
    sentences: list[str] = []
    replaced: dict[str, str] = {}
    for sentence in (*facts, question):
        replacement, words = read_as(sentence)
        sentences.append(replacement)
        replaced |= dict(words)
    check_words(sentences)
    return StoryQuestion(sentences[:-1], sentences[-1], tuple(replaced.items()))


def predict(network: nn.Module, asked: StoryQuestion, steps: int, max_facts: int) -> Result:
    """The answer to a question about the last ``max_facts`` facts.

    The importance of a fact is the decrease of the answer's probability when the fact is left out; all stories with one
    fact left out run in the same batch.
    """
    facts, question = asked.facts, asked.question
    check_words([*facts, question])
    if not facts:
        raise InputError("the story: no facts; give at least one sentence before the question")
    if not question.strip():
        raise InputError("the question: empty; ask something such as 'Where is Mary?'")
    facts = facts[-max_facts:]
    stories = [facts] + ([facts[:i] + facts[i + 1 :] for i in range(len(facts))] if len(facts) > 1 else [])
    questions = [Story(1, story, [Question(question, "yes", (), len(story))]) for story in stories]
    batch = encode(questions, SentenceTable()).batch(slice(None), max_facts)
    probabilities = answer_logits(network, batch, steps).softmax(-1).numpy()
    whole, without = probabilities[:, 0], probabilities[-1, 1:]
    best = whole[-1].argmax()
    importance = (whole[-1, best] - without[:, best]).tolist() if len(facts) > 1 else [1.0]
    return answer_result(whole, ANSWERS, question, facts=facts, importance=importance, no_answer=NO_ANSWER)


def check_words(sentences: list[str]) -> None:
    for sentence in sentences:
        unknown = unknown_words(sentence)
        if unknown:
            hint = hint_for(unknown[0], sentence)
            message = f"{quote(sentence)}: the network does not know the word {quote(unknown[0])}"
            raise UnknownWord(f"{message}; {hint}" if hint else message)
