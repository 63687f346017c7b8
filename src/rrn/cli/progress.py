"""How far a command is, on standard error where that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """A function to tell the stage, how much of it is done, and of how much; each stage has a line."""
    console, lines = Console(stderr=True), dict[str, TaskID]()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:

        def progress(stage: str, done: int, total: int) -> None:
            if stage not in lines:
                lines[stage] = bar.add_task(stage)
            bar.update(lines[stage], completed=done, total=total)

        yield progress
