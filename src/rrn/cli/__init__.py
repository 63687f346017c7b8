"""The command line. Each command is a module of this package, imported when it is called, so that --help is instant."""

import contextlib
import io
import os
import re
import sys
from importlib import import_module

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


def _refuse(message: str, code: int = 2) -> int:
    message = re.sub(r"\S{300,}", lambda word: f"{word[0][:150]}…", message)
    with contextlib.suppress(OSError):
        print(f"rrn: {message}", file=sys.stderr, flush=True)
    return code
