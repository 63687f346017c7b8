"""How bAbI is trained: on generated questions without end, hard tasks more often, told which facts matter."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.tasks.babi.data import EncodedQuestions, EndlessQuestions, SentenceTable, encode
from rrn.tasks.babi.evaluate import wrong_by_step
from rrn.tasks.babi.model import POINTERS, POINTS, as_batch, build
from rrn.tasks.babi.presets import BabiPreset
from rrn.tasks.babi.reader import read_babi
from rrn.tasks.babi.stories import TASKS
from rrn.tasks.babi.vocabulary import WORDS
from rrn.training.experiment import Batch, Experiment

POOL = 1000
"""Questions of each task generated at a time."""
POOL_UPDATES = 300
"""Updates that draw from one pool before the next is generated."""
VALIDATION = 200
"""Generated questions of each task to validate on."""
MEMORY = 0.97
"""Share of a task's running error that a question leaves unchanged."""
LEAST_ERROR = 1e-3
"""A task counts as at least this wrong, so that none is forgotten."""


class BabiExperiment(Experiment[BabiPreset]):
    """Tasks are drawn by their running error. The roles network has a second loss, on which facts it points at."""

    def __init__(self, preset: BabiPreset) -> None:
        super().__init__(preset)
        unknown = [task for task in preset.tasks if task not in TASKS]
        if unknown or not preset.tasks:
            raise InputError(f"--tasks: expected some of 1 to 20, got {', '.join(map(str, unknown)) or 'none'}")
        self.table = SentenceTable()
        self.errors = dict.fromkeys(preset.tasks, 1.0)
        self.drawn = 0
        self.pool: EncodedQuestions | None = None
        self.validation = EndlessQuestions(preset.seed, preset.tasks, self.table, stream=1).take(VALIDATION)
        if preset.data is not None:
            self.pool = encode(read_babi(preset.data, "train", preset.tasks), self.table)

    def network(self) -> nn.Module:
        return build(self.preset)

    def sample(self, rng: np.random.Generator) -> Batch:
        preset = self.preset
        if preset.data is None and (self.pool is None or self.drawn % POOL_UPDATES == 0):
            stream = 2 + self.drawn // POOL_UPDATES  # 0 and 1 are the test set and the validation set
            self.pool = EndlessQuestions(preset.seed, preset.tasks, self.table, stream).take(POOL)
        assert self.pool is not None
        self.drawn += 1
        total, tasks = sum(self.errors.values()), len(self.errors)
        weights = {
            task: preset.by_error * error / total + (1 - preset.by_error) / tasks for task, error in self.errors.items()
        }
        return as_batch(self.pool.sample(rng, preset.batch_size, preset.max_facts, weights), self.table)

    def targets(self, batch: Batch) -> Tensor:
        return batch["answers"]

    def proceed(self, *_: object) -> None:
        """A new batch at every update."""

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        answers, points = outputs.split([len(WORDS), outputs.shape[-1] - len(WORDS)], dim=-1)
        loss = super().loss(answers, batch)
        if self.preset.network == "roles" and self.preset.support_loss:
            loss = loss + self.preset.support_loss * pointer_loss(points.unflatten(-1, (-1, POINTS)), batch)
        return loss

    def measure(self, outputs: Tensor, batch: Batch) -> dict[str, float]:
        wrong = (outputs[-1, :, : len(WORDS)].argmax(-1) != batch["answers"]).float()
        figures = {"error": float(wrong.mean())}
        for task in self.errors:
            mine = (batch["tasks"] == task).float()
            figures[f"asked_{task}"] = float(mine.mean())
            figures[f"wrong_{task}"] = float((wrong * mine).mean())
        return figures

    def observe(self, measures: dict[str, float]) -> None:
        for task, before in self.errors.items():
            asked, wrong = measures[f"asked_{task}"], measures[f"wrong_{task}"]
            if asked:
                keep = MEMORY ** (asked * self.preset.batch_size)
                self.errors[task] = max(keep * before + (1 - keep) * wrong / asked, LEAST_ERROR)

    def position(self) -> dict[str, float]:
        return {"drawn": self.drawn} | {f"error_{task}": error for task, error in self.errors.items()}

    def restore(self, position: dict[str, float]) -> None:
        self.drawn = int(position["drawn"])
        self.errors = {task: position[f"error_{task}"] for task in self.errors}

    def validate(self, network: nn.Module) -> dict[str, float]:
        wrong = wrong_by_step(network, self.validation, self.preset.steps, self.preset.max_facts)[-1]
        errors = {task: float(wrong[rows].mean()) for task, rows in self.validation.rows_by_task.items()}
        worst = max(errors, key=lambda task: errors[task])
        failed = sum(error > 0.05 for error in errors.values())
        return {
            "score": 1 - float(np.mean(list(errors.values()))),
            "failed": float(failed),
            "worst_task": float(worst),
            **{f"error_{task}": error for task, error in errors.items()},
        }


def pointer_loss(points: Tensor, batch: Batch) -> Tensor:
    """How far the pointers are from the supporting facts. ``points`` is (steps, n, F + 1, 4), node 0 the question.

    Pointer k should point at the k-th supporting fact, at the question if there are fewer; where there are more facts
    than pointers, only the fourth logit, that a fact supports the answer at all, is told.
    """
    support = batch["support"]
    steps, _, size, _ = points.shape
    exists = torch.arange(size) <= batch["fact_counts"][:, None]
    log_share = points[..., :POINTERS].masked_fill(~exists[..., None], -1e4).log_softmax(2)
    hits = support[..., None] == torch.arange(1, POINTERS + 1)  # (n, F, pointers)
    targets = torch.where(hits.any(1), hits.int().argmax(1) + 1, 0)
    chosen = log_share.gather(2, targets[:, None].expand(steps, -1, 1, -1))[:, :, 0]
    told = (support.amax(1) <= POINTERS)[:, None]
    pointing = -(chosen * told).mean()
    relevant = (support > 0).float().expand(steps, -1, -1)
    each = F.binary_cross_entropy_with_logits(points[:, :, 1:, POINTERS], relevant, reduction="none")
    return pointing + (each * exists[:, 1:]).sum(-1).mean() / 4


make = BabiExperiment
