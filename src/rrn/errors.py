"""Errors for users: what was wrong, what was found and what to do, in one or a few lines."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

QUOTED = 80
"""Characters of quoted input that a message shows."""


class InputError(ValueError):
    """An argument, file or setting is not usable. The message names it and what is expected."""


class NotFiniteError(InputError):
    """Numbers that must be finite are NaN or infinite."""


class Failure(RuntimeError):
    """A run failed, though its input was usable. The message states what is left and what to do."""


def shorten(text: object, most: int = QUOTED) -> str:
    """The text on one line, cut to at most ``most`` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def check_count(name: str, value: object, least: int = 1) -> None:
    """Raise an `InputError` unless the value is an integer of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name}: expected an integer, got {shorten(repr(value))}")
    if value < least:
        raise InputError(f"{name}: expected at least {least}, got {value}")


def plural(count: int, what: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def quote(text: str, most: int = QUOTED) -> str:
    """The text in quotation marks, cut to its first ``most`` characters."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}…"


@contextmanager
def as_input_error(message: str) -> Iterator[None]:
    """Convert every exception of the block into an `InputError`: the message, and the exception in brackets.

    For readers of files: for damaged files, the underlying libraries raise exceptions of many types.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
        raise InputError(f"{message} ({shorten(reason, 200)})") from error


DISTRIBUTION = "torch-rrn"
"""The name on the package index, where ``rrn`` is another project."""


def command(name: str) -> str:
    """How to call a program of this environment (``rrn``, ``pip``): by name if it is on the path, else by its path."""
    script = Path(sys.executable).parent / name
    found = shutil.which(name)
    if not script.exists():
        return f"{_short(Path(sys.executable))} -m {name}"
    return name if found and Path(found).absolute() == script else _short(script)


def needs_extra(what: str, extra: str) -> InputError:
    """The error for a missing optional package: ``what`` needs the ``extra`` that installs it."""
    return InputError(f"{what} needs the extra '{extra}': {command('pip')} install '{DISTRIBUTION}[{extra}]'")


def _short(path: Path) -> str:
    """The path, relative if it is below the current folder."""
    here = Path.cwd()
    return os.fspath(path.relative_to(here)) if path.is_relative_to(here) else os.fspath(path)
