"""The command line, and what its commands share: flags from a dataclass, progress bars, JSON on standard output.

Each command is a module of this package, imported when it is called, so that ``rrn --help`` is instant.
"""

import contextlib
import dataclasses
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

GROUPS = {
    "solve and ask": {
        "demo": "four networks at work, in half a minute",
        "solve": "solve Sudokus, or a declared problem",
        "ask": "ask about ages, a story or a scene",
        "serve": "open the web page",
    },
    "train and measure": {
        "train": "train a preset, or resume a training",
        "evaluate": "measure weights on unseen data",
        "compare": "measure the systems of the paper's table on Sudokus",
        "reproduce": "measure a row of the paper's tables and figures",
        "curves": "validation curves of trainings, as a table or a figure",
        "average": "average the weights of several trainings",
    },
    "data": {"data": "write a data set to disk"},
    "more": {
        "presets": "list the presets and their networks",
        "export": "write a network as ONNX",
    },
}
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}

USAGE = """usage: rrn COMMAND …   ('rrn COMMAND --help' lists its flags)
Recurrent Relational Networks: many-step relational reasoning.

{commands}

Exit codes: 0 success, 1 not solved, 2 wrong arguments or files."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code. Errors become one line on standard error."""
    from rrn.errors import Failure, InputError, shorten

    _open_missing_streams()
    if arguments is None:
        warnings.formatwarning = lambda message, *_, **__: f"rrn: {message}\n"
    try:
        code = _command(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return code
    except InputError as error:
        return _refuse(str(error))
    except Failure as error:
        return _refuse(str(error), 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard_output()
        return 0
    except UnicodeDecodeError as error:
        return _refuse(f"standard input: not text ({error})")
    except OSError as error:
        _discard_output()
        names = " and ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
        return _refuse(f"{names or 'output'}: {error.strerror or error}")
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not re.search("(allocate|out of|enough) memory", str(error)):
            raise
        return _refuse(f"not enough memory ({shorten(error)}); use smaller numbers, or fewer problems at a time")


def _command(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        lines = []
        for group, commands in GROUPS.items():
            lines += [f"{group}:", *(f"  {name:<10} {about}" for name, about in commands.items())]
        print(USAGE.format(commands="\n".join(lines)))
        return 0 if arguments else 2
    if arguments[0] == "--version":
        from rrn import __version__

        print(f"rrn {__version__}")
        return 0
    command, *rest = arguments
    if command not in COMMANDS:
        return _refuse(f"no command {command!r}; {_hint(command)}")
    return import_module(f"rrn.cli.{command}").main(rest)


def _open_missing_streams() -> None:
    """Connect closed streams to the null device; print a question mark for characters a terminal cannot show."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _discard_output() -> None:
    """Redirect standard output to the null device, so that the interpreter does not flush to a broken one at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _hint(command: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(command, COMMANDS, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}"


def printable(text: str) -> str:
    """The text without control characters, which could change what a terminal shows; line breaks stay."""
    return "".join(character for character in text if character.isprintable() or character in "\n\t")


def _refuse(message: str, code: int = 2) -> int:
    message = re.sub(r"\S{300,}", lambda word: f"{word[0][:150]}…", printable(message))
    with contextlib.suppress(OSError):
        print(f"rrn: {message}", file=sys.stderr, flush=True)
    return code


def parse(kind: "type[T]", arguments: list[str], program: str, description: str, default: T | None = None) -> T:
    """Flags of a dataclass, one per field, each within the range that its type declares.

    Lists of numbers are written with commas (``--tasks 1,2``) or with spaces.
    """
    import tyro

    from rrn.training.presets import check_flags

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


@cache
def load(weights: str, task: str, device: str) -> Any:
    """The network of some weights on a device; weights of another task are refused."""
    from rrn.inference.devices import find_device, place
    from rrn.tasks.weights import from_pretrained

    return place(from_pretrained(weights, task=task), find_device(device))


class Task(NamedTuple):
    """A task of a command such as ``rrn data``."""

    about: str
    run: Callable[[list[str]], int]
    """Called with the arguments after the task; returns the exit code."""


def run_task(command: str, tasks: dict[str, Task], arguments: list[str]) -> int:
    """Run the task that the first argument names."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: rrn {command} TASK …\n\n" + "\n".join(f"  {name:<14}{tasks[name].about}" for name in tasks))
        print(f"\n'rrn {command} TASK --help' lists every flag.")
        return 0 if arguments else 2
    from rrn.errors import InputError

    name, *rest = arguments
    if name not in tasks:
        raise InputError(f"rrn {command}: no task {name!r}; there are {', '.join(tasks)}")
    return tasks[name].run(rest)


@contextlib.contextmanager
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


def report(message: str, fields: dict[str, Any], as_json: bool) -> int:
    """Print a message to standard error and, if ``as_json``, the fields to standard output; returns the exit code."""
    print(message, file=sys.stderr)
    if as_json:
        print_json(fields)
    return 0


def show_result(result: dict[str, Any], options: Any, tables: Iterable[Any], draw: Callable[..., Any]) -> None:
    """Write a measurement to ``options.out``, draw it to ``options.figure``, and print it as JSON or as tables."""
    from rich.console import Console

    from rrn.io.files import write_json

    if options.out:
        write_json(options.out, result)
    if options.figure:
        draw(result, options.figure)
    if options.json:
        return print_json(result)
    for table in tables:
        Console().print(table)
    if written := [str(path) for path in (options.out, options.figure) if path]:
        print(f"written: {', '.join(written)}", file=sys.stderr)
