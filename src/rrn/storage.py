"""Files on disk: written whole or not at all, and data sets as arrays beside a JSON sidecar."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from rrn.errors import InputError

SIDECAR = "dataset.json"


def write_atomically(path: str | Path, content: bytes | str) -> None:
    """Write a file so that a reader, or a crash, sees either the old file or the whole new one."""
    with _replacing(Path(path)) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file beside ``path`` that takes its place when the block ends well, and vanishes otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: str | Path, value: Any) -> None:
    write_atomically(path, json.dumps(value, indent=2) + "\n")


def write_dataset(folder: str | Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """Write each array as ``<name>.npy`` and, last, the sidecar ``dataset.json``.

    The sidecar holds ``about`` (seed, generator version, counts ...) and the shape, type and SHA-256 of every
    array. It is written last, so a folder without one is an unfinished data set and is refused on reading.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SIDECAR).unlink(missing_ok=True)
    described = {}
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        with _replacing(folder / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
        described[name] = {
            "shape": list(array.shape),
            "dtype": str(array.dtype),
            "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
        }
    write_json(folder / SIDECAR, {**about, "arrays": described})


def read_dataset(folder: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `write_dataset` wrote, checking every array against its hash."""
    folder = Path(folder)
    sidecar = folder / SIDECAR
    if not sidecar.is_file():
        raise InputError(f"{folder}: no {SIDECAR} in it, so not a finished data set; write one with 'rrn data'")
    try:
        about = json.loads(sidecar.read_text())
        described_arrays = about["arrays"].items()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{sidecar}: damaged ({error}); write the data set again") from error
    arrays = {}
    for name, described in described_arrays:
        try:
            array = np.load(folder / f"{name}.npy", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{folder / name}.npy: cannot be read ({error}); write the data set again") from error
        if hashlib.sha256(array.tobytes()).hexdigest() != described["sha256"]:
            raise InputError(f"{folder / name}.npy: does not match its hash in {SIDECAR}; write the data set again")
        arrays[name] = array
    return arrays, about
