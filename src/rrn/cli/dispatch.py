"""Commands that do something else for every task: rrn ask TASK …, rrn data TASK …"""

from importlib import import_module

from rrn.errors import InputError


def to_task(command: str, about: dict[str, str], arguments: list[str]) -> int:
    """Hand the arguments after the task's name to ``rrn.cli.<command>.<task>``; ``about`` says what tasks there are."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: rrn {command} TASK …\n\n" + "\n".join(f"  {task:<14}{what}" for task, what in about.items()))
        print(f"\n'rrn {command} TASK --help' says more.")
        return 0 if arguments else 2
    task, *rest = arguments
    if task not in about:
        raise InputError(f"rrn {command}: no task {task!r}; there are {', '.join(about)}")
    return import_module(f"rrn.cli.{command}.{task.replace('-', '_')}").main(rest)
