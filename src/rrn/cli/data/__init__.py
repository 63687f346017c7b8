"""rrn data TASK: write a data set to disk."""

from rrn.cli import run_task_command

ABOUT = {
    "sudoku": "generated puzzles, or the paper's sets from a pool of puzzles, as arrays",
    "ages": "questions of age arithmetic, as arrays",
    "babi": "generated questions of bAbI's 20 tasks, in the official file format",
    "pretty-clevr": "scenes of eight objects with their questions, as arrays and images",
}


def main(arguments: list[str]) -> int:
    return run_task_command("data", ABOUT, arguments)
