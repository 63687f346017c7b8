"""Edge lists: of complete graphs, of unions, and of graphs of networkx and PyTorch Geometric."""

import itertools
from collections.abc import Sequence
from typing import Any, overload

import torch
from torch import Tensor

from rrn.errors import InputError


def complete_edges(size: int) -> Tensor:
    """The ``edge_index`` of one complete graph without self-edges: (2, size · (size - 1))."""
    pairs = (~torch.eye(size, dtype=torch.bool)).nonzero().T
    return pairs.contiguous()


def neighbour_edges(table: Tensor) -> Tensor:
    """The ``edge_index`` of a neighbour table: the same graph, edges ordered by receiver."""
    receivers = torch.arange(len(table), device=table.device).repeat_interleave(table.shape[1])
    return torch.stack([table.flatten(), receivers])


@overload
def union(graphs: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def union(graphs: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def union(graphs: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Batch graphs of any sizes as one graph of disjoint parts.

    Graphs ``(x, edge_index)`` become ``x, edge_index, batch``; graphs ``(x, edge_index, edge_attr)`` become
    ``x, edge_index, edge_attr, batch``. Everything stays on its device and keeps its type.
    """
    if not isinstance(graphs, Sequence) or not graphs:
        raise InputError("graphs: expected at least one (x, edge_index), got none")
    for number, graph in enumerate(graphs):
        _check_part(graph, graphs[0], number)
    xs, edges, *attributes = zip(*graphs, strict=True)
    sizes, device = [x.shape[0] for x in xs], xs[0].device
    offsets = [0, *itertools.accumulate(sizes)]
    edge_index = torch.cat([part + offset for part, offset in zip(edges, offsets, strict=False)], dim=1)
    numbers = torch.arange(len(graphs), device=device)
    batch = numbers.repeat_interleave(torch.tensor(sizes, device=device), output_size=offsets[-1])
    return torch.cat(xs), edge_index, *(torch.cat(values) for values in attributes), batch


def _check_part(graph: tuple[Tensor, ...], first: tuple[Tensor, ...], number: int) -> None:
    expected = "(x, edge_index) or (x, edge_index, edge_attr), the same for all"
    if not isinstance(graph, tuple | list) or not all(isinstance(part, Tensor) and part.dim() for part in graph):
        raise InputError(f"graphs: expected {expected}, got {type(graph).__name__} as graph {number}")
    if len(graph) not in (2, 3) or len(graph) != len(first):
        raise InputError(f"graphs: expected {expected}, got {len(graph)} parts in graph {number}")
    edge_index, *rest = graph[1:]
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise InputError(f"graph {number}: expected edge_index of shape (2, edges), got {tuple(edge_index.shape)}")
    if rest and (rest[0].dim() != 2 or rest[0].shape[0] != edge_index.shape[1]):
        expected = f"({edge_index.shape[1]}, edge features)"
        raise InputError(f"graph {number}: expected edge_attr of shape {expected}, got {tuple(rest[0].shape)}")
    for name, mine, theirs in zip(("x", "edge_index", "edge_attr"), graph, first, strict=False):
        for what in ("dtype", "device"):
            if getattr(mine, what) != getattr(theirs, what):
                found = f"{getattr(mine, what)}, but graph 0 has {getattr(theirs, what)}"
                raise InputError(f"graph {number}: {name} has {what} {found}")
        if name != "edge_index" and mine.shape[1:] != theirs.shape[1:]:
            found = f"{tuple(mine.shape)}, but graph 0 has {tuple(theirs.shape)}"
            raise InputError(f"graph {number}: {name} has shape {found}")


def from_networkx(graph: Any, features: str = "x", edge_features: str | None = None) -> dict[str, Tensor | None]:
    """Arguments of `RRN.forward` from a networkx graph.

    ``features`` names the node attribute that holds a node's numbers, ``edge_features`` that of an edge. Nodes keep
    the order of ``graph.nodes``; an undirected edge becomes two directed ones.
    """
    if not len(graph):
        raise InputError("graph: it has no nodes")
    order = {node: index for index, node in enumerate(graph.nodes)}
    missing = [node for node, data in graph.nodes(data=True) if features not in data]
    if missing:
        raise InputError(f"graph: node {missing[0]!r} has no attribute {features!r}; name the attribute with features=")
    x = _rows([data[features] for _, data in graph.nodes(data=True)], features)
    edges = [(order[a], order[b], data) for a, b, data in graph.edges(data=True)]
    if not graph.is_directed():
        edges += [(b, a, data) for a, b, data in edges if a != b]
    edge_index = torch.tensor([[a for a, _, _ in edges], [b for _, b, _ in edges]], dtype=torch.long)
    edge_attr = None
    if edge_features is not None:
        if not edges:
            raise InputError(f"graph: it has no edges to take {edge_features!r} from; leave edge_features out")
        lacking = [(a, b) for a, b, data in edges if edge_features not in data]
        if lacking:
            raise InputError(f"graph: edge {lacking[0]} has no attribute {edge_features!r}")
        edge_attr = _rows([data[edge_features] for _, _, data in edges], edge_features)
    return {"x": x, "edge_index": edge_index, "edge_attr": edge_attr, "batch": None}


def from_pyg(data: Any) -> dict[str, Tensor | None]:
    """Arguments of `RRN.forward` from a PyTorch Geometric ``Data``, ``Batch`` or ``HeteroData``.

    The types of a ``HeteroData`` become features. Nodes, node outputs and edges are sorted by type, alphabetically. A
    row of x concatenates the features of all node types, zeros for other types, and a one-hot type; a row of
    edge_attr does the same for edge types.
    """
    if hasattr(data, "node_types"):
        return _from_hetero(data)
    if data.x is None or data.edge_index is None:
        raise InputError("data: expected a torch_geometric Data with x and edge_index")
    edge_attr = data.edge_attr
    return {
        "x": _columns(data.x),
        "edge_index": data.edge_index,
        "edge_attr": None if edge_attr is None else _columns(edge_attr),
        "batch": getattr(data, "batch", None),
    }


def _from_hetero(data: Any) -> dict[str, Tensor | None]:
    nodes, kinds = sorted(data.node_types), sorted(data.edge_types)
    if not nodes or not kinds:
        raise InputError("data: expected a HeteroData with nodes and edges, got one without")
    if any("batch" in data[kind] for kind in nodes):
        raise InputError("data: a batch of HeteroData; read one graph at a time and join them with rrn.graphs.union")
    lacking = [kind for kind in nodes if data[kind].get("x") is None]
    if lacking:
        raise InputError(f"data: nodes of type {lacking[0]!r} have no x; set one, for example a column of ones")
    features = [_columns(data[kind].x) for kind in nodes]
    offsets = dict(zip(nodes, itertools.accumulate([0, *map(len, features)]), strict=False))
    edges, edge_features = [], []
    for kind in kinds:
        edge_index, attributes = data[kind].edge_index, data[kind].get("edge_attr")
        offset = torch.tensor([[offsets[kind[0]]], [offsets[kind[-1]]]], device=edge_index.device)
        edges.append(edge_index + offset)
        edge_features.append(edge_index.new_zeros(edge_index.shape[1], 0) if attributes is None else attributes)
    return {
        "x": _by_type(features),
        "edge_index": torch.cat(edges, dim=1),
        "edge_attr": _by_type([_columns(each) for each in edge_features]),
        "batch": None,
    }


def _by_type(parts: list[Tensor]) -> Tensor:
    """Features of several types as rows of one table: a block for each type, then the one-hot type."""
    types = [part.new_ones(len(part), 1) for part in parts]
    return torch.cat([torch.block_diag(*parts), torch.block_diag(*types)], dim=1)


def _columns(values: Tensor) -> Tensor:
    return (values[:, None] if values.dim() == 1 else values).float()


def _rows(values: list[Any], attribute: str) -> Tensor:
    try:
        rows = torch.stack([torch.as_tensor(value, dtype=torch.float32) for value in values])
    except (RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"graph: expected {attribute!r} to hold equally many numbers everywhere ({error})") from error
    return rows[:, None] if rows.dim() == 1 else rows
