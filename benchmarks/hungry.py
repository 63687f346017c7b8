"""Small files that ask for much memory or time: each is refused, or read, with little of both.

Each is read in a process of its own, which is ended after `MOST_SECONDS`.
"""

import json
import os
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path

from rrn import RRN
from rrn.constraints.files import read_problem
from rrn.constraints.solve import Solver
from rrn.errors import InputError
from rrn.estimators import RRNClassifier
from rrn.inference.candidates import make_network
from rrn.io.pretrained import CONFIG

MOST_MEGABYTES = 700
MOST_SECONDS = 10
"""Seconds of the processor."""

Make = Callable[[Path, random.Random], None]


def _saved_network(folder: Path) -> dict[str, object]:
    RRN(2, 3, 2).save_pretrained(folder)
    return json.loads((folder / CONFIG).read_text())


def wide_network(folder: Path, rng: random.Random) -> None:
    name = rng.choice(["features", "hidden", "outputs", "edge_features"])
    settings = _saved_network(folder) | {name: rng.choice([10**5, 10**6, 10**9, 10**12])}
    (folder / CONFIG).write_text(json.dumps(settings))


def deep_network(folder: Path, rng: random.Random) -> None:
    name = rng.choice(["encoder_layers", "message_layers", "update_layers", "readout_layers"])
    settings = _saved_network(folder) | {name: rng.choice([1000, 10**5, 10**9]), "hidden": rng.choice([3, 3000])}
    (folder / CONFIG).write_text(json.dumps(settings))


def wide_solver(folder: Path, rng: random.Random) -> None:
    Solver(make_network(2), ["a", "b"]).save(folder)
    path = folder / "solver.json"
    settings = json.loads(path.read_text())
    name = rng.choice(["hidden", "message_width", "layer_width", "group_types"])
    many = [f"t{number}" for number in range(rng.choice([10**3, 10**5]))]
    settings[name] = many if name == "group_types" else rng.choice([15_000, 10**6, 10**9])
    if name == "hidden":  # matrices of 900 MB, which could be allocated
        settings["layer_width"] = settings[name]
    path.write_text(json.dumps(settings))


def long_text_in_an_estimator(folder: Path, rng: random.Random) -> None:
    import torch

    graph = torch.randn(3, 2), torch.tensor([[0, 1], [1, 2]])
    RRNClassifier(hidden=3, epochs=1, steps=1, validation_fraction=0).fit([graph] * 4, [0, 1, 0, 1]).save(folder)
    path = folder / "estimator.json"
    about = json.loads(path.read_text())
    wide = rng.choice([5 * 10**8, 10**9])
    text = json.dumps(about)
    for dtype in ("<i8", "int64"):
        text = text.replace(f'"{dtype}"', f'"<U{wide}"')
    path.write_text(text)


def many_candidates(folder: Path, rng: random.Random) -> None:
    groups = [[0, number] for number in range(1, rng.randint(200, 400))]
    value = {"candidates": rng.choice([10**5, 10**6]), "at_most_one": {"pair": groups}}
    (folder / "problem.json").write_text(json.dumps(value))


def many_names(folder: Path, rng: random.Random) -> None:
    names = [f"c{number}" for number in range(50_000)]
    middle = rng.randint(20_000, 30_000)
    value = {"candidates": names, "at_most_one": {"all": [[names[0]]]}}
    value |= {"given": names[:middle], "excluded": names[middle:]}
    (folder / "problem.json").write_text(json.dumps(value))


FILES: dict[str, tuple[Make, Callable[[Path], object]]] = {
    "wide networks": (wide_network, RRN.from_pretrained),
    "deep networks": (deep_network, RRN.from_pretrained),
    "wide solvers": (wide_solver, Solver.load),
    "estimators with long texts": (long_text_in_an_estimator, RRNClassifier.load),
    "problems of many candidates": (many_candidates, lambda folder: read_problem(folder / "problem.json")),
    "problems of many names": (many_names, lambda folder: read_problem(folder / "problem.json")),
}


def attack(name: str, folder: Path, trials: int, seed: int) -> list[str]:
    """Read ``trials`` files of a kind. Returns the losses."""
    losses = []
    for trial in range(trials):
        here = folder / f"{name} {trial}"
        here.mkdir()
        found = _read_in_a_process(name, here, random.Random(f"{name} {seed} {trial}"))
        if found:
            losses.append(f"{name} {trial}: {found}")
    return losses


def _read_in_a_process(name: str, folder: Path, rng: random.Random) -> str:
    """What went wrong, or nothing."""
    make, load = FILES[name]
    make(folder, rng)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = ""
        try:
            load(folder)
        except InputError as error:
            found = "" if len(str(error)) < 3000 else "a message of more than 3,000 characters"
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"[:200]
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        found = found or (f"{grown:.0f} MB" if grown > MOST_MEGABYTES else "")
        os.write(write, found.encode())
        os._exit(0)
    os.close(write)
    begun = time.monotonic()
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"ended by signal {os.WTERMSIG(status)} after {time.monotonic() - begun:.0f} s"
    return found
