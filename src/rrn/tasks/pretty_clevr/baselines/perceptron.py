"""The paper's baseline: one perceptron on all objects, all distances and the question."""

import torch
from torch import Tensor, nn

from rrn.nn.layers import MLP
from rrn.nn.updates import State
from rrn.tasks.pretty_clevr.data import JUMPS, NAMES, OBJECTS, STARTS
from rrn.tasks.pretty_clevr.model import distances, object_features, question_features
from rrn.tasks.pretty_clevr.presets import PerceptronPreset
from rrn.training.experiment import Batch


class Perceptron(nn.Module):
    """It has no steps.

    Objects come in the order of their colours, so that half of the names have their place among the inputs: the paper
    does not say in which order, and in a random one even 0 jumps take far longer to learn.
    """

    def __init__(self, preset: PerceptronPreset) -> None:
        super().__init__()
        inputs = OBJECTS * (2 + 2 * OBJECTS) + OBJECTS * OBJECTS + STARTS + JUMPS
        self.mlp = MLP(inputs, preset.hidden, len(NAMES), layers=4, dropout=preset.dropout)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names, the same at every step: (steps, n, 16)."""
        order = batch["colours"].argsort(1)
        objects = object_features(batch).take_along_dim(order[..., None], dim=1)
        between = distances(objects[..., :2])
        scene = torch.cat([objects.flatten(1), between.flatten(1), question_features(batch)], dim=-1)
        logits = self.mlp(scene)
        return logits.expand(steps, -1, -1), State(logits)
