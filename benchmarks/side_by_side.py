"""Two commits in one run: this one and one before, each in processes of its own, in turn, the best of several rounds.

``python -m benchmarks.side_by_side [COMMIT]`` alone; by default the last commit before Sudoku ran through `RRN`.
"""

import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

BEFORE = "dbdc7ab"
ROUNDS = 5
HERE = Path(__file__).resolve().parent.parent


def measure(before: str = BEFORE) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "before"
        git = ["git", "-C", str(HERE)]
        subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(old), before], check=True)
        try:
            rounds = {"before": [], "after": []}  # type: dict[str, list[dict[str, float]]]
            for _ in range(ROUNDS):
                for name, source in (("before", old / "src"), ("after", HERE / "src")):
                    rounds[name].append(_in_own_process(source))
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(old)], check=True)
    best = {name: {key: max(r[key] for r in found) for key in found[0]} for name, found in rounds.items()}
    ratios = {key: best["after"][key] / best["before"][key] for key in best["before"]}
    return {"about": f"per second, one thread, best of {ROUNDS}; before is {before}", **best, "ratio": ratios}


def _in_own_process(source: Path) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, __file__, "measure"], env=environment, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def _figures() -> dict[str, float]:
    import numpy as np
    import torch

    from rrn._compat import keep_freed_memory
    from rrn.tasks import build_network, find_preset, make_experiment
    from rrn.tasks.weights import from_pretrained
    from rrn.training.experiment import Shard, seeded

    try:
        from rrn.tasks.sudoku.exact import generate
        from rrn.tasks.sudoku.predict import solve
    except ImportError:  # names of earlier commits
        from rrn.tasks.sudoku.generator import generate  # type: ignore[no-redef]
        from rrn.tasks.sudoku.solving import solve  # type: ignore[no-redef]
    keep_freed_memory()
    torch.set_num_threads(1)
    puzzles, _ = generate(400, np.random.default_rng(0))
    network = from_pretrained("sudoku")
    once = {"attempts": 1} if "attempts" in inspect.signature(solve).parameters else {"restarts": 0}
    solve(puzzles[:16], network=network, max_steps=8, **once)
    started = time.perf_counter()
    solve(puzzles, network=network, max_steps=128, **once)
    solved = len(puzzles) / (time.perf_counter() - started)

    torch.manual_seed(0)
    preset = find_preset("sudoku")
    experiment = make_experiment(replace(preset, few_givens_pool=0) if hasattr(preset, "few_givens_pool") else preset)
    network = experiment.network()
    carry = experiment.begin(seeded(0), Shard())

    def update() -> None:
        outputs, _ = network(carry.batch, steps=8, state=carry.state)
        experiment.loss(outputs, carry.batch).backward()

    update()
    started = time.perf_counter()
    for _ in range(60):
        update()
    trained = 60 * 8 * len(carry.batch["puzzle"]) / (time.perf_counter() - started)

    paper = build_network(find_preset("sudoku-paper"))
    batch = {"puzzle": torch.from_numpy(puzzles[:16]).long()}
    times = []
    for _ in range(3):
        started = time.perf_counter()
        paper(batch, steps=16)[0].square().mean().backward()
        times.append(time.perf_counter() - started)
    return {
        "sudoku_puzzles": solved,
        "sudoku_training_puzzle_steps": trained,
        "paper_shape_puzzle_steps": 16 * 16 / min(times),
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        print(json.dumps(_figures()))
    else:
        print(json.dumps(measure(*sys.argv[1:]), indent=2))
