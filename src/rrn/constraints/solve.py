"""Solving declared problems with a network: answers that are checked against every declared rule."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rrn.constraints.problem import Problem
from rrn.errors import InputError
from rrn.inference.attempts import NOISE, run_attempts
from rrn.inference.candidates import CandidateBatch, CandidateNetwork, GroupTable, known_logits
from rrn.inference.result import Result, Status
from rrn.network import RRN
from rrn.nn.messages import GroupMessage

SLOTS = 32
"""Problems in the running batch."""
ATTEMPTS = 8


def as_batch(problems: Sequence[Problem], group_types: tuple[str, ...]) -> tuple[dict[str, Tensor], tuple[int, ...]]:
    """Problems as tensors of `CandidateNetwork`, padded to the same number of candidates; and the counts of groups."""
    views = [problem.constraints.for_network(group_types) for problem in problems]
    width = max(len(member_of) for member_of, _ in views)
    counts = tuple(max(sizes) for sizes in zip(*(counts for _, counts in views), strict=True))
    open_, true = np.zeros((2, len(problems), width), bool)
    member_of = np.zeros((len(problems), width, len(group_types)), np.int64)
    for row, (problem, (groups, _)) in enumerate(zip(problems, views, strict=True)):
        open_[row, : len(groups)], true[row, problem.given_numbers] = problem.open, True
        member_of[row, : len(groups)] = groups
    batch = {"open": torch.from_numpy(open_), "true": torch.from_numpy(true), "member_of": torch.from_numpy(member_of)}
    return batch | {"known": known_logits(batch["true"])}, counts


class Solver:
    """A trained network and the group types it was trained on. `Constraints.fit` makes one.

    ``detects_contradictions``: it was trained with ``contradiction_share``, so it can be used for search.
    """

    def __init__(self, network: RRN, group_types: Sequence[str], detects_contradictions: bool = False) -> None:
        message = network.message
        if not isinstance(message, GroupMessage) or message.group_types != len(group_types):
            found = f"{message.group_types} types" if isinstance(message, GroupMessage) else type(message).__name__
            raise InputError(f"network: expected one for {len(group_types)} group types, got {found}")
        self.network, self.group_types = network, tuple(group_types)
        self.detects_contradictions = detects_contradictions

    def __repr__(self) -> str:
        parameters = sum(parameter.numel() for parameter in self.network.parameters())
        search = ", with search" if self.detects_contradictions else ""
        return f"Solver({', '.join(self.group_types)}; {parameters:,} parameters{search})"

    def solve(
        self,
        problems: Problem | Sequence[Problem],
        *,
        max_steps: int = 64,
        attempts: int = ATTEMPTS,
        noise: float = NOISE,
        search: bool = True,
        diagnose: bool = True,
        slots: int = SLOTS,
        seed: int = 0,
        progress: Callable[[int], None] = lambda count: None,
    ) -> Result:
        """Run the network on problems until their answers break no rule. Answers are lists of candidates.

        Args:
            problems: one or many, of any sizes.
            max_steps: steps of one attempt.
            attempts: how many attempts a problem gets; all but the first add noise.
            noise: its standard deviation.
            search: use best-first search if the network ``detects_contradictions``.
            diagnose: count the solutions of a problem exactly before further attempts: whether it is impossible.
            slots: size of the running batch.
            seed: of the noise.
            progress: called with 1 whenever a problem is done.
        """
        problems = [problems] if isinstance(problems, Problem) else list(problems)
        if not problems:
            raise InputError("problems: expected at least one, got none")
        decides = all(problem.constraints.decides for problem in problems)
        rows = [row for row, problem in enumerate(problems) if problem.open.any()]
        results: dict[int, Result] = {row: _without_network(problems[row]) for row in range(len(problems))}
        if rows:
            running = [problems[row] for row in rows]
            batch, counts = as_batch(running, self.group_types)
            true = batch.pop("true")
            with torch.inference_mode():
                candidates = CandidateBatch(
                    CandidateNetwork(self.network, len(self.group_types)),
                    batch,
                    [problem.constraints.layout for problem in running],
                    true,
                    decides=decides,
                    search=search and self.detects_contradictions and decides,
                    diagnose=(lambda row: running[row].diagnose()) if diagnose else None,
                    groups=GroupTable(None, counts),
                )
                found = run_attempts(
                    candidates,
                    max_steps=max_steps,
                    attempts=attempts,
                    noise=noise,
                    slots=slots,
                    generator=torch.Generator().manual_seed(seed),
                    progress=progress,
                )
                chosen = candidates.choose(torch.stack(found.answers)[None], torch.arange(len(running), device="cpu"))
            for place, row in enumerate(rows):
                results[row] = _checked(found[place], problems[row], chosen[0, place].numpy())
        return _stacked([results[row] for row in range(len(problems))])

    def save(self, folder: str | Path) -> None:
        """Write weights (safetensors) and settings (JSON), for `load` and for ``rrn solve --weights``."""
        from rrn.constraints.files import save_solver

        save_solver(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "Solver":
        """What `save` wrote, ready to use."""
        from rrn.constraints.files import load_solver

        return load_solver(Path(folder))


def _without_network(problem: Problem) -> Result:
    """The result for a problem without open candidates: its givens are the only possible answer."""
    violations = problem.violations(problem.given_numbers)
    status = Status.IMPOSSIBLE if violations else Status.ALREADY_SOLVED
    message = violations[0] if violations else "nothing is open, and the givens break no rule"
    return Result(status, problem.given, 0, 0, 1.0, message)


def _checked(result: Result, problem: Problem, chosen: np.ndarray) -> Result:
    """The result with candidates as its answer, checked by the declared rules."""
    numbers = np.flatnonzero(chosen[: len(problem.open)])
    names = [problem.constraints.candidates[number] for number in numbers]
    if result.solved and (violations := problem.violations(numbers)):
        return replace(result, answers=names, status=Status.UNSOLVED, message=violations[0], details={})
    return replace(result, answers=names, details={})


def _stacked(rows: list[Result]) -> Result:
    return Result(
        [row.status for row in rows],
        [row.answers for row in rows],
        np.array([row.steps for row in rows]),
        np.array([row.attempts for row in rows]),
        np.array([row.confidence for row in rows]),
        [row.message for row in rows],
    )
