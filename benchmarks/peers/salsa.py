"""Graphs and answers of SALSA-CLRS, from files ``<algorithm>_<split>.npz``: see docs/compared.md for their arrays."""

import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rrn.errors import InputError, as_input_error

ALGORITHMS = ("bfs", "dijkstra", "mst_prim", "eccentricity")
FAMILIES = ("er", "ws", "delaunay")
SIZES = (16, 80, 160, 800, 1600)


class Batch(NamedTuple):
    """Some graphs as one graph of disjoint parts."""

    x: Tensor
    """(nodes, 2): the number of the node divided by the number of nodes; 1 at the start node."""
    edge_index: Tensor
    """(2, edges), both directions and a self-loop for each node."""
    edge_attr: Tensor
    """(edges, 1 or 2): 1 for a self-loop; the weight, if the algorithm has weights."""
    batch: Tensor
    """(nodes,) the graph of each node."""
    length: Tensor
    """(graphs,) steps of the algorithm."""
    answer: Tensor
    """(nodes,) the node that each node points to, or (graphs,) the eccentricity of the start node."""


def ascending(count: int, rng: random.Random) -> np.ndarray:
    """Ascending random numbers from 0 to 1, with differences of up to 3.5 orders of magnitude."""
    spread = rng.uniform(0, 3.5)
    numbers = np.cumsum([10 ** -rng.uniform(0, spread) for _ in range(count + 1)])
    return (numbers[:-1] / numbers[-1]).astype(np.float32)


class Salsa:
    """The graphs of one file."""

    def __init__(self, path: Path) -> None:
        with as_input_error(f"{path}: not a file of SALSA-CLRS"), np.load(path, allow_pickle=False) as arrays:
            self.arrays = {name: arrays[name] for name in arrays.files}
            self.nodes, self.edges = (self.arrays[name].astype(np.int64) for name in ("node_ptr", "edge_ptr"))
            self.length = self.arrays["length"].astype(np.int64)
            self.edge_index = self.arrays["edge_index"].astype(np.int64)
            self.pointers = "pi" in self.arrays
            self.answer = self.arrays["pi"].astype(np.int64) if self.pointers else self.arrays["eccentricity"]
        if self.edges[-1] != self.edge_index.shape[1]:
            raise InputError(
                f"{path}: edge_ptr ends at {self.edges[-1]}, but there are {self.edge_index.shape[1]} edges"
            )

    def __len__(self) -> int:
        return len(self.length)

    def batch(self, rows: list[int], redraw: float = 0.0, rng: random.Random | None = None) -> Batch:
        """Some graphs. With probability ``redraw`` the positions of a graph are drawn anew, in the same order.

        A network trained on few nodes then sees numbers as close as those of many nodes: see `ascending`.
        """
        x, edge_index, weights, answers, offset = [], [], [], [], 0
        for row in rows:
            nodes, edges = slice(*self.nodes[row : row + 2]), slice(*self.edges[row : row + 2])
            position, size = self.arrays["pos"][nodes], int(self.nodes[row + 1] - self.nodes[row])
            if rng is not None and rng.random() < redraw:
                position = ascending(size, rng)
            x.append(np.stack([position, self.arrays["s"][nodes]], axis=1).astype(np.float32))
            edge_index.append(self.edge_index[:, edges] + offset)
            weights.append(self.arrays["A"][edges] if "A" in self.arrays else None)
            answers.append(self.answer[nodes] + offset if self.pointers else self.answer[row : row + 1])
            offset += size
        joined = torch.from_numpy(np.concatenate(edge_index, axis=1))
        edge_attr = (joined[0] == joined[1]).float()[:, None]
        if weights[0] is not None:
            edge_attr = torch.cat([edge_attr, torch.from_numpy(np.concatenate(weights))[:, None]], dim=1)
        sizes = torch.tensor([len(part) for part in x])
        return Batch(
            torch.from_numpy(np.concatenate(x)),
            joined,
            edge_attr,
            torch.arange(len(rows)).repeat_interleave(sizes),
            torch.from_numpy(self.length[rows]),
            torch.from_numpy(np.concatenate(answers)),
        )
