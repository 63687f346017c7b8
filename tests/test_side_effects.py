"""Importing and using the package changes no global state: of numba, matplotlib, torch, numpy, warnings or signals."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

WORK = """
import json, logging, os, random, signal, sys, tempfile, warnings

import fastapi.testclient, matplotlib, networkx, numba, numpy as np, PIL.Image, rich.progress, safetensors.torch
import sklearn.base, torch, torch.utils.checkpoint, tyro
import torch._dynamo  # torch imports it on first use, which changes warnings and the environment

matplotlib.use("svg")
torch.set_num_threads(2)
torch.manual_seed(5)
np.random.seed(5)
random.seed(5)


def global_state():
    settings = {name: repr(getattr(numba.config, name)) for name in dir(numba.config) if name.isupper()}
    signals = [number for number in signal.Signals if number not in (signal.SIGKILL, signal.SIGSTOP)]
    return {
        "numba": settings,
        "matplotlib": [matplotlib.get_backend(), {name: repr(value) for name, value in matplotlib.rcParams.items()}],
        "pyplot": "matplotlib.pyplot" in sys.modules,
        "torch threads": [torch.get_num_threads(), torch.get_num_interop_threads()],
        "torch random": torch.get_rng_state().tolist(),
        "torch flags": [
            str(torch.get_default_dtype()),
            str(torch.get_default_device()),
            torch.are_deterministic_algorithms_enabled(),
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_anomaly_enabled(),
            torch.get_float32_matmul_precision(),
            torch.backends.mkldnn.enabled,
        ],
        "numpy": [repr(np.random.get_state()), np.geterr()],
        "random": repr(random.getstate()),
        "warnings": [repr(entry) for entry in warnings.filters],
        "signals": [repr(signal.getsignal(number)) for number in signals],
        "process": [dict(os.environ), os.getcwd(), sys.path[:], repr(sys.excepthook), logging.root.level],
    }


def use_network():
    from rrn import RRN

    x, edges = torch.ones(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]])
    with torch.random.fork_rng(devices=[]):  # the caller draws the weights
        network = RRN(3, 8, 2)
    network(x, edges, steps=3, checkpoint=2).sum().backward()
    network.think(x, edges, max_steps=4)
    return network, x, edges


def use_estimator():
    from rrn import RRNClassifier

    graphs = [(np.ones((5, 3), np.float32), np.array([[0, 1, 2, 3], [1, 2, 3, 4]]))] * 10
    RRNClassifier(epochs=1, progress=False).fit(graphs, [np.arange(5) % 2] * 10).predict(graphs)


def use_constraints():
    from rrn.constraints import Constraints

    cells = [(row, column, digit) for row in range(3) for column in range(3) for digit in range(3)]
    rules = {"cell": lambda c: c[:2], "row": lambda c: (c[0], c[2]), "column": lambda c: (c[1], c[2])}
    latin = Constraints(cells, exactly=rules)
    problem = latin.dig(np.random.default_rng(0))
    latin.fit(lambda rng: problem, updates=2).solve(problem)


def solve_sudoku():
    from rrn.cli import main
    from rrn.tasks.sudoku.examples import EXAMPLES

    main(["solve", EXAMPLES[0], "--json"])


def use_trainer():
    import dataclasses

    from rrn import tasks
    from rrn.training.trainer import train_stages

    sizes = {"hidden": 16, "message_width": 16, "update_width": 16, "batch_size": 8, "threads": 1}
    preset = dataclasses.replace(tasks.find_preset("ages"), updates=2, minutes=None, stages=(), **sizes)
    with tempfile.TemporaryDirectory() as folder:
        train_stages(preset, tasks.make_experiment, folder, quiet=True)


def draw():
    from rrn.viewing import animate, plot_convergence, record_steps
    from rrn.viewing.plots import plot_lines, save, subplots

    record = record_steps(*use_network(), max_steps=3)
    with tempfile.TemporaryDirectory() as folder:
        animate(record, f"{folder}/steps.gif", positions=np.eye(4)[:, :2])
        animate(record, f"{folder}/steps.svg")
        for ending in ("png", "pdf", "svg"):
            plot_convergence(record, f"{folder}/convergence.{ending}", np.zeros(4, int))
        figure, axes = subplots(figsize=(4, 3))
        plot_lines(axes, {"some": {"1": 0.5, "2": 0.7}})
        save(figure, f"{folder}/lines.png")


def serve():
    from rrn.tasks.sudoku.examples import EXAMPLES
    from rrn.web.app import create_app

    app = create_app({"sudoku": "sudoku"}, workers=1)
    with fastapi.testclient.TestClient(app, base_url="http://localhost") as client:
        assert client.post("/api/sudoku/solve", json={"puzzles": [EXAMPLES[0]]}).status_code == 200


def import_package():
    import pkgutil

    import rrn

    for module in pkgutil.walk_packages(rrn.__path__, "rrn."):
        if not module.name.endswith("__main__"):
            __import__(module.name)


changes, out = {}, sys.stdout
sys.stdout = sys.stderr
for work in (import_package, use_network, use_estimator, use_constraints, solve_sudoku, use_trainer, draw, serve):
    before = global_state()
    work()
    after = global_state()
    changes[work.__name__] = {
        name: [str(before[name])[:2000], str(after[name])[:2000]] for name in before if before[name] != after[name]
    }
print(json.dumps(changes), file=out)
"""


@pytest.fixture(scope="module")
def changes() -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "work",
    [
        "import_package",
        "use_network",
        "use_estimator",
        "use_constraints",
        "solve_sudoku",
        "use_trainer",
        "draw",
        "serve",
    ],
)
def test_global_state_is_unchanged_by(work: str, changes: dict[str, Any]) -> None:
    assert changes[work] == {}
