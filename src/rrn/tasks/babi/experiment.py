"""Training of bAbI: newly generated questions, difficult tasks more often, supervised by supporting facts."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.nn.readouts import Outputs, answer_of
from rrn.tasks.babi.data import EncodedQuestions, EndlessQuestions, SentenceTable, encode, shorten
from rrn.tasks.babi.evaluate import wrong_by_step
from rrn.tasks.babi.model import POINTERS, build
from rrn.tasks.babi.presets import BabiPreset, RolesPreset
from rrn.tasks.babi.reader import read_babi
from rrn.tasks.babi.stories import TASKS
from rrn.training.experiment import Batch, Experiment

POOL = 1000
"""Questions of each task in the pool that batches are sampled from, while the error of the task is high. Repetition
helps at first. Later, the pool has as many questions as are sampled from it, or all of the task."""
LARGE_POOL_BELOW = 0.2
"""Running error of a task below which its pool is large."""
POOL_UPDATES = 300
"""Updates per pool."""
SHORTEST = 0.1
"""Initial share of a task's questions with --curriculum-by-length: those with the fewest facts."""
LONGER_BELOW = 1 / 3
"""Running error of a task below which the share doubles."""
VALIDATION = 200
"""Generated questions of each task for validation."""
ERROR_DECAY = 0.97
"""Decay of a task's running error per question."""
LEAST_ERROR = 1e-3
"""Lower bound of the running error, so that every task is sampled."""


class BabiExperiment(Experiment[BabiPreset]):
    """Samples tasks by running error. `RolesPreset` adds a loss on the supporting facts."""

    def __init__(self, preset: BabiPreset, whole: BabiPreset | None = None) -> None:
        super().__init__(preset, whole)
        unknown = [task for task in preset.tasks if task not in TASKS]
        if unknown or not preset.tasks:
            raise InputError(f"--tasks: expected numbers from 1 to 20, got {', '.join(map(str, unknown)) or 'none'}")
        self.table = SentenceTable()
        self.errors = dict.fromkeys(preset.tasks, 1.0)
        self.shortest = dict.fromkeys(preset.tasks, SHORTEST if preset.curriculum_by_length else 1.0)
        """Share of each task's questions that are sampled, those with the fewest facts."""
        self.drawn = 0
        self.pool: EncodedQuestions | None = None
        self.pooled = dict.fromkeys(preset.tasks, POOL)
        """Questions of each task in the pool."""
        self.validation = self._questions(self.whole, stream=1).take(VALIDATION)
        self.official = (
            None if preset.data is None else encode(read_babi(preset.data, "train", preset.tasks), self.table)
        )

    def network(self) -> nn.Module:
        return build(self.preset)

    def _questions(self, preset: BabiPreset, stream: int) -> EndlessQuestions:
        shares = preset.unanswerable_share, preset.varied_share, preset.composed_share, preset.fewer_hops_share
        return EndlessQuestions(preset.seed, preset.tasks, self.table, stream, *shares)

    def sample(self, rng: np.random.Generator) -> Batch:
        preset = self.preset
        weights = self._weights()
        if self.drawn % POOL_UPDATES == 0:
            drawn = preset.batch_size * POOL_UPDATES
            self.pooled = {
                task: max(POOL, math.ceil(weight * drawn)) if self.errors[task] < LARGE_POOL_BELOW else POOL
                for task, weight in weights.items()
            }
            self.pool = None
        if self.pool is None:
            turn = self.drawn // POOL_UPDATES
            if self.official is not None:
                self.pool = self.official.window(self.pooled, turn)
            else:
                self.pool = self._questions(preset, stream=2 + turn).take(self.pooled)  # 0 and 1: test, validation
        self.drawn += 1
        shortest = self.shortest if preset.curriculum_by_length else None
        batch = self.pool.sample(rng, preset.batch_size, preset.max_facts, weights, shortest)
        return shorten(batch, self.table, preset.shortened_share, rng) if preset.shortened_share else batch

    def _weights(self) -> dict[int, float]:
        """Share of each task in a batch."""
        total, tasks, by_error = sum(self.errors.values()), len(self.errors), self.preset.sampling_by_error
        return {task: by_error * error / total + (1 - by_error) / tasks for task, error in self.errors.items()}

    def targets(self, batch: Batch) -> Tensor:
        return batch["answers"]

    def next_batch(self, *_: object) -> None:
        """A new batch at every update."""

    def loss(self, outputs: Tensor | Outputs, batch: Batch) -> Tensor:
        loss = super().loss(outputs, batch)
        if isinstance(self.preset, RolesPreset) and self.preset.support_loss:
            assert isinstance(outputs, Outputs)
            loss = loss + self.preset.support_loss * pointer_loss(outputs.extras["points"], batch)
        return loss

    def measure(self, outputs: Tensor | Outputs, batch: Batch) -> dict[str, float]:
        wrong = (answer_of(outputs)[-1].argmax(-1) != batch["answers"]).float()
        figures = {"error": float(wrong.mean())}
        for task in self.errors:
            of_task = (batch["tasks"] == task).float()
            figures[f"asked_{task}"] = float(of_task.mean())
            figures[f"wrong_{task}"] = float((wrong * of_task).mean())
        return figures

    def observe(self, measures: dict[str, float]) -> None:
        for task, before in self.errors.items():
            asked, wrong = measures[f"asked_{task}"], measures[f"wrong_{task}"]
            if asked:
                keep = ERROR_DECAY ** (asked * self.preset.batch_size)
                self.errors[task] = max(keep * before + (1 - keep) * wrong / asked, LEAST_ERROR)
            if self.shortest[task] < 1 and self.errors[task] < LONGER_BELOW:
                self.shortest[task], self.errors[task] = min(1.0, 2 * self.shortest[task]), 1.0

    def curriculum_state(self) -> dict[str, float]:
        errors = {f"error_{task}": error for task, error in self.errors.items()}
        shortest = {f"shortest_{task}": share for task, share in self.shortest.items()}
        pooled = {f"pooled_{task}": float(n) for task, n in self.pooled.items()}
        return {"drawn": self.drawn} | errors | pooled | shortest

    def restore(self, state: dict[str, float]) -> None:
        self.drawn = int(state["drawn"])
        self.errors = {task: state[f"error_{task}"] for task in self.errors}
        self.shortest = {task: state.get(f"shortest_{task}", 1.0) for task in self.shortest}
        self.pooled = {task: int(state.get(f"pooled_{task}", POOL)) for task in self.pooled}

    def validate(self, network: nn.Module) -> dict[str, float]:
        """The score is one less the mean error over tasks. With --burn-in it is the mean of that after the steps of
        training and after a run longer by the burn-in."""
        steps, longer = self.whole.steps, self.whole.steps + self.whole.burn_in
        wrong = wrong_by_step(network, self.validation, longer, self.whole.max_facts)
        errors, kept = (
            {task: float(wrong[t - 1, rows].mean()) for task, rows in self.validation.rows_by_task.items()}
            for t in (steps, longer)
        )
        worst = max(errors, key=lambda task: errors[task])
        failed = sum(error > 0.05 for error in errors.values())
        return {
            "score": 1 - float(np.mean([*errors.values(), *kept.values()])),
            "failed": float(failed),
            "worst_task": float(worst),
            **{f"error_{task}": error for task, error in errors.items()},
        }


def pointer_loss(points: Tensor, batch: Batch) -> Tensor:
    """Loss of the pointers and of the relevance. ``points`` is (steps, n, F + 1, 4); node 0 is the question.

    The target of pointer k is the k-th supporting fact, or the question if there are fewer. Questions with more
    supporting facts than pointers have a loss on the relevance only.
    """
    support = batch["support"]
    steps, _, size, _ = points.shape
    exists = torch.arange(size, device=points.device) <= batch["fact_counts"][:, None]
    log_share = points[..., :POINTERS].masked_fill(~exists[..., None], -1e4).log_softmax(2)
    pointers = torch.arange(1, POINTERS + 1, device=points.device)
    hits = support[..., None] == pointers  # (n, F, pointers)
    targets = torch.where(hits.any(1), hits.int().argmax(1) + 1, 0)
    chosen = log_share.gather(2, targets[:, None].expand(steps, -1, 1, -1))[:, :, 0]
    few = (support.amax(1) <= POINTERS)[:, None]
    pointing = -(chosen * few).mean()
    relevant = (support > 0).float().expand(steps, -1, -1)
    each = F.binary_cross_entropy_with_logits(points[:, :, 1:, POINTERS], relevant, reduction="none")
    return pointing + (each * exists[:, 1:]).sum(-1).mean() / 4


make = BabiExperiment
