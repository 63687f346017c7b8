"""The bodies that all parts of the API share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rrn.inference.result import Result
from rrn.tasks.answers import top_choices
from rrn.web import limits

Seed = Annotated[int, Field(ge=0, le=limits.LARGEST_SEED)]
Steps = Annotated[int | None, Field(ge=1, le=limits.STEPS, description="Steps to think; null: as many as in training.")]


class Request(BaseModel):
    """What is not named here is refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Refusal(BaseModel):
    """The body of every response that is not 200."""

    error: str


class Guess(BaseModel):
    """An answer and how probable the network takes it to be."""

    answer: str
    probability: float


class Step(BaseModel):
    """The best answers after one step, the most probable first."""

    step: int
    guesses: list[Guess]


REFUSALS: dict[int | str, dict[str, Any]] = {
    408: {"model": Refusal, "description": "The body did not arrive in time."},
    413: {"model": Refusal, "description": f"The body is longer than {limits.BODY_BYTES:,} bytes."},
    422: {"model": Refusal, "description": "The input cannot be used; the message says why."},
    429: {"model": Refusal, "description": "Too many requests wait already; try again after a second."},
}
MALFORMED: dict[int | str, dict[str, Any]] = {400: {"model": Refusal, "description": "The body is not JSON."}}


def best_guesses(result: Result, count: int = 4) -> list[dict[str, Any]]:
    """As `Step`s."""
    return [
        {"step": t, "guesses": [{"answer": answer, "probability": round(p, 4)} for answer, p in best]}
        for t, best in enumerate(top_choices(result, count), start=1)
    ]
