"""The errors a user is meant to read, each in a line or a few: what was handed over, and what would be usable."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

QUOTED = 80
"""Characters of somebody else's text that a message shows."""


class InputError(ValueError):
    """Something a caller handed over is not usable. The message names it and says what would be."""


class NotFiniteError(InputError):
    """Numbers that should be finite are NaN or infinite."""


class Failure(RuntimeError):
    """What was asked for was begun and failed, through nobody's input. The message says what is left and what to do."""


def shorten(text: object, most: int = QUOTED) -> str:
    """One line of at most ``most`` characters, however long the text is."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def counted(count: int, what: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def quote(text: str, most: int = QUOTED) -> str:
    """The text in quotation marks, or its beginning."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}…"


@contextmanager
def blaming(message: str) -> Iterator[None]:
    """Turns whatever goes wrong in the block into an `InputError`: the message and, in brackets, what went wrong.

    For readers of files that others wrote: over damaged ones the libraries beneath raise errors of all kinds.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
        raise InputError(f"{message} ({shorten(said, 200)})") from error


DISTRIBUTION = "torch-rrn"
"""The name to install by. On the package index, ``rrn`` is another project's."""


def command(name: str) -> str:
    """How to call a program of this environment (``rrn``, ``pip``): by name where that finds it, or by its path."""
    script = Path(sys.executable).parent / name
    found = shutil.which(name)
    if not script.exists():
        return f"{_short(Path(sys.executable))} -m {name}"
    return name if found and Path(found).absolute() == script else _short(script)


def needs_extra(what: str, extra: str) -> InputError:
    """The error where an optional package is missing: ``what`` needs the ``extra`` that brings it."""
    return InputError(f"{what} needs the extra '{extra}': {command('pip')} install '{DISTRIBUTION}[{extra}]'")


def _short(path: Path) -> str:
    """Relative where the path is below the current folder."""
    here = Path.cwd()
    return os.fspath(path.relative_to(here)) if path.is_relative_to(here) else os.fspath(path)
