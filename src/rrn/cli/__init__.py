"""The command line. Each command is a module of this folder, imported when it is called, so that --help is instant."""

import contextlib
import io
import os
import re
import sys
from importlib import import_module

COMMANDS = {
    "demo": "half a minute of reasoning: a Sudoku, a story, a riddle, a walk",
    "solve": "solve Sudokus and watch the network do it",
    "ask": "ask a network about ages, a story or a scene",
    "presets": "list the experiments and their networks",
    "train": "train a preset, or go on training",
    "evaluate": "measure weights on data they never saw",
    "curves": "how trainings went, side by side, as a table or a figure",
    "average": "the mean of the weights of several trainings",
    "compare": "measure the systems of the paper's table on the same Sudokus",
    "reproduce": "measure a row of the paper's tables and figures again",
    "data": "write a data set to disk",
    "export": "write a network as ONNX, to run it without torch",
    "serve": "open the page: watch networks reason",
}

USAGE = """usage: rrn COMMAND …

Many-step relational reasoning: Recurrent Relational Networks, their experiments and trained weights.

{commands}

'rrn COMMAND --help' says more. Errors in what you typed, or in files, exit with 2, an unsolved puzzle with 1."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code. Whatever goes wrong is said in a line; here and nowhere else."""
    from rrn.errors import Failure, InputError, shorten

    _steady_streams()
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
        _drop_output()
        return 0
    except UnicodeDecodeError as error:
        return _refuse(f"standard input: not text ({error})")
    except OSError as error:
        _drop_output()
        names = " and ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
        return _refuse(f"{names or 'output'}: {error.strerror or error}")
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not re.search("(allocate|out of|enough) memory", str(error)):
            raise
        return _refuse(f"not enough memory for this ({shorten(error)}); ask for less at a time, or for smaller numbers")


def _command(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        listed = "\n".join(f"  {name:<10}{about}" for name, about in COMMANDS.items())
        print(USAGE.format(commands=listed))
        return 0 if arguments else 2
    if arguments[0] == "--version":
        from rrn import __version__

        print(f"rrn {__version__}")
        return 0
    command, *rest = arguments
    if command not in COMMANDS:
        return _refuse(f"no command {command!r}; {_hint(command)}")
    return import_module(f"rrn.cli.{command}").main(rest)


def _steady_streams() -> None:
    """Streams that are closed take nothing and give nothing; what a terminal cannot show becomes a question mark."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """What is still to be written cannot be: let the interpreter not try again on its way out."""
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
