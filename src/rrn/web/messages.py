"""Request and response bodies that several panels share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rrn.inference.result import Result
from rrn.tasks.answers import top_choices
from rrn.web import limits

Seed = Annotated[int, Field(ge=0, le=limits.LARGEST_SEED)]
Steps = Annotated[
    int | None, Field(ge=1, le=limits.STEPS, description="Message-passing steps; null: the number used in training.")
]


class Request(BaseModel):
    """A request body: unknown fields are refused, and types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Refusal(BaseModel):
    """The body of every response other than 200."""

    error: str


class Prediction(BaseModel):
    """An answer with its predicted probability."""

    answer: str
    probability: float


class Step(BaseModel):
    """The most probable answers after one step, the most probable first."""

    step: int
    predictions: list[Prediction]


REFUSALS: dict[int | str, dict[str, Any]] = {
    408: {"model": Refusal, "description": "The body did not arrive in time."},
    413: {"model": Refusal, "description": f"The body is longer than {limits.BODY_BYTES:,} bytes."},
    422: {"model": Refusal, "description": "The input is invalid; the message explains why."},
    429: {"model": Refusal, "description": "Too many requests are waiting; try again in a second."},
}
MALFORMED: dict[int | str, dict[str, Any]] = {400: {"model": Refusal, "description": "The body is not JSON."}}


def step_predictions(result: Result, count: int = 4) -> list[dict[str, Any]]:
    """The ``count`` most probable answers after each step, as JSON of `Step`."""
    return [
        {"step": step, "predictions": [{"answer": answer, "probability": round(p, 4)} for answer, p in best]}
        for step, best in enumerate(top_choices(result, count), start=1)
    ]
