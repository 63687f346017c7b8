"""What to type next: commands that work as they are shown, wherever this package is installed."""

import os
import shutil
import sys
from pathlib import Path

from rrn.errors import InputError

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
