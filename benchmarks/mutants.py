"""Every file that rrn reads, damaged in many ways: nothing but an `InputError` of one readable length may come of it.

``LOADERS`` names each with a function that writes a good file to an empty folder and one that reads it. Mutants are
flipped, cut, doubled, zeroed and, where they are text, given numbers and words that nobody meant.
"""

import gzip
import hashlib
import io
import json
import random
import re
import tarfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rrn import RRN, tasks
from rrn.constraints import Solver
from rrn.constraints.files import read_problem
from rrn.errors import InputError
from rrn.estimators import RRNClassifier
from rrn.inference.candidates import make_network
from rrn.io.datasets import read_dataset
from rrn.io.pretrained import save_pretrained
from rrn.tasks.ages.data import read_questions, write_questions
from rrn.tasks.babi.data import write_babi
from rrn.tasks.babi.reader import read_babi
from rrn.tasks.pretty_clevr import data as scenes
from rrn.tasks.sudoku.data import read_sets, write_generated
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.weights import from_pretrained
from rrn.training.checkpoints import _checksum, load_checkpoint, save_checkpoint

NUMBERS = ["-1", "0", "1e999", "-1e999", "NaN", "1" + "0" * 9, "9" * 30, "9" * 5000, "0.5", "1.0", "null", "true"]
WORDS = ['""', '"x"', "[]", "{}", "[" * 3000, '"' + "y" * 10_000 + '"', '"\\ud800"', '"../../outside"', '"\\u0000"']
LONGEST_MESSAGE = 3000
SLOWEST = 30.0
"""Seconds that a mutant may take to be refused, on a busy machine."""


@dataclass(frozen=True)
class Loader:
    """``make`` writes good files to a folder and returns those to damage; ``load`` reads the folder."""

    make: Callable[[Path], list[Path]]
    load: Callable[[Path], Any]


def mutants(content: bytes, rng: random.Random) -> Iterator[bytes]:
    """Endlessly many damaged forms of a file."""
    text = bool(content) and max(content) < 128
    while True:
        body = bytearray(content)
        kind = rng.choice(["flip", "cut", "zero", "double", "insert", *(["number", "word"] * 3 if text else [])])
        at, length = rng.randrange(len(body)), rng.choice([1, 2, 8, 64, 1000])
        if kind == "flip":
            for _ in range(rng.choice([1, 1, 3, 30])):
                body[rng.randrange(min(len(body), rng.choice([64, len(body)])))] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del body[at : at + length if rng.random() < 0.5 else None]
        elif kind == "zero":
            body[at : at + length] = bytes(len(body[at : at + length]))
        elif kind == "double":
            body[at:at] = body[at : at + length] * rng.choice([1, 5])
        elif kind == "insert":
            body[at:at] = rng.randbytes(length)
        else:
            pattern = rb"-?\d+(\.\d+)?(e-?\d+)?" if kind == "number" else rb'"[^"]*"|\[[^\]]*\]|true|false|null'
            places = list(re.finditer(pattern, content))
            if places:
                place = rng.choice(places)
                body[place.start() : place.end()] = rng.choice(NUMBERS + WORDS).encode()
        if bytes(body) != content:
            yield bytes(body)


def attack(name: str, folder: Path, count: int, seed: int = 0) -> list[str]:
    """Read ``count`` mutants of a loader's files; what else than an `InputError` came of any of them."""
    loader, rng = LOADERS[name], random.Random(f"{name} {seed}")
    folder.mkdir(parents=True, exist_ok=True)
    files = loader.make(folder)
    loader.load(folder)
    whole = {path: path.read_bytes() for path in files}
    endless = {path: mutants(content, rng) for path, content in whole.items()}
    losses = []
    for number in range(count):
        path = files[number % len(files)]
        mutant = next(endless[path])
        path.write_bytes(mutant)
        begun = time.monotonic()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loader.load(folder)
        except InputError as error:
            if len(str(error)) > LONGEST_MESSAGE:
                losses.append(f"{name}, {path.name}: a message of {len(str(error))} characters")
        except Exception as error:
            losses.append(f"{name}, {path.name}: {error!r:.200}")
        if time.monotonic() - begun > SLOWEST:
            losses.append(f"{name}, {path.name}: took {time.monotonic() - begun:.0f} seconds")
        path.write_bytes(whole[path])
    return losses


def _weights(folder: Path) -> list[Path]:
    preset = replace(tasks.find_preset("ages"), hidden=8, message_width=4, update_width=4)
    save_pretrained(tasks.build_network(preset), folder, preset, {"score": 0.5})
    return [folder / "config.json", folder / "model.safetensors"]


def _own_weights(folder: Path) -> list[Path]:
    RRN(3, 4, 2).save_pretrained(folder)
    return [folder / "config.json", folder / "model.safetensors"]


def _checkpoint(folder: Path) -> list[Path]:
    return [save_checkpoint(folder, 1, {"w": torch.ones(5)}, {"update": 1})]


def _signed_checkpoint(folder: Path) -> Any:
    """As if the damage had come before the checksum."""
    (path,) = folder.glob("checkpoint-*")
    signed = folder / "signed" / f"checkpoint-000000001-{_checksum(path.read_bytes())}.safetensors"
    signed.parent.mkdir(exist_ok=True)
    signed.write_bytes(path.read_bytes())
    try:
        return load_checkpoint(signed.parent)
    finally:
        signed.unlink()


def _arrays(write: Callable[[Path], object]) -> Callable[[Path], list[Path]]:
    def make(folder: Path) -> list[Path]:
        write(folder)
        return sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".npy"))

    return make


def _bad_sidecar(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Reads the set with hashes that are right, whatever the arrays hold."""

    def load(folder: Path) -> Any:
        for sidecar in folder.rglob("dataset.json"):
            _sign(sidecar)
        return read(folder)

    return load


def _sign(sidecar: Path) -> None:
    try:
        about = json.loads(sidecar.read_text())
        for name, entry in about["arrays"].items():
            array = np.load(sidecar.parent / f"{name}.npy", allow_pickle=False)
            entry |= {"shape": list(array.shape), "dtype": str(array.dtype)}
            entry["sha256"] = hashlib.sha256(array.tobytes()).hexdigest()
        sidecar.write_text(json.dumps(about))
    except Exception:
        return


def _stories(folder: Path) -> list[Path]:
    write_babi(folder, {"test": 2})
    for path in folder.glob("qa*.txt"):
        if path.name not in ("qa1_test.txt", "qa3_test.txt"):
            path.unlink()
    return sorted(folder.glob("qa*.txt"))


def _archive(mode: str) -> Callable[[Path], list[Path]]:
    def make(folder: Path) -> list[Path]:
        with tarfile.open(folder / "babi.tar", mode) as archive:
            for path in _stories(folder / "en"):
                archive.add(path, f"en/{path.name}")
            noise = tarfile.TarInfo("en/noise")
            noise.size = 30_000
            archive.addfile(noise, io.BytesIO(random.Random(0).randbytes(noise.size)))
        return [folder / "babi.tar"]

    return make


def _puzzles(compress: Callable[[bytes], bytes]) -> Callable[[Path], list[Path]]:
    def make(folder: Path) -> list[Path]:
        path = folder / "puzzles"
        path.write_bytes(compress(("puzzle,solution\n" + "\n".join(f"{p}," for p in EXAMPLES[:3])).encode()))
        return [path]

    return make


def _problem(folder: Path) -> list[Path]:
    node = [["A red", "A blue"], ["B red", "B blue"]]
    edge = [["A red", "B red"], ["A blue", "B blue"]]
    problem = {
        "candidates": [name for group in node for name in group],
        "exactly_one": {"node": node},
        "at_most_one": {"edge": edge},
        "given": ["A red"],
        "excluded": [],
    }
    (folder / "problem.json").write_text(json.dumps(problem, indent=2))
    return [folder / "problem.json"]


def _solver(folder: Path) -> list[Path]:
    Solver(make_network(2, 8, 4, 16), ["row", "column"]).save(folder)
    return sorted(path for path in folder.iterdir())


def _estimator(folder: Path) -> list[Path]:
    ring = torch.ones(3, 1), torch.tensor([[0, 1, 2], [1, 2, 0]])
    small = RRNClassifier(hidden=4, epochs=1, steps=2, validation_fraction=0)
    small.fit([ring, ring], [[0, 1, 0], [1, 0, 1]]).save(folder)
    return sorted(path for path in folder.iterdir())


LOADERS = {
    "weights": Loader(_weights, from_pretrained),
    "weights of one's own": Loader(_own_weights, RRN.from_pretrained),
    "checkpoints": Loader(_checkpoint, load_checkpoint),
    "checkpoints, signed": Loader(_checkpoint, _signed_checkpoint),
    "data sets": Loader(_arrays(lambda folder: write_questions(folder, 3, 0, "test")), read_dataset),
    "ages, signed": Loader(_arrays(lambda folder: write_questions(folder, 3, 0, "test")), _bad_sidecar(read_questions)),
    "sudoku, signed": Loader(_arrays(lambda folder: write_generated(folder, 2, 0)), _bad_sidecar(read_sets)),
    "pretty-clevr, signed": Loader(
        _arrays(lambda folder: scenes.write(folder, {"test": 3})),
        _bad_sidecar(lambda folder: scenes.read(folder, "test")),
    ),
    "bAbI files": Loader(_stories, lambda folder: read_babi(folder, "test")),
    "bAbI tar": Loader(_archive("w"), lambda folder: read_babi(folder / "babi.tar", "test")),
    "bAbI tar.gz": Loader(_archive("w:gz"), lambda folder: read_babi(folder / "babi.tar", "test")),
    "bAbI tar.xz": Loader(_archive("w:xz"), lambda folder: read_babi(folder / "babi.tar", "test")),
    "puzzles": Loader(_puzzles(bytes), lambda folder: read_puzzles(folder / "puzzles")),
    "puzzles, gzip": Loader(_puzzles(gzip.compress), lambda folder: read_puzzles(folder / "puzzles")),
    "declared problems": Loader(_problem, lambda folder: read_problem(folder / "problem.json")),
    "solvers": Loader(_solver, Solver.load),
    "estimators": Loader(_estimator, RRNClassifier.load),
}


def bomb(size: int, content: bytes) -> bytes:
    """A gzip file that grows to ``size`` bytes of the same few over and over."""
    buffer = io.BytesIO()
    with gzip.open(buffer, "wb", compresslevel=9) as file:
        for _ in range(size >> 20):
            file.write(content * ((1 << 20) // len(content)))
    return buffer.getvalue()
