"""rrn ask TASK …: ask a trained network a question of your own."""

from rrn.cli.dispatch import to_task

ABOUT = {
    "ages": "facts about ages, in words",
    "babi": "a story in bAbI's words, in a line or at a prompt",
    "pretty-clevr": "a scene of eight objects, and where some jumps lead",
}


def main(arguments: list[str]) -> int:
    return to_task("ask", ABOUT, arguments)
