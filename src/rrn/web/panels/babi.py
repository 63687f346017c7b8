"""bAbI: answers a question about facts, with the answer after every step and the importance of each fact."""

from functools import cache
from itertools import islice
from random import Random
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field
from torch import nn

from rrn.errors import InputError
from rrn.tasks.babi.generator import generate_stories
from rrn.tasks.babi.predict import normalise, predict
from rrn.tasks.babi.stories import TASK_NAMES, TASKS
from rrn.tasks.babi.unanswerable import varied_story
from rrn.tasks.babi.vocabulary import GROUPS, NO_ANSWER, READ_AS, UNKNOWN_ID, split_sentences
from rrn.training.presets import Preset
from rrn.web import limits
from rrn.web.messages import MALFORMED, REFUSALS, Request, Step, Steps, step_predictions
from rrn.web.pool import Pool, respond

SENTENCE_WORDS = 12
LARGEST_EXAMPLE = 999
UNANSWERABLE = 21
"""Number of the example whose facts do not contain the answer; bAbI's tasks are 1 to 20."""


class AskRequest(Request):
    """Facts and a question."""

    facts: Annotated[str, Field(max_length=limits.STORY_CHARACTERS)] = Field(
        description=f"Sentences, at most {limits.FACTS} of them, oldest first.",
        examples=["Mary went to the kitchen. John moved to the garden."],
    )
    question: Annotated[str, Field(max_length=limits.QUESTION_CHARACTERS)] = Field(examples=["Where is Mary?"])
    steps: Steps = None


class Fact(BaseModel):
    text: str
    importance: float = Field(description="Decrease of the answer's probability without this fact.")


class StoryResponse(BaseModel):
    answer: str = Field(description=f"A word or a list of words, or {NO_ANSWER!r}.")
    unanswerable: float = Field(description="Probability that the story does not contain the answer.")
    facts: list[Fact]
    steps: list[Step]
    read_as: list[tuple[str, str]] = Field(description="Words of the story that were replaced by known words.")


class Example(BaseModel):
    task: int
    title: str
    facts: str
    question: str
    answer: str


class WordGroup(BaseModel):
    title: str
    words: list[str]


class Words(BaseModel):
    groups: list[WordGroup]
    read_as: list[tuple[str, str]] = Field(description="Words that are replaced, each with its known word.")


def known_words() -> Words:
    """The vocabulary of the network."""
    return Words(
        groups=[WordGroup(title=title, words=words) for title, words in GROUPS.items()], read_as=list(READ_AS.items())
    )


def read_story(request: AskRequest) -> tuple[list[str], str]:
    """The facts and the question, each one sentence."""
    facts, questions = split_sentences(request.facts), split_sentences(request.question)
    if not facts:
        raise InputError("No facts; write sentences such as 'Mary went to the kitchen.'")
    if len(facts) > limits.FACTS:
        raise InputError(f"{len(facts)} facts; the limit is {limits.FACTS}.")
    if len(questions) != 1:
        raise InputError(f"The question must be one sentence such as 'Where is Mary?'; found {len(questions)}.")
    for sentence in (*facts, *questions):
        words = len(sentence.split())
        if words > SENTENCE_WORDS:
            raise InputError(f"{sentence!r} has {words} words; the limit is {SENTENCE_WORDS}.")
    return facts, questions[0]


def _ask(network: nn.Module, training_steps: int, request: AskRequest) -> dict[str, Any]:
    facts, question = read_story(request)
    asked = normalise(facts, question)
    result = predict(network, asked, request.steps or training_steps, limits.FACTS)
    importance = np.clip(result.details["importance"], 0, 1)
    return {
        "answer": result.answers,
        "unanswerable": round(float(result.record[-1, UNKNOWN_ID]), 4),
        "facts": [
            {"text": text, "importance": round(float(i), 4)}
            for text, i in zip(result.details["facts"], importance, strict=True)
        ],
        "steps": step_predictions(result),
        "read_as": list(asked.replaced),
    }


@cache
def example(task: int, number: int) -> Example:
    """The first question of a generated story with few enough facts."""
    for story in islice(generate_stories(task, seed=number, stream=9), 100):
        for question in story.questions:
            if question.facts <= limits.FACTS:
                facts = "\n".join(story.facts[: question.facts])
                title = TASK_NAMES[task - 1].capitalize()
                return Example(task=task, title=title, facts=facts, question=question.text, answer=question.answer)
    raise InputError(f"No short story of task {task} for number {number}; try another number.")


def examples(number: int) -> list[Example]:
    """A story of each task, and one that does not contain the answer."""
    story = varied_story(2, Random(number), unanswerable=True)
    (question,) = story.questions
    unanswerable = Example(
        task=UNANSWERABLE,
        title="The story does not contain the answer",
        facts="\n".join(story.facts),
        question=question.text,
        answer=question.answer,
    )
    return [*(example(task, number) for task in TASKS), unanswerable]


def warm_up(network: nn.Module) -> None:
    _ask(network, 2, AskRequest(facts="Mary went to the kitchen. John moved to the garden.", question="Where is Mary?"))


def router(network: nn.Module, preset: Preset, pool: Pool) -> APIRouter:
    api = APIRouter(prefix="/api/babi", tags=["bAbI"])

    @api.post("/ask", response_model=StoryResponse, responses=REFUSALS | MALFORMED, summary="Ask about a story")
    async def ask(request: AskRequest) -> Response:
        """The answer after every step, and the importance of each fact, measured by leaving it out."""
        return await respond(pool, _ask, network, preset.steps, request)

    @api.get("/words", summary="The vocabulary of the network")
    async def words() -> Words:
        return known_words()

    @api.get(
        "/examples",
        response_model=list[Example],
        responses=REFUSALS,
        summary="Example stories: one per task, and one without answer",
    )
    async def example_stories(number: Annotated[int, Query(ge=0, le=LARGEST_EXAMPLE)] = 0) -> Response:
        """Generated stories; another number gives other stories. The last one does not contain the answer."""
        return await respond(pool, lambda: [story.model_dump() for story in examples(number)])

    return api
