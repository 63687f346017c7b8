"""What a person sees of a run: a live line on a terminal, a line a validation elsewhere."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Display:
    """Progress of one run on standard error. Quiet when it is no terminal, except for a line a validation."""

    def __init__(self, title: str, enabled: bool = True) -> None:
        self.enabled = enabled
        self.console = Console(stderr=True)
        self.live = enabled and self.console.is_terminal
        self.validation = ""
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.live,
        )
        self.bar = self.progress.add_task(title, total=1.0, status="starting")
        self.shown = 0.0

    def __enter__(self) -> "Display":
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def update(self, done: float, update: int, loss: float, graphs_per_second: float, seconds_left: float) -> None:
        if not self.live or time.monotonic() - self.shown < 0.2:
            return
        self.shown = time.monotonic()
        left = f"{int(seconds_left // 3600)}:{int(seconds_left // 60) % 60:02d}:{int(seconds_left) % 60:02d}"
        status = f"update {update}  loss {loss:.4f}  {graphs_per_second:,.0f}/s  ETA {left}  {self.validation}"
        self.progress.update(self.bar, completed=done, status=status)

    def validated(self, update: int, minutes: float, figures: dict[str, float]) -> None:
        self.validation = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
        if self.enabled and not self.live:
            print(f"{minutes:7.1f} min  update {update:>7}  {self.validation}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        if self.enabled:
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)
