"""rrn data TASK …: write a data set to disk."""

from importlib import import_module

from rrn.errors import InputError

ABOUT = {
    "sudoku": "generated puzzles, or the paper's sets from a pool of puzzles, as arrays",
    "ages": "questions of age arithmetic, as arrays",
    "babi": "generated questions of bAbI's 20 tasks, in the official file format",
    "pretty-clevr": "scenes of eight objects with their questions, as arrays and images",
}


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: rrn data TASK …\n\n" + "\n".join(f"  {task:<14}{about}" for task, about in ABOUT.items()))
        print("\n'rrn data TASK --help' says more.")
        return 0 if arguments else 2
    task, *rest = arguments
    if task not in ABOUT:
        raise InputError(f"no data for a task {task!r}; there are {', '.join(ABOUT)}")
    return import_module(f"rrn.cli.data.{task.replace('-', '_')}").main(rest)
