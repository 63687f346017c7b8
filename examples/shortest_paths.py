"""Which of two sources is nearer? Trained with 8 steps on short paths, run with more steps on longer ones.

Every node of a graph says whether its shortest path leads to source A, to source B, or whether both are as far. Only
the two sources are marked. News travels one edge a step, so a node d edges away needs d steps: 8 steps of training
cover distances up to 8, and the same network, run for longer, answers what lies further off.

    python examples/shortest_paths.py
    python examples/shortest_paths.py thinking.gif    # also draws how the news travels, one edge per step (or .svg)
"""

import sys
from pathlib import Path

import torch
from torch import Tensor

from rrn import RRN
from rrn.graphs import union
from rrn.nn.losses import every_step
from rrn.viewing import animate, record_steps
from rrn.viewing.plots import pillow

NEAREST_A, NEAREST_B, TIE = range(3)


def random_graph(nodes: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A long, thin graph: each node is joined to one of the three before it, and some to another of them."""
    children = torch.arange(1, nodes).repeat(2)
    back = torch.randint(1, 4, children.shape, generator=generator)
    second = torch.arange(len(children)) >= nodes - 1
    kept = ~second | (torch.rand(children.shape, generator=generator) < 0.3)
    edges = torch.stack([(children - back).clamp(min=0), children])[:, kept].unique(dim=1)
    x = torch.zeros(nodes, 2)
    for source, node in enumerate(torch.randperm(nodes, generator=generator)[:2]):
        x[node, source] = 1
    return x, torch.cat([edges, edges.flip(0)], dim=1)


def distances(x: Tensor, edge_index: Tensor) -> Tensor:
    """Edges from each node to A and to B: (nodes, 2)."""
    far = torch.where(x > 0, 0, len(x))
    while True:
        nearer = far.scatter_reduce(0, edge_index[1][:, None].expand(-1, 2), far[edge_index[0]] + 1, "amin")
        if torch.equal(nearer, far):
            return far
        far = nearer


def answers(far: Tensor) -> Tensor:
    a, b = far.unbind(1)
    return torch.where(a < b, NEAREST_A, torch.where(b < a, NEAREST_B, TIE))


def make_batch(graphs: int, nodes: tuple[int, int], generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    sizes = torch.randint(nodes[0], nodes[1] + 1, (graphs,), generator=generator).tolist()
    x, edge_index, _ = union([random_graph(size, generator) for size in sizes])
    return x, edge_index, distances(x, edge_index)


def train(updates: int, steps: int = 8, batch_size: int = 32, seed: int = 0) -> RRN:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    network = RRN(features=2, hidden=48, outputs=3, update="gru")
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, updates)
    for update in range(updates):
        x, edge_index, far = make_batch(batch_size, (8, 24), generator)
        near = far.amin(1) <= steps
        loss = every_step(network(x, edge_index, steps=steps)[:, near], answers(far)[near])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if update % 100 == 0:
            print(f"update {update:5}  loss {loss.item():.4f}", flush=True)
    return network


@torch.inference_mode()
def evaluate(network: RRN, graphs: int, nodes: int, steps: list[int], seed: int = 1) -> dict[str, dict[str, float]]:
    """Accuracy by number of steps and by the distance of the nearer source."""
    x, edge_index, far = make_batch(graphs, (nodes, nodes), torch.Generator().manual_seed(seed))
    outputs = network(x, edge_index, steps=max(steps))
    near, right = far.amin(1), outputs.argmax(-1) == answers(far)
    bands = {"0-8": near <= 8, "9-16": (near > 8) & (near <= 16), "17-32": (near > 16) & (near <= 32)}
    return {
        f"{count} steps": {name: right[count - 1, nodes].double().mean().item() for name, nodes in bands.items()}
        for count in steps
    }


def view(network: RRN, path: str | Path, nodes: int = 24, seed: int = 4) -> None:
    """Draw how a network finds out: colours are what nodes believe, dark arrows the messages that changed it."""
    x, edge_index = random_graph(nodes, torch.Generator().manual_seed(seed))
    animate(record_steps(network, x, edge_index), path, classes=["A", "B", "="])


def main(updates: int = 1000, graphs: int = 200, picture: str | None = None) -> dict[str, dict[str, float]]:
    if picture is not None and Path(picture).suffix == ".gif":
        pillow("a GIF")  # an error now rather than after the training if the extra 'figures' is missing
    network = train(updates)
    if picture is not None:
        view(network, picture)
    return evaluate(network, graphs, nodes=100, steps=[8, 16, 32])


if __name__ == "__main__":
    torch.set_num_threads(1)  # the graphs are small, and other programs may use the cores
    print(main(picture=sys.argv[1] if len(sys.argv) > 1 else None))
