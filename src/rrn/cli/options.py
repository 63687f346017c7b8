"""Shared by the commands: flags from a dataclass, commands with a task, progress bars, JSON on standard output."""

import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import tyro

from rrn.errors import InputError
from rrn.training.presets import check_flags

T = TypeVar("T")


def parse(kind: type[T], arguments: list[str], program: str, description: str, default: T | None = None) -> T:
    """Flags of a dataclass, one per field, each within the range that its type declares.

    Lists of numbers are written with commas (``--tasks 1,2``) or with spaces.
    """
    given: dict[str, Any] = {} if default is None else {"default": default}
    listed = _list_flags(kind if default is None else default)
    options = tyro.cli(kind, args=_split_lists(arguments, listed), prog=program, description=description, **given)
    check_flags(options, {argument.partition("=")[0].replace("_", "-") for argument in arguments})
    return options


def _list_flags(options: Any) -> set[str]:
    """The flags of a dataclass, or of an instance with nested ones, that take several values."""
    found: set[str] = set()
    for field in dataclasses.fields(options):
        value = getattr(options, field.name, None)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            found |= _list_flags(value)
        elif "tuple[" in str(field.type):
            found.add(f"--{field.name.replace('_', '-')}")
    return found


def _split_lists(arguments: list[str], flags: set[str]) -> list[str]:
    """Split numbers joined by commas after one of these flags."""
    parts: list[str] = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        joined = before.replace("_", "-") in flags and re.fullmatch(r"[\d.]+(,[\d.]+)+", argument)
        parts += argument.split(",") if joined else [argument]
    return parts


def run_task_command(command: str, about: dict[str, str], arguments: list[str]) -> int:
    """Run ``rrn.cli.<command>.<task>`` with the arguments after the task; ``about`` describes each task."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: rrn {command} TASK …\n\n" + "\n".join(f"  {task:<14}{what}" for task, what in about.items()))
        print(f"\n'rrn {command} TASK --help' lists every flag.")
        return 0 if arguments else 2
    task, *rest = arguments
    if task not in about:
        raise InputError(f"rrn {command}: no task {task!r}; there are {', '.join(about)}")
    return import_module(f"rrn.cli.{command}.{task.replace('-', '_')}").main(rest)


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """A function (stage, done, total) that shows progress, one bar per stage, if standard error is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    console, lines = Console(stderr=True), dict[str, TaskID]()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:

        def progress(stage: str, done: int, total: int) -> None:
            if stage not in lines:
                lines[stage] = bar.add_task(stage)
            bar.update(lines[stage], completed=done, total=total)

        yield progress


def print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))


def print_written(*paths: Path | None) -> None:
    """List the files that were written, on standard error."""
    if written := [str(path) for path in paths if path]:
        print(f"written: {', '.join(written)}", file=sys.stderr)
