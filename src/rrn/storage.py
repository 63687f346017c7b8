"""Files on disk, written whole or not at all; folders for one process at a time; data sets as arrays and a sidecar."""

import ctypes
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np

from rrn.errors import InputError, blaming, quote

try:
    import fcntl
except ImportError:  # Windows: folders are not locked
    fcntl = None  # type: ignore[assignment]

SIDECAR, LOCK = "dataset.json", "lock"
PREFIX, SUFFIX, BEFORE = ".rrn-", ".part", ".before"
"""Names of what is being written, and of what is about to be replaced."""
SIDECAR_BYTES = 16 << 20
LONGEST_LINE, SMALL_FILE = 1 << 20, 64 << 20
GROWTH = 100
"""A gzip file of more than `SMALL_FILE` bytes may grow so many times; beyond that it is a trap."""


def check_place(path: Path) -> None:
    """Refuse to begin what takes long and could not be written."""
    existing = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not existing.is_dir() or not os.access(existing, os.W_OK):
        raise InputError(f"{path}: cannot be written there; name a file in a folder of your own")


def write_atomically(path: str | Path, content: bytes | str) -> None:
    """Write a file so that a reader, a crash or a power failure sees either the old file or the whole new one."""
    with _replacing(Path(path)) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file beside ``path`` that takes its place when the block ends well, and vanishes otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=PREFIX, suffix=SUFFIX)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        _keep_names(path.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """An empty folder that takes the place of ``path``, with all that is in it, when the block ends well."""
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=PREFIX, suffix=SUFFIX))
    try:
        yield temporary
        temporary.chmod(0o755)
        _exchange(temporary, path)
        _keep_names(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _exchange(new: Path, path: Path) -> None:
    """Give ``new`` the name ``path``: in one move where the system has one, else in two that `locked` can complete."""
    if not os.path.lexists(path):
        new.rename(path)
    elif not _swap(new, path):
        before = path.with_name(path.name + BEFORE)
        path.rename(before)
        new.rename(path)
        shutil.rmtree(before, ignore_errors=True)


def _swap(one: Path, other: Path) -> bool:
    """Whether the system could exchange two names at once."""
    names = os.fsencode(one), os.fsencode(other)
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux; RENAME_SWAP of macOS is 2 as well
    try:
        system = ctypes.CDLL(None)
        if sys.platform == "darwin":
            return system.renamex_np(*names, exchange) == 0
        return system.renameat2(here, names[0], here, names[1], exchange) == 0
    except (AttributeError, OSError, TypeError):
        return False


def _keep_names(folder: Path) -> None:
    """Names given in a folder survive a power failure only once the folder itself is on the disk."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder for this process alone. The lock ends with the process, however that ends.

    Under it, what killed processes left half-written is swept away.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a+") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read(200).strip() or "another process"
                raise InputError(
                    f"{folder}: in use by {holder}; wait for it to end, or give another --folder"
                ) from None
            except OSError as error:
                warnings.warn(f"{folder}: cannot be locked ({error}); let no other process train in it", stacklevel=3)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        file.flush()
        _sweep(folder)
        yield


def _sweep(folder: Path) -> None:
    for path in folder.glob(f"*{BEFORE}"):
        replaced = path.with_name(path.name.removesuffix(BEFORE))
        if os.path.lexists(replaced):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.rename(replaced)
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


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


def read_dataset(folder: str | Path, task: str | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `write_dataset` wrote for a ``task``, checking every array against its shape, its type and its hash."""
    folder = Path(folder)
    sidecar = folder / SIDECAR
    if not sidecar.is_file():
        raise InputError(f"{folder}: no {SIDECAR} in it, so not a finished data set; write one with 'rrn data'")
    with blaming(f"{sidecar}: damaged; write the data set again"):
        about = json.loads(read_bytes(sidecar, SIDECAR_BYTES))
        described = {
            str(name): (entry["shape"], entry["dtype"], entry["sha256"]) for name, entry in about["arrays"].items()
        }
    if task is not None and about.get("task") != task:
        raise InputError(f"{folder}: a data set of {about.get('task', 'another task')}, not of {task}")
    arrays = {}
    for name, (shape, dtype, sha256) in described.items():
        if not re.fullmatch(r"\w[\w-]{0,100}", name):
            raise InputError(f"{sidecar}: damaged; {quote(name)} is no name of an array; write the data set again")
        path = folder / f"{name}.npy"
        with blaming(f"{path}: cannot be read; write the data set again"):
            arrays[name] = _read_array(path, shape, dtype)
        if hashlib.sha256(arrays[name].data).hexdigest() != sha256:
            raise InputError(f"{path}: does not match its hash in {SIDECAR}; write the data set again")
    return arrays, about


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


def expected_array(
    arrays: dict[str, np.ndarray],
    name: str,
    source: str | Path,
    dtype: Any,
    shape: tuple[int, ...],
    least: float,
    most: float,
) -> np.ndarray:
    """An array of a data set, of the type, of a shape (n, *shape) and in the range that the task has use for."""
    if name not in arrays:
        raise InputError(f"{source}: no array {name!r} in it; write the data set with 'rrn data'")
    array = arrays[name]
    if array.dtype != dtype or array.shape[1:] != shape or array.ndim != 1 + len(shape) or not len(array):
        wanted = f"{np.dtype(dtype)} {('n', *shape)}"
        raise InputError(f"{source}: {name} is {array.dtype} {array.shape}, expected {wanted}".replace("'", ""))
    if not (array.min() >= least and array.max() <= most):
        raise InputError(f"{source}: {name} holds {array.min()} to {array.max()}, expected {least} to {most}")
    return array


def _read_array(path: Path, shape: list[int], dtype: str) -> np.ndarray:
    """The array of a .npy file, if it is what the sidecar says; nothing is read before that is known."""
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        held, in_columns, kind = read_header[version](file)
        if (list(held), str(kind), in_columns) != (shape, dtype, False):
            raise ValueError(f"{kind} {held} in it, {SIDECAR} says {quote(dtype)} {quote(str(shape))}")
        size = kind.itemsize * int(np.prod(held, dtype=object))
        if os.path.getsize(path) - file.tell() != size:
            raise ValueError(f"{os.path.getsize(path) - file.tell():,} bytes of numbers in it instead of {size:,}")
        return np.frombuffer(bytearray(file.read()), kind).reshape(held)


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a file that is not longer than it can be in earnest."""
    with open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"{path}: longer than {most:,} bytes, which is more than can be meant")
    return content


def lines_of(path: str | Path, progress: Callable[[float], None] = lambda share: None) -> Iterator[str]:
    """The lines of a file, plain or gzip, one after the other; ``progress`` hears which share of it has been read."""
    path = Path(path)
    with blaming(f"{path}: cannot be read"), path.open("rb") as raw:
        size = max(raw.seek(0, io.SEEK_END), 1)
        raw.seek(0)
        packed = raw.peek(2).startswith(b"\x1f\x8b")
        content: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        text, number = io.TextIOWrapper(content, "utf-8-sig", errors="replace"), 0
        with blaming(f"{path}: a broken gzip file; fetch or write it again") if packed else nullcontext():
            while line := text.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE or (packed and content.tell() > max(SMALL_FILE, GROWTH * size)):
                    raise InputError(f"{path}: more in line {number:,}, or in all lines, than can be meant")
                if number % 100 == 1:
                    progress(raw.tell() / size)
                yield line
        progress(1.0)
