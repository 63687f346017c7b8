"""Algorithms on graphs (SALSA-CLRS): networks trained on at most 16 nodes, measured on up to 1,600.

python -m benchmarks.peers algorithms --data FOLDER --json      # FOLDER has <algorithm>_test_<family>_<size>.npz
python -m benchmarks.peers.training algorithms --help           # trains the weights in benchmarks/peers/weights

Node accuracy is the mean over graphs of the share of right pointers; graph accuracy counts graphs with all pointers
right. "given" runs each graph for its true number of steps; "think" runs it until its answer no longer changes.
"""

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.peers import prim
from benchmarks.peers.baselines import Baseline
from benchmarks.peers.salsa import ALGORITHMS, FAMILIES, SIZES, Batch, Salsa
from rrn import RRN, InputError
from rrn.nn.pointers import pointers

WEIGHTS = Path(__file__).parent / "weights"
NODES = 8000
"""Nodes per batch in a measurement."""
NUMBERS = 8.0
"""Factor of a node's number, from 0 to 1, as an edge feature: close numbers have to differ."""
STRIDE = 64
"""Steps of which all outputs are kept at the same time."""


def make_network(algorithm: str, hidden: int = 32) -> RRN:
    """Our network for an algorithm. Pointers: the first output is an edge's score; the rest are targets of nodes."""
    if algorithm == "eccentricity":
        return RRN(1, hidden, 2, edge_features=1, update="gru", aggregate=("max",))
    if algorithm == "bfs":
        return RRN(1, hidden, 5, edge_features=2, update="gru", aggregate=("max",), readout="edge")
    if algorithm == "mst_prim":
        return prim.make_network(hidden)
    return RRN(1, hidden, 2, edge_features=2, update="mlp", aggregate=("max",), readout="edge")


def inputs(graphs: Batch, algorithm: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs of our network: nodes have the start feature only; for ``bfs`` an edge has its receiver's number.

    So a state has to keep no number. The other algorithms do not need the numbers of nodes.
    """
    x, edge_index, edge_attr, batch = graphs[:4]
    if algorithm == "bfs":
        edge_attr = torch.cat([edge_attr, NUMBERS * x[edge_index[1], :1]], dim=1)
    if algorithm == "mst_prim":
        edge_attr = torch.cat([edge_attr, batch[edge_index[0], None].to(edge_attr)], dim=1)
    return x[:, 1:], edge_index, edge_attr, batch


class Tree:
    """The nodes that have joined the tree of Prim's algorithm, and their pointers in the step in which they joined."""

    def __init__(self, edge_index: Tensor, nodes: int) -> None:
        self.edge_index, self.loops = edge_index, edge_index[0] == edge_index[1]
        self.joined, self.pointers = torch.zeros(nodes, dtype=torch.bool), torch.arange(nodes)

    def update(self, outputs: Tensor, counts: Tensor | None = None) -> Tensor:
        """Read outputs (steps, edges, 3); ``counts`` (steps, nodes) marks those that count. Returns the pointers."""
        found = pointers(outputs[..., :1], self.edge_index, len(self.joined))
        tree = outputs[:, self.loops, 1:].argmax(-1) > 0
        tree = tree if counts is None else tree & counts
        new = tree.any(0) & ~self.joined
        at_joining = found.gather(0, tree.int().argmax(0, keepdim=True))[0]
        self.pointers = torch.where(new, at_joining, torch.where(self.joined, self.pointers, found[-1]))
        self.joined = self.joined | new
        return self.pointers


class Unchanged:
    """Accepts an answer for `RRN.think` when it has been the same for some steps, and counts the steps that change it.

    The answer is the pointers of a graph, or which of its nodes are reached or joined the tree.
    """

    def __init__(self, algorithm: str, graphs: Batch, steps: int = 4) -> None:
        self.algorithm, self.steps, self.graphs = algorithm, steps, graphs
        self.graph_of_edge = graphs.batch[graphs.edge_index[0]]
        self.last: dict[int, tuple[Tensor, int]] = {}
        self.changes = torch.zeros(len(graphs.length))
        self.trees: dict[int, Tree] = {}

    def __call__(self, answer: Tensor, number: int) -> bool:
        if self.algorithm == "eccentricity":
            now, start = answer.argmax(-1) > 0, self.graphs.x[self.graphs.batch == number, 1] > 0
        else:
            edge_index = self.graphs.edge_index[:, self.graph_of_edge == number]
            edge_index = edge_index - edge_index.min()
            if self.algorithm == "mst_prim":
                tree = self.trees.setdefault(number, Tree(edge_index, int(edge_index.max()) + 1))
                tree.update(answer[None])
                now = start = tree.joined
            else:
                now = start = pointers(answer[None, :, :1], edge_index, int(edge_index.max()) + 1)
        before, unchanged = self.last.get(number, (start, -1))
        same = torch.equal(before, now)
        self.last[number] = now, unchanged + 1 if same else 0
        self.changes[number] += not same
        return self.last[number][1] >= self.steps


@torch.inference_mode()
def predict(model: nn.Module, algorithm: str, graphs: Batch, given: bool = True) -> tuple[Tensor, Tensor]:
    """Answers, as `Batch.answer`, and the steps of each graph."""
    if isinstance(model, Baseline):
        outputs, steps = model(graphs), graphs.length
    elif given:
        outputs, steps = at_length(model, algorithm, graphs), graphs.length
    else:
        most, until = 2 * int(graphs.batch.bincount().max()) + 8, Unchanged(algorithm, graphs)
        result = model.think(*inputs(graphs, algorithm), until=until, max_steps=most)
        steps = torch.as_tensor(result.steps)
        if algorithm == "mst_prim":
            offsets = graphs.batch.bincount().cumsum(0) - graphs.batch.bincount()
            trees = [until.trees[number].pointers + int(offset) for number, offset in enumerate(offsets)]
            return torch.cat(trees), steps
        outputs = until.changes[:, None] if algorithm == "eccentricity" else result.answers
    if algorithm == "eccentricity":
        return outputs[:, 0].round(), steps
    if algorithm == "mst_prim" and not isinstance(model, Baseline):
        return outputs, steps
    return pointers(outputs[None, :, :1], graphs.edge_index, len(graphs.x))[0], steps


def at_length(network: RRN, algorithm: str, graphs: Batch) -> Tensor:
    """The outputs of our network for each graph at its own number of steps: (edges, width).

    For ``eccentricity``: the number of steps that reach a further node, (graphs, 1). For ``mst_prim``: the pointers,
    (nodes,), of the step in which a node joins the tree. A state that no longer changes is not computed again.
    """
    prepared, state = network.prepare(*inputs(graphs, algorithm)), None
    lengths, of_edge, done = graphs.length.tolist(), graphs.batch[graphs.edge_index[0]], 0
    tree = Tree(graphs.edge_index, len(graphs.x))
    reached, counts, answer = graphs.x[:, 1] > 0, torch.zeros(len(lengths)), None
    for length in sorted({*lengths, *range(STRIDE, max(lengths), STRIDE)}):
        before = network.initial_state(prepared) if state is None else state
        outputs, state = network.run(prepared, steps=length - done, state=before)
        if algorithm == "eccentricity":
            for now in outputs.argmax(-1) > 0:
                new = torch.zeros(len(lengths)).index_add(0, graphs.batch, (now & ~reached).float())
                counts += (new > 0) & (graphs.length > done)
                reached = now
        elif algorithm == "mst_prim":
            due = torch.arange(done + 1, length + 1)[:, None] <= graphs.length[graphs.batch]
            answer = tree.update(outputs, due)
        else:
            due = (graphs.length >= length)[of_edge, None]
            answer = outputs[-1] if answer is None else torch.where(due, outputs[-1], answer)
        done = length
        if float((state.h - before.h).abs().max()) < 1e-6:
            break
    return counts[:, None] if answer is None else answer


def accuracy(model: nn.Module, algorithm: str, data: Salsa, given: bool, limit: int | None = None) -> dict[str, Any]:
    """Node and graph accuracy on one file, and the mean number of steps."""
    count, started = min(len(data), limit or len(data)), time.perf_counter()
    size = max(1, NODES * count // int(data.nodes[count]))
    by_graph, steps = [], []
    for first in range(0, count, size):
        graphs = data.batch(list(range(first, min(first + size, count))))
        answer, used = predict(model, algorithm, graphs, given)
        right = (answer == graphs.answer).double()
        if data.pointers:
            nodes = graphs.batch.bincount().double()
            right = torch.zeros(len(nodes), dtype=torch.double).index_add(0, graphs.batch, right) / nodes
        by_graph.append(right)
        steps.append(used.double())
    shares = torch.cat(by_graph)
    return {
        "node_accuracy" if data.pointers else "accuracy": round(shares.mean().item(), 5),
        **({"graph_accuracy": round((shares == 1).double().mean().item(), 5)} if data.pointers else {}),
        "steps": round(torch.cat(steps).mean().item(), 2),
        "seconds_per_graph": round((time.perf_counter() - started) / count, 4),
        "n": count,
    }


def load(folder: Path) -> tuple[nn.Module, dict[str, Any]]:
    """A trained network, ours or a baseline, and how it was trained."""
    about = json.loads((folder / "about.json").read_text())
    if about["model"] == "rrn":
        parts = prim.parts(about["hidden"]) if about["algorithm"] == "mst_prim" else {}
        return RRN.from_pretrained(folder, **parts), about
    return Baseline.load(folder), about


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--algorithm", choices=ALGORITHMS, help="measure this algorithm only; the rest stays")
    parser.add_argument("--sizes", type=int, nargs="+", help="measure graphs of these sizes only; the rest stays")
    parser.add_argument("--steps", choices=("given", "think"), help="measure in this way only; the rest stays")
    parser.add_argument("--models", nargs="+", help="measure these models only, such as rrn pgn; the rest stays")


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Accuracy of every kept network on every file of the folder."""
    folder = arguments.data or (arguments.public and arguments.public / "salsa")
    if folder is None:
        raise InputError("expected --public FOLDER or --data FOLDER")
    files = {path.stem: path for path in sorted(Path(folder).glob("*.npz"))}
    named = [f"{a}_test_{f}_{n}" for a in ALGORITHMS for f in FAMILIES for n in SIZES]
    found = [name for name in named if name in files]
    found += [n for n in files if n not in named and re.match(rf"({'|'.join(ALGORITHMS)})_(?!train)", n)]
    results: dict[str, Any] = {}
    for weights in sorted(WEIGHTS.glob("*/about.json")):
        about = json.loads(weights.read_text())
        algorithm = about.get("algorithm")
        if algorithm not in ALGORITHMS or arguments.algorithm not in (None, algorithm):
            continue
        if arguments.models and about["model"] not in arguments.models:
            continue
        model, _ = load(weights.parent)
        row: dict[str, Any] = about | {"given": {}, **({"think": {}} if about["model"] == "rrn" else {})}
        for name in found:
            size = name.rpartition("_")[2]
            if not name.startswith(algorithm) or (arguments.sizes and size not in map(str, arguments.sizes)):
                continue
            data, split = Salsa(files[name]), name.removeprefix(f"{algorithm}_").removeprefix("test_")
            for given in ("given", "think"):
                if given in row and arguments.steps in (None, given):
                    row[given][split] = accuracy(model, algorithm, data, given == "given", arguments.limit)
        results.setdefault(algorithm, {})[weights.parent.name] = row
    if not results:
        raise InputError(f"{folder}: no file <algorithm>_<split>.npz with trained weights")
    if arguments.data is None and arguments.out.exists():
        keep_unmeasured(results, json.loads(arguments.out.read_text()).get("algorithms", {}).get("algorithms", {}))
    return {"algorithms": results}


def keep_unmeasured(results: dict[str, Any], known: dict[str, Any]) -> None:
    """Add known results to new ones: networks that were not measured, and other files of the same weights."""
    for algorithm, networks in known.items():
        for name, row in networks.items():
            new = results.setdefault(algorithm, {}).setdefault(name, row)
            if all(new.get(field) == row.get(field) for field in ("date", "updates", "processor_minutes", "seed")):
                for steps in ("given", "think"):
                    if steps in row:
                        new[steps] = row[steps] | new.get(steps, {})
