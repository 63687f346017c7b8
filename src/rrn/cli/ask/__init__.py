"""rrn ask TASK …: ask a trained network a question of your own."""

from importlib import import_module

from rrn.errors import InputError

ABOUT = {
    "ages": "facts about ages, in words",
    "babi": "a story in bAbI's words, in a line or at a prompt",
    "pretty-clevr": "a scene of eight objects, and where some jumps lead",
}


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: rrn ask TASK …\n\n" + "\n".join(f"  {task:<14}{about}" for task, about in ABOUT.items()))
        print("\n'rrn ask TASK --help' says more.")
        return 0 if arguments else 2
    task, *rest = arguments
    if task not in ABOUT:
        raise InputError(f"no task {task!r} to ask; there are {', '.join(ABOUT)}")
    return import_module(f"rrn.cli.ask.{task.replace('-', '_')}").main(rest)
