"""Solving declared problems with a network: answers that are checked against every declared rule."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from rrn.constraints.problem import Problem
from rrn.errors import InputError, as_input_error
from rrn.inference.attempts import NOISE, run_attempts
from rrn.inference.candidates import CandidateBatch, CandidateNetwork, make_network
from rrn.inference.result import SUCCESS, Result, Status
from rrn.inference.search import Committing
from rrn.io.files import read_bytes, write_json
from rrn.io.pretrained import build_with_weights, save_network
from rrn.network import RRN
from rrn.nn.messages import GroupMessage
from rrn.nn.updates import SharedLayerUpdate

STEPS, COMMITTING_STEPS = 64, 1024
"""Steps of an attempt."""
SLOTS = 32
"""Problems in the running batch."""
ATTEMPTS = 8
SETTINGS, SETTINGS_BYTES = "solver.json", 1 << 20
RENAMED = {"kinds": "group_types", "refutes": "detects_contradictions"}
"""Names of settings in folders of earlier versions."""


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
        other = copy(self)
        other.network, other.training = cast(RRN, network), dict(training or {})
        return other

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
        count = len(problems)
        status, message = [Status.ALREADY_SOLVED] * count, ["nothing is open, and the givens break no rule"] * count
        true = [problem.given_numbers for problem in problems]
        steps, made, confidence = np.zeros(count, np.int64), np.zeros(count, np.int64), np.ones(count)
        rows = [row for row, problem in enumerate(problems) if problem.open.any()]
        if rows:
            with torch.inference_mode():
                candidates = self.batch_of([problems[row] for row in rows], search, diagnose, seed)
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
                chosen = candidates.choose(torch.stack(found.answers)[None], torch.arange(len(rows), device="cpu"))
            steps[rows], made[rows], confidence[rows] = found.steps, found.attempts, found.confidence
            for place, row in enumerate(rows):
                true[row] = chosen[0, place].nonzero()[:, 0].numpy()
                status[row], message[row] = found.status[place], found.message[place]
        for row, problem in enumerate(problems):
            if status[row] in SUCCESS and (violations := problem.violations(true[row])):
                status[row] = Status.UNSOLVED if row in rows else Status.IMPOSSIBLE
                message[row] = violations[0]
        pairs = list(zip(problems, true, strict=True))
        answers = [[problem.constraints.candidates[number] for number in numbers] for problem, numbers in pairs]
        objective = np.array([problem.objective(numbers) for problem, numbers in pairs])
        return Result(status, answers, steps, made, confidence, message, details={"objective": objective})

    def batch_of(
        self, problems: Sequence[Problem], search: bool = True, diagnose: bool = False, seed: int = 0
    ) -> CandidateBatch:
        """The problems as the attempt loop reads them."""
        for problem in problems:
            unread = [name for name in problem.constraints.counted_types if name not in self.counted_types]
            if unread:
                raise InputError(f"k: the network was trained with k = 1 for {unread[0]!r}; train one with other k")
        layouts = [problem.constraints.for_network(self.group_types) for problem in problems]
        shape = len(problems), max(len(layout.groups) for layout in layouts)
        (open_, true), preferences = np.zeros((2, *shape), bool), np.zeros(shape, np.float32)
        for row, problem in enumerate(problems):
            width = len(problem.open)
            open_[row, :width], true[row, problem.given_numbers] = problem.open, True
            preferences[row, :width] = 0.0 if problem.preferences is None else problem.preferences
        optimised = any(problem.preferences is not None for problem in problems)
        searching = search and self.detects_contradictions and all(layout.decides for layout in layouts)
        return CandidateBatch(
            CandidateNetwork(self.network),
            {"open": torch.from_numpy(open_)},
            layouts,
            torch.from_numpy(true),
            search=searching,
            commit=search and not searching,
            counted_types=[self.group_types.index(name) for name in self.counted_types],
            evidence=torch.from_numpy(preferences) if self.reads_preferences else None,
            preferences=torch.from_numpy(preferences) if optimised else None,
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
        batch, kwargs = candidates.inputs(torch.arange(len(problems), device="cpu"))
        outputs, _ = candidates.network(batch, steps=steps, **kwargs)
        return outputs.view(steps, len(problems), -1)

    def save(self, folder: str | Path) -> None:
        """Write weights (safetensors) and settings (JSON), for `load` and for ``rrn solve --weights``."""
        update = self.network.update
        assert isinstance(update, SharedLayerUpdate)
        save_network(self.network, folder)
        about = {
            "group_types": list(self.group_types),
            "detects_contradictions": self.detects_contradictions,
            "counted_types": list(self.counted_types),
            "reads_preferences": self.reads_preferences,
            "training": self.training,
            "hidden": update.hidden,
            "message_width": self.network.hidden // len(self.group_types),
            "layer_width": update.first.shape[1],
        }
        write_json(Path(folder) / SETTINGS, about)

    @classmethod
    def load(cls, folder: str | Path) -> "Solver":
        """Load what `save` wrote."""
        path = Path(folder) / SETTINGS
        with as_input_error(f"{path}: not the settings of a solver"):
            saved = json.loads(read_bytes(path, SETTINGS_BYTES))
            settings = {RENAMED.get(name, name): value for name, value in saved.items()}
            group_types = [str(name) for name in settings.pop("group_types")]
            detects_contradictions = bool(settings.pop("detects_contradictions", False))
            counted_types = [str(name) for name in settings.pop("counted_types", [])]
            reads_preferences = bool(settings.pop("reads_preferences", False))
            training = dict(settings.pop("training", {}))
            settings["features"] = 1 + len(counted_types) + reads_preferences
        network = build_with_weights(lambda: make_network(len(group_types), **settings), path.parent)
        return cls(network, group_types, detects_contradictions, counted_types, reads_preferences, training)
