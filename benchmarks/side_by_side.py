"""Two commits in one run: this one and one before, each in processes of its own, in turn, the best of several rounds.

``python -m benchmarks.side_by_side [COMMIT [ROUNDS]]`` alone; by default the last commit before the redesign. Each
commit is measured by its own ``benchmarks`` folder, so that renamed functions do not matter.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

BEFORE = "d9e4f2e"
ROUNDS = 3
HERE = Path(__file__).resolve().parent.parent
CHECKOUTS = HERE / "build"
"""Where the commit before is checked out, and stays, so that its functions are compiled once."""
SMALLER = {
    "sudoku": {"PUZZLES": 500, "PAPER_PUZZLES": 16},
    "belief_propagation": {"PUZZLES": 100},
    "pretty_clevr": {"SCENES": 10_000},
}
"""Constants of the benchmarks, smaller here: there are several rounds."""


def measure(before: str = BEFORE, rounds: int = ROUNDS) -> dict[str, object]:
    old = CHECKOUTS / f"before-{before}"
    if not old.exists():
        subprocess.run(["git", "-C", str(HERE), "worktree", "prune"], check=True)
        subprocess.run(["git", "-C", str(HERE), "worktree", "add", "--quiet", "--detach", str(old), before], check=True)
    found: dict[str, list[dict[str, float]]] = {"before": [], "after": []}
    for number in range(rounds):
        for name, root in (("before", old), ("after", HERE)):
            print(f"  round {number + 1} of {rounds}: {name}", file=sys.stderr, flush=True)
            found[name].append(_in_own_process(root))
    best = {name: {key: max(r[key] for r in each) for key in each[0]} for name, each in found.items()}
    ratios = {key: best["after"][key] / best["before"][key] for key in best["before"]}
    return {
        "about": f"per second, one thread, best of {rounds}; before is {before}",
        **best,
        "ratio": ratios,
        "lowest_ratio": min(ratios.values()),
    }


def _in_own_process(root: Path) -> dict[str, float]:
    paths = os.pathsep.join([str(root / "src"), str(root)])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", __file__, "measure"]
    done = subprocess.run(command, cwd=root, env=environment, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def _figures() -> dict[str, float]:
    """In the process of one commit; ``benchmarks`` and ``rrn`` are those of the commit."""
    import torch

    torch.set_num_threads(1)
    parts = {name: import_module(f"benchmarks.{name}") for name in ("babi", *SMALLER)}
    for name, constants in SMALLER.items():
        vars(parts[name]).update(constants)
    sudoku, babi, scenes = parts["sudoku"].measure(), parts["babi"], parts["pretty_clevr"].measure()
    solved = {name: part["puzzles_per_second"] for name, part in sudoku["sudoku"].items()}
    return {
        "sudoku, 17 givens": solved["17 givens"],
        "sudoku, generated minimal": solved["generated minimal"],
        "sudoku, training": sudoku["training_puzzle_steps_per_second"],
        "sudoku, generating": sudoku["generated_puzzles_per_second"],
        "sudoku-paper": sudoku["sudoku_paper_puzzles_per_second"],
        "sudoku-paper, training": _paper_training(),
        **_default_module(),
        "babi, training": _babi_training(),
        "babi-paper, training": babi._train(babi._forward)["questions_per_second"],
        "babi, generating": babi._generate(),
        **{f"{name}, training": rate for name, rate in scenes["questions_per_second"].items()},
        "pretty-clevr, generating": scenes["scenes_per_second"],
        "belief propagation": parts["belief_propagation"].measure()["puzzle_iterations_per_second"],
    }


def _paper_training() -> float:
    import torch

    from rrn.tasks import build_network, find_preset

    network = build_network(find_preset("sudoku-paper"))
    batch = {"puzzle": torch.randint(10, (16, 81), generator=torch.Generator().manual_seed(0))}
    return 16 * 16 / _best(lambda: network(batch, steps=16)[0].square().mean().backward())


def _babi_training(questions: int = 128) -> float:
    from rrn.tasks import find_preset, make_experiment
    from rrn.training.experiment import seeded

    preset: Any = replace(find_preset("babi"), batch_size=questions)
    experiment: Any = make_experiment(preset)
    batch, network = experiment.sample(seeded(0)), experiment.network()

    def update() -> None:
        experiment.loss(network(batch, steps=preset.steps)[0], batch).backward()

    return questions / _best(update)


def _default_module() -> dict[str, float]:
    import torch

    from rrn import RRN
    from rrn.graphs import EdgeList, NeighbourTable
    from rrn.tasks.sudoku.grid import neighbours

    torch.manual_seed(0)
    graphs: dict[str, Any] = {
        "32 Sudokus": NeighbourTable.repeat(torch.from_numpy(neighbours()), 32),
        "random graph": EdgeList(torch.randint(10_000, (2, 80_000)), 10_000),
        "small graph": EdgeList(torch.randint(20, (2, 80)), 20),
    }
    found = {}
    for name, graph in graphs.items():
        network, x = RRN(16, 96, 9), torch.randn(graph.num_nodes, 16)
        repeats = 100 if name == "small graph" else 3

        def update(network: Any = network, x: Any = x, graph: Any = graph) -> None:
            network(x, graph, steps=8).square().mean().backward()

        found[f"default module, {name}"] = 8 * graph.num_nodes / _best(update, repeats)
    return found


def _best(work: Any, repeats: int = 3) -> float:
    seconds = []
    for _ in range(repeats + 1):  # the first compiles
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        print(json.dumps(_figures()))
    else:
        commit, number = (*sys.argv[1:], *(BEFORE, str(ROUNDS))[len(sys.argv) - 1 :])
        print(json.dumps(measure(commit, int(number)), indent=2))
