"""Pretty-CLEVR: generates scenes by seed, and predicts the end of a path of jumps after every step."""

from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field
from torch import nn

from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.figures import PALETTE, outline
from rrn.tasks.pretty_clevr.predict import parse, predict, scene_of
from rrn.training.presets import Preset
from rrn.web import limits
from rrn.web.messages import MALFORMED, REFUSALS, Request, Seed, Step, Steps, step_predictions
from rrn.web.pool import Pool, respond

Name = Literal[
    "red", "orange", "yellow", "green", "cyan", "blue", "purple", "black",
    "circle", "square", "triangle", "diamond", "plus", "cross", "star", "heart",
]  # fmt: skip


Coordinate = Annotated[float, Field(ge=0, le=100, strict=False)]
Point = Annotated[list[Coordinate], Field(min_length=2, max_length=2)]


class SceneObject(BaseModel):
    """One of eight objects; coordinates in a 100 × 100 picture, y downwards."""

    colour: str
    shape: str
    x: float
    y: float
    fill: str
    outline: list[tuple[float, float]]


class SceneResponse(BaseModel):
    seed: int
    objects: list[SceneObject]


class AskRequest(Request):
    """A question about a scene."""

    seed: Seed
    start: Name = Field(description="Colour or shape of the first object; the answer is of the other type.")
    jumps: Annotated[int, Field(ge=0, le=data.JUMPS - 1)]
    positions: Annotated[list[Point], Field(min_length=data.OBJECTS, max_length=data.OBJECTS)] | None = Field(
        default=None,
        description="x and y of the eight objects, if they were moved; in a 100 × 100 picture, y downwards.",
    )
    steps: Steps = None


class JumpResponse(BaseModel):
    answer: str
    truth: str
    path: list[int] = Field(description="Indices of the visited objects; the start first.")
    steps: list[Step]


def _scene(seed: int) -> dict[str, Any]:
    scene = scene_of(seed).scene(0)
    objects = []
    for position, colour, shape in zip(scene.positions.astype(float), scene.colours, scene.shapes, strict=True):
        corners = position + data.OBJECT_RADIUS * outline(data.SHAPES[shape])
        objects.append(
            {
                "colour": data.COLOURS[colour],
                "shape": data.SHAPES[shape],
                "x": round(100 * position[0], 2),
                "y": round(100 - 100 * position[1], 2),
                "fill": PALETTE[colour],
                "outline": np.round([0, 100] + [100, -100] * corners, 2).tolist(),
            }
        )
    return {"seed": seed, "objects": objects}


def _ask(network: nn.Module, training_steps: int, request: AskRequest) -> dict[str, Any]:
    moved = None if request.positions is None else [0, 1] + np.array(request.positions) * [0.01, -0.01]
    asked = parse(request.seed, request.start, request.jumps, moved)
    result = predict(network, asked, request.steps or training_steps)
    return {
        "answer": result.answers,
        "truth": result.details["truth"],
        "path": asked.scene.path(asked.start, asked.jumps),
        "steps": step_predictions(result),
    }


def warm_up(network: nn.Module) -> None:
    _ask(network, 2, AskRequest(seed=0, start="red", jumps=1))


def router(network: nn.Module, preset: Preset, pool: Pool) -> APIRouter:
    api = APIRouter(prefix="/api/pretty-clevr", tags=["Pretty-CLEVR"])

    @api.get("/scene", response_model=SceneResponse, responses=REFUSALS, summary="Generate a scene")
    async def scene(seed: Annotated[int, Query(ge=0, le=limits.LARGEST_SEED)]) -> Response:
        """The same seed gives the same objects."""
        return await respond(pool, _scene, seed)

    @api.post("/ask", response_model=JumpResponse, responses=REFUSALS | MALFORMED, summary="Ask for the end of a path")
    async def ask(request: AskRequest) -> Response:
        """The answer after every step, and the true path."""
        return await respond(pool, _ask, network, preset.steps, request)

    return api
