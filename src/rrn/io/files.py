"""Files on disk, written whole or not at all; folders for one process at a time."""

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

from rrn.errors import InputError, blaming

try:
    import fcntl
except ImportError:  # Windows: folders are not locked
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
PREFIX, SUFFIX, BEFORE = ".rrn-", ".part", ".before"
"""Names of what is being written, and of what is about to be replaced."""
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
    with replacing_file(Path(path)) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing_file(path: Path) -> Iterator[IO[bytes]]:
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
    from rrn._compat import exchange_names  # imports numba

    if not os.path.lexists(path):
        new.rename(path)
    elif not exchange_names(new, path):
        before = path.with_name(path.name + BEFORE)
        path.rename(before)
        new.rename(path)
        shutil.rmtree(before, ignore_errors=True)


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
