"""The command line. Each command is a module of this folder, imported when it is called, so that --help is instant."""

import os
import sys
from importlib import import_module

COMMANDS = {
    "demo": "watch five hard Sudokus being solved",
    "solve": "solve Sudokus and watch the network do it",
    "ask": "ask a network about ages, a story or a scene",
    "presets": "list the experiments and their networks",
    "train": "train a preset, or go on training",
    "evaluate": "measure weights on data they never saw",
    "compare": "measure the systems of the paper's table on the same Sudokus",
    "data": "write a data set to disk",
    "export": "write a network as ONNX, to run it without torch",
    "serve": "open the page: watch networks reason",
}

USAGE = """usage: rrn COMMAND …

Many-step relational reasoning: Recurrent Relational Networks, their experiments and trained weights.

{commands}

'rrn COMMAND --help' says more. Errors in what you typed exit with 2, an unsolved puzzle with 1."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
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
    from rrn.errors import InputError

    try:
        return import_module(f"rrn.cli.{command}").main(rest)
    except InputError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _hint(command: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(command, COMMANDS, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}"


def _refuse(message: str) -> int:
    print(f"rrn: {message}", file=sys.stderr)
    return 2
