"""The paper's baseline: a perceptron. (The paper's relational network is its network with one step.)"""

import torch
from torch import Tensor, nn

from rrn.nn.layers import MLP
from rrn.nn.updates import State
from rrn.tasks.pretty_clevr.data import JUMPS, NAMES, OBJECTS, STARTS
from rrn.tasks.pretty_clevr.model import distances, object_features, question_features
from rrn.tasks.pretty_clevr.presets import PerceptronPreset
from rrn.training.experiment import Batch


class Perceptron(nn.Module):
    """A multi-layer perceptron on all objects, all distances and the question. All steps have the same output.

    Objects are sorted by colour. The paper does not specify an order; with a random order training is much slower.
    """

    def __init__(self, preset: PerceptronPreset) -> None:
        super().__init__()
        inputs = OBJECTS * (2 + 2 * OBJECTS) + OBJECTS * OBJECTS + STARTS + JUMPS
        self.mlp = MLP(inputs, preset.hidden, len(NAMES), layers=4, dropout=preset.dropout)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the 16 names, equal at every step: (steps, n, 16)."""
        order = batch["colours"].argsort(1)
        objects = object_features(batch).take_along_dim(order[..., None], dim=1)
        between = distances(objects[..., :2])
        scene = torch.cat([objects.flatten(1), between.flatten(1), question_features(batch)], dim=-1)
        logits = self.mlp(scene)
        return logits.expand(steps, -1, -1), State(logits)
