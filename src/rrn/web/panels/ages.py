"""Ages: answers questions such as "How old is Bob?", with the predicted age after every step."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field
from torch import nn

from rrn.tasks.ages.predict import parse, predict
from rrn.training.presets import Preset
from rrn.web import limits
from rrn.web.messages import MALFORMED, REFUSALS, Request, Seed, Step, Steps, step_predictions
from rrn.web.pool import Pool, respond

EXAMPLES = {
    "Five people": "Ann is 20. Ann is 4 years older than Bob. Cleo is 6 years younger than Bob. Dan is 31 years older "
    "than Cleo. Eve is 12 years younger than Dan. How old is Eve?",
    "A family": "Grandma is 81. Grandma is 27 years older than Mum. Mum is 3 years younger than Dad. Dad is 29 years "
    "older than Zoe. Zoe is 4 years older than Max. How old is Max?",
    "Seven differences": "Ada is 5. Ben is 40 older than Ada. Cid is 13 younger than Ben. Dot is 50 older than Cid. "
    "Eli is 21 younger than Dot. Fay is as old as Eli. Gus is 30 younger than Fay. Hal is 9 older than Gus. "
    "How old is Hal?",
    "Contradictory facts": "Ann is 20. Bob is 4 older than Ann. Ann is 1 older than Bob. How old is Bob?",
}


class AskRequest(Request):
    """Facts about ages, and a question."""

    story: Annotated[str, Field(max_length=limits.STORY_CHARACTERS)] = Field(
        description="Facts such as 'Ann is 20.', 'Ann is 4 older than Bob.', 'Ann is as old as Bob.', and "
        "last the question: 'How old is Bob?'",
        examples=[EXAMPLES["Five people"]],
    )
    steps: Steps = None
    seed: Seed = Field(default=0, description="Seed of the invented people that pad a story to eight facts.")


class AgeResponse(BaseModel):
    person: str
    answer: int
    truth: int = Field(description="The age that follows from the facts.")
    differences: int = Field(description="Differences between the person and the given age.")
    steps: list[Step]
    distribution: list[list[float]] = Field(description="Steps × 100 ages: predicted probabilities.")


class Example(BaseModel):
    name: str
    story: str


def _ask(network: nn.Module, training_steps: int, request: AskRequest) -> dict[str, Any]:
    story = parse(request.story, seed=request.seed)
    result = predict(network, story, request.steps or training_steps)
    return {
        "person": story.asked,
        "answer": int(result.answers),
        "truth": int(story.questions.answer[0]),
        "differences": int(story.questions.length[0]),
        "steps": step_predictions(result),
        "distribution": np.round(result.record.astype(float), 4).tolist(),
    }


def examples() -> list[Example]:
    return [Example(name=name, story=story) for name, story in EXAMPLES.items()]


def warm_up(network: nn.Module) -> None:
    _ask(network, 2, AskRequest(story=EXAMPLES["Five people"]))


def router(network: nn.Module, preset: Preset, pool: Pool) -> APIRouter:
    api = APIRouter(prefix="/api/ages", tags=["Ages"])

    @api.post("/ask", response_model=AgeResponse, responses=REFUSALS | MALFORMED, summary="Ask for an age")
    async def ask(request: AskRequest) -> Response:
        """The predicted age after every step, and the true age."""
        return await respond(pool, _ask, network, preset.steps, request)

    @api.get("/examples", summary="Example stories")
    async def example_stories() -> list[Example]:
        return examples()

    return api
