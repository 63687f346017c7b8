"""Breadth-first search, learned on graphs of at most 16 nodes and run on larger ones.

Every node points to the node from which breadth-first search reaches it: of its neighbours that are one step nearer to
the start, the one with the lowest number. The start points to itself. Each node knows whether it is the start and its
number, divided by the number of nodes. A pointer is a choice among the edges that leave a node: `rrn.nn.pointers`.

    python examples/algorithms.py
"""

import torch
from torch import Tensor

from rrn import RRN
from rrn.graphs import union
from rrn.nn.pointers import pointer_losses, pointers

Graph = tuple[Tensor, Tensor, Tensor]


def random_graph(nodes: int, generator: torch.Generator) -> Graph:
    """A random connected graph with a self-loop at each node: x, edge_index and 1 for each self-loop."""
    parents = (torch.rand(nodes - 1, generator=generator) * torch.arange(1, nodes)).long()  # a random tree
    tree = torch.stack([parents, torch.arange(1, nodes)])
    edges = torch.cat([tree, torch.randint(nodes, (2, nodes), generator=generator)], dim=1)
    edges = torch.randperm(nodes, generator=generator)[edges]
    loops = torch.arange(nodes).expand(2, -1)
    edge_index = torch.cat([edges, edges.flip(0), loops], dim=1).unique(dim=1)
    # sorted random numbers instead of 0, 1/n, 2/n, …: only their order matters
    position = torch.rand(nodes, generator=generator).sort().values
    start = torch.randint(nodes, (1,), generator=generator)
    x = torch.stack([position, (torch.arange(nodes) == start).float()], dim=1)
    return x, edge_index, (edge_index[0] == edge_index[1]).float()[:, None]


def breadth_first(x: Tensor, edge_index: Tensor) -> tuple[Tensor, int]:
    """The node that each node points to, and the number of steps until the last one is reached."""
    nodes, (senders, receivers) = len(x), edge_index
    distance = torch.where(x[:, 1] > 0, 0, nodes)
    while True:
        nearer = distance.scatter_reduce(0, receivers, distance[senders] + 1, "amin")
        if torch.equal(nearer, distance):
            break
        distance = nearer
    candidates = torch.where(distance[receivers] == distance[senders] - 1, receivers, nodes)
    lowest = torch.full((nodes,), nodes).scatter_reduce(0, senders, candidates, "amin")
    return torch.where(distance == 0, torch.arange(nodes), lowest), int(distance.max())


def make_batch(graphs: int, nodes: tuple[int, int], generator: torch.Generator) -> tuple[list[Tensor], Tensor, Tensor]:
    """x, edge_index, edge_attr and batch; the pointers; and the steps that the graph of each node needs."""
    sizes = torch.randint(nodes[0], nodes[1] + 1, (graphs,), generator=generator).tolist()
    drawn = [random_graph(size, generator) for size in sizes]
    inputs = list(union(drawn))
    answers = [breadth_first(x, edge_index) for x, edge_index, _ in drawn]
    offsets = torch.tensor([0, *sizes]).cumsum(0).tolist()
    targets = torch.cat([target + offset for (target, _), offset in zip(answers, offsets, strict=False)])
    return inputs, targets, torch.tensor([steps for _, steps in answers])[inputs[-1]]


def train(updates: int, batch_size: int = 32, seed: int = 0) -> RRN:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    network = RRN(2, 32, 1, edge_features=1, update="gru", aggregate=("max",), readout="edge")
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, updates)
    for update in range(updates):
        inputs, targets, due = make_batch(batch_size, (4, 16), generator)
        steps = int(due.max()) + int(torch.randint(1, 5, (1,), generator=generator))
        losses = pointer_losses(network(*inputs, steps=steps), inputs[1], targets)
        counts = (torch.arange(1, steps + 1)[:, None] > due).float()  # no loss before a graph can be known
        loss = (losses * counts).sum() / counts.sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if update % 100 == 0:
            print(f"update {update:5}  loss {loss.item():.4f}", flush=True)
    return network.eval()


@torch.inference_mode()
def evaluate(network: RRN, graphs: int, nodes: int, seed: int = 1) -> float:
    """The share of pointers that are right."""
    inputs, targets, due = make_batch(graphs, (nodes, nodes), torch.Generator().manual_seed(seed))
    outputs = network(*inputs, steps=int(due.max()) + 2)
    return (pointers(outputs[-1:], inputs[1], len(targets))[0] == targets).double().mean().item()


def main(updates: int = 1000, graphs: int = 20) -> dict[str, float]:
    network = train(updates)
    return {f"{nodes} nodes": evaluate(network, graphs, nodes) for nodes in (16, 80, 160)}


if __name__ == "__main__":
    torch.set_num_threads(1)  # the graphs are small, and other programs may use the cores
    print(main())
