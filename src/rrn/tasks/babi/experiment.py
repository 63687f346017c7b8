"""How bAbI is trained."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.tasks.babi.data import EncodedQuestions, EndlessQuestions, SentenceTable, encode
from rrn.tasks.babi.model import POINTERS, as_batch, build
from rrn.tasks.babi.presets import BabiPreset
from rrn.tasks.babi.vocabulary import WORDS
from rrn.training.experiment import Batch, Carry, Experiment, seeded

POOL = 1000
REFRESH = 300
VALIDATION = 200
MEMORY = 0.97


class BabiExperiment(Experiment[BabiPreset]):
    def __init__(self, preset: BabiPreset) -> None:
        super().__init__(preset)
        self.table = SentenceTable()
        self.pool: EncodedQuestions | None = None
        self.errors = dict.fromkeys(preset.tasks, 1.0)
        self.drawn = 0
        self.validation = EndlessQuestions(preset.seed, preset.tasks, self.table, stream=1).take(VALIDATION)

    def network(self) -> nn.Module:
        return build(self.preset)

    def sample(self, rng):
        if self.pool is None or self.drawn % REFRESH == 0:
            self.pool = EndlessQuestions(self.preset.seed, self.preset.tasks, self.table, stream=2 + self.drawn // REFRESH).take(POOL)
        self.drawn += 1
        share = self.preset.by_error
        total = sum(self.errors.values())
        weights = {t: share * e / total + (1 - share) / len(self.errors) for t, e in self.errors.items()}
        return as_batch(self.pool.sample(rng, self.preset.batch_size, self.preset.max_facts, weights), self.table)

    def targets(self, batch):
        return batch["answers"]

    def loss(self, outputs, batch):
        answers = outputs[..., :len(WORDS)]
        loss = super().loss(answers, batch)
        if not self.preset.support_loss:
            return loss
        points = outputs[..., len(WORDS):].unflatten(-1, (-1, POINTERS + 1))  # steps, n, S, 4
        support, counts = batch["support"], batch["fact_counts"]
        mask = torch.arange(points.shape[2]) <= counts[:, None]
        pointers = points[..., :POINTERS].masked_fill(~mask[..., None], -1e4).log_softmax(2)
        few = support.amax(1) <= POINTERS
        for k in range(POINTERS):
            hit = support == k + 1
            target = torch.where(hit.any(1), hit.int().argmax(1) + 1, 0)
            chosen = pointers[..., k].gather(2, target.expand(len(points), -1)[..., None])[..., 0]
            loss = loss - self.preset.support_loss * (chosen * few).mean() / POINTERS
        gate = F.binary_cross_entropy_with_logits(points[..., 1:, POINTERS], (support > 0).float().expand(len(points), -1, -1), reduction="none")
        return loss + self.preset.support_loss * (gate * mask[:, 1:]).sum(-1).mean() / 4

    def measure(self, outputs, batch):
        wrong = (outputs[-1, :, :len(WORDS)].argmax(-1) != batch["answers"]).float()
        figures = {"error": float(wrong.mean())}
        for task in self.errors:
            mine = batch["tasks"] == task
            figures[f"error_{task}"] = float(wrong[mine].mean()) if mine.any() else self.errors[task]
            n = int(mine.sum())
            self._n = getattr(self, "_n", {}); self._n[task] = n
        return figures

    def observe(self, measures):
        for task in self.errors:
            keep = MEMORY ** self._n[task]
            self.errors[task] = max(keep * self.errors[task] + (1 - keep) * measures[f"error_{task}"], 1e-3)

    @torch.no_grad()
    def validate(self, network):
        wrong = []
        for part in self.validation.batches(200, self.preset.max_facts):
            out, _ = network(as_batch(part, self.table), steps=self.preset.steps)
            wrong.append((out[-1].argmax(-1).numpy() != part.answers))
        wrong = np.concatenate(wrong)
        by = {t: wrong[self.validation.tasks == t].mean() for t in self.preset.tasks}
        e = float(np.mean(list(by.values())))
        return {"score": 1 - e, **{f"e{t}": float(v) for t, v in by.items()}}

make = BabiExperiment
