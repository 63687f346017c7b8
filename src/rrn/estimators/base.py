"""For those who want no training loop: `RRNClassifier` and `RRNRegressor`, with the manners of scikit-learn estimators.

>>> from rrn import RRNClassifier
>>> classifier = RRNClassifier(hidden=32, steps=8).fit(graphs, labels)  # doctest: +SKIP
>>> classifier.predict(graphs)  # doctest: +SKIP

scikit-learn itself is not needed; where it is installed, ``clone``, ``cross_val_score`` and ``GridSearchCV`` work.
"""

import copy
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

import rrn
from rrn.errors import InputError, blaming, shorten
from rrn.estimators.samples import (
    Asked,
    Sample,
    as_arrays,
    join,
    read_samples,
    read_weights,
    shaped,
    what_is_asked,
    widths,
)
from rrn.graphs import Aggregate
from rrn.io.files import read_bytes, write_json
from rrn.network import RRN
from rrn.nn.losses import every_step, known, last_step

FILE = "estimator.json"
MOST_BYTES = 64 << 20


@dataclass(kw_only=True, eq=False, repr=False)
class _Estimator(ABC):
    """What `RRNClassifier` and `RRNRegressor` share: all but what labels are."""

    hidden: int = 64
    steps: int = 8
    predict_steps: int | None = None
    message_layers: int = 1
    update: Literal["lstm", "gru", "mlp"] = "lstm"
    aggregate: tuple[Aggregate, ...] = ("sum",)
    readout: Literal["auto", "node", "graph", "edge"] = "auto"
    readout_layers: int = 0
    dropout: float = 0.0
    loss: Literal["every", "last"] = "every"
    lr: float = 3e-3
    weight_decay: float = 1e-4
    batch_size: int = 32
    epochs: int = 100
    validation_fraction: float = 0.1
    patience: int = 15
    warm_start: bool = False
    node_attribute: str = "x"
    edge_attribute: str | None = None
    seed: int = 0
    device: str = "cpu"
    progress: bool = True

    _several: ClassVar[bool] = False
    """Whether one label may be several numbers."""

    @staticmethod
    @abstractmethod
    def _criterion(outputs: Tensor, targets: Tensor, /) -> Tensor: ...

    @abstractmethod
    def _learn_labels(self, samples: list[Sample], arrays: list[np.ndarray], weights: list[Tensor]) -> list[Tensor]:
        """Targets of all samples; sets what is known of labels from now on."""

    @abstractmethod
    def _width(self) -> int:
        """Outputs per answer."""

    @abstractmethod
    def _figure(self, outputs: Tensor, targets: Tensor) -> dict[str, float]:
        """What is shown of answers to graphs that were kept apart."""

    @abstractmethod
    def _fitted(self) -> dict[str, Any]:
        """What is known of labels, as JSON."""

    @abstractmethod
    def _restore(self, fitted: dict[str, Any]) -> None:
        """What `_fitted` wrote."""

    # The manners of scikit-learn.

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(field.name for field in fields(cls))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor."""
        for name, value in params.items():
            if name not in self._names():
                raise InputError(f"{name}: no such parameter; there are {', '.join(self._names())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {field.name: field.default for field in fields(self)}
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    # Training.

    def fit(self, graphs: Sequence[Any], labels: Sequence[Any], sample_weight: Sequence[Any] | None = None) -> Self:
        """Train on graphs and their labels.

        ``sample_weight`` is how much each graph counts: one number per graph, or one array per graph of a number per
        label. With ``warm_start`` training goes on from the network that is there, else it starts with a new one.
        """
        self._check_settings()
        samples = self._read(graphs)
        if not samples:
            raise InputError("graphs: expected at least one, got none")
        arrays = as_arrays(labels, samples)
        going_on = self.warm_start and hasattr(self, "network_")
        if not going_on:
            seen = what_is_asked(arrays, samples, self._several)
            self.readout_: Asked = seen if self.readout == "auto" else self.readout
            self.types_ = samples[0].types
            self.history_: list[dict[str, float]] = []
        if self.dropout and self.readout_ != "edge" and not self.readout_layers:
            raise InputError("dropout: it is in the ReLU layers of the readout; give it some with readout_layers=1")
        weights = read_weights(sample_weight, samples, self.readout_)
        targets = self._learn_labels(samples, arrays, weights)
        weights = self._weigh(targets, weights)
        training, validation = self._split(targets)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            with torch.device("cpu"):
                network = self._new_network(samples[0])
            if not going_on:
                self.network_ = network.to(self.device)
            elif network.settings != self.network_.settings:
                changed = [f"{k}={v}" for k, v in network.settings.items() if v != self.network_.settings[k]]
                raise InputError(f"warm_start: the network was not made for {', '.join(changed)}; fit a new one")
            self._train(samples, targets, weights, training, validation)
        self.network_.eval()
        return self

    def _new_network(self, sample: Sample) -> RRN:
        features, edge_features = widths(sample)
        return RRN(
            features,
            self.hidden,
            self._width(),
            edge_features=edge_features,
            message_layers=self.message_layers,
            update=self.update,
            aggregate=self.aggregate,
            readout=self.readout_,
            readout_layers=self.readout_layers,
            dropout=self.dropout,
        )

    def _worth(self, targets: list[Tensor]) -> list[Tensor]:
        """How much each target counts, whatever its graph."""
        return [target.new_ones(len(target), dtype=torch.float32) for target in targets]

    def _weigh(self, targets: list[Tensor], weights: list[Tensor]) -> list[Tensor]:
        """How much each answer counts: 1 in the mean, so that weights do not change the learning rate."""
        both = [weight * worth for weight, worth in zip(weights, self._worth(targets), strict=True)]
        mean = torch.cat(both)[_any_known(torch.cat(targets))].mean()
        return [each / mean for each in both]

    def _split(self, targets: list[Tensor]) -> tuple[np.ndarray, list[int]]:
        order = np.random.default_rng(self.seed).permutation(len(targets))
        kept_apart = round(self.validation_fraction * len(targets)) if self.validation_fraction else 0
        if self.validation_fraction and not 0 < kept_apart < len(targets):
            raise InputError(
                f"validation_fraction: {self.validation_fraction} of {len(targets)} graphs leaves none to "
                f"{'validate' if kept_apart == 0 else 'train'} on; give more graphs, or validation_fraction=0"
            )
        training, validation = order[kept_apart:], order[:kept_apart].tolist()
        for name, rows in (("train on", training.tolist()), ("validate on", validation)):
            if rows and not any(known(targets[row]).any() for row in rows):
                raise InputError(f"labels: none is known of the {len(rows)} graphs to {name}")
        return training, validation

    def _train(
        self,
        samples: list[Sample],
        targets: list[Tensor],
        weights: list[Tensor],
        training: np.ndarray,
        validation: list[int],
    ) -> None:
        network, rng = self.network_, np.random.default_rng([self.seed, 1])
        optimizer = torch.optim.AdamW(network.parameters(), lr=self.lr, weight_decay=self.weight_decay)
        updates = math.ceil(len(training) / self.batch_size) * self.epochs
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
        best, best_weights, since = math.inf, network.state_dict(), 0
        console = Console(stderr=True)
        columns = (TextColumn("training"), BarColumn(), TextColumn("{task.fields[status]}"), TimeRemainingColumn())
        with Progress(*columns, console=console, disable=not (self.progress and console.is_terminal)) as bar:
            line = bar.add_task("", total=self.epochs, status="")
            for _ in range(self.epochs):
                network.train()
                losses = []
                shuffled = rng.permutation(training)
                for low in range(0, len(shuffled), self.batch_size):
                    rows = shuffled[low : low + self.batch_size].tolist()
                    loss = self._loss(self._outputs(samples, rows, self.steps), targets, weights, rows)
                    optimizer.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                    losses.append(loss.item())
                figures = {"loss": float(np.mean(losses))}
                if validation:
                    figures |= self._validate(samples, targets, weights, validation)
                    since += 1
                    if figures["validation_loss"] < best:
                        best, best_weights, since = figures["validation_loss"], copy.deepcopy(network.state_dict()), 0
                self.history_.append(figures)
                status = "  ".join(f"{name} {value:.4f}" for name, value in figures.items())
                bar.update(line, advance=1, status=status)
                if since >= self.patience:
                    break
        if validation:
            network.load_state_dict(best_weights)

    def _loss(self, outputs: Tensor, targets: list[Tensor], weights: list[Tensor], rows: list[int]) -> Tensor:
        """The weighted losses over the *number* of answers: weights count from batch to batch, not within one alone."""
        expected, share = (torch.cat([values[row] for row in rows]).to(self.device) for values in (targets, weights))
        loss = every_step if self.loss == "every" else last_step
        counts = _any_known(expected)
        mean_weight = share[counts].mean() if counts.any() else 1.0
        return loss(outputs, expected, weights=share, criterion=self._criterion) * mean_weight

    def _validate(
        self, samples: list[Sample], targets: list[Tensor], weights: list[Tensor], rows: list[int]
    ) -> dict[str, float]:
        self.network_.eval()
        total, count, answers = 0.0, 0, []
        with torch.inference_mode():
            for low in range(0, len(rows), self.batch_size):
                part = rows[low : low + self.batch_size]
                outputs = self._outputs(samples, part, self.steps)
                known_here = sum(int(known(targets[row]).sum()) for row in part)
                total += self._loss(outputs, targets, weights, part).item() * known_here
                count += known_here
                answers.append(outputs[-1].cpu())
        figure = self._figure(torch.cat(answers), torch.cat([targets[row] for row in rows]))
        return {"validation_loss": total / count, **figure}

    def _outputs(self, samples: list[Sample], rows: list[int], steps: int) -> Tensor:
        joined = join([samples[row] for row in rows], self.readout_, self.device)
        outputs = self.network_(joined.x, joined.edge_index, joined.edge_attr, joined.batch, steps=steps)
        return joined.pooled(outputs)

    # Answering.

    def _answers(self, graphs: Sequence[Any]) -> list[np.ndarray]:
        """The outputs of the last step, (answers, width) per graph."""
        network = self._network()
        samples = self._read(graphs)
        for number, sample in enumerate(samples):
            if widths(sample) != (network.features, network.edge_features):
                raise InputError(
                    f"graph {number}: expected {network.features} features per node and {network.edge_features} per "
                    "edge, as in training"
                )
            if sample.types != self.types_:
                raise InputError(f"graph {number}: expected types {self.types_}, as in training, got {sample.types}")
        network.eval()
        answers: list[np.ndarray] = []
        with torch.inference_mode():
            for low in range(0, len(samples), self.batch_size):
                rows = list(range(low, min(low + self.batch_size, len(samples))))
                outputs = self._outputs(samples, rows, self.predict_steps or self.steps)[-1].cpu().numpy()
                ends = np.cumsum([samples[row].how_many(self.readout_) for row in rows])
                answers.extend(np.split(outputs, ends[:-1]))
        return answers

    def _as_asked(self, answers: list[np.ndarray]) -> Any:
        """A list of arrays, one per graph; or one array, if each graph has one answer."""
        return np.concatenate(answers) if self.readout_ == "graph" and answers else answers

    def _network(self) -> RRN:
        if not hasattr(self, "network_"):
            raise InputError(f"this {type(self).__name__} is not fitted; call fit(graphs, labels) first")
        return self.network_

    def _for_score(
        self, graphs: Sequence[Any], labels: Sequence[Any], sample_weight: Sequence[Any] | None, width: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """All labels and their weights, (answers, *width) and (answers,)."""
        samples = self._read(graphs)
        arrays = as_arrays(labels, samples)
        every = [
            shaped(array, sample, self.readout_, width, number)
            for number, (array, sample) in enumerate(zip(arrays, samples, strict=True))
        ]
        return np.concatenate(every), torch.cat(read_weights(sample_weight, samples, self.readout_)).numpy()

    # Files.

    def save(self, folder: str | Path) -> None:
        """Write a fitted estimator: ``estimator.json`` beside what `RRN.save_pretrained` writes of its network.

        No pickle, so the folder can be handed on; `RRN.from_pretrained` reads the network alone from it.
        """
        network = self._network()
        about = {
            "rrn": rrn.__version__,
            "estimator": type(self).__name__,
            "parameters": {name: _to_json(value) for name, value in self.get_params().items()},
            "readout": self.readout_,
            "types": self.types_,
            "history": self.history_,
            "fitted": self._fitted(),
        }
        network.save_pretrained(folder)
        write_json(Path(folder) / FILE, about)

    @classmethod
    def load(cls, folder: str | Path, **params: Any) -> Self:
        """What `save` wrote; ``params`` replace arguments of the constructor, such as ``device="cpu"``."""
        path = Path(folder) / FILE
        with blaming(f"{path}: not an estimator that was saved"):
            about = json.loads(read_bytes(path, MOST_BYTES))
            kind, saved = about["estimator"], {name: _from_json(value) for name, value in about["parameters"].items()}
            if kind != cls.__name__:
                held = shorten(kind)
                raise InputError(f"{folder}: holds {held}, not {cls.__name__}; load it with {held}.load")
            estimator = cls(**saved).set_params(**params)
            estimator._check_settings()
            estimator.readout_, estimator.history_ = about["readout"], about["history"]
            estimator.types_ = tuple(_from_json(kind) for kind in about["types"])
            estimator._restore(about["fitted"])
            estimator.network_ = RRN.from_pretrained(Path(folder).absolute()).to(estimator.device)
        return estimator

    # What goes in.

    def _read(self, graphs: Sequence[Any]) -> list[Sample]:
        return read_samples(graphs, self.node_attribute, self.edge_attribute, type(self).__name__)

    def _check_settings(self) -> None:
        for name in ("hidden", "steps", "message_layers", "batch_size", "epochs", "patience"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: expected at least 1, got {shorten(getattr(self, name))}")
        for name in ("validation_fraction", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name}: expected from 0 to below 1, got {shorten(getattr(self, name))}")
        choices = {"loss": ("every", "last"), "readout": ("auto", *get_args(Asked))}
        for name, values in choices.items():
            if getattr(self, name) not in values:
                *others, last = (repr(value) for value in values)
                found = shorten(repr(getattr(self, name)))
                raise InputError(f"{name}: expected {', '.join(others)} or {last}, got {found}")


def _any_known(targets: Tensor) -> Tensor:
    """Of which answers at least one number is known: (answers,)."""
    return known(targets).reshape(len(targets), -1).any(1)


def _to_json(value: Any) -> Any:
    """Parameters as JSON. A dictionary becomes pairs, for its keys need not be words."""
    if isinstance(value, dict):
        return {"pairs": [[_to_json(name), _to_json(each)] for name, each in value.items()]}
    return value.item() if isinstance(value, np.generic) else value


def _from_json(value: Any) -> Any:
    """JSON has no tuples."""
    if isinstance(value, dict):
        return {_from_json(name): _from_json(each) for name, each in value["pairs"]}
    return tuple(value) if isinstance(value, list) else value
