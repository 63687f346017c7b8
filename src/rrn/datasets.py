"""What data sets of several tasks need: parts without relatives across them, tables with what made them beside them."""

import gzip
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rrn.errors import InputError
from rrn.storage import check_place, write_atomically, write_json


def split_apart(
    keys: np.ndarray, what: str, *, test: int, valid: int, seed: int | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Split items (n,), of which those with equal keys are relatives, into test, valid and train; returns their rows,
    and those left out.

    Test are the first rows, validation the next, training all the rest; with a ``seed`` they are shuffled before. No
    part has a relative of another part's item: a relative of a test item is passed over for validation and training,
    one of a validation item for training. ``what`` they are is said where they are too few: "20 puzzles".
    """
    order = np.arange(len(keys)) if seed is None else np.random.default_rng(seed).permutation(len(keys))
    test_rows, rest = order[:test], order[test:]
    unrelated = rest[~np.isin(keys[rest], keys[test_rows])]
    valid_rows, rest = unrelated[:valid], unrelated[valid:]
    train_rows = rest[~np.isin(keys[rest], keys[valid_rows])]
    rows = {"train": train_rows, "valid": valid_rows, "test": test_rows}
    if len(test_rows) < test or len(valid_rows) < valid or not len(train_rows):
        raise InputError(
            f"{what}, relatives left out, do not give {test} for testing, {valid} for validation and at least one for "
            "training; ask for smaller parts"
        )
    return rows, np.setdiff1d(order, np.concatenate(list(rows.values())))


def check_table(path: str | Path) -> None:
    """Refuse to begin what `write_table` could not finish."""
    stem, dot, ending = Path(path).name.partition(".csv")
    if not (stem and dot and ending in ("", ".gz")):
        raise InputError(f"{path}: expected the name of a file that ends in .csv or .csv.gz")
    check_place(Path(path))


def write_table(path: str | Path, columns: Mapping[str, Iterable[Any]], about: dict[str, Any]) -> dict[str, Any]:
    """Write columns as a file .csv or .csv.gz, and ``about`` with the hash of its lines to a file of the same name that
    ends in .json; returns the latter."""
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
