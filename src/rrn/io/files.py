"""Atomic writes of files and folders, folder locks, and readers with size limits."""

import gzip
import io
import json
import os
import shutil
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from rrn.errors import InputError, as_input_error

try:
    import fcntl
except ImportError:  # Windows: folders are not locked
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
PREFIX, SUFFIX, BEFORE = ".rrn-", ".part", ".before"
"""Parts of the names of unfinished files, and of folders that are being replaced."""
LONGEST_LINE, SMALL_FILE = 1 << 20, 64 << 20
GROWTH = 100
"""The largest compression ratio of a gzip file with more than `SMALL_FILE` bytes of content."""


def check_writable(path: Path) -> None:
    """Raise an `InputError` if a file cannot be written there; for a check before long work."""
    existing = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not existing.is_dir() or not os.access(existing, os.W_OK):
        raise InputError(f"{path}: cannot be written; name a file in a folder with write permission")


def write_atomically(path: str | Path, content: bytes | str) -> None:
    """Write a file atomically: a reader, a crash or a power failure sees the old file or the whole new one."""
    with replacing_file(Path(path)) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing_file(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that replaces ``path`` when the block succeeds, and is removed otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=PREFIX, suffix=SUFFIX)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        _flush_folder(path.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that replaces ``path`` when the block succeeds, and is removed otherwise."""
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=PREFIX, suffix=SUFFIX))
    try:
        yield temporary
        temporary.chmod(0o755)
        _exchange(temporary, path)
        _flush_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _exchange(new: Path, path: Path) -> None:
    """Rename ``new`` to ``path``: atomically if the system supports it, else in two renames that `locked` completes."""
    from rrn._compat import exchange_names  # imports numba

    if not os.path.lexists(path):
        new.rename(path)
    elif not exchange_names(new, path):
        before = path.with_name(path.name + BEFORE)
        path.rename(before)
        new.rename(path)
        shutil.rmtree(before, ignore_errors=True)


def _flush_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that renames in it survive a power failure."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for this process. The system releases the lock when the process ends.

    Files that killed processes left unfinished are removed first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a+") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read(200).strip() or "another process"
                raise InputError(f"{folder}: in use by {holder}; wait for it to end, or use another --folder") from None
            except OSError as error:
                warnings.warn(
                    f"{folder}: cannot be locked ({error}); do not train in it with another process", stacklevel=3
                )
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        file.flush()
        _remove_unfinished(folder)
        yield


def _remove_unfinished(folder: Path) -> None:
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
    """Write a value as indented JSON, atomically."""
    write_atomically(path, json.dumps(value, indent=2) + "\n")


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a file of at most ``most`` bytes."""
    with open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"{path}: exceeds the size limit of {most:,} bytes")
    return content


def read_lines(path: str | Path, progress: Callable[[float], None] = lambda share: None) -> Iterator[str]:
    """Iterate over the lines of a plain or gzip file; ``progress`` is called with the share that has been read."""
    path = Path(path)
    with as_input_error(f"{path}: cannot be read"), path.open("rb") as raw:
        size = max(raw.seek(0, io.SEEK_END), 1)
        raw.seek(0)
        packed = raw.peek(2).startswith(b"\x1f\x8b")
        content: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        text, number = io.TextIOWrapper(content, "utf-8-sig", errors="replace"), 0
        with as_input_error(f"{path}: a damaged gzip file; download or write it again") if packed else nullcontext():
            while line := text.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE or (packed and content.tell() > max(SMALL_FILE, GROWTH * size)):
                    raise InputError(f"{path}: line {number:,} exceeds the size limit of a line or of the file")
                if number % 100 == 1:
                    progress(raw.tell() / size)
                yield line
        progress(1.0)
