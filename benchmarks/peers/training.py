"""Train the networks that `benchmarks.peers` measures: weights go to benchmarks/peers/weights.

python -m benchmarks.peers.training algorithms --public FOLDER --algorithm bfs --model rrn --minutes 10
python -m benchmarks.peers.training mazes
python -m benchmarks.peers.training all --public FOLDER         # all that have no weights yet

Minutes are processor minutes of one core. Training data: the train file of SALSA-CLRS (10,000 graphs of at most 16
nodes), the same for all models; mazes of our own making.
"""

import argparse
import copy
import random
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import torch
from examples import mazes
from torch import Tensor, nn

from benchmarks.peers import recipes
from benchmarks.peers.algorithms import WEIGHTS, accuracy, make_network
from benchmarks.peers.baselines import KINDS, RATES, Baseline
from benchmarks.peers.salsa import ALGORITHMS, Batch, Salsa
from rrn import RRN
from rrn.io.files import write_json
from rrn.io.machine import machine
from rrn.nn.pointers import pointer_losses

WARM_UP = 200
SHARP_RATE = 5e-3
"""Learning rate of the readout alone: see `recipes.sharp_loss`."""


class Averaged:
    """The moving average of a network's weights."""

    def __init__(self, network: nn.Module, decay: float = 0.998) -> None:
        self.network, self.decay, self.updates = network, decay, 0
        self.average = copy.deepcopy(network).eval()

    @torch.no_grad()
    def update(self) -> None:
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 10))
        for mean, now in zip(self.average.state_dict().values(), self.network.state_dict().values(), strict=True):
            mean.lerp_(now, 1 - decay) if mean.is_floating_point() else mean.copy_(now)


def clock(minutes: float, optimizer: torch.optim.Optimizer, lr: float) -> Iterator[tuple[int, float]]:
    """(update, processor minutes so far) until time is up; the rate is constant, then falls linearly."""
    started, update = time.process_time(), 0
    while (passed := (time.process_time() - started) / 60) < minutes:
        left = min(1.0, (1 - passed / minutes) / 0.6)
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, (update + 1) / WARM_UP) * max(left, 0.01)
        yield update, passed
        update += 1


def squared(outputs: Tensor, answer: Tensor) -> Tensor:
    """(steps, graphs, 1) and (graphs,) → (steps, graphs)."""
    return (outputs[..., 0] - answer) ** 2


def baseline_loss(network: Baseline, graphs: Batch, pointers: bool) -> Tensor:
    outputs = network(graphs)[None]
    if pointers:
        return pointer_losses(outputs, graphs.edge_index, graphs.answer).mean()
    return squared(outputs, graphs.answer).mean()


def train_algorithm(options: argparse.Namespace) -> None:
    torch.manual_seed(options.seed)
    rng, ours = random.Random(options.seed), options.model == "rrn"
    data, validation = (
        Salsa(options.public / "salsa" / f"{options.algorithm}_{part}.npz") for part in ("train", "val")
    )
    features = data.batch([0]).edge_attr.shape[1]
    network = make_network(options.algorithm) if ours else Baseline(options.model, features, data.pointers)
    lr = options.lr or (2e-3 if ours else RATES[options.model])
    batch_size = options.batch_size or (32 if ours else 8)
    redraw = options.redraw if ours else 0.0
    folder = weights_of(options.algorithm, options.model, options.seed, options.weights)
    stages = recipes.SHARPEN.get(options.algorithm, ((1.0, 1.0),)) if ours else ((1.0, 1.0),)
    updates, passed = 0, 0.0
    for share, factor in stages:
        sharpen = isinstance(network, RRN) and factor > 1
        weights = list(network.readout.parameters() if sharpen else network.parameters())
        averaged = Averaged(network)
        if sharpen:
            rate, size, share_redrawn = SHARP_RATE, 2 * batch_size, 1.0
            optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
        else:
            rate, size, share_redrawn = lr, batch_size, redraw
            optimizer = torch.optim.AdamW(weights, lr=rate)
        mean, shown, before = 0.0, 0.0, passed
        for update, now in clock(share * options.minutes, optimizer, rate):
            graphs = data.batch([rng.randrange(len(data)) for _ in range(size)], share_redrawn, rng)
            if not isinstance(network, RRN):
                loss = baseline_loss(network, graphs, data.pointers)
            elif sharpen:
                loss = recipes.sharp_loss(network, options.algorithm, graphs, rng, factor)
            else:
                loss = recipes.loss(network, options.algorithm, graphs, rng)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            averaged.update()
            updates, passed = updates + 1, before + now
            mean += (loss.item() - mean) * max(0.02, 1 / (update + 1))
            if now - shown > options.every:
                shown = now
                print(f"{passed:.2f} minutes, update {updates}, loss {mean:.4f}", flush=True)
                for path in options.watch:
                    print(
                        "   ", path.stem, accuracy(averaged.average, options.algorithm, Salsa(path), True), flush=True
                    )
        if ours:
            network.load_state_dict(averaged.average.state_dict())
    watch(averaged.average, options)
    final = averaged.average if ours else network.eval()
    final.save_pretrained(folder) if isinstance(final, RRN) else final.save(folder)
    about: dict[str, Any] = {
        "algorithm": options.algorithm,
        "model": options.model,
        "parameters": sum(p.numel() for p in network.parameters()),
        **({"hidden": network.hidden} if isinstance(network, RRN) else {}),
        "seed": options.seed,
        "processor_minutes": options.minutes,
        "updates": updates,
        "batch_size": batch_size,
        "lr": lr,
        "redrawn_positions": redraw,
        "supervision": recipes.SUPERVISION[options.algorithm] if ours else "the answer",
        "validation": accuracy(final, options.algorithm, validation, True),
        "machine": machine(),
        "date": date.today().isoformat(),
    }
    write_json(folder / "about.json", about)
    print(about)


def watch(network: nn.Module, options: argparse.Namespace) -> None:
    """Print the accuracy on the validation files to report on."""
    for path in options.watch:
        print("   ", path.stem, accuracy(network, options.algorithm, Salsa(path), True), flush=True)


def train_maze(options: argparse.Namespace) -> None:
    """The network for mazes, with and without cycles."""
    started = time.process_time()
    network = mazes.train(options.updates, options.rooms, options.seed)
    network.save_pretrained(WEIGHTS / "mazes")
    about: dict[str, Any] = {
        "parameters": sum(p.numel() for p in network.parameters()),
        "seed": options.seed,
        "updates": options.updates,
        "cells_of_training_mazes": 2 * options.rooms + 1,
        "supervision": "at each step what breadth-first search knows by then",
        "processor_minutes": round((time.process_time() - started) / 60, 2),
        "machine": machine(),
        "date": date.today().isoformat(),
    }
    write_json(WEIGHTS / "mazes" / "about.json", about)
    print(about)


def train_all(options: argparse.Namespace) -> None:
    """Every network of the comparison, one after another; those whose weights exist are skipped."""
    if not (WEIGHTS / "mazes").exists():
        run(["mazes"])
    seeds = [(algorithm, model, 0) for algorithm in ALGORITHMS for model in ("rrn", *KINDS)]
    for algorithm, model, seed in [*seeds, ("bfs", "rrn", 1), ("bfs", "rrn", 2)]:
        if not weights_of(algorithm, model, seed).exists():
            named = ["--algorithm", algorithm, "--model", model, "--seed", str(seed)]
            run(["algorithms", "--public", str(options.public), "--minutes", str(options.minutes), *named])


def weights_of(algorithm: str, model: str, seed: int, folder: Path = WEIGHTS) -> Path:
    """The folder of some weights: the seed is in its name unless it is 0."""
    return folder / "_".join([algorithm, model, *([str(seed)] if seed else [])])


def main() -> None:
    torch.set_num_threads(1)
    run(None)


def run(argv: list[str] | None) -> None:
    """Train what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    problems = parser.add_subparsers(required=True)
    maze = problems.add_parser("mazes")
    maze.set_defaults(train=train_maze)
    maze.add_argument("--updates", type=int, default=2000)
    maze.add_argument("--rooms", type=int, default=5, help="rooms per side of the largest training mazes")
    maze.add_argument("--seed", type=int, default=0)
    algorithms = problems.add_parser("algorithms")
    algorithms.set_defaults(train=train_algorithm)
    algorithms.add_argument("--public", type=Path, required=True, help="folder with salsa/<algorithm>_train.npz")
    algorithms.add_argument("--algorithm", choices=ALGORITHMS, default="bfs")
    algorithms.add_argument("--model", choices=("rrn", *KINDS), default="rrn")
    algorithms.add_argument("--minutes", type=float, default=10.0)
    algorithms.add_argument("--seed", type=int, default=0)
    algorithms.add_argument("--lr", type=float)
    algorithms.add_argument("--batch-size", type=int)
    algorithms.add_argument("--redraw", type=float, default=0.75, help="share of graphs with redrawn positions (ours)")
    algorithms.add_argument("--weights", type=Path, default=WEIGHTS, help="folder of the folder that is written")
    algorithms.add_argument("--every", type=float, default=0.5, help="minutes between two reports")
    algorithms.add_argument("--watch", type=Path, nargs="*", default=[], help="validation files to report on")
    every = problems.add_parser("all", help="every network of the comparison that has no weights yet")
    every.set_defaults(train=train_all)
    every.add_argument("--public", type=Path, required=True)
    every.add_argument("--minutes", type=float, default=10.0, help="processor minutes of each network for an algorithm")
    options = parser.parse_args(argv)
    options.train(options)


if __name__ == "__main__":
    main()
