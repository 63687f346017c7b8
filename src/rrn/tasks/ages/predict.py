"""Stories in words, "Ann is 20. Ann is 4 years older than Bob. How old is Bob?", and the answer of a network."""

import re
from collections import deque
from dataclasses import dataclass

import numpy as np
from torch import nn

from rrn.errors import InputError, quote
from rrn.inference.result import Result
from rrn.tasks.ages.data import AGES, PERSONS, Questions
from rrn.tasks.ages.model import as_batch
from rrn.tasks.answers import answer_logits, answer_result

_NAME = r"([\w'’-]{1,40})"
_AGE = re.compile(rf"^{_NAME} is (\d{{1,9}})(?: years? old)?$", re.IGNORECASE)
_DIFFERENCE = re.compile(rf"^{_NAME} is (\d{{1,9}}) (?:years? )?(older|younger) than {_NAME}$", re.IGNORECASE)
_SAME = re.compile(rf"^{_NAME} is (?:as old as|the same age as) {_NAME}$", re.IGNORECASE)
_QUESTION = re.compile(rf"^how old is {_NAME}$", re.IGNORECASE)
_END = re.compile(r"(?<!\d)[.,]|[.,](?!\d)|[?!\n;]|\band\b", re.IGNORECASE)
"""The end of a sentence; a point or comma within a number is none."""
_FORMS = "'Ann is 20', 'Ann is 4 older than Bob', 'Ann is as old as Bob'"


@dataclass(frozen=True)
class Story:
    """A parsed story. ``names[p]`` is the name of person p; generated people have no name."""

    names: list[str]
    questions: Questions

    @property
    def asked(self) -> str:
        """The name of the person asked about."""
        return self.names[int(self.questions.asked[0])]


def predict(network: nn.Module, story: Story, steps: int) -> Result:
    """The age of the person asked about, as text; the record holds the probability of each age after each step."""
    choices = [str(age) for age in range(AGES)]
    shares = probabilities(network, story.questions, steps)[:, 0]
    truth = str(int(story.questions.answer[0]))
    return answer_result(shares, choices, f"How old is {story.asked}?", truth=truth)


def probabilities(network: nn.Module, questions: Questions, steps: int) -> np.ndarray:
    """The probability of each age after each step: (steps, n, 100)."""
    shares: np.ndarray = answer_logits(network, as_batch(questions), steps).softmax(-1).numpy()
    return shares


def parse(text: str, question: str | None = None, seed: int = 0) -> Story:
    """Parse facts, and the question unless it is given.

    The network reads exactly eight facts. Shorter stories are filled with facts about generated people, which depend on
    ``seed`` and do not change the answer.
    """
    names: list[str] = []
    facts: list[tuple[int, int, int, int]] = []
    asked_name = question
    for sentence in (s.strip() for s in _END.split(text)):
        if not sentence:
            continue
        if match := _QUESTION.match(sentence):
            asked_name = match[1]
        elif match := _AGE.match(sentence):
            person = _person(match[1], names)
            facts.append((person, person, 0, int(match[2])))
        elif match := _DIFFERENCE.match(sentence):
            sign = 1 if match[3].lower() == "older" else -1
            facts.append((_person(match[1], names), _person(match[4], names), sign, int(match[2])))
        elif match := _SAME.match(sentence):
            facts.append((_person(match[1], names), _person(match[2], names), 1, 0))
        else:
            raise InputError(f"cannot read {quote(sentence)}; {_why(sentence)}")
    if asked_name is None:
        raise InputError("no question: end with one such as 'How old is Ann?'")
    asked_name = match[1] if (match := _QUESTION.match(asked_name.strip(" ?"))) else asked_name.strip(" ?")
    if asked_name.lower() not in [name.lower() for name in names]:
        raise InputError(f"{quote(asked_name)} is in no fact; the facts name {', '.join(names) or 'no one'}")
    asked = _person(asked_name, names)
    ages, steps = _solve(facts, names)
    _fill(facts, ages, steps, seed)
    by_person = range(PERSONS)
    questions = Questions(
        np.array(facts)[None],
        np.array([asked]),
        np.array([[ages[person] for person in by_person]]),
        np.array([[steps[person] for person in by_person]]),
    )
    return Story(names, questions)


def _why(sentence: str) -> str:
    """Why a sentence is neither a fact nor a question, for a message."""
    if re.search(r"\d[.,]\d", sentence):
        return "ages and differences are whole years, such as 4"
    if re.search(r"\b(twice|thrice|half|times)\b", sentence, re.IGNORECASE):
        return "the network knows differences in years, such as 'Ann is 4 older than Bob', not ratios"
    return f"facts look like {_FORMS}, questions like 'How old is Ann?'"


def _person(name: str, names: list[str]) -> int:
    known = [n.lower() for n in names]
    if name.lower() not in known:
        if len(names) == PERSONS:
            raise InputError(f"{name!r} is one too many; the network knows stories of at most {PERSONS} people")
        names.append(name)
        return len(names) - 1
    return known.index(name.lower())


def _solve(facts: list[tuple[int, int, int, int]], names: list[str]) -> tuple[dict[int, int], dict[int, int]]:
    """The age of every person and its number of differences; raises `InputError` unless all ages are determined."""
    anchors = [fact for fact in facts if fact[2] == 0]
    if len(anchors) != 1:
        raise InputError(f"expected exactly one fact that states an age ('Ann is 20'), got {len(anchors)}")
    ages, steps = {anchors[0][0]: anchors[0][3]}, {anchors[0][0]: 0}
    queue = deque(ages)
    while queue:
        person = queue.popleft()
        for a, b, sign, difference in facts:
            if sign and person in (a, b):
                other, age = (b, ages[a] - sign * difference) if person == a else (a, ages[b] + sign * difference)
                if other not in ages:
                    ages[other], steps[other] = age, steps[person] + 1
                    queue.append(other)
                elif ages[other] != age:
                    raise InputError(f"the facts contradict each other: {names[other]} is {ages[other]} and {age}")
    undetermined = [name for person, name in enumerate(names) if person not in ages]
    if undetermined:
        raise InputError(f"nothing connects {undetermined[0]} to {names[anchors[0][0]]}, whose age is given")
    impossible = [(names[person], age) for person, age in ages.items() if not 0 <= age < AGES]
    if impossible:
        raise InputError(f"{impossible[0][0]} would be {impossible[0][1]}; ages go from 0 to {AGES - 1}")
    if len(facts) > len(names):
        raise InputError(f"{len(facts)} facts about {len(names)} people: one is redundant; leave it out")
    return ages, steps


def _fill(facts: list[tuple[int, int, int, int]], ages: dict[int, int], steps: dict[int, int], seed: int) -> None:
    """Add generated people. The static page computes the same sums."""
    while len(ages) < PERSONS:
        person = len(ages)
        friend, age = (seed + 3 * person) % person, (31 * seed + 47 * person + 13) % AGES
        difference = age - ages[friend]
        facts.append((person, friend, 1 if difference >= 0 else -1, abs(difference)))
        ages[person], steps[person] = age, steps[friend] + 1
