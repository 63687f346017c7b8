"""Colour graphs with three colours so that no edge joins two of the same: node outputs, and no labels at all.

Trained on random graphs of 10 to 20 nodes, tested on graphs of 40. Any colouring without a clash is right, so the
loss is not the distance to an answer but the chance of a clash on each edge, at every step. All nodes look alike to
the network; random features tell them apart, and other random features are another try.

    python examples/graph_colouring.py
"""

import torch
from torch import Tensor

from rrn import RRN
from rrn.graphs import union

COLOURS, NOISE = 3, 8


def random_graph(nodes: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A graph that can be coloured: random edges, two per node, between nodes of different hidden colours."""
    hidden = torch.randint(COLOURS, (nodes,), generator=generator)
    a, b = torch.triu_indices(nodes, nodes, 1)
    allowed = (hidden[a] != hidden[b]).nonzero()[:, 0]
    chosen = allowed[torch.randperm(len(allowed), generator=generator)[: 2 * nodes]]
    edges = torch.stack([a[chosen], b[chosen]])
    return torch.randn(nodes, NOISE, generator=generator), torch.cat([edges, edges.flip(0)], dim=1)


def clash_loss(outputs: Tensor, edge_index: Tensor) -> Tensor:
    """-log of the chance that the two ends of an edge, drawn independently, differ: the mean over edges and steps."""
    sender, receiver = outputs.softmax(-1)[:, edge_index].unbind(1)  # (steps, edges, colours) each
    return -torch.log(1 - (sender * receiver).sum(-1) + 1e-6).mean()


def train(updates: int, steps: int = 16, batch_size: int = 32, seed: int = 0) -> RRN:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    network = RRN(features=NOISE, hidden=48, outputs=COLOURS)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, updates)
    for update in range(updates):
        sizes = torch.randint(10, 21, (batch_size,), generator=generator).tolist()
        x, edge_index, _ = union([random_graph(nodes, generator) for nodes in sizes])
        loss = clash_loss(network(x, edge_index, steps=steps), edge_index)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if update % 100 == 0:
            print(f"update {update:5}  loss {loss.item():.4f}", flush=True)
    return network


@torch.inference_mode()
def evaluate(network: RRN, graphs: int, nodes: int, steps: int, tries: int, seed: int = 1) -> list[float]:
    """The share of graphs coloured without a clash within 1, 2, … tries."""
    generator = torch.Generator().manual_seed(seed)
    x, edge_index, batch = union([random_graph(nodes, generator) for _ in range(graphs)])
    solved, shares = torch.zeros(graphs, dtype=torch.bool), []
    for _ in range(tries):
        colours = network(x, edge_index, steps=steps).argmax(-1)  # (steps, nodes): a clean step is a solution
        clashes = (colours[:, edge_index[0]] == colours[:, edge_index[1]]).long()
        by_graph = torch.zeros(steps, graphs, dtype=torch.long).index_add(1, batch[edge_index[0]], clashes)
        solved |= (by_graph == 0).any(0)
        shares.append(solved.double().mean().item())
        x = torch.randn(x.shape, generator=generator)
    return shares


def main(updates: int = 1000, graphs: int = 300) -> dict[str, float]:
    network = train(updates)
    trained = evaluate(network, graphs, nodes=20, steps=64, tries=1)
    larger = evaluate(network, graphs, nodes=40, steps=64, tries=8)
    return {"graphs_of_20_one_try": trained[0], "graphs_of_40_one_try": larger[0], "graphs_of_40_8_tries": larger[-1]}


if __name__ == "__main__":
    torch.set_num_threads(1)  # the graphs are small, and other programs may use the cores
    print(main())
