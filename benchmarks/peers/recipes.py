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
from benchmarks.peers.salsa import Batch, ascending
from benchmarks.peers.steps import KNOWN, depths, prim
from rrn import RRN, every_step
from rrn.nn.pointers import pointer_losses

NOISE = {"bfs": 0.1, "eccentricity": 0.1, "mst_prim": 0.05}
MOST = {"dijkstra": 8.0}
"""The largest distance of a start: distances are counted from there, so that they are as large as in large graphs."""

SHARPEN = {"bfs": ((0.55, 1.0), (0.2, 30.0), (0.25, 300.0))}
"""Shares of the minutes, and the factor of `sharp_loss` in each; with factor 1 the whole network is trained."""

_WAVE = "at each step what {} knows by then; edges removed from three of four batches, answers computed anew"
SUPERVISION = {
    "bfs": _WAVE.format("breadth-first search"),
    "dijkstra": _WAVE.format("relaxation of all edges"),
    "eccentricity": _WAVE.format("breadth-first search"),
    "mst_prim": _WAVE.format("Prim's algorithm") + "; weights of half of the batches replaced in the same order",
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


def respread(graphs: Batch, rng: random.Random) -> Batch:
    """Replace the weights by others in the same order, which are sometimes very close: the spanning tree stays."""
    values, index = graphs.edge_attr[:, 1].unique(return_inverse=True)
    drawn = torch.from_numpy(ascending(len(values), rng))
    loop = graphs.edge_index[0] == graphs.edge_index[1]
    weights = torch.where(loop, graphs.edge_attr[:, 1], drawn[index])
    return graphs._replace(edge_attr=torch.stack([graphs.edge_attr[:, 0], weights], dim=1))


def loss(network: RRN, algorithm: str, graphs: Batch, rng: random.Random) -> Tensor:
    """The loss of one batch, over at most 10 steps, or all steps of Prim's algorithm."""
    tree = algorithm == "mst_prim"
    if rng.random() < 0.75:
        graphs = thin(graphs, rng)
    if tree and rng.random() < 0.5:
        graphs = respread(graphs, rng)
    longest = (int(graphs.batch.bincount().max()) if tree else int(depths(graphs).max())) + 1
    waiting = 0 if tree else rng.choice((0, rng.randint(1, 12)))
    first = rng.choice((0, rng.randint(1, int(1.5 * longest))))
    steps, late = longest if tree else min(longest + 2, 10), int(waiting > 0)
    # the start is marked one step later if nodes wait
    known = KNOWN[algorithm](graphs, range(first + 1 - late, first + steps + 1 - late))
    if tree and known.pointers is not None:  # the pointer counts until the step in which a node joins
        before = prim(graphs, range(first, first + steps)).classes
        known = known._replace(pointers=torch.where(before == 1, -100, known.pointers))
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
    if tree and rng.random() < 0.5:
        noise = 0.0  # noise hides which of two scores is higher
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


def sharp_loss(network: RRN, algorithm: str, graphs: Batch, rng: random.Random, factor: float) -> Tensor:
    """The loss of the readout alone, with scores times ``factor``, at three steps of one run without gradients.

    Of several right levels the lowest number is the answer. With more nodes numbers are closer together than any in
    training, and a score has to differ by more than its error: the factor makes small differences count.
    """
    if rng.random() < 0.75:
        graphs = thin(graphs, rng)
    last = int(depths(graphs).max()) + 6
    chosen, state, losses = sorted(rng.sample(range(1, last + 1), 3)), None, []
    known = KNOWN[algorithm](graphs, range(1, last + 1)).pointers
    assert known is not None
    with torch.no_grad():
        prepared = network.prepare(*inputs(graphs, algorithm))
    for done, step in zip((0, *chosen), chosen, strict=False):
        with torch.no_grad():
            _, state = network.run(prepared, steps=step - done, state=state)
        outputs = network.read(prepared, state.map(lambda part: part + 0.02 * torch.randn_like(part)))
        assert isinstance(outputs, Tensor)
        losses.append(pointer_losses(factor * outputs[None, :, :1], graphs.edge_index, known[step - 1]).mean())
    return torch.stack(losses).mean()
