"""Graphs with long paths to choose settings on: Erdős–Rényi, Watts–Strogatz and Delaunay graphs with their answers.

python -m benchmarks.peers.validation --public FOLDER --out FOLDER [--sizes 80 160] [--count 20]

The files have the arrays and names of SALSA-CLRS (``<algorithm>_val_<family>_<size>.npz``), but the graphs are drawn
here: the test files serve for the final measurement only. Edge weights are drawn from those of the training file.
"""

import argparse
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay

from benchmarks.peers.salsa import ALGORITHMS, FAMILIES


def draw(family: str, nodes: int, rng: np.random.Generator) -> nx.Graph:
    """A connected random graph. As in SALSA-CLRS, the nodes of a Watts–Strogatz graph are numbered along its ring."""
    while True:
        seed = int(rng.integers(1 << 31))
        if family == "er":
            graph = nx.fast_gnp_random_graph(nodes, rng.uniform(1, 3) * np.log(nodes) / nodes, seed)
        elif family == "ws":
            graph = nx.connected_watts_strogatz_graph(
                nodes, int(rng.choice((4, 6, 8))), rng.uniform(0.05, 0.2), 100, seed
            )
        else:
            graph = nx.Graph()
            for triangle in Delaunay(rng.random((nodes, 2))).simplices.tolist():
                nx.add_cycle(graph, triangle)
        if nx.is_connected(graph) and len(graph) == nodes:
            if family == "ws":
                return graph
            return nx.relabel_nodes(graph, dict(enumerate(rng.permutation(nodes).tolist())))


def solve(algorithm: str, graph: nx.Graph, start: int) -> tuple[np.ndarray, int]:
    """Pointers, or the eccentricity, and the steps of the algorithm."""
    nodes = len(graph)
    depth = nx.single_source_shortest_path_length(graph, start)
    if algorithm == "eccentricity":
        return np.array([max(depth.values())]), 2 * max(depth.values()) + 2
    pointers = np.arange(nodes)
    if algorithm == "bfs":
        for node in set(graph) - {start}:
            pointers[node] = min(other for other in graph[node] if depth[other] == depth[node] - 1)
        return pointers, max(depth.values()) + 1
    if algorithm == "dijkstra":
        for node, path in nx.single_source_dijkstra_path(graph, start).items():
            pointers[node] = path[-2] if node != start else start
    else:
        for parent, child in nx.bfs_edges(nx.minimum_spanning_tree(graph), start):
            pointers[child] = parent
    return pointers, nodes + 1


def write(path: Path, algorithm: str, family: str, nodes: int, count: int, weights: np.ndarray | None) -> None:
    """A file of ``count`` graphs, drawn with a seed that follows from its name."""
    rng = np.random.default_rng([len(family), nodes, ALGORITHMS.index(algorithm)])
    edges, starts, answers, lengths, attributes = [], [], [], [], []
    for _ in range(count):
        graph, start = draw(family, nodes, rng), int(rng.integers(nodes))
        if weights is not None:
            nx.set_edge_attributes(graph, {edge: float(rng.choice(weights)) for edge in graph.edges}, "weight")
        answer, length = solve(algorithm, graph, start)
        pairs = sorted([*graph.edges, *((b, a) for a, b in graph.edges), *((n, n) for n in range(nodes))])
        edges.append(np.array(pairs).T)
        attributes.append([1.0 if a == b else graph[a][b].get("weight", 0.0) for a, b in pairs])
        starts.append(np.arange(nodes) == start)
        answers.append(answer)
        lengths.append(length)
    arrays = {
        "node_ptr": nodes * np.arange(count + 1),
        "edge_ptr": np.cumsum([0, *(part.shape[1] for part in edges)]),
        "edge_index": np.concatenate(edges, axis=1),
        "pos": np.tile(np.arange(nodes, dtype=np.float32) / nodes, count),
        "s": np.concatenate(starts).astype(np.uint8),
        "length": np.array(lengths),
        "eccentricity" if algorithm == "eccentricity" else "pi": np.concatenate(answers),
    }
    if weights is not None:
        arrays["A"] = np.concatenate(attributes).astype(np.float32)
    np.savez(path, **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--public", type=Path, required=True, help="folder with salsa/<algorithm>_train.npz")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[80, 160, 320])
    parser.add_argument("--count", type=int, default=20, help="graphs in each file")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for algorithm in ALGORITHMS:
        train = np.load(options.public / "salsa" / f"{algorithm}_train.npz")
        weights = train["A"][train["edge_index"][0] != train["edge_index"][1]] if "A" in train else None
        for family in FAMILIES:
            for nodes in options.sizes:
                path = options.out / f"{algorithm}_val_{family}_{nodes}.npz"
                write(path, algorithm, family, nodes, options.count, weights)


if __name__ == "__main__":
    main()
