"""Sudoku: solves puzzles, with the predicted digits of every cell after every step."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field
from torch import nn

from rrn.errors import InputError, quote
from rrn.inference.result import Result
from rrn.inference.service import Service
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.grid import (
    BOXES,
    CELLS,
    describe_clash,
    grid_to_line,
    grids_to_lines,
    line_to_grid,
)
from rrn.tasks.sudoku.influence import GROUPS, influence
from rrn.tasks.sudoku.predict import Stages, digit_probabilities, solve
from rrn.tasks.sudoku.text import entries_of
from rrn.training.presets import Preset
from rrn.web import limits
from rrn.web.guard import CLIENT_ADDRESS, as_json
from rrn.web.messages import MALFORMED, REFUSALS, Request, Seed
from rrn.web.pool import Pool, respond

DECIDED = 0.5
"""A cell is decided if the probability of its best digit is at least this."""
EXTREME = "986.....4.......3..31.9..6...4.5.1..1..6...2..9..81..5.....5.9.........6467......"
"""Of 30,000 puzzles generated from seed 20261115, the one whose exact search needs most guesses."""
IMPOSSIBLE = "986....14.......3..31.9..6...4.5.1..1..6...2..9..81..5.....5.9.........6467......"
"""`EXTREME` with one more given: no two givens clash, but there is no solution."""
Puzzle = Annotated[str, Field(max_length=limits.PUZZLE_CHARACTERS)]


class ReadRequest(Request):
    """Text that may contain one puzzle."""

    text: Puzzle = Field(examples=[EXAMPLES[0]])


class ReadResponse(BaseModel):
    puzzle: str | None = Field(description="A character per cell, '.' if empty; null if the text is not a puzzle.")
    message: str = Field(description="Why the text is not a puzzle; empty if it is one.")


class SolveRequest(Request):
    """Puzzles to solve."""

    puzzles: Annotated[list[Puzzle], Field(min_length=1, max_length=limits.PUZZLES)] = Field(
        description="Each 81 characters, row by row, with 0, . or _ for an empty cell; or a grid with spaces, line "
        "breaks and | - + between the cells. Also 16, 36 or 256 cells, with digits beyond 9 as A to G; all of a "
        "request have the same size.",
        examples=[list(EXAMPLES[:1])],
    )
    steps: Annotated[int, Field(ge=1, le=limits.SUDOKU_STEPS)] = Field(128, description="Steps of one attempt.")
    attempts: Annotated[int, Field(ge=1, le=limits.ATTEMPTS)] = Field(
        1,
        description="Attempts per puzzle; those after the first add noise. Puzzles × steps × attempts is at most "
        f"{limits.PUZZLE_STEPS:,}.",
    )
    network: str | None = Field(
        None,
        max_length=limits.QUESTION_CHARACTERS,
        description="A network of /api/panels; null: the default one, then the larger one.",
    )
    seed: Seed = Field(0, description="Seed of the noise.")
    probabilities: bool = Field(
        True,
        description="Return the probability of every digit after every step; then puzzles × steps is at most "
        f"{limits.PROBABILITY_STEPS:,}.",
    )


class SolvedPuzzle(BaseModel):
    """The result of one puzzle."""

    puzzle: str
    solved: bool
    status: str = Field(description="solved, already solved, unsolved, ambiguous or impossible.")
    message: str = Field(description="Explanation of the status; empty if there is none.")
    answer: str = Field(description="A digit per cell; correct only if solved.")
    steps: int = Field(description="Steps of the attempt that solved the puzzle, else of the first attempt.")
    attempts: int
    fallback: bool = Field(description="Whether the larger network also tried, after all attempts of the first failed.")
    confidence: float = Field(description="Mean probability of the digits in empty cells.")
    grids: list[str] = Field(description="The most probable digits after each step, one per cell.")
    decided: list[int] = Field(description=f"Cells with a digit of probability {DECIDED} or more, after each step.")
    probabilities: list[list[list[float]]] | None = Field(description="Steps × cells × digits.")


class SolveResponse(BaseModel):
    puzzles: list[SolvedPuzzle]


class InfluenceRequest(Request):
    """A step of the first attempt at one puzzle."""

    puzzle: Puzzle = Field(examples=[EXAMPLES[0]])
    step: Annotated[int, Field(ge=1, le=limits.SUDOKU_STEPS)]


class InfluenceResponse(BaseModel):
    groups: list[str]
    influence: list[list[float]] = Field(
        description="81 cells × groups: total variation distance between the cell's predicted digits with and without "
        "the messages of the group in this step."
    )


class Example(BaseModel):
    name: str
    puzzle: str
    solvable: bool


def read_puzzle(text: str, name: str = "The puzzle") -> np.ndarray:
    """The givens of the one puzzle in a text: uint8 (cells,). Error messages call the puzzle ``name``."""
    found = entries_of(text)
    if len(found) != 1:
        raise InputError(f"{name}: found {len(found)} puzzles, expected one.")
    if found[0].wrong:
        raise InputError(f"{name}: {found[0].wrong}.")
    return line_to_grid(found[0].puzzle)


def _read(request: ReadRequest) -> dict[str, Any]:
    try:
        return {"puzzle": grid_to_line(read_puzzle(request.text)), "message": ""}
    except InputError as error:
        return {"puzzle": None, "message": str(error)}


def _without_clashes(texts: list[str]) -> np.ndarray:
    """Puzzles of the same size: uint8 (n, cells)."""
    names = ["The puzzle"] if len(texts) == 1 else [f"Puzzle {number}" for number in range(1, len(texts) + 1)]
    grids = [read_puzzle(text, name) for text, name in zip(texts, names, strict=True)]
    for name, grid in zip(names, grids, strict=True):
        if len(grid) != len(grids[0]):
            raise InputError(f"{name} has {len(grid)} cells, the first one {len(grids[0])}; send one size per request.")
        if clash := describe_clash(grid, BOXES[len(grid)]):
            raise InputError(f"{name} contradicts itself: {clash}.")
    return np.stack(grids)


def _stages(network: nn.Module, others: Mapping[str, nn.Module], request: SolveRequest) -> Stages:
    """The puzzles of a request and the networks that try them."""
    if request.network is not None and request.network not in others:
        known = ", ".join(map(repr, others)) or "none"
        raise InputError(f"network: expected one of {known}, or null; got {quote(request.network)}.")
    grids = _without_clashes(request.puzzles)
    box = BOXES[grids.shape[1]]
    count = len(grids) * (box[0] * box[1]) ** 3 / 729
    work, recorded = round(count * request.steps * request.attempts), round(count * request.steps)
    if work > limits.PUZZLE_STEPS:
        raise InputError(f"puzzles × steps × attempts is {work:,}; the limit is {limits.PUZZLE_STEPS:,}.")
    if request.probabilities and recorded > limits.PROBABILITY_STEPS:
        raise InputError(
            f"puzzles × steps is {recorded:,}; with probabilities the limit is {limits.PROBABILITY_STEPS:,}."
        )
    chosen = network if request.network is None else others[request.network]
    fallback = next(iter(others.values()), None) if request.network is None and request.attempts > 1 else None
    make = None if fallback is None else lambda: fallback
    return Stages(grids, chosen, make, box=box, guesses=limits.SEARCH_GUESSES)


def _rows(found: Result, probabilities: bool) -> bytes:
    """JSON of `SolveResponse`: megabytes with probabilities."""
    rows, size = [], round(found.answers.shape[1] ** 0.5)
    for row in range(len(found)):
        result = found[row]
        record = np.eye(size)[result.answers - 1][None] if result.record is None else result.record
        puzzle = result.details["puzzles"]
        line, answer, *grids = grids_to_lines(np.stack([puzzle, result.answers, *(record.argmax(-1) + 1)]))
        rows.append(
            {
                "puzzle": line,
                "solved": result.solved,
                "status": result.status,
                "message": result.message[0].upper() + result.message[1:] + "." if result.message else "",
                "answer": answer,
                "steps": result.steps,
                "attempts": result.attempts,
                "fallback": result.details["fallback"],
                "confidence": round(result.confidence, 4),
                "grids": grids,
                "decided": ((record.max(-1) >= DECIDED) | (puzzle > 0)).sum(1).tolist(),
                "probabilities": np.round(record.astype(float), 3).tolist() if probabilities else None,
            }
        )
    return as_json({"puzzles": rows})


def _influence(network: nn.Module, request: InfluenceRequest) -> dict[str, Any]:
    (puzzle,) = _without_clashes([request.puzzle])
    if len(puzzle) != CELLS:
        raise InputError(f"Influence is computed for puzzles of 81 cells; this one has {len(puzzle)}.")
    found = influence(network, puzzle, request.step)
    return {"groups": list(GROUPS), "influence": np.round(found.astype(float), 4).tolist()}


def examples() -> list[Example]:
    """Example puzzles; the page opens with the first."""
    few = [
        Example(name=f"{81 - puzzle.count('.')} givens, no. {n}", puzzle=puzzle, solvable=True)
        for n, puzzle in enumerate(EXAMPLES, 1)
    ]
    extreme = Example(name="Extreme: needs search", puzzle=EXTREME, solvable=True)
    return [*few, extreme, Example(name="Without solution", puzzle=IMPOSSIBLE, solvable=False)]


def warm_up(network: nn.Module) -> None:
    solve(EXAMPLES[0], network=network, max_steps=4, attempts=2, record=True)
    solve(np.zeros((1, CELLS), np.uint8), network=network, max_steps=1, attempts=1, exact_guesses=1)


def router(
    network: nn.Module, preset: Preset, pool: Pool, service: Service, others: Mapping[str, nn.Module]
) -> APIRouter:
    api = APIRouter(prefix="/api/sudoku", tags=["Sudoku"])

    @api.post("/read", responses=REFUSALS | MALFORMED, summary="Read a puzzle")
    async def read(request: ReadRequest) -> ReadResponse:
        """The puzzle of a text in any of the forms that `solve` accepts."""
        return ReadResponse(**_read(request))

    @api.post("/solve", response_model=SolveResponse, responses=REFUSALS | MALFORMED, summary="Solve puzzles")
    async def solve_puzzles(request: SolveRequest) -> Response:
        """Every step of every puzzle, in one response. All requests share a running batch."""
        stages = _stages(network, others, request)
        for by in stages:
            found = await service.solve(
                stages.problems(by, stages.rows),
                max_steps=request.steps,
                attempts=request.attempts,
                seed=request.seed,
                record=digit_probabilities,
                client=CLIENT_ADDRESS.get(),
            )
            stages.add(found)
        found, long = stages.result(), request.probabilities
        body = await asyncio.to_thread(_rows, found, True) if long else _rows(found, False)
        return Response(body, media_type="application/json")

    @api.post(
        "/influence",
        response_model=InfluenceResponse,
        responses=REFUSALS | MALFORMED,
        summary="Influence of groups on cells",
    )
    async def influence(request: InfluenceRequest) -> Response:
        """How much the messages of its digits, its row, its column and its box change each cell in a step."""
        return await respond(pool, _influence, network, request)

    @api.get("/examples", summary="Example puzzles")
    async def example_puzzles() -> list[Example]:
        return examples()

    return api
