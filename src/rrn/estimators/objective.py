"""What an estimator minimises: the loss on batches of graphs, and its validation."""

import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from rrn.estimators.samples import Sample, run
from rrn.nn.losses import any_known, every_step, known, last_step
from rrn.training.loop import Objective

if TYPE_CHECKING:
    from rrn.estimators.base import _Estimator


class GraphObjective(Objective):
    """The loss of an estimator on batches of graphs, shuffled in every epoch; validates once per epoch."""

    def __init__(
        self,
        estimator: "_Estimator",
        samples: list[Sample],
        targets: list[Tensor],
        weights: list[Tensor],
        training: np.ndarray,
        validation: list[int],
        seed: int,
    ) -> None:
        self.estimator, self.samples, self.targets, self.weights = estimator, samples, targets, weights
        self.training, self.validation, self.seed = training, validation, seed
        self.updates_per_epoch = math.ceil(len(training) / estimator.batch_size)
        self.rng, self.epoch, self.order = np.random.default_rng([seed, 1]), -1, training
        self.losses: list[float] = []

    def loss(self, update: int, progress: float) -> Tensor:
        epoch, batch = divmod(update, self.updates_per_epoch)
        while self.epoch < epoch:  # more than once only when a run resumes
            self.order, self.epoch = self.rng.permutation(self.training), self.epoch + 1
        first = batch * self.estimator.batch_size
        rows = self.order[first : first + self.estimator.batch_size].tolist()
        return self._loss(self._outputs(rows), rows)

    def after_update(self, loss: float) -> dict[str, float]:
        self.losses.append(loss)
        return {}

    def validate(self, network: nn.Module) -> dict[str, float]:
        figures = {"loss": float(np.mean(self.losses))}
        self.losses = []
        if self.validation:
            figures |= self._validate()
        self.estimator.history_.append(figures)
        return figures | {"score": -figures["validation_loss"]} if self.validation else figures

    def _validate(self) -> dict[str, float]:
        total, count, outputs = 0.0, 0, []
        for low in range(0, len(self.validation), self.estimator.batch_size):
            rows = self.validation[low : low + self.estimator.batch_size]
            outputs.append(self._outputs(rows))
            known_here = sum(int(known(self.targets[row]).sum()) for row in rows)
            total += self._loss(outputs[-1], rows).item() * known_here
            count += known_here
        last = torch.cat([each[-1].cpu() for each in outputs])
        figures = self.estimator._validation_figures(last, torch.cat([self.targets[row] for row in self.validation]))
        return {"validation_loss": total / count, **figures}

    def _outputs(self, rows: list[int]) -> Tensor:
        estimator = self.estimator
        return run(estimator.network_, [self.samples[row] for row in rows], estimator.readout_, estimator.steps)

    def _loss(self, outputs: Tensor, rows: list[int]) -> Tensor:
        """The weighted losses over the *number* of labels, so that weights also count between batches."""
        device = outputs.device
        expected, weights = (torch.cat([of[row] for row in rows]).to(device) for of in (self.targets, self.weights))
        counts = any_known(expected)
        mean_weight = weights[counts].mean() if counts.any() else 1.0
        loss = every_step if self.estimator.loss == "every" else last_step
        return loss(outputs, expected, weights=weights, criterion=self.estimator._criterion) * mean_weight

    def settings(self) -> dict[str, Any]:
        """The parameters and a checksum of the data: a run resumes only with the same."""
        checksum = hashlib.sha256()
        for parts in (*self.samples, self.targets, self.weights):
            for part in parts:
                checksum.update(part.numpy().tobytes() if isinstance(part, Tensor) else repr(part).encode())
        parameters = {name: to_json(value) for name, value in self.estimator.get_params().items()}
        return parameters | {"random_state": self.seed, "data": checksum.hexdigest()[:16]}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {}, {"history": self.estimator.history_, "losses": self.losses}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.estimator.history_, self.losses = facts["history"], facts["losses"]


def to_json(value: Any) -> Any:
    """Parameters as JSON. A dictionary becomes pairs, as its keys need not be strings."""
    if isinstance(value, dict):
        return {"pairs": [[to_json(name), to_json(each)] for name, each in value.items()]}
    return value.item() if isinstance(value, np.generic) else value


def from_json(value: Any) -> Any:
    """Parameters from JSON, which has no tuples."""
    if isinstance(value, dict):
        return {from_json(name): from_json(each) for name, each in value["pairs"]}
    return tuple(value) if isinstance(value, list) else value
