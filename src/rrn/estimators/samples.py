"""Graphs of any library as samples, their labels as arrays, and a network on several samples.

A sample has one label per node, one per graph or one per edge: its `LabelLevel`.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from rrn.errors import InputError
from rrn.graphs import EdgeList, from_networkx, from_pyg
from rrn.network import RRN, Prepared

LabelLevel = Literal["node", "graph", "edge"]


class Sample(NamedTuple):
    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None = None
    edge_of: Tensor | None = None
    """Of an undirected networkx graph: the number of the undirected edge of each directed edge (edges,)."""
    types: tuple[Any, ...] = ()
    """Node and edge types of a HeteroData."""

    def count_labels(self, level: LabelLevel) -> int:
        if level == "node":
            return len(self.x)
        if level == "graph":
            return 1
        return self.edge_index.shape[1] if self.edge_of is None else int(self.edge_of.max()) + 1


def run(network: RRN, samples: Sequence[Sample], level: LabelLevel, steps: int) -> Tensor:
    """The outputs of every step on samples as one graph: (steps, labels, width).

    The mean of the two directions is the output of an undirected edge. Nothing is checked again: `read_samples` has
    checked each sample.
    """
    device = next(network.parameters()).device
    sizes = [len(sample.x) for sample in samples]
    offsets = np.cumsum([0, *sizes]).tolist()
    x = torch.cat([sample.x for sample in samples]).to(device)
    edges = [sample.edge_index + offset for sample, offset in zip(samples, offsets[:-1], strict=True)]
    graph = EdgeList(torch.cat(edges, dim=1).to(device), len(x))
    attributes = [sample.edge_attr for sample in samples if sample.edge_attr is not None]
    edge_attr = torch.cat(attributes).to(device) if attributes else None
    batch = torch.arange(len(samples), device=device).repeat_interleave(torch.tensor(sizes, device=device))
    encoded = x if network.encoder is None else network.encoder(x)
    edge_term = None if edge_attr is None else network.message.encode_edges(edge_attr)
    outputs, _ = network.run(Prepared(encoded, graph, edge_attr, edge_term, batch), steps=steps)
    if level != "edge" or all(sample.edge_of is None for sample in samples):
        return outputs
    numbered, labels = [], 0
    for sample in samples:
        own = torch.arange(sample.edge_index.shape[1], device="cpu") if sample.edge_of is None else sample.edge_of
        numbered.append(own + labels)
        labels += sample.count_labels("edge")
    edge_of = torch.cat(numbered).to(device)
    total = outputs.new_zeros(steps, labels, outputs.shape[-1]).index_add(1, edge_of, outputs)
    return total / torch.bincount(edge_of, minlength=labels)[:, None]


def read_samples(
    graphs: Sequence[Any], node_attribute: str, edge_attribute: str | None, estimator: str
) -> list[Sample]:
    """Graphs as samples with the same features and types. ``estimator`` is the class name, for messages."""
    samples = []
    for number, graph in enumerate(as_list(graphs)):
        try:
            samples.append(_read(graph, node_attribute, edge_attribute, estimator))
        except (InputError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"graph {number}: {error}") from error
        if samples[-1].types != samples[0].types:
            raise InputError(f"graph {number}: has types {samples[-1].types}, but graph 0 has {samples[0].types}")
        if widths(samples[-1]) != widths(samples[0]):
            raise InputError(f"graph {number}: has other numbers of node or edge features than graph 0")
    return samples


def as_list(graphs: Any) -> Sequence[Any]:
    """The single graphs of a list, or of a ``Batch`` or ``DataLoader`` of PyTorch Geometric, in one pass."""
    if hasattr(graphs, "to_data_list"):
        return graphs.to_data_list()
    if hasattr(graphs, "__getitem__") or not hasattr(graphs, "__iter__"):
        return graphs
    return [graph for part in graphs for graph in (part.to_data_list() if hasattr(part, "to_data_list") else [part])]


def labels_of(graphs: Sequence[Any]) -> list[Any]:
    """The ``y`` of every graph."""
    labels = [getattr(graph, "y", None) for graph in graphs]
    missing = next((number for number, label in enumerate(labels) if label is None), None)
    if missing is not None:
        raise InputError(f"labels: graph {missing} has no y; give labels, one entry per graph")
    return labels


def widths(sample: Sample) -> tuple[int, int]:
    """Features per node and per edge."""
    return sample.x.shape[1], 0 if sample.edge_attr is None else sample.edge_attr.shape[1]


def _read(graph: Any, node_attribute: str, edge_attribute: str | None, estimator: str) -> Sample:
    edge_of, types = None, ()
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        missing = [node for node, data in graph.nodes(data=True) if node_attribute not in data]
        if missing:
            raise InputError(
                f"node {missing[0]!r} has no attribute {node_attribute!r}; name the attribute that holds a node's "
                f"features: {estimator}(node_attribute=…)"
            )
        if edge_attribute is None and any("x" in data for _, _, data in graph.edges(data=True)):
            edge_attribute = "x"
        parts = from_networkx(graph, node_attribute, edge_attribute)
        if not graph.is_directed() and graph.number_of_edges():
            numbers = torch.arange(graph.number_of_edges(), device="cpu")
            back = [number for number, (a, b) in enumerate(graph.edges()) if a != b]
            edge_of = torch.cat([numbers, torch.tensor(back, dtype=torch.long, device="cpu")])
    elif hasattr(graph, "node_types") or hasattr(graph, "edge_index"):
        parts = from_pyg(graph)
        if hasattr(graph, "node_types"):
            types = (*sorted(graph.node_types), *sorted(graph.edge_types))
    elif isinstance(graph, tuple | list) and len(graph) in (2, 3):
        edge_attr = graph[2] if len(graph) == 3 else None
        parts = {
            "x": torch.as_tensor(graph[0], dtype=torch.float32, device="cpu"),
            "edge_index": torch.as_tensor(graph[1], device="cpu"),
            "edge_attr": None if edge_attr is None else torch.as_tensor(edge_attr, dtype=torch.float32, device="cpu"),
        }
    else:
        raise InputError(
            "expected (x, edge_index), (x, edge_index, edge_attr), a networkx graph or a PyTorch Geometric Data, "
            f"got {type(graph).__name__}"
        )
    x, edge_attr = cast(Tensor, parts["x"]).cpu().float(), parts["edge_attr"]
    if x.dim() != 2 or len(x) == 0:
        raise InputError(f"expected x of shape (nodes, features), got {tuple(x.shape)}")
    edge_index = _read_edges(cast(Tensor, parts["edge_index"]).cpu(), len(x))
    if edge_attr is not None:
        edge_attr = edge_attr.cpu().float()
        edge_attr = edge_attr[:, None] if edge_attr.dim() == 1 else edge_attr
        if len(edge_attr) != edge_index.shape[1]:
            raise InputError(f"{edge_index.shape[1]} edges, but edge_attr has {len(edge_attr)} rows")
    for name, values in (("x", x), ("edge_attr", edge_attr)):
        if values is not None and not values.isfinite().all():
            row = int((~values.isfinite()).flatten(1).any(1).nonzero()[0])
            raise InputError(f"{name}: not finite (NaN or infinity) in row {row}")
    return Sample(x, edge_index, edge_attr, edge_of, types)


def _read_edges(edge_index: Tensor, nodes: int) -> Tensor:
    if edge_index.numel() == 0:
        return torch.zeros(2, 0, dtype=torch.long, device="cpu")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        shape = tuple(edge_index.shape)
        remedy = "; transpose it" if edge_index.dim() == 2 and shape[1] == 2 else ""
        raise InputError(f"expected edge_index of shape (2, edges), senders above receivers, got {shape}{remedy}")
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise InputError(f"expected edge_index of integers, got {edge_index.dtype}")
    if int(edge_index.min()) < 0 or int(edge_index.max()) >= nodes:
        raise InputError(f"edge_index names a node that x does not have (0 to {nodes - 1})")
    return edge_index.long()


def as_arrays(labels: Sequence[Any], samples: Sequence[Sample]) -> list[np.ndarray]:
    """Labels as arrays, one per sample."""
    arrays = []
    for number, label in enumerate(_one_each(labels, samples, "labels")):
        try:
            arrays.append(label.detach().cpu().numpy() if isinstance(label, Tensor) else np.asarray(label))
        except ValueError as error:
            raise InputError(f"labels of graph {number}: {error}") from error
    return arrays


def infer_level(arrays: Sequence[np.ndarray], samples: Sequence[Sample], several: bool) -> LabelLevel:
    """Whether labels are of nodes or of graphs, by their shapes; ``several``: a label may be several numbers.

    Labels of edges are not inferred, because a graph may have as many edges as nodes.
    """

    def fit(level: LabelLevel) -> bool:
        return all(
            array.ndim and len(array) == sample.count_labels(level)
            for array, sample in zip(arrays, samples, strict=True)
        )

    if all(array.ndim == 0 for array in arrays):
        return "graph"
    if fit("node") or any(array.shape != arrays[0].shape for array in arrays):
        return "node"
    return "graph" if arrays[0].size == 1 or (several and not fit("edge")) else "node"


def reshape_labels(
    arrays: Sequence[np.ndarray], samples: Sequence[Sample], level: LabelLevel, width: tuple[int, ...]
) -> list[np.ndarray]:
    """Labels of every sample as (labels, *width)."""
    reshaped = []
    for number, (array, sample) in enumerate(zip(arrays, samples, strict=True)):
        expected = (sample.count_labels(level), *width)
        if array.shape != expected and not (level == "graph" and array.size == int(np.prod(expected))):
            edges = array.shape[:1] == (sample.count_labels("edge"),)
            remedy = "; for labels of edges: readout='edge'" if edges else ""
            raise InputError(f"labels of graph {number}: expected shape {expected}, got {array.shape}{remedy}")
        reshaped.append(array.reshape(expected))
    return reshaped


def read_weights(weights: Sequence[Any] | None, samples: Sequence[Sample], level: LabelLevel) -> list[Tensor]:
    """The weight of each label, one tensor (labels,) per sample."""
    if weights is None:
        return [torch.ones(sample.count_labels(level), device="cpu") for sample in samples]
    read = []
    for number, (weight, sample) in enumerate(zip(_one_each(weights, samples, "sample_weight"), samples, strict=True)):
        each, labels = torch.as_tensor(weight, dtype=torch.float32, device="cpu"), sample.count_labels(level)
        if each.dim() and each.shape != (labels,):
            raise InputError(
                f"sample_weight of graph {number}: expected a number or shape {(labels,)}, got {tuple(each.shape)}"
            )
        if not each.isfinite().all() or (each < 0).any():
            raise InputError(f"sample_weight of graph {number}: expected numbers of at least 0")
        read.append(each.expand(labels))
    if not any(each.any() for each in read):
        raise InputError("sample_weight: expected some above 0, but all weights are zero")
    return read


def _one_each(values: Any, samples: Sequence[Sample], name: str) -> Sequence[Any]:
    values = values if hasattr(values, "__len__") else np.asarray(values)
    if len(values) != len(samples):
        raise InputError(f"{name}: expected one entry per graph, so {len(samples)}, got {len(values)}")
    return values
