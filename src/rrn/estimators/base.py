"""The common part of `RRNClassifier` and `RRNRegressor`, estimators with the interface of scikit-learn.

>>> from rrn import RRNClassifier
>>> classifier = RRNClassifier(hidden=32, steps=8).fit(graphs, labels)  # doctest: +SKIP
>>> classifier.predict(graphs)  # doctest: +SKIP

scikit-learn itself is not needed; where it is installed, ``clone``, ``cross_val_score`` and ``GridSearchCV`` work.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor

import rrn
from rrn.engines.plain import threads_for
from rrn.errors import InputError, as_input_error, shorten
from rrn.estimators.objective import GraphObjective, from_json, to_json
from rrn.estimators.samples import (
    LabelLevel,
    Sample,
    as_arrays,
    as_list,
    infer_level,
    labels_of,
    read_samples,
    read_weights,
    reshape_labels,
    run,
    widths,
)
from rrn.graphs import Aggregate
from rrn.io.files import read_bytes, write_json
from rrn.network import RRN
from rrn.nn.losses import any_known, known
from rrn.training.display import progress_bar
from rrn.training.loop import Loop

FILE = "estimator.json"
MOST_BYTES = 64 << 20
BUDGET = frozenset({"epochs", "minutes", "predict_steps", "device", "progress", "warm_start"})
"""Parameters in which a resumed `fit` may differ from the one it continues."""


@dataclass(kw_only=True, eq=False, repr=False)
class _Estimator(ABC):
    """Everything but the meaning of labels, which a subclass defines."""

    hidden: int = 64
    steps: int = 8
    predict_steps: int | None = None
    message_layers: int = 1
    update: Literal["lstm", "gru", "mlp"] | None = None
    aggregate: tuple[Aggregate, ...] = ("sum",)
    readout: Literal["auto", "node", "graph", "edge"] = "auto"
    readout_layers: int | None = None
    pool: tuple[Aggregate, ...] = ("sum", "mean", "max")
    dropout: float = 0.0
    loss: Literal["every", "last"] = "every"
    lr: float | None = None
    weight_decay: float = 1e-4
    batch_size: int = 32
    epochs: int = 100
    validation_fraction: float = 0.1
    patience: int = 15
    warm_start: bool = False
    node_attribute: str = "x"
    edge_attribute: str | None = None
    minutes: float | None = None
    random_state: int | None = 0
    device: str = "cpu"
    progress: bool = True

    _estimator_type: ClassVar[str]
    _multi_output: ClassVar[bool] = False
    """Whether one label may be several numbers."""

    @staticmethod
    @abstractmethod
    def _criterion(outputs: Tensor, targets: Tensor, /) -> Tensor: ...

    @abstractmethod
    def _encode_labels(self, samples: list[Sample], arrays: list[np.ndarray], weights: list[Tensor]) -> list[Tensor]:
        """Targets of all samples. Sets the attributes that decode outputs into labels."""

    @abstractmethod
    def _width(self) -> int:
        """Outputs per label."""

    @abstractmethod
    def _validation_figures(self, outputs: Tensor, targets: Tensor) -> dict[str, float]:
        """Figures on held-out graphs, besides the loss."""

    @abstractmethod
    def _fitted(self) -> dict[str, Any]:
        """The attributes that decode outputs into labels, as JSON."""

    @abstractmethod
    def _restore(self, fitted: dict[str, Any]) -> None:
        """Set the attributes that `_fitted` returned."""

    # The interface of scikit-learn.

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

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        classifies = self._estimator_type == "classifier"
        return Tags(
            estimator_type=self._estimator_type,
            target_tags=TargetTags(required=True, multi_output=self._multi_output),
            classifier_tags=ClassifierTags() if classifies else None,
            regressor_tags=None if classifies else RegressorTags(),
            input_tags=InputTags(two_d_array=False),
        )

    # Training.

    def fit(
        self,
        graphs: Sequence[Any],
        labels: Sequence[Any] | None = None,
        sample_weight: Sequence[Any] | None = None,
        *,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Train on graphs and their labels; without ``labels``, on the ``y`` of a list, ``Batch`` or ``DataLoader`` of
        PyTorch Geometric.

        ``sample_weight`` is one number per graph, or one array per graph with a number per label. With ``warm_start``
        training continues with the present network, otherwise it starts with a new one. ``checkpoint`` is a folder for
        checkpoints; the same call after an interruption resumes from the newest, with the same result.
        """
        self._check_settings()
        if checkpoint is not None and self.random_state is None:
            raise InputError("checkpoint: expected an integer random_state, so that training can resume; got None")
        samples, arrays = self._read_labelled(graphs, labels)
        continues = self.warm_start and hasattr(self, "network_")
        if not continues:
            inferred = infer_level(arrays, samples, self._multi_output)
            self.readout_: LabelLevel = inferred if self.readout == "auto" else self.readout
            self.types_ = samples[0].types
            self.history_: list[dict[str, float]] = []
        if self.dropout and self.readout_ != "edge" and not self._readout_layers():
            raise InputError("dropout: it is in the ReLU layers of the readout; add one with readout_layers=1")
        weights = read_weights(sample_weight, samples, self.readout_)
        targets = self._encode_labels(samples, arrays, weights)
        weights = self._weigh(targets, weights)
        seed = int(np.random.default_rng().integers(2**31)) if self.random_state is None else self.random_state
        training, validation = self._split(targets, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            with torch.device("cpu"):
                network = self._new_network(samples[0])
            if not continues:
                self.network_ = network.to(self.device)
            elif network.settings != self.network_.settings:
                changed = [f"{k}={v}" for k, v in network.settings.items() if v != self.network_.settings[k]]
                raise InputError(f"warm_start: the network was not made for {', '.join(changed)}; fit a new one")
            objective = GraphObjective(self, samples, targets, weights, training, validation, seed)
            self._train(objective, None if checkpoint is None else Path(checkpoint))
        self.network_.eval()
        return self

    def _train(self, objective: GraphObjective, folder: Path | None) -> None:
        rate = self._rate()
        largest = sorted((len(sample.x) for sample in objective.samples), reverse=True)[: self.batch_size]
        loop = Loop(
            network=self.network_,
            objective=objective,
            optimizer=torch.optim.AdamW(self.network_.parameters(), lr=rate, weight_decay=self.weight_decay),
            rate=rate,
            updates=objective.updates_per_epoch * self.epochs,
            minutes=self.minutes,
            validate_every=objective.updates_per_epoch,
            patience=self.patience if objective.validation else None,
            keep_best=True,
            folder=folder,
            settings={} if folder is None else objective.settings(),
            budget=BUDGET,
            folder_flag="checkpoint folder",
            remedy=f"Use a lower lr (now {rate:g}), or scale the features to a spread of about 1.",
            callbacks=progress_bar("training", self.batch_size) if self.progress else [],
        )
        with threads_for(sum(largest) * self.hidden):
            loop.fit()

    def _new_network(self, sample: Sample) -> RRN:
        features, edge_features = widths(sample)
        return RRN(
            features,
            self.hidden,
            self._width(),
            edge_features=edge_features,
            message_layers=self.message_layers,
            update=self.update or ("gru" if self.readout_ == "graph" else "lstm"),
            aggregate=self.aggregate,
            readout=self.readout_,
            readout_layers=self._readout_layers(),
            pool=self.pool,
            dropout=self.dropout,
        )

    def _readout_layers(self) -> int:
        return int(self.readout_ == "graph") if self.readout_layers is None else self.readout_layers

    def _rate(self) -> float:
        """The learning rate. Sums over all nodes have large gradients: readouts of graphs need a smaller one."""
        return (1e-3 if self.readout_ == "graph" else 3e-3) if self.lr is None else self.lr

    def _target_weights(self, targets: list[Tensor]) -> list[Tensor] | None:
        """The weight of each target by its class; None: all are 1."""
        return None

    def _weigh(self, targets: list[Tensor], weights: list[Tensor]) -> list[Tensor]:
        """The weight of each target. The mean is 1, so that weights do not change the learning rate."""
        by_class = self._target_weights(targets)
        if by_class is not None:
            weights = [weight * other for weight, other in zip(weights, by_class, strict=True)]
        mean = torch.cat(weights)[any_known(torch.cat(targets))].mean()
        return [each / mean for each in weights]

    def _split(self, targets: list[Tensor], seed: int) -> tuple[np.ndarray, list[int]]:
        """The graphs to train on and those to validate on."""
        order = np.random.default_rng(seed).permutation(len(targets))
        held_out = round(self.validation_fraction * len(targets)) if self.validation_fraction else 0
        if self.validation_fraction and not 0 < held_out < len(targets):
            raise InputError(
                f"validation_fraction: {self.validation_fraction} of {len(targets)} graphs leaves none to "
                f"{'validate' if held_out == 0 else 'train'} on; give more graphs, or validation_fraction=0"
            )
        training, validation = order[held_out:], order[:held_out].tolist()
        for name, rows in (("train on", training.tolist()), ("validate on", validation)):
            if rows and not any(known(targets[row]).any() for row in rows):
                raise InputError(f"labels: none is known of the {len(rows)} graphs to {name}")
        return training, validation

    # Prediction.

    def _predict_outputs(self, graphs: Sequence[Any]) -> list[np.ndarray]:
        """The outputs of the last step, (labels, width) per graph."""
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
        found: list[np.ndarray] = []
        with torch.inference_mode():
            for low in range(0, len(samples), self.batch_size):
                part = samples[low : low + self.batch_size]
                outputs = run(network, part, self.readout_, self.predict_steps or self.steps)[-1].cpu().numpy()
                ends = np.cumsum([sample.count_labels(self.readout_) for sample in part])
                found.extend(np.split(outputs, ends[:-1]))
        return found

    def _by_graph(self, predicted: list[np.ndarray]) -> Any:
        """One array, if each graph has one label; otherwise a list of arrays, one per graph."""
        return np.concatenate(predicted) if self.readout_ == "graph" and predicted else predicted

    def _network(self) -> RRN:
        if not hasattr(self, "network_"):
            raise InputError(f"this {type(self).__name__} is not fitted; call fit(graphs, labels) first")
        return self.network_

    def _for_score(
        self,
        graphs: Sequence[Any],
        labels: Sequence[Any] | None,
        sample_weight: Sequence[Any] | None,
        width: tuple[int, ...],
    ) -> tuple[np.ndarray, np.ndarray]:
        """All labels and their weights, (labels, *width) and (labels,)."""
        samples, arrays = self._read_labelled(graphs, labels)
        every = reshape_labels(arrays, samples, self.readout_, width)
        return np.concatenate(every), torch.cat(read_weights(sample_weight, samples, self.readout_)).numpy()

    # Files.

    def save(self, folder: str | Path) -> None:
        """Write a fitted estimator: ``estimator.json`` beside what `RRN.save_pretrained` writes of its network.

        It contains no pickle. `RRN.from_pretrained` reads the network alone from it.
        """
        network = self._network()
        about = {
            "rrn": rrn.__version__,
            "estimator": type(self).__name__,
            "parameters": {name: to_json(value) for name, value in self.get_params().items()},
            "readout": self.readout_,
            "types": self.types_,
            "history": self.history_,
            "fitted": self._fitted(),
        }
        network.save_pretrained(folder)
        write_json(Path(folder) / FILE, about)

    @classmethod
    def load(cls, folder: str | Path, **params: Any) -> Self:
        """Load what `save` wrote; ``params`` replace arguments of the constructor, such as ``device="cpu"``."""
        path = Path(folder) / FILE
        with as_input_error(f"{path}: not an estimator that was saved"):
            about = json.loads(read_bytes(path, MOST_BYTES))
            kind, saved = about["estimator"], {name: from_json(value) for name, value in about["parameters"].items()}
            if kind != cls.__name__:
                held = shorten(kind)
                raise InputError(f"{folder}: holds {held}, not {cls.__name__}; load it with {held}.load")
            estimator = cls(**saved).set_params(**params)
            estimator._check_settings()
            estimator.readout_, estimator.history_ = about["readout"], about["history"]
            estimator.types_ = tuple(from_json(kind) for kind in about["types"])
            estimator._restore(about["fitted"])
            estimator.network_ = RRN.from_pretrained(Path(folder).absolute()).to(estimator.device)
        return estimator

    # Input.

    def _read(self, graphs: Sequence[Any]) -> list[Sample]:
        return read_samples(graphs, self.node_attribute, self.edge_attribute, type(self).__name__)

    def _read_labelled(
        self, graphs: Sequence[Any], labels: Sequence[Any] | None
    ) -> tuple[list[Sample], list[np.ndarray]]:
        if labels is None:
            graphs = as_list(graphs)
            labels = labels_of(graphs)
        samples = self._read(graphs)
        if not samples:
            raise InputError("graphs: expected at least one, got none")
        return samples, as_arrays(labels, samples)

    def _check_settings(self) -> None:
        for name in ("hidden", "steps", "message_layers", "batch_size", "epochs", "patience"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: expected at least 1, got {shorten(getattr(self, name))}")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise InputError(f"minutes: expected more than 0, got {shorten(self.minutes)}")
        if self.random_state is not None and not 0 <= int(self.random_state) < 2**32:
            raise InputError(f"random_state: expected 0 to {2**32 - 1} or None, got {shorten(self.random_state)}")
        for name in ("validation_fraction", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name}: expected from 0 to below 1, got {shorten(getattr(self, name))}")
        choices = {"loss": ("every", "last"), "readout": ("auto", *get_args(LabelLevel))}
        for name, values in choices.items():
            if getattr(self, name) not in values:
                *others, last = (repr(value) for value in values)
                found = shorten(repr(getattr(self, name)))
                raise InputError(f"{name}: expected {', '.join(others)} or {last}, got {found}")
