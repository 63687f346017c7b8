"""Training on declared problems: a problem keeps its slot until it is solved, or has had ``max_steps``."""

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rrn.constraints.problem import Problem
from rrn.constraints.solve import Solver, as_batch
from rrn.errors import InputError
from rrn.inference.attempts import NOISE, Slots
from rrn.inference.candidates import make_network, open_graph
from rrn.network import RRN
from rrn.nn.updates import State
from rrn.training.curriculum import GivensCurriculum
from rrn.training.loop import Average, Callback, Loop, Objective, learning_rate, part_of

NOISE_SHARE = 0.1
"""The share of segments that begin with noise."""
WINDOW = 0.3
"""The share of extra givens is drawn from the current one to this much less."""
DECREMENT, MEMORY = 0.005, 0.01
"""Of the curriculum: see `rrn.training.curriculum.GivensCurriculum`."""
AVERAGE = 0.998
"""Decay of the weight average."""
BUDGET = frozenset({"updates", "minutes"})
"""Settings in which a resumed run may differ from the one it continues."""


class TrainingBatch:
    """Problems as one graph of their open candidates, with the true ones as targets.

    Attributes:
        sizes: (problems,) the number of open candidates of each.
        target: (nodes,) bool; all false for a problem without an answer.
    """

    def __init__(self, problems: Sequence[Problem], group_types: tuple[str, ...], device: str = "cpu") -> None:
        batch, counts = as_batch(problems, group_types)
        self.graph, _ = open_graph(batch["open"].to(device), batch["member_of"].to(device), counts)
        self.sizes, self.decides = batch["open"].sum(1), problems[0].constraints.decides
        answers = [p.open & p.answer if p.answer is not None else np.zeros_like(p.open) for p in problems]
        target = np.concatenate([a[p.open] for a, p in zip(answers, problems, strict=True)])
        self.target = torch.from_numpy(target).to(device)
        self.cells, self.cell = self.graph.rows()[:, 0].unique(return_inverse=True)

    def run(self, network: RRN, steps: int, state: State) -> tuple[Tensor, State]:
        """The logits of the nodes after each step, (steps, nodes), and the state after the last."""
        outputs, state = network.run(state.h.new_ones(self.graph.num_nodes, 1), self.graph, steps=steps, state=state)
        return outputs[..., 0], state

    def choose(self, logits: Tensor) -> Tensor:
        """The chosen candidates, (steps, nodes) bool."""
        if not self.decides:
            return logits > 0
        cell = self.cell.expand_as(logits)
        largest = logits.new_full((len(logits), len(self.cells)), float("-inf")).scatter_reduce(1, cell, logits, "amax")
        return logits == largest.gather(1, cell)


def fit(
    group_types: Sequence[str],
    make: Callable[[np.random.Generator], Problem],
    *,
    updates: int,
    minutes: float | None = None,
    slots: int = 16,
    segment: int = 8,
    max_steps: int = 48,
    pool: int = 2000,
    lr: float = 2e-3,
    clip: float | None = 1.0,
    extra_givens: float = 0.9,
    noise: float = NOISE,
    contradiction_share: float = 0.0,
    hidden: int = 48,
    message_width: int = 16,
    layer_width: int = 128,
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
        updates: gradient updates; the learning rate falls to 0 over them.
        minutes: wall-clock budget; the learning rate falls to 0 with it. None: no limit.
        slots: problems in a batch.
        segment: steps per update; gradients do not reach further back.
        max_steps: steps after which a problem counts as failed.
        pool: this many problems are drawn, then reused with other extra givens. 0: always new ones.
        lr: learning rate of AdamW at the start.
        clip: gradients are scaled down to this norm. None: no clipping.
        extra_givens: the largest share of the answer that is given in addition at the start. 0: no curriculum.
        noise: standard deviation of the noise that a tenth of the segments begin with.
        contradiction_share: the share of problems that get a wrong given and so have no solution. The network learns
            to detect them: all logits of a group of the first type become negative. Such a network can be used for
            search (`rrn.inference.search`). Only for constraints whose first type decides.
        hidden, message_width, layer_width: of the network, see `rrn.nn.updates.SharedLayerUpdate`.
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
    least = {"updates": updates, "slots": slots, "segment": segment, "validate_every": validate_every}
    for name, value in least.items():
        if value < 1:
            raise InputError(f"{name}: expected at least 1, got {value}")
    if not 0 <= contradiction_share < 1:
        raise InputError(f"contradiction_share: expected 0 to less than 1, got {contradiction_share}")
    if minutes is not None and not 0 < minutes < math.inf:
        raise InputError(f"minutes: expected more than 0, got {minutes}")
    settings: dict[str, Any] = {
        "group_types": list(group_types), "updates": updates, "minutes": minutes, "slots": slots, "segment": segment,
        "max_steps": max_steps, "pool": pool, "lr": lr, "clip": clip, "extra_givens": extra_givens, "noise": noise,
        "contradiction_share": contradiction_share, "hidden": hidden, "message_width": message_width,
        "layer_width": layer_width, "validation": validation, "seed": seed,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        with torch.device("cpu"):
            network = make_network(len(group_types), hidden, message_width, layer_width).to(device)
        average = Average(network, AVERAGE)
        callbacks: list[Callback] = [] if callback is None else [_Report(callback)]
        if progress and sys.stderr is not None and sys.stderr.isatty():
            from rrn.training.display import Display

            callbacks.append(Display("training", slots))
        Loop(
            network=network,
            objective=SlotObjective(network, tuple(group_types), make, settings, device),
            optimizer=torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=0.01),
            rate=lambda update, progress: learning_rate(lr, update, progress),
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
    assert isinstance(average.network, RRN)
    return Solver(average.network.eval(), group_types, contradiction_share > 0)


class _Report(Callback):
    def __init__(self, callback: Callable[[int, float, float], None]) -> None:
        self.callback = callback

    def on_update(self, loop: Loop) -> None:
        self.callback(loop.update, loop.measures["extra_givens"], loop.measures["solved"])


class SlotObjective(Objective):
    """The loss of a network on problems in slots."""

    def __init__(
        self,
        network: RRN,
        group_types: tuple[str, ...],
        make: Callable[[np.random.Generator], Problem],
        settings: dict[str, Any],
        device: str,
    ) -> None:
        self.network, self.group_types, self.make, self.settings, self.device = (
            network, group_types, make, settings, device
        )  # fmt: skip
        self.rng = np.random.default_rng(settings["seed"])
        self.generator = torch.Generator().manual_seed(settings["seed"])
        self.curriculum = GivensCurriculum(settings["extra_givens"], 0.0, DECREMENT, MEMORY)
        self.pool: list[Problem] = []
        self.problems: dict[int, Problem] = {}
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
            rows = torch.tensor([int(self.problems[number].open.sum()) for number in numbers], device="cpu")
            state = self.network.initial_state(next(self.network.parameters()).new_ones(int(rows.sum()), 1))
            new = Slots.enter(torch.tensor(numbers, device="cpu"), rows, state)
            self.slots = new if self.slots is None else self.slots.join(new)
        assert self.slots is not None
        if self.settings["noise"]:
            noise = torch.from_numpy(self._draw_noise().astype(np.float32)) * self.settings["noise"]
            self.slots = self.slots.with_noise(self.network.update.add_noise, noise, self.generator)
        problems = [self.problems[number] for number in self.slots.problems.tolist()]
        self.batch = TrainingBatch(problems, self.group_types, self.device)
        if self.contradictions and not self.batch.decides:
            raise InputError("contradiction_share: only for constraints whose first group type decides")
        self.logits, self.reached = self.batch.run(self.network, self.settings["segment"], self.slots.state)
        return _loss(self.logits, self.batch, self.contradictions)

    def after_update(self, loss: float) -> dict[str, float]:
        assert self.slots is not None
        slots = self.slots.advance(self.reached.detach(), self.settings["segment"])
        correct = _right(self.logits, self.batch, self.contradictions).cpu()
        done = (correct[0] & correct[-1]) | (slots.age >= self.settings["max_steps"])
        if bool(done.any()):
            self.curriculum.observe(int(done.sum()), float(correct[-1][done].float().mean()))
            for number in slots.problems[done].tolist():
                del self.problems[number]
        self.slots = slots.release(done)
        self.curriculum.advance()
        del self.batch, self.logits, self.reached
        return {"extra_givens": self.curriculum.extra, "solved": self.curriculum.solved_share}

    def validate(self, network: nn.Module) -> dict[str, float]:
        """The share of the held-out problems that one attempt solves."""
        assert isinstance(network, RRN)
        solver = Solver(network, self.group_types, self.contradictions)
        result = solver.solve(self.held_out, max_steps=self.settings["max_steps"], attempts=1, diagnose=False)
        return {"score": float(np.mean(result.solved))}

    def _draw_noise(self) -> np.ndarray:
        """Which slots get noise: (slots,) bool."""
        return self.rng.random(self.settings["slots"]) < NOISE_SHARE

    def _draw(self, count: int, extra: float) -> list[int]:
        numbers = list(range(self.drawn, self.drawn + count))
        self.problems |= {number: self._draw_problem(extra) for number in numbers}
        self.drawn += count
        return numbers

    def _draw_problem(self, extra: float) -> Problem:
        """A problem with open candidates; without any, there is nothing to learn from it."""
        rng, size = self.rng, self.settings["pool"]
        for _ in range(100):
            if size and len(self.pool) == size:
                problem = self.pool[rng.integers(size)]
            else:
                problem = self.make(rng)
                if problem.answer is None:
                    raise InputError(
                        "make: returned a problem without an answer; give problem(…, answer=…), or use dig"
                    )
                self.pool += [problem] if size else []
            easier = problem.with_more_givens(rng.uniform(max(0.0, extra - WINDOW), extra), rng) if extra else problem
            if self.contradictions and rng.random() < self.settings["contradiction_share"]:
                easier = easier.with_contradiction(rng)
            if easier.open.any():
                return easier
        raise InputError("make: 100 problems in a row had no open candidate")

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        assert self.slots is not None
        columns = self.slots.problems, self.slots.attempts, self.slots.rows, self.slots.age
        tensors = {f"slots.{index}": column for index, column in enumerate(columns)}
        tensors |= {f"state.{index}": part for index, part in enumerate(self.slots.state.parts())}
        tensors["draws"] = torch.tensor(self.draws, dtype=torch.float64, device="cpu").reshape(-1, 2)
        tensors["noise_generator"] = self.generator.get_state()
        return tensors, {"curriculum": self.curriculum.position()}

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
        if [int(self.problems[number].open.sum()) for number in present] != self.slots.rows.tolist():
            raise InputError("make: draws other problems than those of the checkpoint; give another checkpoint folder")
        self.generator.set_state(tensors["noise_generator"])


def _loss(logits: Tensor, batch: TrainingBatch, contradictions: bool = False) -> Tensor:
    """(steps, nodes) → the mean over steps and over groups of the first type, or over nodes.

    With ``contradictions`` each group has the additional class "none", whose logit is always 0. It is the target where
    no candidate is true.
    """
    if not batch.decides:
        target = batch.target.to(logits).expand_as(logits)
        return nn.functional.binary_cross_entropy_with_logits(logits, target)
    groups, group = batch.cells, batch.cell
    lowest = logits.new_full((len(logits), len(groups)), 0.0 if contradictions else float("-inf"))
    largest = lowest.scatter_reduce(1, group.expand_as(logits), logits.detach(), "amax")
    total = torch.zeros_like(largest).index_add(1, group, (logits - largest[:, group]).exp())
    total = total + (-largest).exp() if contradictions else total
    true = batch.target.nonzero()[:, 0]
    chosen = torch.zeros_like(largest).index_add(1, group[true], logits[:, true])
    return (total.log() + largest - chosen).mean()


def _right(logits: Tensor, batch: TrainingBatch, contradictions: bool = False) -> Tensor:
    """Whether each problem's answer is the known one after each step: (steps, problems) bool."""
    chosen = batch.choose(logits) & (logits > 0) if contradictions else batch.choose(logits)
    wrong = (chosen ^ batch.target).int()
    problem = batch.graph.graph_of_node().expand_as(wrong)
    return wrong.new_zeros(len(logits), len(batch.sizes)).scatter_add(1, problem, wrong) == 0
