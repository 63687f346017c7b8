"""How our networks for algorithms are trained: a target for each step, on graphs with longer paths, with noise.

Training graphs are small and dense, so a search ends after few steps, and a network could learn rules that hold for few
steps only. Therefore (1) edges are removed from most graphs, and the start is often moved to the node farthest from it;
(2) nodes often wait for some steps before the start is marked; (3) many runs continue deep in a search, with noise.
"""

import random

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from torch import Tensor

from benchmarks.peers.algorithms import inputs
from benchmarks.peers.salsa import Batch
from benchmarks.peers.steps import KNOWN, depths
from rrn import RRN, every_step
from rrn.nn.pointers import pointer_losses

NOISE = {"bfs": 0.1, "eccentricity": 0.1}
MOST = {"dijkstra": 8.0}
"""The largest distance of a start: distances are counted from there, so that they are as large as in large graphs."""

_WAVE = "at each step what {} knows by then; edges removed from three of four batches, answers computed anew"
SUPERVISION = {
    "bfs": _WAVE.format("breadth-first search"),
    "dijkstra": _WAVE.format("relaxation of all edges"),
    "eccentricity": _WAVE.format("breadth-first search"),
    "mst_prim": "the answer, at each step",
}


def thin(graphs: Batch, rng: random.Random) -> Batch:
    """Remove edges of each graph at random but keep a random spanning tree; half of the starts move far away."""
    senders, receivers = graphs.edge_index.numpy()
    generator, nodes = np.random.default_rng(rng.randrange(1 << 32)), len(graphs.x)
    low, high = np.minimum(senders, receivers), np.maximum(senders, receivers)
    _, undirected = np.unique(low * nodes + high, return_inverse=True)
    keys = 1 + generator.random(undirected.max() + 1)[undirected]
    tree = minimum_spanning_tree(coo_array((keys, (senders, receivers)), shape=(nodes, nodes))).tocoo()
    in_tree = set(zip(np.minimum(*tree.coords).tolist(), np.maximum(*tree.coords).tolist(), strict=True))
    share = generator.choice([0.0, 0.1, 0.3, 1.0], len(graphs.length))[graphs.batch.numpy()[senders]]
    keep = (senders == receivers) | (generator.random(undirected.max() + 1)[undirected] < share)
    keep |= [pair in in_tree for pair in zip(low.tolist(), high.tolist(), strict=True)]
    chosen = torch.from_numpy(keep)
    graphs = graphs._replace(edge_index=graphs.edge_index[:, chosen], edge_attr=graphs.edge_attr[chosen])
    depth, x = depths(graphs), graphs.x.clone()
    for graph in range(len(graphs.length)):
        of_graph = torch.nonzero(graphs.batch == graph).flatten()
        if rng.random() < 0.5:
            x[of_graph, 1] = 0.0
            x[of_graph[depth[of_graph].argmax()], 1] = 1.0
    return graphs._replace(x=x)


def loss(network: RRN, algorithm: str, graphs: Batch, rng: random.Random) -> Tensor:
    """The loss of one batch, over at most 10 steps."""
    if (wave := algorithm != "mst_prim") and rng.random() < 0.75:
        graphs = thin(graphs, rng)
    longest = int(depths(graphs).max()) + 1
    waiting = rng.choice((0, rng.randint(1, 12))) if wave else 0
    first = rng.choice((0, rng.randint(1, int(1.5 * longest))))
    steps, late = min(longest + 2, 10), int(waiting > 0)  # the start is marked one step later if nodes wait
    known = KNOWN[algorithm](graphs, range(first + 1 - late, first + steps + 1 - late))
    (x, *rest), offset, noise = inputs(graphs, algorithm), torch.zeros(len(graphs.length)), NOISE.get(algorithm, 0.0)
    if most := MOST.get(algorithm):
        offset = torch.tensor([rng.choice((0.0, rng.uniform(0, most))) for _ in offset])
    offset = offset[graphs.batch]
    prepared, state = network.prepare(x * (1 + offset[:, None]), *rest), None
    with torch.no_grad():
        if waiting:
            state = network.run(torch.zeros_like(x), *rest, steps=waiting)[1]
        if first:
            state = network.run(prepared, steps=first, state=state)[1]
    if noise and state is not None:
        every = []
        for _ in range(steps):
            state = state.map(lambda part: part + noise * torch.randn_like(part))
            output, state = network.run(prepared, steps=1, state=state)
            every.append(output)
        outputs = torch.cat(every)
    else:
        outputs, _ = network.run(prepared, steps=steps, state=state)
    total, nodes = outputs.new_zeros(()), outputs
    if known.pointers is not None:
        nodes = outputs[:, graphs.edge_index[0] == graphs.edge_index[1], 1:]
        total = total + pointer_losses(outputs[..., :1], graphs.edge_index, known.pointers).mean()
    if known.numbers is not None:
        nodes, distances = nodes[..., 1:], nodes[..., 0]
        numbers = known.numbers + offset
        counts = ~numbers.isnan()
        errors = F.smooth_l1_loss(distances, numbers.nan_to_num(), reduction="none", beta=0.02)
        total = total + 3 * (errors * counts).sum() / counts.sum()
    if known.classes is not None:
        total = total + every_step(nodes, known.classes)
    return total
