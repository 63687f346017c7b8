"""Solving declared problems with a network: answers that are checked against every declared rule."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from rrn.constraints.problem import Problem
from rrn.errors import InputError
from rrn.inference.attempts import NOISE, run_attempts
from rrn.inference.candidates import CandidateBatch, CandidateNetwork
from rrn.inference.committing import Committing
from rrn.inference.result import Result, Status
from rrn.inference.search import CandidateLayout
from rrn.network import RRN
from rrn.nn.messages import GroupMessage

STEPS, COMMITTING_STEPS = 64, 1024
"""Steps of an attempt."""
SLOTS = 32
"""Problems in the running batch."""
ATTEMPTS = 8


def as_batch(
    problems: Sequence[Problem], group_types: tuple[str, ...]
) -> tuple[dict[str, Tensor], list[CandidateLayout]]:
    """Problems as tensors of `CandidateNetwork`, padded to the same number of candidates; and their layouts."""
    layouts = [problem.constraints.for_network(group_types) for problem in problems]
    width = max(len(layout.groups) for layout in layouts)
    open_, true = np.zeros((2, len(problems), width), bool)
    for row, problem in enumerate(problems):
        open_[row, : len(problem.open)], true[row, problem.given_numbers] = problem.open, True
    batch = {"open": torch.from_numpy(open_), "true": torch.from_numpy(true)}
    batch["problem"] = torch.arange(len(problems), device="cpu")
    return batch, layouts


class Solver:
    """A trained network and the group types it was trained on. `Constraints.fit` makes one.

    Args:
        network: made by `rrn.inference.candidates.make_network`.
        group_types: their names, in the network's order.
        detects_contradictions: it was trained with ``contradiction_share``, so it can be used for best-first search.
        counted_types: the group types of which the network reads how many true members they still may have.
        reads_preferences: whether the network reads the preferences of candidates.
        training: figures of the training, for information.
    """

    def __init__(
        self,
        network: RRN,
        group_types: Sequence[str],
        detects_contradictions: bool = False,
        counted_types: Sequence[str] = (),
        reads_preferences: bool = False,
        training: Mapping[str, float] | None = None,
    ) -> None:
        message = network.message
        if not isinstance(message, GroupMessage) or message.group_types != len(group_types):
            found = f"{message.group_types} types" if isinstance(message, GroupMessage) else type(message).__name__
            raise InputError(f"network: expected one for {len(group_types)} group types, got {found}")
        features = 1 + len(counted_types) + reads_preferences
        if network.features != features:
            raise InputError(f"network: expected one with {features} features, got {network.features}")
        self.network, self.group_types, self.training = network, tuple(group_types), dict(training or {})
        self.detects_contradictions = detects_contradictions
        self.counted_types, self.reads_preferences = tuple(counted_types), reads_preferences

    def with_network(self, network: nn.Module, training: Mapping[str, float] | None = None) -> "Solver":
        """The same solver with other weights."""
        assert isinstance(network, RRN)
        flags = self.detects_contradictions, self.counted_types, self.reads_preferences
        return Solver(network, self.group_types, *flags, training)

    def __repr__(self) -> str:
        parameters = sum(parameter.numel() for parameter in self.network.parameters())
        parts = [", ".join(self.group_types), f"{parameters:,} parameters"]
        parts += ["detects contradictions"] if self.detects_contradictions else []
        parts += ["reads preferences"] if self.reads_preferences else []
        if self.training:
            figures = self.training
            solved = figures.get("validation", figures["solved"])
            what = "held-out" if "validation" in figures else "training"
            parts.append(
                f"{figures['updates']:,} updates in {figures['minutes']:.1f} min: {solved:.1%} of {what} problems"
            )
        return f"Solver({'; '.join(parts)})"

    def solve(
        self,
        problems: Problem | Sequence[Problem],
        *,
        max_steps: int | None = None,
        attempts: int = ATTEMPTS,
        noise: float = NOISE,
        search: bool = True,
        diagnose: bool = True,
        slots: int = SLOTS,
        seed: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> Result:
        """Run the network on problems until their answers break no rule. Answers are lists of candidates.

        Args:
            problems: one or many, of any sizes.
            max_steps: steps of one attempt; by default 64, or 1,024 if it commits.
            attempts: how many attempts a problem gets; all but the first add noise.
            noise: its standard deviation.
            search: use best-first search if the network ``detects_contradictions``; otherwise commit: every few steps
                the surest candidate is fixed, and taken back if the rules cannot be kept with it.
            diagnose: count the solutions of a problem exactly before further attempts: whether it is impossible.
            slots: size of the running batch.
            seed: of the noise.
            progress: called with 1 whenever a problem is done.

        Returns:
            a `Result`; details has ``objective``, the sum of the preferences of the answer. If a problem has
            preferences, all attempts are made, and the best valid answer is returned.
        """
        problems = [problems] if isinstance(problems, Problem) else list(problems)
        if not problems:
            raise InputError("problems: expected at least one, got none")
        rows = [row for row, problem in enumerate(problems) if problem.open.any()]
        results = [Result(Status.UNSOLVED, [], 0, 0, 1.0, "")] * len(problems)
        for row in set(range(len(problems))) - set(rows):
            results[row] = _without_network(problems[row])
        if rows:
            running = [problems[row] for row in rows]
            with torch.inference_mode():
                candidates = self.batch_of(running, search, diagnose, seed)
                committing = isinstance(candidates.search, Committing)
                found = run_attempts(
                    candidates,
                    max_steps=max_steps or (COMMITTING_STEPS if committing else STEPS),
                    attempts=attempts,
                    noise=noise,
                    slots=slots,
                    generator=torch.Generator().manual_seed(seed),
                    progress=progress,
                )
                chosen = candidates.choose(torch.stack(found.answers)[None], torch.arange(len(running), device="cpu"))
            for place, row in enumerate(rows):
                results[row] = _checked(found[place], problems[row], chosen[0, place].numpy())
        return _stacked(results)

    def batch_of(
        self, problems: Sequence[Problem], search: bool = True, diagnose: bool = False, seed: int = 0
    ) -> CandidateBatch:
        """The problems as the attempt loop reads them."""
        for problem in problems:
            unread = [name for name in problem.constraints.counted_types if name not in self.counted_types]
            if unread:
                raise InputError(f"k: the network was trained with k = 1 for {unread[0]!r}; train one with other k")
        batch, layouts = as_batch(problems, self.group_types)
        decides = all(layout.decides for layout in layouts)
        preferences = None
        if self.reads_preferences or any(problem.preferences is not None for problem in problems):
            preferences = torch.zeros(batch["open"].shape, device="cpu")
            for row, problem in enumerate(problems):
                if problem.preferences is not None:
                    preferences[row, : len(problem.preferences)] = torch.from_numpy(problem.preferences)
        searching = search and self.detects_contradictions and decides
        return CandidateBatch(
            CandidateNetwork(self.network, len(self.group_types)),
            batch,
            layouts,
            batch.pop("true"),
            decides=decides,
            search=searching,
            commit=search and not searching,
            counted_types=[self.group_types.index(name) for name in self.counted_types],
            evidence=preferences if self.reads_preferences else None,
            preferences=preferences if any(problem.preferences is not None for problem in problems) else None,
            seed=seed,
            diagnose=(lambda row: problems[row].diagnose()) if diagnose else None,
        )

    def beliefs(
        self, problems: Problem | Sequence[Problem], logits: Tensor | None = None, *, steps: int = 32
    ) -> Tensor:
        """Logits of all candidates after each step: (steps, problems, candidates), padded to the largest problem.

        They can be differentiated with respect to ``logits``, (problems, candidates): what another network predicts for
        each candidate. Only for networks that read preferences (``fit(preferences=True)``); by default the problems'
        own preferences. Candidates that are not open have ±20.
        """
        problems = [problems] if isinstance(problems, Problem) else list(problems)
        if logits is not None and not self.reads_preferences:
            raise InputError("logits: this network does not read any; train one with fit(…, preferences=True)")
        candidates = self.batch_of(problems, search=False)
        if logits is not None:
            shape = candidates.true.shape
            if logits.shape != shape and logits.shape != shape[1:]:
                raise InputError(f"logits: expected shape {tuple(shape)}, got {tuple(logits.shape)}")
            candidates.evidence = logits.expand(shape)
        batch, numbers = dict(candidates.batch), torch.arange(len(problems), device="cpu")
        features = candidates.features(candidates.true, numbers)
        if features is not None:
            batch["features"] = features.to(batch["known"])
        outputs, _ = candidates.network(batch, steps=steps, **candidates.forward_kwargs)
        return outputs.view(steps, len(problems), -1)

    def save(self, folder: str | Path) -> None:
        """Write weights (safetensors) and settings (JSON), for `load` and for ``rrn solve --weights``."""
        from rrn.constraints.files import save_solver

        save_solver(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "Solver":
        """Load what `save` wrote."""
        from rrn.constraints.files import load_solver

        return load_solver(Path(folder))


def _without_network(problem: Problem) -> Result:
    """The result for a problem without open candidates: its givens are the only possible answer."""
    violations = problem.violations(problem.given_numbers)
    status = Status.IMPOSSIBLE if violations else Status.ALREADY_SOLVED
    message = violations[0] if violations else "nothing is open, and the givens break no rule"
    details = {"objective": problem.objective(problem.given_numbers)}
    return Result(status, problem.given, 0, 0, 1.0, message, details=details)


def _checked(result: Result, problem: Problem, chosen: np.ndarray) -> Result:
    """The result with candidates as its answer, checked by the declared rules."""
    numbers = np.flatnonzero(chosen[: len(problem.open)])
    names = [problem.constraints.candidates[number] for number in numbers]
    details = {"objective": problem.objective(numbers)}
    if result.solved and (violations := problem.violations(numbers)):
        return replace(result, answers=names, status=Status.UNSOLVED, message=violations[0], details=details)
    return replace(result, answers=names, details=details)


def _stacked(rows: list[Result]) -> Result:
    return Result(
        [row.status for row in rows],
        [row.answers for row in rows],
        np.array([row.steps for row in rows]),
        np.array([row.attempts for row in rows]),
        np.array([row.confidence for row in rows]),
        [row.message for row in rows],
        details={"objective": np.array([row.details["objective"] for row in rows])},
    )
