"""Training of age arithmetic: a curriculum over the distance between the age given and the age asked."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.nn.losses import mean_when_due
from rrn.nn.readouts import Outputs, answer_of
from rrn.tasks.ages import data
from rrn.tasks.ages.evaluate import right_by_step
from rrn.tasks.ages.model import as_batch, build
from rrn.tasks.ages.presets import AgesPreset, AnglesPreset, PaperPreset
from rrn.training.curriculum import CurriculumExperiment
from rrn.training.experiment import Batch, Experiment, RunningBatch, seeded

VALIDATION = 4_000


class AgesExperiment(CurriculumExperiment[AgesPreset]):
    """The loss of a question begins at the step whose number is that of its differences. (In `PaperAgesExperiment`, it
    begins at the first step.)"""

    furthest = data.PERSONS - 1

    def __init__(self, preset: AgesPreset, whole: AgesPreset | None = None) -> None:
        super().__init__(preset, whole)
        self.validation = data.sample("valid", VALIDATION, seeded(self.whole.seed, 2), longest=data.PERSONS - 1)

    def network(self) -> nn.Module:
        return build(self.preset)

    def sample(self, rng: np.random.Generator) -> Batch:
        """Questions, and the number of losses of an average one: of the *whole* batch, not of a shard."""
        longest = self.curriculum.longest if self.preset.curriculum else None
        batch = as_batch(data.sample("train", self.preset.batch_size, rng, longest))
        if isinstance(self.preset, AnglesPreset):
            _, due = self._due(batch, self.steps_of(RunningBatch(batch)))
            counts = torch.stack([due[..., 0].sum(), due[..., 1:].sum()]) / self.preset.batch_size
            batch["losses"] = counts.expand(self.preset.batch_size, -1)
        return batch

    def targets(self, batch: Batch) -> Tensor:
        return batch["ages"].gather(1, batch["asked"][:, None])[:, 0]

    def reach(self, batch: Batch) -> Tensor:
        return batch["distances"].gather(1, batch["asked"][:, None])[:, 0]

    def loss(self, outputs: Tensor | Outputs, batch: Batch) -> Tensor:
        answer = answer_of(outputs)
        persons, due = self._due(batch, len(answer))
        if not isinstance(self.preset, AnglesPreset):
            return mean_when_due(answer, self.targets(batch), due[..., 0])
        assert isinstance(outputs, Outputs)
        ages = batch["ages"].gather(1, persons)
        logits = torch.cat([answer[:, :, None], outputs.extras["persons"]], dim=2)
        losses = F.cross_entropy(logits.flatten(0, 2), ages.repeat(len(logits), 1).flatten(), reduction="none")
        losses = losses.view(due.shape) * due
        asked, facts = torch.stack([losses[..., 0].sum(), losses[..., 1:].sum()]) / batch["losses"].sum(0)
        return asked + facts

    def _due(self, batch: Batch, steps: int) -> tuple[Tensor, Tensor]:
        """The 17 persons whose ages can be answered (n, 17), the one asked first, and which answers count
        (steps, n, 17)."""
        persons = torch.cat([batch["asked"][:, None], batch["facts"][..., :2].flatten(1)], dim=1)
        distances = batch["distances"].gather(1, persons)
        step = self.burned_in + torch.arange(1, steps + 1, device=distances.device)[:, None, None]
        begins = distances if self.preset.loss == "every" else distances.clamp(min=self.burned_in + steps)
        return persons, (step >= begins) & (distances <= self.curriculum.longest)

    def validate(self, network: nn.Module) -> dict[str, float]:
        """The score is the mean accuracy over all numbers of differences, whatever the curriculum has reached."""
        steps, lengths = self.validation_steps, self.validation.length
        right = right_by_step(network, self.validation, steps[-1])
        known = [n for n in range(data.PERSONS) if n in lengths]
        by_steps = [{n: float(right[t - 1, lengths == n].mean()) for n in known} for t in steps]
        score = float(np.mean([list(each.values()) for each in by_steps]))
        each = {f"differences_{n}": figure for n, figure in by_steps[0].items()}
        return {"score": score, **each, "longest": float(self.curriculum.longest)}


class PaperAgesExperiment(AgesExperiment):
    """For the paper's network: few people at first; --repeat-share of the updates repeat earlier levels.

    The curriculum's ``longest`` counts `rrn.tasks.ages.data.LEVELS`; an update sees equally many facts at each.
    """

    furthest = len(data.LEVELS) - 1

    preset: PaperPreset

    def __init__(self, preset: PaperPreset, whole: AgesPreset | None = None) -> None:
        super().__init__(preset, whole)
        if preset.curriculum:
            self.curriculum.longest = preset.curriculum_level

    def sample(self, rng: np.random.Generator) -> Batch:
        if not self.preset.curriculum:
            return super().sample(rng)
        level = self.curriculum.longest
        if level and rng.random() < self.preset.repeat_share:
            level = int(rng.integers(level))
        people = data.LEVELS[level].people
        batch = as_batch(data.sample_level(data.LEVELS[level], self.preset.batch_size * data.PERSONS // people, rng))
        return batch | {"level": torch.full_like(batch["asked"], level)}

    def steps_of(self, running: RunningBatch) -> int:
        """All steps for stories of eight people, so that answers stay; for others two more than needed."""
        level = data.LEVELS[int(running.batch["level"][0])] if "level" in running.batch else data.LEVELS[-1]
        return self.preset.steps if level.people == data.PERSONS else min(self.preset.steps, level.longest + 2)

    def loss(self, outputs: Tensor | Outputs, batch: Batch) -> Tensor:
        return Experiment.loss(self, outputs, batch)

    def reach(self, batch: Batch) -> Tensor:
        """The level of the questions that ask for its furthest person; -1 for the others."""
        distances = super().reach(batch)
        if "level" not in batch:
            return distances
        furthest = torch.tensor([level.longest for level in data.LEVELS], device=distances.device)[batch["level"]]
        return torch.where(distances == furthest, batch["level"], -1)


def make(preset: AgesPreset, whole: AgesPreset | None = None) -> AgesExperiment:
    if isinstance(preset, PaperPreset):
        return PaperAgesExperiment(preset, whole)
    return AgesExperiment(preset, whole)
