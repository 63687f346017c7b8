"""Sudoku: puzzles in, the opinion on every cell after every step out."""

from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field
from torch import nn

from rrn.errors import InputError
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.grid import CELLS, describe_clash, grid_to_line, line_to_grid
from rrn.tasks.sudoku.heard import GROUPS, heard
from rrn.tasks.sudoku.outcome import work_out
from rrn.tasks.sudoku.predict import solve
from rrn.tasks.sudoku.text import entries
from rrn.training.presets import Preset
from rrn.web import limits
from rrn.web.messages import MALFORMED, REFUSALS, Request, Seed
from rrn.web.pool import Pool, answer

DECIDED = 0.5
"""A cell counts as decided from this probability of its best digit on."""
EXTREME = "986.....4.......3..31.9..6...4.5.1..1..6...2..9..81..5.....5.9.........6467......"
IMPOSSIBLE = "986....14.......3..31.9..6...4.5.1..1..6...2..9..81..5.....5.9.........6467......"
"""Of 30,000 that `generate` made from seed 20261115 the one whose search takes most guesses; and the same with one
more given, which clashes with none and yet leaves no solution."""
Puzzle = Annotated[str, Field(max_length=limits.PUZZLE_CHARACTERS)]


class SolveRequest(Request):
    """Puzzles to solve."""

    puzzles: Annotated[list[Puzzle], Field(min_length=1, max_length=limits.PUZZLES)] = Field(
        description="Each 81 characters, row by row, with 0, . or _ for an empty cell; or a grid with spaces, line "
        "breaks and | - + between the cells.",
        examples=[list(EXAMPLES[:1])],
    )
    steps: Annotated[int, Field(ge=1, le=limits.SUDOKU_STEPS)] = Field(128, description="Steps of one start.")
    restarts: Annotated[int, Field(ge=0, le=limits.RESTARTS)] = Field(
        0,
        description="Starts from a noisy state for puzzles that the first did not solve. Puzzles × steps × starts may "
        f"be {limits.PUZZLE_STEPS:,} at most.",
    )
    seed: Seed = Field(0, description="Seed of the noise.")
    probabilities: bool = Field(
        True,
        description="Send the probability of every digit in every cell after every step; then puzzles × steps may be "
        f"{limits.PROBABILITY_STEPS:,} at most.",
    )


class SolvedPuzzle(BaseModel):
    """One puzzle, and what the network made of it."""

    puzzle: str
    solved: bool
    status: Literal["solved", "already solved", "no solution", "not solved"]
    reason: str | None = Field(description="Why a puzzle is not solved, or was solved before.")
    answer: str = Field(description="81 digits; right only if solved.")
    steps: int = Field(description="Steps of the start that counts: the one that solved it, or the first.")
    starts: int
    handed_over: bool = Field(
        description="Whether it was left to a wider network, which guesses: a single puzzle that all starts failed at."
    )
    confidence: float = Field(description="Mean probability of the digits in empty cells.")
    grids: list[str] = Field(description="The most probable digits after each step, 81 per step.")
    decided: list[int] = Field(description=f"Cells with a digit of probability {DECIDED} or more, after each step.")
    probabilities: list[list[list[float]]] | None = Field(description="Steps × 81 cells × 9 digits.")


class SolveResponse(BaseModel):
    puzzles: list[SolvedPuzzle]


class HeardRequest(Request):
    """A step of the first start of one puzzle."""

    puzzle: Puzzle = Field(examples=[EXAMPLES[0]])
    step: Annotated[int, Field(ge=1, le=limits.SUDOKU_STEPS)]


class HeardResponse(BaseModel):
    groups: list[str]
    heard: list[list[float]] = Field(
        description="81 cells × groups: how far the cell's belief after the step would be another without the messages "
        "that it got in that step from the group; half the sum of the differences of its nine probabilities."
    )


class Example(BaseModel):
    name: str
    puzzle: str
    solvable: bool


def read_puzzle(text: str, name: str) -> np.ndarray:
    """The givens, uint8 (81,)."""
    found = list(entries(text.split("\n"), (CELLS,)))
    if len(found) != 1:
        raise InputError(f"{name}: {len(found)} puzzles, where one is expected.")
    if found[0].wrong:
        raise InputError(f"{name}: {found[0].wrong}.")
    grid = line_to_grid(found[0].puzzle)
    clash = describe_clash(grid)
    if clash:
        raise InputError(f"{name} contradicts itself: {clash}.")
    return grid


def _solve(network: nn.Module, stronger: nn.Module | None, request: SolveRequest) -> dict[str, Any]:
    count = len(request.puzzles)
    work, traced = count * request.steps * (request.restarts + 1), count * request.steps
    if work > limits.PUZZLE_STEPS:
        raise InputError(f"puzzles × steps × starts are {work:,}; at most {limits.PUZZLE_STEPS:,} fit in a request.")
    if request.probabilities and traced > limits.PROBABILITY_STEPS:
        raise InputError(
            f"puzzles × steps are {traced:,}; at most {limits.PROBABILITY_STEPS:,} can be sent with probabilities."
        )
    names = ["The puzzle"] if count == 1 else [f"Puzzle {number}" for number in range(1, count + 1)]
    puzzles = [read_puzzle(text, name) for text, name in zip(request.puzzles, names, strict=True)]
    found = work_out(
        puzzles,
        network,
        max_steps=request.steps,
        restarts=request.restarts,
        seed=request.seed,
        trace=True,
        guesses=limits.SEARCH_GUESSES,
        stronger=(lambda: stronger) if stronger is not None and count == 1 else None,
    )
    rows = []
    for outcome in found:
        solved = np.eye(9)[outcome.answer - 1][None] if outcome.chances is None else outcome.chances
        reason = outcome.reason and outcome.reason[0].upper() + outcome.reason[1:] + "."
        rows.append(
            {
                "puzzle": grid_to_line(outcome.problem),
                "solved": outcome.valid,
                "status": outcome.status,
                "reason": reason,
                "answer": grid_to_line(outcome.answer),
                "steps": outcome.steps,
                "starts": outcome.starts,
                "handed_over": outcome.handed_over,
                "confidence": round(outcome.confidence, 4),
                "grids": ["".join(map(str, digits)) for digits in (solved.argmax(-1) + 1).tolist()],
                "decided": ((solved.max(-1) >= DECIDED) | (outcome.problem > 0)).sum(1).tolist(),
                "probabilities": np.round(solved.astype(float), 3).tolist() if request.probabilities else None,
            }
        )
    return {"puzzles": rows}


def _heard(network: nn.Module, request: HeardRequest) -> dict[str, Any]:
    found = heard(network, read_puzzle(request.puzzle, "The puzzle"), request.step)
    return {"groups": list(GROUPS), "heard": np.round(found.astype(float), 4).tolist()}


def examples() -> list[Example]:
    """Puzzles to begin with, the first of which the page opens with."""
    few = [
        Example(name=f"{81 - puzzle.count('.')} givens, no. {n}", puzzle=puzzle, solvable=True)
        for n, puzzle in enumerate(EXAMPLES, 1)
    ]
    extreme = Example(name="Extreme: needs search", puzzle=EXTREME, solvable=True)
    return [*few, extreme, Example(name="One that fails: no solution exists", puzzle=IMPOSSIBLE, solvable=False)]


def warm_up(network: nn.Module) -> None:
    solve(EXAMPLES[0], network=network, max_steps=4, restarts=1, trace=True)
    work_out([np.zeros(CELLS, np.uint8)], network, max_steps=1, restarts=0, guesses=1)


def router(network: nn.Module, preset: Preset, pool: Pool, stronger: nn.Module | None = None) -> APIRouter:
    api = APIRouter(prefix="/api/sudoku", tags=["Sudoku"])

    @api.post("/solve", response_model=SolveResponse, responses=REFUSALS | MALFORMED, summary="Solve puzzles")
    async def solve_puzzles(request: SolveRequest) -> Response:
        """Every step of every puzzle, in one response."""
        return await answer(pool, _solve, network, stronger, request)

    @api.post("/heard", response_model=HeardResponse, responses=REFUSALS | MALFORMED, summary="Who cells listen to")
    async def who_is_heard(request: HeardRequest) -> Response:
        """What each cell owes to its own digits, its row, its column and its box, after a step of the first start."""
        return await answer(pool, _heard, network, request)

    @api.get("/examples", summary="Puzzles to begin with")
    async def puzzles_to_begin_with() -> list[Example]:
        return examples()

    return api
