"""Properties of whole graphs: the estimators with their defaults against two networks of PyTorch Geometric.

``python -m benchmarks.out_of_the_box [--minutes 1] [--tasks parity …]`` writes results/out_of_the_box.json. Every
network gets the same graphs and the same processor minutes of one thread, so other jobs on the machine cost it nothing.
GIN and GatedGraphConv have the estimators' width, pooling, readout layer, optimizer, schedule, validation split and
early stopping (the best epoch's weights).
"""

import argparse
import json
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import torch
from torch import Tensor, nn

from rrn import RRNClassifier, RRNRegressor
from rrn.io.files import write_json
from rrn.tasks.evaluation import machine

OUT = Path(__file__).parent.parent / "results" / "out_of_the_box.json"
HIDDEN, LAYERS, EPOCHS = 64, 8, 1000
Graph = tuple[np.ndarray, np.ndarray]


def as_graph(graph: nx.Graph, x: np.ndarray) -> Graph:
    edges = np.array(graph.edges(), dtype=np.int64).reshape(-1, 2).T
    return x.astype(np.float32), np.concatenate([edges, edges[::-1]], axis=1)


def parity(rng: np.random.Generator) -> tuple[Graph, int]:
    """A path of 4 to 12 nodes with a bit each: is the number of ones odd?"""
    bits = rng.integers(0, 2, rng.integers(4, 13))
    return as_graph(nx.path_graph(len(bits)), np.eye(2)[bits]), int(bits.sum() % 2)


def diameter(rng: np.random.Generator) -> tuple[Graph, float]:
    """The longest shortest path of a connected random graph of 8 to 20 nodes: a random tree and a few more edges."""
    nodes = int(rng.integers(8, 21))
    graph = nx.random_labeled_tree(nodes, seed=int(rng.integers(2**31)))
    for a, b in rng.integers(0, nodes, (int(rng.integers(0, nodes // 2)), 2)):
        if a != b:
            graph.add_edge(int(a), int(b))
    return as_graph(graph, np.ones((nodes, 1))), float(nx.diameter(graph))


def components(rng: np.random.Generator) -> tuple[Graph, float]:
    """The number of connected components of a sparse random graph of 8 to 20 nodes."""
    nodes = int(rng.integers(8, 21))
    graph = nx.gnm_random_graph(nodes, int(rng.integers(nodes // 3, nodes)), seed=int(rng.integers(2**31)))
    return as_graph(graph, np.ones((nodes, 1))), float(nx.number_connected_components(graph))


def triangles(rng: np.random.Generator) -> tuple[Graph, float]:
    """The number of triangles of a random graph of 8 to 16 nodes. Nodes have random features, to be told apart."""
    nodes = int(rng.integers(8, 17))
    graph = nx.gnp_random_graph(nodes, float(rng.uniform(0.15, 0.4)), seed=int(rng.integers(2**31)))
    x = np.concatenate([np.ones((nodes, 1)), rng.standard_normal((nodes, 4))], axis=1)
    return as_graph(graph, x), float(sum(nx.triangles(graph).values()) / 3)


TASKS: dict[str, Callable[[np.random.Generator], tuple[Graph, Any]]] = {
    "parity": parity,
    "diameter": diameter,
    "components": components,
    "triangles": triangles,
}


class Peer(nn.Module):
    """A network of PyTorch Geometric, sum, mean and max pooling, and an MLP."""

    def __init__(self, kind: str, features: int, outputs: int) -> None:
        from torch_geometric.nn import GIN, GatedGraphConv

        super().__init__()
        self.encoder = nn.Linear(features, HIDDEN)
        gin = {"hidden_channels": HIDDEN, "num_layers": LAYERS, "norm": "batch_norm", "jk": "last"}
        self.body = GIN(HIDDEN, **gin) if kind == "GIN" else GatedGraphConv(HIDDEN, LAYERS)
        self.readout = nn.Sequential(nn.Linear(3 * HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, graphs: int) -> Tensor:
        from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

        h = self.body(self.encoder(x), edge_index)
        pools = (global_add_pool, global_mean_pool, global_max_pool)
        return self.readout(torch.cat([pool(h, batch, graphs) for pool in pools], dim=-1))


def fit_peer(kind: str, graphs: list[Graph], labels: np.ndarray, minutes: float, seed: int) -> tuple[Any, int, int]:
    """Trains a peer as the estimators train theirs. Returns a function from graphs to outputs, updates, parameters."""
    classes = labels.dtype.kind == "i"
    mean, spread = (0, 1) if classes else (labels.mean(), labels.std() or 1)
    targets = torch.as_tensor(labels if classes else ((labels - mean) / spread)[:, None].astype(np.float32))
    criterion = nn.CrossEntropyLoss() if classes else nn.MSELoss()
    torch.manual_seed(seed)
    network = Peer(kind, graphs[0][0].shape[1], 2 if classes else 1)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-4)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(graphs))
    held_out, training = order[: len(graphs) // 10], order[len(graphs) // 10 :]

    def run(rows: np.ndarray, source: list[Graph]) -> Tensor:
        chosen = [source[row] for row in rows]
        sizes = torch.tensor([len(x) for x, _ in chosen])
        offsets = (sizes.cumsum(0) - sizes).tolist()
        x = torch.from_numpy(np.concatenate([x for x, _ in chosen]))
        edges = np.concatenate([edges + offset for (_, edges), offset in zip(chosen, offsets, strict=True)], axis=1)
        return network(x, torch.from_numpy(edges), torch.arange(len(rows)).repeat_interleave(sizes), len(rows))

    def outputs(source: list[Graph]) -> Tensor:
        network.eval()
        with torch.inference_mode():
            rows = np.array_split(np.arange(len(source)), max(1, len(source) // 200))
            return torch.cat([run(part, source) for part in rows])

    best, weights, updates, started = np.inf, {}, 0, time.monotonic()
    while time.monotonic() - started < 60 * minutes:
        network.train()
        for rows in np.array_split(rng.permutation(training), len(training) // 32):
            share = min(1.0, (time.monotonic() - started) / 60 / minutes)
            optimizer.param_groups[0]["lr"] = 1e-3 * 0.5 * (1 + np.cos(np.pi * share))
            loss = criterion(run(rows, graphs), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            updates += 1
        error = float(criterion(outputs([graphs[row] for row in held_out]), targets[held_out]))
        if error < best:
            best, weights = error, {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(weights)
    parameters = sum(p.numel() for p in network.parameters())
    return lambda source: outputs(source).numpy() * spread + mean, updates, parameters


def measure(task: str, system: str, minutes: float, graphs: int, seed: int, **changes: Any) -> dict[str, Any]:
    """Accuracy (parity) or R² (the others) on as many unseen graphs."""
    rng = np.random.default_rng([seed, list(TASKS).index(task)])
    made = [TASKS[task](rng) for _ in range(2 * graphs)]
    inputs, labels = [graph for graph, _ in made], np.array([label for _, label in made])
    classes = labels.dtype.kind == "i"
    started = time.process_time()
    if system == "rrn":
        estimator: Any = (RRNClassifier if classes else RRNRegressor)(
            minutes=minutes, epochs=EPOCHS, patience=EPOCHS, random_state=seed, progress=False, **changes
        )
        estimator.fit(inputs[:graphs], labels[:graphs])
        score = estimator.score(inputs[graphs:], labels[graphs:])
        updates = len(estimator.history_) * int(np.ceil(0.9 * graphs / 32))
        parameters = sum(p.numel() for p in estimator.network_.parameters())
    else:
        predict, updates, parameters = fit_peer(system, inputs[:graphs], labels[:graphs], minutes, seed)
        found, expected = predict(inputs[graphs:]), labels[graphs:]
        if classes:
            score = float((found.argmax(-1) == expected).mean())
        else:
            score = 1 - float(((found[:, 0] - expected) ** 2).mean() / expected.var())
    return {
        "accuracy" if classes else "r2": round(score, 4),
        "parameters": parameters,
        "updates": updates,
        "processor_minutes": round((time.process_time() - started) / 60, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help="processor time of training, for every network")
    parser.add_argument("--graphs", type=int, default=2000, help="to train on; as many to test on")
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=list(TASKS))
    parser.add_argument("--systems", nargs="*", choices=("rrn", "GIN", "GatedGraphConv"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    about = {"minutes": options.minutes, "graphs": options.graphs, "seed": options.seed}
    about |= {
        "command": "python -m benchmarks.out_of_the_box",
        "n": options.graphs,
        "date": date.today().isoformat(),
        "machine": f"{machine()}, 1 thread",
    }
    for task in options.tasks:
        for system in options.systems or ("rrn", "GIN", "GatedGraphConv"):
            with patch.object(time, "monotonic", time.process_time):  # the clock of both training loops
                figures = measure(task, system, options.minutes, options.graphs, options.seed)
            print(task, system, json.dumps(figures), flush=True)
            found: dict[str, Any] = json.loads(OUT.read_text()) if OUT.exists() else {}
            found.setdefault("tasks", {}).setdefault(task, {"about": TASKS[task].__doc__})[system] = figures
            write_json(OUT, found | {"settings": about})


if __name__ == "__main__":
    main()
