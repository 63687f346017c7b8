"""Training on declared problems: a problem keeps its slot until it is solved, or has had ``max_steps``."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from rrn.constraints.exact import search
from rrn.constraints.problem import Problem, count_open, vary
from rrn.constraints.solve import Solver
from rrn.errors import InputError
from rrn.inference.attempts import NOISE, Slots
from rrn.inference.candidates import CandidateBatch, make_network
from rrn.nn.updates import State
from rrn.training.curriculum import GivensCurriculum
from rrn.training.display import progress_bar
from rrn.training.loop import Average, Callback, Loop, Objective, part_of

if TYPE_CHECKING:
    from rrn.constraints.declare import Constraints

NOISE_SHARE = 0.1
"""The share of segments that begin with noise."""
WINDOW = 0.3
"""The share of extra givens is drawn from the current one to this much less."""
DECREMENT, MEMORY = 0.005, 0.01
"""Of the curriculum: see `rrn.training.curriculum.GivensCurriculum`."""
AVERAGE = 0.998
"""Decay of the weight average."""
NEAREST_PLACEMENTS = 2000
"""Limit of the exact search for the solution nearest to the logits."""
STRENGTH = 4.0
"""The largest standard deviation of random preferences in training."""
BUDGET = frozenset({"updates", "minutes", "validate_every", "patience"})
"""Settings in which a resumed run may differ from the one it continues."""


def fit(
    constraints: "Constraints",
    make: Callable[[np.random.Generator], Problem],
    *,
    updates: int | None = None,
    minutes: float | None = None,
    slots: int = 16,
    segment: int = 8,
    max_steps: int = 48,
    pool: int = 2000,
    lr: float = 2e-3,
    clip: float | None = 1.0,
    extra_givens: float = 0.9,
    noise: float = NOISE,
    openness: float = 0.0,
    preferences: bool = False,
    contradiction_share: float = 0.0,
    hidden: int = 48,
    message_width: int = 16,
    layer_width: int | None = None,
    validation: int = 0,
    validate_every: int = 500,
    patience: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    checkpoint: str | Path | None = None,
    progress: bool = True,
    callback: Callable[[int, float, float], None] | None = None,
) -> Solver:
    """Train a network on problems with known answers that ``make`` draws. They may be of several sizes.

    Each update runs a segment of steps for every slot of the batch, with a loss at every step: cross-entropy within
    the groups of the first type, or binary cross-entropy per candidate if that type does not decide. A solved problem
    frees its slot for a new one; the others continue from their state.

    Curriculum: a share of the answer is given in addition, at first up to ``extra_givens``. It falls as the network
    solves more problems.

    Args:
        constraints: any of those that ``make`` draws problems of; the network gets their group types.
        make: draws a problem with an answer.
        updates: gradient updates; the learning rate falls to 0 over them. By default 1,000, or what ``minutes`` allow.
        minutes: wall-clock budget; the learning rate falls to 0 with it. None: no limit.
        slots: problems in a batch.
        segment: steps per update; gradients do not reach further back.
        max_steps: steps after which a problem counts as failed.
        pool: this many problems are drawn, then reused with other extra givens. 0: always new ones.
        lr: learning rate of AdamW at the start.
        clip: gradients are scaled down to this norm. None: no clipping.
        extra_givens: the largest share of the answer that is given in addition at the start. 0: no curriculum.
        noise: standard deviation of the noise that a tenth of the segments begin with.
        openness: the share of problems that lose some of their givens, so that they may have several solutions. Their
            target is the solution that the exact search finds first if it tries candidates in the order of the logits.
        preferences: train the network to read preferences of candidates, as log-likelihood ratios. Half of the training
            problems get random ones that favour the answer more or less.
        contradiction_share: the share of problems that get a wrong given and so have no solution. The network learns
            to detect them: all logits of a group of the first type become negative. Such a network can be used for
            search (`rrn.inference.search`). Only for constraints whose first type decides.
        hidden, message_width, layer_width: of the network, see `rrn.inference.candidates.make_network`.
        validation: this many held-out problems are drawn; the weights that solve the largest share of them are
            returned. 0: the last weights.
        validate_every: updates between validations.
        patience: stop after this many validations without a better share. None: use the whole budget.
        seed: of the problems, the weights and the noise.
        device: where to compute.
        checkpoint: a folder for checkpoints. The same call after an interruption resumes from the newest, with the
            same result; ``make`` must draw the same problems from the same generator.
        progress: show a progress bar with ETA on standard error, if it is a terminal.
        callback: called after every update with the update, the share of extra givens and the share of solved problems.
    """
    if updates is None:
        updates = 1000 if minutes is None else 10**9
    group_types, counted_types = constraints.group_types, constraints.counted_types
    settings = dict(locals())
    for name in ("constraints", "make", "device", "checkpoint", "progress", "callback"):
        del settings[name]
    for name in ("updates", "slots", "segment", "validate_every"):
        if settings[name] < 1:
            raise InputError(f"{name}: expected at least 1, got {settings[name]}")
    for name, share in (("contradiction_share", contradiction_share), ("openness", openness)):
        if not 0 <= share <= 1 or (share == 1 and name != "openness"):
            raise InputError(f"{name}: expected 0 to less than 1, got {share}")
    if minutes is not None and not 0 < minutes < math.inf:
        raise InputError(f"minutes: expected more than 0, got {minutes}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        with torch.device("cpu"):
            features = 1 + len(counted_types) + preferences
            network = make_network(len(group_types), hidden, message_width, layer_width, features).to(device)
        solver = Solver(network, group_types, contradiction_share > 0, counted_types, preferences)
        average = Average(network, AVERAGE)
        callbacks: list[Callback] = [] if callback is None else [_Report(callback)]
        callbacks += progress_bar("training", slots) if progress else []
        loop = Loop(
            network=network,
            objective=SlotObjective(solver, make, settings, device),
            optimizer=torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=0.01),
            rate=lr,
            updates=updates,
            minutes=minutes,
            clip=clip,
            average=average,
            validate_every=validate_every if validation else None,
            patience=patience if validation else None,
            keep_best=True,
            folder=None if checkpoint is None else Path(checkpoint),
            settings=settings,
            budget=BUDGET,
            folder_flag="checkpoint folder",
            remedy=f"Use a lower lr (now {lr:g}) or a smaller clip (now {clip}).",
            callbacks=callbacks,
        ).fit()
    training = {"updates": loop.update, "minutes": loop.seconds / 60, "solved": loop.measures["solved"]}
    training |= {"validation": loop.best["score"]} if "score" in loop.best else {}
    return solver.with_network(average.network.eval(), training)


class _Report(Callback):
    def __init__(self, callback: Callable[[int, float, float], None]) -> None:
        self.callback = callback

    def on_update(self, loop: Loop) -> None:
        self.callback(loop.update, loop.measures["extra_givens"], loop.measures["solved"])


class SlotObjective(Objective):
    """The loss of a network on problems in slots."""

    def __init__(
        self, solver: Solver, make: Callable[[np.random.Generator], Problem], settings: dict[str, Any], device: str
    ) -> None:
        self.solver, self.network, self.make = solver, solver.network, make
        self.settings, self.device = settings, device
        self.rng = np.random.default_rng(settings["seed"])
        self.generator = torch.Generator().manual_seed(settings["seed"])
        self.curriculum = GivensCurriculum(settings["extra_givens"], 0.0, DECREMENT, MEMORY)
        self.pool: list[Problem] = []
        self.problems: dict[int, Problem] = {}
        """Those in slots, by number."""
        self.ambiguous: set[int] = set()
        """The problems that lost givens, so that they may have several solutions."""
        self.drawn = 0
        self.draws: list[tuple[int, float]] = []
        """Of each update: how many problems were drawn, and with which share of extra givens."""
        self.slots: Slots | None = None
        self.contradictions = settings["contradiction_share"] > 0
        held_out = np.random.default_rng([settings["seed"], 1])
        self.held_out = [make(held_out) for _ in range(settings["validation"])]

    def loss(self, update: int, progress: float) -> Tensor:
        free = self.settings["slots"] - (0 if self.slots is None else len(self.slots.problems))
        self.draws.append((free, self.curriculum.extra))
        if free:
            numbers = self._draw(free, self.curriculum.extra)
            rows = torch.tensor(count_open([self.problems[number] for number in numbers]), device="cpu")
            state = self.network.initial_state(next(self.network.parameters()).new_ones(int(rows.sum()), 1))
            new = Slots.enter(torch.tensor(numbers, device="cpu"), rows, state)
            self.slots = new if self.slots is None else self.slots.join(new)
        assert self.slots is not None
        if self.settings["noise"]:
            noise = torch.from_numpy(self._draw_noise().astype(np.float32)) * self.settings["noise"]
            self.slots = self.slots.with_noise(self.network.update.add_noise, noise, self.generator)
        numbers = self.slots.problems.tolist()
        problems = [self.problems[number] for number in numbers]
        self.batch = self.solver.batch_of(problems, search=False)
        if self.contradictions and not self.batch.decides:
            raise InputError("contradiction_share: only for constraints whose first group type decides")
        in_batch = self.slots._replace(problems=torch.arange(len(problems), device="cpu"))
        self.logits, self.reached = self.batch.run(in_batch, self.settings["segment"])
        self.targets = targets_of(problems, self.batch)
        last = self.logits[-1].detach()
        for row, (number, problem) in enumerate(zip(numbers, problems, strict=True)):
            if number in self.ambiguous and (nearest := _nearest_solution(problem, last[row].numpy())) is not None:
                self.targets[row, : len(nearest)] = torch.from_numpy(nearest)
        return loss_of(self.logits, self.targets, self.batch, self.contradictions)

    def after_update(self, loss: float) -> dict[str, float]:
        assert self.slots is not None
        slots = self.slots.advance(self.reached.detach(), self.settings["segment"])
        correct = are_right(self.logits.detach(), self.targets, self.batch, self.contradictions)
        done = (correct[0] & correct[-1]) | (slots.age >= self.settings["max_steps"])
        if bool(done.any()):
            self.curriculum.observe(int(done.sum()), float(correct[-1][done].float().mean()))
            for number in slots.problems[done].tolist():
                del self.problems[number]
            self.ambiguous &= self.problems.keys()
        self.slots = slots.release(done)
        self.curriculum.advance()
        del self.batch, self.logits, self.targets, self.reached
        return {"extra_givens": self.curriculum.extra, "solved": self.curriculum.solved_share}

    def validate(self, network: nn.Module) -> dict[str, float]:
        """The share of the held-out problems that one attempt solves."""
        solver = self.solver.with_network(network)
        result = solver.solve(self.held_out, attempts=1, diagnose=False)
        return {"score": float(np.mean(result.solved))}

    def _draw_noise(self) -> np.ndarray:
        """Which slots get noise: (slots,) bool."""
        return self.rng.random(self.settings["slots"]) < NOISE_SHARE

    def _draw(self, count: int, extra: float) -> list[int]:
        """Draw problems with open candidates; without any, there is nothing to learn from them."""
        rng, settings = self.rng, self.settings
        numbers = missing = list(range(self.drawn, self.drawn + count))
        self.drawn += count
        for _ in range(100):
            base = [self._draw_from_pool() for _ in missing]
            more, fewer = np.zeros((2, len(base)))
            if extra:
                more = rng.uniform(max(0.0, extra - WINDOW), extra, len(base))
            if settings["openness"]:
                fewer = rng.random(len(base)) * (rng.random(len(base)) < settings["openness"])
            problems, ambiguous = vary(base, more, fewer, rng), fewer > 0
            for row, problem in enumerate(problems):
                if self.contradictions and not ambiguous[row] and rng.random() < settings["contradiction_share"]:
                    problem = problems[row] = problem.with_contradiction(rng)
                if settings["preferences"] and problem.answer is not None and rng.random() < 0.5:
                    problems[row] = problem.with_random_preferences(rng.uniform(0, STRENGTH), rng)
                    ambiguous[row] = False
            for row, (number, nodes) in enumerate(zip(missing, count_open(problems), strict=True)):
                if nodes:
                    self.problems[number] = problems[row]
                    self.ambiguous |= {number} if ambiguous[row] else set()
            missing = [number for number in missing if number not in self.problems]
            if not missing:
                return numbers
        raise InputError("make: 100 problems in a row had no open candidate")

    def _draw_from_pool(self) -> Problem:
        size = self.settings["pool"]
        if size and len(self.pool) == size:
            return self.pool[self.rng.integers(size)]
        problem = self.make(self.rng)
        if problem.answer is None:
            raise InputError("make: returned a problem without an answer; give problem(…, answer=…), or use dig")
        self.pool += [problem] if size else []
        return problem

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        assert self.slots is not None
        tensors = {f"slots.{index}": column for index, column in enumerate(self.slots.columns())}
        tensors |= {f"state.{index}": part for index, part in enumerate(self.slots.state.parts())}
        tensors["draws"] = torch.tensor(self.draws, dtype=torch.float64, device="cpu").reshape(-1, 2)
        tensors["noise_generator"] = self.generator.get_state()
        return tensors, {"curriculum": self.curriculum.state()}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Draw the problems of all updates again, as they are not in the checkpoint."""
        columns, parts = (sorted(part_of(tensors, prefix).items()) for prefix in ("slots.", "state."))
        state = State.of(part.to(self.device) for _, part in parts)
        problems, attempts, rows, age = (column for _, column in columns)
        self.slots = Slots(problems, attempts, rows, age, state)
        self.curriculum.restore(facts["curriculum"])
        present = self.slots.problems.tolist()
        for count, extra in tensors["draws"].tolist():
            self.draws.append((int(count), extra))
            numbers = self._draw(int(count), extra)
            if self.settings["noise"]:
                self._draw_noise()
            for number in set(numbers) - set(present):
                del self.problems[number]
            self.ambiguous &= self.problems.keys()
        if count_open([self.problems[number] for number in present]) != self.slots.rows.tolist():
            raise InputError("make: draws other problems than those of the checkpoint; give another checkpoint folder")
        self.generator.set_state(tensors["noise_generator"])


def _nearest_solution(problem: Problem, logits: np.ndarray) -> np.ndarray | None:
    """The solution that the exact search finds first if it tries candidates by falling logit; None within its limit."""
    values = np.where(problem.open, logits[: len(problem.open)], -np.inf)
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(-values, kind="stable")] = np.arange(len(values))
    given, excluded, layout = problem.given_numbers, problem.excluded_numbers, problem.constraints.layout
    nearest, count = search(layout, given, excluded, rank=rank, limit=1, most_placements=NEAREST_PLACEMENTS)
    return nearest if count == 1 else None


def targets_of(problems: Sequence[Problem], batch: CandidateBatch) -> Tensor:
    """The true candidates, bool (problems, candidates); of a problem without an answer, its givens."""
    targets = batch.true.clone()
    for row, problem in enumerate(problems):
        if problem.answer is not None:
            targets[row, : len(problem.answer)] = torch.from_numpy(problem.answer)
    return targets


def loss_of(logits: Tensor, targets: Tensor, batch: CandidateBatch, contradictions: bool = False) -> Tensor:
    """The mean over steps, and over cells with open candidates or, if the first group type does not decide, over open
    candidates.

    Logits are (steps, problems, candidates). With ``contradictions`` each cell has the additional class "none", whose
    logit is always 0. It is the target where no candidate is true.
    """
    nodes = batch.batch["open"].cpu().flatten().nonzero()[:, 0]
    logits, target = logits.flatten(1)[:, nodes], targets.flatten()[nodes]
    if not batch.decides:
        return nn.functional.binary_cross_entropy_with_logits(logits, target.to(logits).expand_as(logits))
    first_group = torch.arange(len(targets), device="cpu")[:, None] * batch.stacked.lower.shape[1]
    cells, cell = (first_group + batch.stacked.group_of[..., 0]).flatten()[nodes].unique(return_inverse=True)
    lowest = logits.new_full((len(logits), len(cells)), 0.0 if contradictions else float("-inf"))
    largest = lowest.scatter_reduce(1, cell.expand_as(logits), logits.detach(), "amax")
    total = torch.zeros_like(largest).index_add(1, cell, (logits - largest[:, cell]).exp())
    total = total + (-largest).exp() if contradictions else total
    true = target.nonzero()[:, 0]
    chosen = torch.zeros_like(largest).index_add(1, cell[true], logits[:, true])
    return (total.log() + largest - chosen).mean()


def are_right(logits: Tensor, targets: Tensor, batch: CandidateBatch, contradictions: bool = False) -> Tensor:
    """Whether each problem's answer is the known one after each step: (steps, problems) bool."""
    chosen = batch.choose(logits, torch.arange(len(targets), device="cpu"))
    return ((chosen & (logits > 0) if contradictions else chosen) == targets).all(-1)
