"""`RRNRegressor`: numbers of nodes, edges or graphs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rrn.errors import InputError
from rrn.estimators.base import _Estimator
from rrn.estimators.samples import Sample, as_list, reshape_labels
from rrn.nn.losses import squared_error


@dataclass(kw_only=True, eq=False, repr=False)
class RRNRegressor(_Estimator):
    """Predicts numbers about the nodes of graphs, their edges, or whole graphs, with a recurrent relational network.

    *Graphs* are those of `RRNClassifier`. *Labels* are one array per graph, of one number per node (or per edge, with
    ``readout="edge"``), or one number per graph; or of several numbers: (nodes, numbers), (edges, numbers), or
    (numbers,) per graph. NaN means "not known". The loss is the squared error of labels shifted and scaled to
    mean 0 and standard deviation 1.

    Args:
        hidden: this and all other arguments are those of `RRNClassifier`.

    Attributes:
        network_: the trained `RRN`; its outputs are shifted and scaled.
        mean_: of the labels, (numbers,).
        spread_: of the labels, (numbers,).
        readout_: "node", "graph" or "edge".
        history_: of each epoch ``loss``, ``validation_loss`` and ``validation_r2`` (the last two with a split).
    """

    _estimator_type = "regressor"
    _criterion = staticmethod(squared_error)
    _multi_output = True

    def predict(self, graphs: Sequence[Any]) -> Any:
        """Numbers of the shape of the labels: an array (graphs, …), or a list of arrays (labels, …), one per graph."""
        outputs = [each * self.spread_ + self.mean_ for each in self._predict_outputs(graphs)]
        return self._by_graph([each.reshape(len(each), *self.shape_) for each in outputs])

    def score(
        self, graphs: Sequence[Any], labels: Sequence[Any] | None = None, sample_weight: Sequence[Any] | None = None
    ) -> float:
        """R² over all known labels, averaged over several numbers: 1 is perfect, 0 equals predicting the mean."""
        graphs = as_list(graphs)
        predicted = self.predict(graphs)
        expected, weights = self._for_score(graphs, labels, sample_weight, self.shape_)
        found = predicted if self.readout_ == "graph" else np.concatenate(predicted)
        return _r_squared(found, expected.astype(float), weights)

    def _encode_labels(self, samples: list[Sample], arrays: list[np.ndarray], weights: list[Tensor]) -> list[Tensor]:
        continues = self.warm_start and hasattr(self, "network_")
        if not continues:
            own = arrays[0].shape if self.readout_ == "graph" else arrays[0].shape[1:]
            self.shape_ = () if own == (1,) and self.readout_ == "graph" else own[-1:]
        for number, array in enumerate(arrays):
            if array.dtype.kind not in "fiub":
                raise InputError(f"labels of graph {number}: expected numbers, got {array.dtype}")
            if np.isinf(array).any():
                raise InputError(f"labels of graph {number}: expected finite numbers, or NaN for unknown ones")
        floats = [array.astype(float) for array in arrays]
        labels = reshape_labels(floats, samples, self.readout_, self.shape_)
        if not continues:
            every = np.concatenate(labels).reshape(-1, self._width())
            self.mean_, self.spread_ = _mean_and_spread(every, torch.cat(weights).numpy())
        scaled = [(each.reshape(len(each), -1) - self.mean_) / self.spread_ for each in labels]
        return [torch.from_numpy(each).float() for each in scaled]

    def _width(self) -> int:
        return int(np.prod(self.shape_, dtype=int))

    def _validation_figures(self, outputs: Tensor, targets: Tensor) -> dict[str, float]:
        return {"validation_r2": _r_squared(outputs.numpy(), targets.numpy(), np.ones(len(targets)))}

    def _fitted(self) -> dict[str, Any]:
        return {"shape": self.shape_, "mean": self.mean_.tolist(), "spread": self.spread_.tolist()}

    def _restore(self, fitted: dict[str, Any]) -> None:
        self.shape_ = tuple(fitted["shape"])
        self.mean_, self.spread_ = np.array(fitted["mean"]), np.array(fitted["spread"])


def _mean_and_spread(labels: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of the known labels of each column; 1 where all are the same."""
    share = np.where(np.isnan(labels), 0.0, weights[:, None].astype(float))
    if not share.any(0).all():
        raise InputError("labels: expected some numbers, got none that is known")
    filled, share = np.nan_to_num(labels), share / share.sum(0)
    mean = (share * filled).sum(0)
    spread = np.sqrt((share * (filled - mean) ** 2).sum(0))
    return mean, np.where(spread > 0, spread, 1.0)


def _r_squared(found: np.ndarray, expected: np.ndarray, weights: np.ndarray) -> float:
    found, expected = found.reshape(len(found), -1), expected.reshape(len(expected), -1)
    scores = []
    for mine, theirs in zip(found.T, expected.T, strict=True):
        counts = ~np.isnan(theirs) & (weights > 0)
        if not counts.any():
            return math.nan
        mine, theirs, share = mine[counts], theirs[counts], weights[counts]
        missed = float((share * (mine - theirs) ** 2).sum())
        spread = float((share * (theirs - np.average(theirs, weights=share)) ** 2).sum())
        scores.append(1 - missed / spread if spread else float(missed == 0))
    return float(np.mean(scores))
