"""`RRNClassifier`: classes of nodes, edges or graphs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from rrn.errors import InputError, shorten
from rrn.estimators.base import _Estimator
from rrn.estimators.samples import Sample, as_list, reshape_labels
from rrn.nn.losses import IGNORE, cross_entropy, known

MOST_CHARACTERS = 1 << 24
"""Of the array of classes that a saved estimator has."""


@dataclass(kw_only=True, eq=False, repr=False)
class RRNClassifier(_Estimator):
    """Classifies the nodes of graphs, their edges, or whole graphs, with a recurrent relational network.

    A *graph* is ``(x, edge_index)`` or ``(x, edge_index, edge_attr)`` of arrays or tensors (shapes: `RRN.forward`), a
    networkx graph, or a PyTorch Geometric ``Data`` or ``HeteroData``; all of them may be a list, a ``Batch`` or a
    ``DataLoader``. *Labels* are one array per graph, with one label
    per node (or per edge, with ``readout="edge"``), or one label per graph. Labels may be integers, strings or
    booleans. -100 means "not known", for nodes and edges -1 too: such a label is neither trained on nor scored. An
    undirected networkx graph has one label per edge, in the order of ``graph.edges``.

    Args:
        hidden: units of the state, the messages and every layer.
        steps: steps of message passing in training.
        predict_steps: steps when predicting; None: as many as in training.
        message_layers: ReLU layers of the message function.
        update: the node function: "lstm", "gru" or "mlp". None: "gru" for labels of graphs, otherwise "lstm".
        aggregate: how messages are aggregated: ("sum",), ("max",), ("mean",), or several, concatenated.
        readout: whether labels are of a "node", "graph" or "edge"; "auto": node or graph, by the shapes of labels.
        readout_layers: ReLU layers of the readout; None: one for labels of graphs and edges, none for those of nodes.
        pool: how nodes are pooled for labels of graphs: some of "sum", "mean" and "max", concatenated.
        dropout: share of units dropped in the last of them.
        loss: the steps that have a loss, "every" or "last".
        lr: learning rate at the start; it falls to 0 along a cosine. None: 1e-3 for labels of graphs, otherwise 3e-3.
        weight_decay: of the weight matrices.
        batch_size: graphs per update.
        epochs: passes over all graphs, at most.
        validation_fraction: share of held-out graphs for early stopping; 0: none, all epochs are run.
        patience: epochs without a better validation loss before training stops. The best epoch's weights are used.
        warm_start: `fit` continues with the network of the previous call.
        node_attribute: of networkx graphs, the attribute that holds a node's features.
        edge_attribute: the same of edges; None: ``"x"`` if they have it.
        minutes: wall-clock budget of training; the learning rate falls to 0 with it. None: no limit.
        random_state: seed of the weights, the split and the order of graphs. None: a new one for every `fit`.
        device: where to compute.
        progress: show a progress bar with ETA on standard error, if it is a terminal.
        class_weight: the weight of each class: a dictionary (1 for classes not in it), or "balanced": inversely
            proportional to the frequency of the class.

    Attributes:
        network_: the trained `RRN`.
        classes_: the labels, sorted; column c of `predict_proba` is ``classes_[c]``.
        readout_: "node", "graph" or "edge".
        history_: of each epoch ``loss``, ``validation_loss`` and ``validation_accuracy`` (the last two with a split).
    """

    class_weight: dict[Any, float] | Literal["balanced"] | None = None

    _estimator_type = "classifier"
    _criterion = staticmethod(cross_entropy)

    def predict_proba(self, graphs: Sequence[Any]) -> Any:
        """Probabilities of the classes: (graphs, classes), or a list of arrays (labels, classes), one per graph."""
        return self._by_graph([_softmax(each) for each in self._predict_outputs(graphs)])

    def predict(self, graphs: Sequence[Any]) -> Any:
        """The most probable labels: an array (graphs,), or a list of arrays (labels,), one per graph."""
        return self._by_graph([self.classes_[each.argmax(-1)] for each in self._predict_outputs(graphs)])

    def score(
        self, graphs: Sequence[Any], labels: Sequence[Any] | None = None, sample_weight: Sequence[Any] | None = None
    ) -> float:
        """The accuracy on all known labels."""
        graphs = as_list(graphs)
        predicted = self.predict(graphs)
        expected, weights = self._for_score(graphs, labels, sample_weight, ())
        right = expected == (predicted if self.readout_ == "graph" else np.concatenate(predicted))
        weights = weights * self._known(expected)
        return float((right * weights).sum() / weights.sum()) if weights.sum() else math.nan

    def _known(self, labels: np.ndarray) -> np.ndarray:
        unknown = (IGNORE,) if self.readout_ == "graph" else (IGNORE, -1)
        return ~np.isin(labels, unknown) if np.issubdtype(labels.dtype, np.integer) else np.ones(labels.shape, bool)

    def _encode_labels(self, samples: list[Sample], arrays: list[np.ndarray], weights: list[Tensor]) -> list[Tensor]:
        for number, array in enumerate(arrays):
            if array.dtype.kind in "fc":
                raise InputError(
                    f"labels of graph {number}: expected classes (integers, strings or booleans), got {array.dtype}; "
                    "for numbers use RRNRegressor"
                )
        labels = reshape_labels(arrays, samples, self.readout_, ())
        every = np.concatenate(labels)
        try:
            classes = np.unique(every[self._known(every)])
        except TypeError as error:
            raise InputError(f"labels: expected classes that sort ({error})") from error
        if self.warm_start and hasattr(self, "network_"):
            more = sorted(set(classes.tolist()) - set(self.classes_.tolist()))
            if more:
                raise InputError(f"warm_start: the network was not made for classes {more}; fit a new one")
        elif len(classes) < 2:
            raise InputError(f"labels: expected at least two classes, got {len(classes)} class: {classes.tolist()}")
        else:
            self.classes_: np.ndarray = classes
        targets = [np.where(self._known(each), np.searchsorted(self.classes_, each), IGNORE) for each in labels]
        return [torch.from_numpy(each.astype(np.int64)) for each in targets]

    def _target_weights(self, targets: list[Tensor]) -> list[Tensor] | None:
        if self.class_weight is None:
            return None
        every = torch.cat(targets)
        counts = torch.bincount(every[known(every)], minlength=len(self.classes_))
        if isinstance(self.class_weight, dict):
            unknown = [name for name in self.class_weight if name not in self.classes_.tolist()]
            if unknown:
                raise InputError(f"class_weight: {unknown[0]!r} is none of the classes {self.classes_.tolist()}")
            by_class = [float(self.class_weight.get(name, 1)) for name in self.classes_.tolist()]
            weight = torch.tensor(by_class, device="cpu")
        elif self.class_weight == "balanced":
            weight = counts.sum() / counts.clamp(min=1)
        else:
            raise InputError(f"class_weight: expected a dictionary, 'balanced' or None, got {self.class_weight!r}")
        return [weight[target.clamp(min=0)] for target in targets]

    def _width(self) -> int:
        return len(self.classes_)

    def _validation_figures(self, outputs: Tensor, targets: Tensor) -> dict[str, float]:
        counts = known(targets)
        return {"validation_accuracy": float((outputs.argmax(-1) == targets)[counts].float().mean())}

    def _fitted(self) -> dict[str, Any]:
        classes = self.classes_.tolist()
        if not all(isinstance(name, str | int | bool) for name in classes):
            raise InputError(f"classes_: expected integers, strings or booleans to save, got {classes}")
        return {"classes": classes, "dtype": str(self.classes_.dtype)}

    def _restore(self, fitted: dict[str, Any]) -> None:
        classes, dtype = fitted["classes"], np.dtype(fitted["dtype"])
        if dtype.kind == "U":  # the width is that of the longest class, not the one that the file asks for
            longest = max(map(len, classes), default=0)
            if longest * len(classes) > MOST_CHARACTERS:
                raise InputError(f"classes: {len(classes):,} texts of up to {longest:,} characters are too many")
            dtype = np.dtype(f"U{max(longest, 1)}")
        elif dtype.kind not in "iub":
            raise InputError(f"classes: expected integers, texts or booleans, got {shorten(dtype)}")
        self.classes_ = np.array(classes, dtype=dtype)


def _softmax(logits: np.ndarray) -> np.ndarray:
    return torch.from_numpy(logits).softmax(-1).numpy()
