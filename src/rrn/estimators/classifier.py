"""`RRNClassifier`: classes of nodes, edges or graphs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from rrn.errors import InputError
from rrn.estimators.base import _Estimator
from rrn.estimators.samples import Sample, shaped
from rrn.nn.losses import IGNORE, cross_entropy, known


@dataclass(kw_only=True, eq=False, repr=False)
class RRNClassifier(_Estimator):
    """Classifies the nodes of graphs, their edges, or whole graphs, with a recurrent relational network.

    A *graph* is ``(x, edge_index)`` or ``(x, edge_index, edge_attr)`` of arrays or tensors (`RRN.forward` says their
    shapes), a networkx graph, or a PyTorch Geometric ``Data`` or ``HeteroData``. *Labels* are one array per graph, of
    one label per node (or per edge, with ``readout="edge"``), or one label per graph. Labels may be integers, words or
    booleans. -100 means "not known", in labels of nodes and edges -1 too: such a label is neither learned from nor
    scored. An undirected networkx graph has one label per edge, in the order of ``graph.edges``.

    Args:
        hidden: units of the state, the messages and every layer.
        steps: steps of message passing in training.
        predict_steps: steps when predicting; None: as many as in training.
        message_layers: ReLU layers of the message function.
        update: the node function: "lstm", "gru" or "mlp".
        aggregate: how messages are collected: ("sum",), ("max",), ("mean",), or several side by side.
        readout: what labels are of: "node", "graph", "edge"; "auto": seen from them, nodes or graphs.
        readout_layers: ReLU layers of the readout; with "edge" at least one.
        dropout: share dropped in the last of them.
        loss: the steps that have a loss, "every" or "last".
        lr: learning rate at the start; it falls to 0 along a cosine.
        weight_decay: of the weight matrices.
        batch_size: graphs per update.
        epochs: rounds through all graphs, at most.
        validation_fraction: share of the graphs kept apart to decide when to stop; 0: none, all epochs are run.
        patience: epochs without a better validation loss before training stops. The best epoch's weights are kept.
        warm_start: let `fit` go on from the network of the last one.
        node_attribute: of networkx graphs, the attribute that holds a node's features.
        edge_attribute: the same of edges; None: ``"x"`` if they have it.
        seed: of the weights, the split and the order of graphs.
        device: where to compute.
        progress: show a bar on standard error, if it is a terminal.
        class_weight: how much the labels of each class count: a dictionary (1 where it says nothing), or "balanced":
            so that all classes count the same.

    Attributes:
        network_: the trained `RRN`.
        classes_: the labels, sorted; column c of `predict_proba` is ``classes_[c]``.
        readout_: what labels are of.
        history_: of each epoch ``loss``, ``validation_loss`` and ``validation_accuracy`` (the last two with a split).
    """

    class_weight: dict[Any, float] | Literal["balanced"] | None = None

    _estimator_type = "classifier"
    _criterion = staticmethod(cross_entropy)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of a classifier; called by scikit-learn alone."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(two_d_array=False),
        )

    @property
    def per_node_(self) -> bool:
        """Whether labels are of nodes."""
        return self.readout_ == "node"

    def predict_proba(self, graphs: Sequence[Any]) -> Any:
        """Probabilities of the classes: (graphs, classes), or a list of arrays (answers, classes), one per graph."""
        return self._as_asked([_softmax(each) for each in self._answers(graphs)])

    def predict(self, graphs: Sequence[Any]) -> Any:
        """The likeliest labels: an array (graphs,), or a list of arrays (answers,), one per graph."""
        return self._as_asked([self.classes_[each.argmax(-1)] for each in self._answers(graphs)])

    def score(self, graphs: Sequence[Any], labels: Sequence[Any], sample_weight: Sequence[Any] | None = None) -> float:
        """The share of labels predicted rightly, over all that are known."""
        predicted = self.predict(graphs)
        expected, weights = self._for_score(graphs, labels, sample_weight, ())
        right = expected == (predicted if self.readout_ == "graph" else np.concatenate(predicted))
        weights = weights * self._known(expected)
        return float((right * weights).sum() / weights.sum()) if weights.sum() else math.nan

    def _known(self, labels: np.ndarray) -> np.ndarray:
        unknown = (IGNORE,) if self.readout_ == "graph" else (IGNORE, -1)
        return ~np.isin(labels, unknown) if np.issubdtype(labels.dtype, np.integer) else np.ones(labels.shape, bool)

    def _learn_labels(self, samples: list[Sample], arrays: list[np.ndarray], weights: list[Tensor]) -> list[Tensor]:
        labels = []
        for number, (array, sample) in enumerate(zip(arrays, samples, strict=True)):
            if array.dtype.kind in "fc":
                raise InputError(
                    f"labels of graph {number}: expected classes (integers, words or booleans), got {array.dtype}; "
                    "for numbers there is RRNRegressor"
                )
            labels.append(shaped(array, sample, self.readout_, (), number))
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

    def _worth(self, targets: list[Tensor]) -> list[Tensor]:
        if self.class_weight is None:
            return super()._worth(targets)
        every = torch.cat(targets)
        counts = torch.bincount(every[known(every)], minlength=len(self.classes_))
        if isinstance(self.class_weight, dict):
            strangers = [name for name in self.class_weight if name not in self.classes_.tolist()]
            if strangers:
                raise InputError(f"class_weight: {strangers[0]!r} is none of the classes {self.classes_.tolist()}")
            by_class = [float(self.class_weight.get(name, 1)) for name in self.classes_.tolist()]
            worth = torch.tensor(by_class, device="cpu")
        elif self.class_weight == "balanced":
            worth = counts.sum() / counts.clamp(min=1)
        else:
            raise InputError(f"class_weight: expected a dictionary, 'balanced' or None, got {self.class_weight!r}")
        return [worth[target.clamp(min=0)] for target in targets]

    def _width(self) -> int:
        return len(self.classes_)

    def _figure(self, outputs: Tensor, targets: Tensor) -> dict[str, float]:
        counts = known(targets)
        return {"validation_accuracy": float((outputs.argmax(-1) == targets)[counts].float().mean())}

    def _fitted(self) -> dict[str, Any]:
        classes = self.classes_.tolist()
        if not all(isinstance(name, str | int | bool) for name in classes):
            raise InputError(f"classes_: expected integers, words or booleans to write, got {classes}")
        return {"classes": classes, "dtype": str(self.classes_.dtype)}

    def _restore(self, fitted: dict[str, Any]) -> None:
        self.classes_ = np.array(fitted["classes"], dtype=fitted["dtype"])


def _softmax(logits: np.ndarray) -> np.ndarray:
    return torch.from_numpy(logits).softmax(-1).numpy()
