"""rrn ask TASK …: ask a trained network a question."""

from rrn.cli import run_task_command

ABOUT = {
    "ages": "facts about ages, in words",
    "babi": "a story in bAbI's words, in a line or at a prompt",
    "pretty-clevr": "a scene of eight objects, and where some jumps lead",
}


def main(arguments: list[str]) -> int:
    return run_task_command("ask", ABOUT, arguments)
