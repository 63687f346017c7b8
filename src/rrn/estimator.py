"""For those who want no training loop: `RRNClassifier`, with the manners of a scikit-learn estimator.

>>> from rrn import RRNClassifier
>>> classifier = RRNClassifier(hidden=32, steps=8).fit(graphs, labels)  # doctest: +SKIP
>>> classifier.predict(graphs)  # doctest: +SKIP

scikit-learn itself is not needed; where it is installed, ``clone``, ``cross_val_score`` and ``GridSearchCV`` work.
"""

import copy
import inspect
import math
from collections.abc import Sequence
from typing import Any, Literal, Self, cast

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from rrn.errors import InputError
from rrn.graphs import from_networkx, from_pyg
from rrn.losses import every_step, last_step
from rrn.network import RRN

Loss = Literal["every", "last"]


class RRNClassifier:
    """Classifies the nodes of graphs, or whole graphs, with a recurrent relational network.

    A *graph* is ``(x, edge_index)`` or ``(x, edge_index, edge_attr)`` of arrays or tensors (`RRN.forward` says their
    shapes), a networkx graph with a node attribute ``"x"``, or a PyTorch Geometric ``Data``. *Labels* are one array a
    graph, of a label a node, or one label a graph; which of the two it is, is seen from them. Labels may be of any
    type that sorts. With node labels, -1 means "not known" in integer labels: such a node is neither trained on nor
    scored.

    Args:
        hidden: units of the state, the messages and every layer.
        steps: steps of message passing in training.
        predict_steps: steps when predicting; None: as many as in training.
        message_layers: ReLU layers of the message function.
        update: the node function: "lstm", "gru" or "mlp".
        loss: the steps that have a loss, "every" or "last".
        lr: learning rate at the start; it falls to 0 along a cosine.
        weight_decay: of the weight matrices.
        batch_size: graphs an update.
        epochs: rounds through all graphs, at most.
        validation_fraction: share of the graphs kept apart to decide when to stop; 0: none, all epochs are run.
        patience: epochs without a better validation loss before training stops. The best epoch's weights are kept.
        seed: of the weights, the split and the order of graphs.
        device: where to compute.
        progress: show a bar on standard error, if it is a terminal.

    Attributes:
        network_: the trained `RRN`.
        classes_: the labels, sorted; column c of `predict_proba` is ``classes_[c]``.
        per_node_: whether labels are of nodes.
        history_: of each epoch ``loss``, ``validation_loss`` and ``validation_accuracy`` (the last two with a split).
    """

    _estimator_type = "classifier"

    def __init__(
        self,
        *,
        hidden: int = 64,
        steps: int = 8,
        predict_steps: int | None = None,
        message_layers: int = 1,
        update: Literal["lstm", "gru", "mlp"] = "lstm",
        loss: Loss = "every",
        lr: float = 3e-3,
        weight_decay: float = 1e-4,
        batch_size: int = 32,
        epochs: int = 100,
        validation_fraction: float = 0.1,
        patience: int = 15,
        seed: int = 0,
        device: str = "cpu",
        progress: bool = True,
    ) -> None:
        self.hidden = hidden
        self.steps = steps
        self.predict_steps = predict_steps
        self.message_layers = message_layers
        self.update = update
        self.loss = loss
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.seed = seed
        self.device = device
        self.progress = progress

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        for name, value in params.items():
            if name not in self._names():
                raise InputError(f"{name}: no such parameter; there are {', '.join(self._names())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if v != defaults[k].default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of a classifier; called by scikit-learn alone."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(two_d_array=False),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def fit(self, graphs: Sequence[Any], labels: Sequence[Any]) -> Self:
        """Train a new network on graphs and their labels."""
        self._check_settings()
        samples = [_as_graph(graph, number) for number, graph in enumerate(graphs)]
        targets = self._encode_labels(samples, labels)
        order = np.random.default_rng(self.seed).permutation(len(samples))
        kept_apart = round(self.validation_fraction * len(samples)) if self.validation_fraction else 0
        if self.validation_fraction and not 0 < kept_apart < len(samples):
            raise InputError(
                f"validation_fraction: {self.validation_fraction} of {len(samples)} graphs leaves none to "
                f"{'validate' if kept_apart == 0 else 'train'} on; give more graphs, or validation_fraction=0"
            )
        validation, training = order[:kept_apart].tolist(), order[kept_apart:]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.network_ = RRN(
                features=samples[0][0].shape[1],
                hidden=self.hidden,
                outputs=len(self.classes_),
                edge_features=0 if samples[0][2] is None else samples[0][2].shape[1],
                message_layers=self.message_layers,
                update=self.update,
                readout="node" if self.per_node_ else "graph",
            ).to(self.device)
            self._train(samples, targets, training, validation)
        self.network_.eval()
        return self

    def _train(
        self, samples: "list[_Graph]", targets: list[Tensor], training: np.ndarray, validation: list[int]
    ) -> None:
        network, rng = self.network_, np.random.default_rng([self.seed, 1])
        optimizer = torch.optim.AdamW(network.parameters(), lr=self.lr, weight_decay=self.weight_decay)
        updates = math.ceil(len(training) / self.batch_size) * self.epochs
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
        best, best_weights, since = math.inf, network.state_dict(), 0
        self.history_: list[dict[str, float]] = []
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
                    outputs, expected = self._outputs(samples, rows, self.steps), self._expected(targets, rows)
                    loss = self._loss(outputs, expected)
                    optimizer.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                    losses.append(loss.item())
                figures = {"loss": float(np.mean(losses))}
                if validation:
                    figures |= self._validate(samples, targets, validation)
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

    def _validate(self, samples: "list[_Graph]", targets: list[Tensor], rows: list[int]) -> dict[str, float]:
        self.network_.eval()
        losses, right, count = 0.0, 0, 0
        with torch.inference_mode():
            for low in range(0, len(rows), self.batch_size):
                part = rows[low : low + self.batch_size]
                outputs, expected = self._outputs(samples, part, self.steps), self._expected(targets, part)
                known = expected >= 0
                losses += self._loss(outputs, expected).item() * int(known.sum())
                right += int((outputs[-1].argmax(-1) == expected)[known].sum())
                count += int(known.sum())
        return {"validation_loss": losses / max(count, 1), "validation_accuracy": right / max(count, 1)}

    def predict_proba(self, graphs: Sequence[Any]) -> Any:
        """Probabilities of the classes: with node labels a list of arrays (nodes, classes), else (graphs, classes)."""
        samples = [_as_graph(graph, number) for number, graph in enumerate(graphs)]
        network = self._fitted()
        for number, (x, _, edge_attr) in enumerate(samples):
            if x.shape[1] != network.features or (edge_attr is None) != (network.edge_features == 0):
                raise InputError(
                    f"graph {number}: expected {network.features} features a node and {network.edge_features} an edge, "
                    "as in training"
                )
        network.eval()
        parts: list[np.ndarray] = []
        steps = self.predict_steps or self.steps
        with torch.inference_mode():
            for low in range(0, len(samples), self.batch_size):
                rows = list(range(low, min(low + self.batch_size, len(samples))))
                chances = self._outputs(samples, rows, steps)[-1].softmax(-1).cpu().numpy()
                if not self.per_node_:
                    parts.append(chances)
                    continue
                ends = np.cumsum([len(samples[row][0]) for row in rows])
                parts.extend(np.split(chances, ends[:-1]))
        return parts if self.per_node_ else np.concatenate(parts)

    def predict(self, graphs: Sequence[Any]) -> Any:
        """The likeliest labels: with node labels a list of arrays (nodes,), else an array (graphs,)."""
        chances = self.predict_proba(graphs)
        if self.per_node_:
            return [self.classes_[each.argmax(-1)] for each in chances]
        return self.classes_[chances.argmax(-1)]

    def score(self, graphs: Sequence[Any], labels: Sequence[Any]) -> float:
        """The share of labels predicted rightly, over all nodes or all graphs."""
        predicted = self.predict(graphs)
        if not self.per_node_:
            return float(np.mean(predicted == np.asarray(labels)))
        right = count = 0
        for mine, theirs in zip(predicted, labels, strict=True):
            known = _known(np.asarray(theirs))
            right += int((mine == np.asarray(theirs))[known].sum())
            count += int(known.sum())
        return right / max(count, 1)

    def _fitted(self) -> RRN:
        if not hasattr(self, "network_"):
            raise InputError("this RRNClassifier is not fitted; call fit(graphs, labels) first")
        return self.network_

    def _check_settings(self) -> None:
        for name in ("hidden", "steps", "message_layers", "batch_size", "epochs", "patience"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if not 0 <= self.validation_fraction < 1:
            raise InputError(f"validation_fraction: expected from 0 to below 1, got {self.validation_fraction}")
        if self.loss not in ("every", "last"):
            raise InputError(f"loss: expected 'every' or 'last', got {self.loss!r}")

    def _encode_labels(self, samples: "list[_Graph]", labels: Sequence[Any]) -> list[Tensor]:
        if not samples:
            raise InputError("graphs: expected at least one, got none")
        if len(labels) != len(samples):
            raise InputError(f"labels: expected one entry a graph, so {len(samples)}, got {len(labels)}")
        for number, (x, _, edge_attr) in enumerate(samples):
            first_x, _, first_attr = samples[0]
            same_edges = (edge_attr is None) == (first_attr is None) and (
                edge_attr is None or first_attr is None or edge_attr.shape[1] == first_attr.shape[1]
            )
            if x.shape[1] != first_x.shape[1] or not same_edges:
                raise InputError(f"graph {number}: has other numbers of node or edge features than graph 0")
        arrays = [np.atleast_1d(np.asarray(label)) for label in labels]
        self.per_node_ = any(np.ndim(label) for label in labels)
        for number, (array, (x, _, _)) in enumerate(zip(arrays, samples, strict=True)):
            expected = (len(x),) if self.per_node_ else (1,)
            if array.shape != expected:
                raise InputError(f"labels of graph {number}: expected shape {expected}, got {array.shape}")
        every = np.concatenate(arrays)
        self.classes_ = np.unique(every[_known(every)] if self.per_node_ else every)
        if len(self.classes_) < 2:
            raise InputError(f"labels: expected at least two classes, got {self.classes_.tolist()}")
        encoded = []
        for array in arrays:
            index = np.searchsorted(self.classes_, array)
            if self.per_node_:
                index = np.where(_known(array), index, -1)
            encoded.append(torch.from_numpy(index.astype(np.int64)))
        return encoded

    def _outputs(self, samples: "list[_Graph]", rows: list[int], steps: int) -> Tensor:
        chosen = [samples[row] for row in rows]
        sizes = torch.tensor([len(x) for x, _, _ in chosen])
        offsets = sizes.cumsum(0) - sizes
        x = torch.cat([x for x, _, _ in chosen])
        edges = torch.cat([edge_index + offset for (_, edge_index, _), offset in zip(chosen, offsets, strict=True)], 1)
        attributes = [edge_attr for _, _, edge_attr in chosen if edge_attr is not None]
        edge_attr = torch.cat(attributes).to(self.device) if attributes else None
        batch = torch.arange(len(chosen)).repeat_interleave(sizes)
        return self.network_(x.to(self.device), edges.to(self.device), edge_attr, batch.to(self.device), steps=steps)

    def _expected(self, targets: list[Tensor], rows: list[int]) -> Tensor:
        return torch.cat([targets[row] for row in rows]).to(self.device)

    def _loss(self, outputs: Tensor, expected: Tensor) -> Tensor:
        known = expected >= 0
        if not known.any():
            return outputs.sum() * 0
        return (every_step if self.loss == "every" else last_step)(outputs[:, known], expected[known])


_Graph = tuple[Tensor, Tensor, Tensor | None]


def _known(labels: np.ndarray) -> np.ndarray:
    return labels != -1 if np.issubdtype(labels.dtype, np.integer) else np.ones(labels.shape, bool)


def _as_graph(graph: Any, number: int) -> _Graph:
    try:
        if hasattr(graph, "nodes") and hasattr(graph, "edges"):
            parts = from_networkx(graph, edge_features=_edge_attribute(graph))
        elif hasattr(graph, "edge_index"):
            parts = from_pyg(graph)
        elif isinstance(graph, tuple | list) and len(graph) in (2, 3):
            edge_attr = graph[2] if len(graph) == 3 else None
            parts = {
                "x": torch.as_tensor(graph[0], dtype=torch.float32),
                "edge_index": torch.as_tensor(graph[1]).long().reshape(2, -1),
                "edge_attr": None if edge_attr is None else torch.as_tensor(edge_attr, dtype=torch.float32),
            }
        else:
            raise InputError(
                "expected (x, edge_index), (x, edge_index, edge_attr), a networkx graph or a PyTorch Geometric Data, "
                f"got {type(graph).__name__}"
            )
    except (InputError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"graph {number}: {error}") from error
    x, edge_index, edge_attr = cast(Tensor, parts["x"]), cast(Tensor, parts["edge_index"]), parts["edge_attr"]
    if x.dim() != 2 or len(x) == 0:
        raise InputError(f"graph {number}: expected x of shape (nodes, features), got {tuple(x.shape)}")
    if edge_attr is not None and edge_attr.dim() == 1:
        edge_attr = edge_attr[:, None]
    if edge_attr is not None and len(edge_attr) != edge_index.shape[1]:
        raise InputError(f"graph {number}: {edge_index.shape[1]} edges, but edge_attr has {len(edge_attr)} rows")
    if edge_index.numel() and not (int(edge_index.min()) >= 0 and int(edge_index.max()) < len(x)):
        raise InputError(f"graph {number}: edge_index names a node that x does not have (0 to {len(x) - 1})")
    return x, edge_index, edge_attr


def _edge_attribute(graph: Any) -> str | None:
    """``"x"`` if the edges of a networkx graph have such an attribute."""
    return "x" if any("x" in data for _, _, data in graph.edges(data=True)) else None
