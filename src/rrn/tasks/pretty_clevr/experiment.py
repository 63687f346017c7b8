"""Training of Pretty-CLEVR: a curriculum over the number of jumps."""

from collections.abc import Mapping
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor, nn

from rrn.nn.losses import mean_when_due
from rrn.nn.readouts import Outputs, answer_of
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.evaluate import right_by_step
from rrn.tasks.pretty_clevr.model import as_batch, build
from rrn.tasks.pretty_clevr.presets import ImagePreset, PaperPreset, PrettyClevrPreset, RanksPreset
from rrn.tasks.weights import read_config
from rrn.training.curriculum import CurriculumExperiment
from rrn.training.experiment import Batch, seeded

VALIDATION = 8_000
SPARSE_SHARE = 0.8
"""Share of the training images that omit objects off the path."""


class PrettyClevrExperiment(CurriculumExperiment[PrettyClevrPreset]):
    """The loss of a question starts at the step with the number of its jumps."""

    furthest = data.JUMPS - 1

    def __init__(self, preset: PrettyClevrPreset, whole: PrettyClevrPreset | None = None) -> None:
        super().__init__(preset, whole)
        valid = data.scenes("valid")
        rng = seeded(self.whole.seed, 2)
        self.validation = (valid, np.sort(rng.choice(len(valid) * data.QUESTIONS, VALIDATION, replace=False)))

    def network(self) -> nn.Module:
        return build(self.preset)

    def start_from(self, network: nn.Module, weights: Mapping[str, Tensor]) -> None:
        """Rescale the weights of distances to the factor of this preset."""
        theirs = read_config(str(self.preset.start_from))[0]
        if isinstance(self.preset, PaperPreset) and isinstance(theirs, PaperPreset):
            of_distances = "rrn.message.mlp.linears.0.weight"
            scaled = weights[of_distances].clone()
            scaled[:, -1] *= theirs.distance_scale / self.preset.distance_scale
            weights = {**weights, of_distances: scaled}
        super().start_from(network, weights)

    def sample(self, rng: np.random.Generator) -> Batch:
        scenes = _training_scenes(self.preset.scenes)
        chosen = round(self.preset.near_tie_share * self.preset.batch_size)
        scene = rng.integers(len(scenes), size=self.preset.batch_size + 2 * chosen)
        starts = rng.integers(data.STARTS, size=len(scene))
        jumps = rng.integers(self.curriculum.longest + 1, size=len(scene))
        if self.progress < self.preset.all_jumps_from:
            jumps[rng.random(len(scene)) < self.preset.furthest_share] = self.curriculum.longest
        question = starts * data.JUMPS + jumps
        if chosen:
            narrowest = data.smallest_margins(scenes, scene[: 3 * chosen], question[: 3 * chosen])
            rows = np.concatenate([np.argsort(narrowest)[:chosen], np.arange(3 * chosen, len(scene))])
            scene, question = scene[rows], question[rows]
        batch = as_batch(scenes, scene, question)
        if self.preset.augment:
            batch["positions"] = torch.from_numpy(data.augment(batch["positions"].numpy(), rng))
        if isinstance(self.preset, ImagePreset):
            few = data.OBJECTS * rng.random(len(scene)) ** 3
            last = np.where(rng.random(len(scene)) < SPARSE_SHARE, few.astype(int), data.OBJECTS)
            turn = batch["path"].argsort(1)  # position of each object on the full path
            batch["shown"] = turn <= torch.maximum(torch.from_numpy(last), batch["jumps"])[:, None]
        return batch

    def targets(self, batch: Batch) -> Tensor:
        return batch["answer"]

    def reach(self, batch: Batch) -> Tensor:
        return batch["jumps"]

    def loss(self, outputs: Tensor | Outputs, batch: Batch) -> Tensor:
        logits, jumps = answer_of(outputs), batch["jumps"]
        last = self.burned_in + len(logits)
        step = torch.arange(self.burned_in + 1, last + 1, device=logits.device)[:, None]
        begins = jumps.clamp(max=last) if self.preset.loss == "every" else torch.full_like(jumps, last)
        answer = mean_when_due(logits, batch["answer"], step >= begins)
        if not isinstance(self.preset, RanksPreset):
            return answer
        assert isinstance(outputs, Outputs)
        path, each = batch["path"], torch.arange(data.JUMPS, device=logits.device)
        path_loss = mean_when_due(outputs.extras["path"], path, (step[..., None] >= each).expand(-1, *path.shape))
        return answer + self.preset.path_loss * path_loss

    def observe(self, measures: dict[str, float]) -> None:
        """The curriculum ends at the number of steps. More jumps follow after ``all_jumps_from``."""
        if self.curriculum.longest < self.preset.steps:
            super().observe(measures)
        if self.progress >= self.preset.all_jumps_from:
            self.curriculum.open()

    def validate(self, network: nn.Module) -> dict[str, float]:
        """The score is the mean accuracy over the numbers of jumps that training ends with, whatever the curriculum
        has reached: all, or at most as many as steps."""
        scenes, numbers = self.validation
        steps = self.validation_steps
        right = right_by_step(network, scenes, numbers, steps[-1])
        jumps = numbers % data.JUMPS
        by_steps = [[float(right[t - 1, jumps == n].mean()) for n in range(data.JUMPS)] for t in steps]
        scored = data.JUMPS if self.whole.all_jumps_from < 1 else self.whole.steps + 1
        score = float(np.mean([by_jumps[:scored] for by_jumps in by_steps]))
        each = {f"jumps_{n}": figure for n, figure in enumerate(by_steps[0])}
        return {"score": score, **each, "longest": float(self.curriculum.longest)}


_training_scenes = cache(partial(data.scenes, "train"))


make = PrettyClevrExperiment
