"""What an algorithm knows after each step, as targets for each step: computed from the graphs of a batch.

Every step is a rule between neighbours, the same in graphs of any size. Information travels one edge per step.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.peers.salsa import Batch

PHASES = 3


class Known(NamedTuple):
    """Targets of ``steps`` steps."""

    pointers: Tensor | None = None
    """(steps, nodes) the node that each node points to."""
    classes: Tensor | None = None
    """(steps, nodes) 0: not reached; 1: reached, for bfs 1, 2 or 3 by the distance modulo 3."""
    numbers: Tensor | None = None
    """(steps, nodes) a distance; NaN: unknown."""


def lowest(values: Tensor, index: Tensor, nodes: int) -> Tensor:
    """The lowest of the values of each node: (edges,) → (nodes,); infinite without edges."""
    return values.new_full((nodes,), torch.inf).scatter_reduce(0, index, values, "amin")


def relax(graphs: Batch, weights: Tensor, steps: int) -> Tensor:
    """The length of the shortest path of at most t edges from the start to each node: (steps + 1, nodes)."""
    senders, receivers = graphs.edge_index
    distance = torch.where(graphs.x[:, 1] > 0, 0.0, torch.inf)
    found = [distance]
    for _ in range(steps):
        distance = torch.minimum(distance, lowest(distance[senders] + weights, receivers, len(distance)))
        found.append(distance)
    return torch.stack(found)


def depths(graphs: Batch) -> Tensor:
    """The distance of each node from the start, in edges: (nodes,)."""
    most = int(graphs.batch.bincount().max())
    return relax(graphs, torch.ones(graphs.edge_index.shape[1]), most)[-1].long()


def breadth_first(graphs: Batch, steps: range) -> Known:
    """A node that is reached points to its parent, until then to itself; it keeps its distance modulo 3."""
    (senders, receivers), depth = graphs.edge_index, depths(graphs)
    parents = torch.where(depth[receivers] == depth[senders] - 1, receivers, len(depth)).double()
    itself = torch.arange(len(depth))
    parent = torch.where(depth == 0, itself, lowest(parents, senders, len(depth)).nan_to_num(posinf=0).long())
    reached = torch.tensor(steps)[:, None] >= depth
    return Known(torch.where(reached, parent, itself), torch.where(reached, 1 + depth % PHASES, 0))


def dijkstra(graphs: Batch, steps: range) -> Known:
    """Each node points to the neighbour with the lowest distance so far plus the edge; without one, to itself."""
    (senders, receivers), weights = graphs.edge_index, graphs.edge_attr[:, 1]
    distances = relax(graphs, weights, steps[-1])[steps[0] :]
    start, loop, itself = graphs.x[:, 1] > 0, senders == receivers, torch.arange(len(graphs.x))
    pointers = []
    for distance in distances:
        through = torch.where(loop, torch.inf, distance[receivers] + weights)
        best = lowest(through, senders, len(distance))
        target = torch.full_like(itself, -1).scatter_reduce(
            0, senders, torch.where(through == best[senders], receivers, -1), "amax"
        )
        pointers.append(torch.where(start | best.isinf(), itself, target))
    return Known(torch.stack(pointers), None, torch.where(distances.isinf(), torch.nan, distances))


def eccentricity(graphs: Batch, steps: range) -> Known:
    """A node is reached (class 1) or not (class 0). The eccentricity is the number of steps that reach a node."""
    return Known(None, (torch.tensor(steps)[:, None] >= depths(graphs)).long())


def prim(graphs: Batch, steps: range) -> Known:
    """In each step the node with the lightest edge to the tree joins it (class 1); the start joins in step 1.

    A node points to the node of the tree to which its edge is lightest, as long as it has not joined; without such an
    edge, to itself. A node of the tree points to its parent.
    """
    (senders, receivers), weights, nodes = graphs.edge_index, graphs.edge_attr[:, 1], len(graphs.x)
    itself, loop, start = torch.arange(nodes), senders == receivers, graphs.x[:, 1] > 0
    tree, pointers, found = torch.zeros(nodes, dtype=torch.bool), itself, []
    joining = start
    for _ in range(steps[-1] + 1):
        found.append((pointers, tree))
        tree = tree | joining
        through = torch.where(tree[receivers] & ~tree[senders] & ~loop, weights, torch.inf)
        key = lowest(through, senders, nodes)
        target = torch.full_like(itself, -1).scatter_reduce(
            0, senders, torch.where(through == key[senders], receivers, -1), "amax"
        )
        pointers = torch.where(tree | key.isinf(), pointers, target)
        joining = (key == lowest(key, graphs.batch, len(graphs.length))[graphs.batch]) & ~key.isinf()
    chosen = found[steps[0] : steps[-1] + 1]
    return Known(torch.stack([pointers for pointers, _ in chosen]), torch.stack([tree.long() for _, tree in chosen]))


KNOWN = {"bfs": breadth_first, "dijkstra": dijkstra, "mst_prim": prim, "eccentricity": eccentricity}
