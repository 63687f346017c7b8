"""Data sets on disk: arrays with a JSON sidecar, tables, and splits without related items."""

import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rrn.errors import InputError, as_input_error, quote
from rrn.io.files import check_writable, read_bytes, replacing_file, write_atomically, write_json

SIDECAR = "dataset.json"
SIDECAR_BYTES = 16 << 20


def write_dataset(folder: str | Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """Write each array as ``<name>.npy`` and, last, the sidecar ``dataset.json``.

    The sidecar holds ``about`` (seed, generator version, counts ...) and the shape, type and SHA-256 of every array.
    It is written last; a folder without it is an unfinished data set, which `read_dataset` refuses.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SIDECAR).unlink(missing_ok=True)
    described = {}
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        with replacing_file(folder / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
        described[name] = {
            "shape": list(array.shape),
            "dtype": str(array.dtype),
            "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
        }
    write_json(folder / SIDECAR, {**about, "arrays": described})


def read_dataset(folder: str | Path, task: str | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the result of `write_dataset` for a ``task``, and check the shape, type and hash of every array."""
    folder = Path(folder)
    sidecar = folder / SIDECAR
    if not sidecar.is_file():
        raise InputError(
            f"{folder}: no {SIDECAR} in this folder, so it is not a finished data set; write one with 'rrn data'"
        )
    with as_input_error(f"{sidecar}: damaged; write the data set again"):
        about = json.loads(read_bytes(sidecar, SIDECAR_BYTES))
        described = {
            str(name): (entry["shape"], entry["dtype"], entry["sha256"]) for name, entry in about["arrays"].items()
        }
    if task is not None and about.get("task") != task:
        raise InputError(f"{folder}: a data set of {about.get('task', 'another task')}, not of {task}")
    arrays = {}
    for name, (shape, dtype, sha256) in described.items():
        if not re.fullmatch(r"\w[\w-]{0,100}", name):
            raise InputError(f"{sidecar}: damaged; {quote(name)} is not a valid array name; write the data set again")
        path = folder / f"{name}.npy"
        with as_input_error(f"{path}: cannot be read; write the data set again"):
            arrays[name] = _read_array(path, shape, dtype)
        if hashlib.sha256(arrays[name].data).hexdigest() != sha256:
            raise InputError(f"{path}: does not match its hash in {SIDECAR}; write the data set again")
    return arrays, about


def split_dataset(
    keys: np.ndarray, what: str, *, test: int, valid: int, seed: int | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Split items with keys (n,) into test, valid and train; items with equal keys are related.

    The first rows are for testing, the next for validation, the rest for training; with a ``seed`` they are shuffled
    before. Items related to a test item are dropped from validation and training, and items related to a validation
    item from training. ``what`` describes the items in an error: "20 puzzles". Returns the rows of each part, and the
    dropped rows.
    """
    order = np.arange(len(keys)) if seed is None else np.random.default_rng(seed).permutation(len(keys))
    test_rows, rest = order[:test], order[test:]
    unrelated = rest[~np.isin(keys[rest], keys[test_rows])]
    valid_rows, rest = unrelated[:valid], unrelated[valid:]
    train_rows = rest[~np.isin(keys[rest], keys[valid_rows])]
    rows = {"train": train_rows, "valid": valid_rows, "test": test_rows}
    if len(test_rows) < test or len(valid_rows) < valid or not len(train_rows):
        raise InputError(
            f"{what} without related ones are too few for {test} for testing, {valid} for validation and at least one "
            "for training; use smaller parts"
        )
    return rows, np.setdiff1d(order, np.concatenate(list(rows.values())))


def check_table(path: str | Path) -> None:
    """Raise an `InputError` if `write_table` cannot write to ``path``."""
    stem, dot, ending = Path(path).name.partition(".csv")
    if not (stem and dot and ending in ("", ".gz")):
        raise InputError(f"{path}: expected the name of a file that ends in .csv or .csv.gz")
    check_writable(Path(path))


def write_table(path: str | Path, columns: Mapping[str, Iterable[Any]], about: dict[str, Any]) -> dict[str, Any]:
    """Write columns to ``path`` (.csv or .csv.gz), and ``about`` with the hash of the lines to a .json file beside it.

    Returns the content of the .json file.
    """
    path = Path(path)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)), ""]
    content = "\n".join(lines).encode()
    about = about | {"sha256_of_lines": hashlib.sha256(content).hexdigest()}
    sidecar = path.with_name(f"{path.name.partition('.csv')[0]}.json")
    sidecar.unlink(missing_ok=True)
    write_atomically(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    write_json(sidecar, about)
    return about


def sha256_of(file: str | Path) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def expected_array(
    arrays: dict[str, np.ndarray],
    name: str,
    source: str | Path,
    dtype: Any,
    shape: tuple[int, ...],
    least: float,
    most: float,
) -> np.ndarray:
    """An array of a data set, checked: its type, its shape (n, *shape) and its range from ``least`` to ``most``."""
    if name not in arrays:
        raise InputError(f"{source}: no array {name!r} in this data set; write it with 'rrn data'")
    array = arrays[name]
    if array.dtype != dtype or array.shape[1:] != shape or array.ndim != 1 + len(shape) or not len(array):
        wanted = f"{np.dtype(dtype)} {('n', *shape)}"
        raise InputError(f"{source}: {name} is {array.dtype} {array.shape}, expected {wanted}".replace("'", ""))
    if not (array.min() >= least and array.max() <= most):
        raise InputError(f"{source}: {name} holds {array.min()} to {array.max()}, expected {least} to {most}")
    return array


def _read_array(path: Path, shape: list[int], dtype: str) -> np.ndarray:
    """The array of a .npy file. Shape and type in its header are compared with the sidecar before the data is read."""
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        held, in_columns, kind = read_header[version](file)
        if (list(held), str(kind), in_columns) != (shape, dtype, False):
            raise ValueError(f"holds {kind} {held}, but {SIDECAR} names {quote(dtype)} {quote(str(shape))}")
        size = kind.itemsize * int(np.prod(held, dtype=object))
        if os.path.getsize(path) - file.tell() != size:
            raise ValueError(f"{os.path.getsize(path) - file.tell():,} bytes of data instead of {size:,}")
        return np.frombuffer(bytearray(file.read()), kind).reshape(held)
