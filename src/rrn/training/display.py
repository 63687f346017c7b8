"""The progress of training on standard error: a live bar on a terminal, optional lines elsewhere."""

import math
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rrn.training.loop import Callback, Loop

SECONDS_PER_LINE = 30.0


class Display(Callback):
    """Shows update, loss, graphs per second and ETA. ``lines``: elsewhere than on a terminal, a line after the first
    update, every half a minute, and per validation. ``description`` is printed first."""

    def __init__(self, title: str, batch_size: int, lines: bool = False, description: str = "") -> None:
        self.batch_size, self.lines, self.description = batch_size, lines, description
        self.validation, self.shown, self.reported = "", -math.inf, -math.inf
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.live,
        )
        self.bar = self.progress.add_task(title, total=1.0, status="starting")

    def on_start(self, loop: Loop, resumed: bool) -> None:
        if self.description:
            self._print(self.description)
        if resumed and (self.lines or self.live):
            self._print(f"resuming from update {loop.update} in {loop.folder}")
        self.progress.start()

    def report(self, status: str) -> None:
        """Show how far the preparation of the first update is."""
        if self._is_due(self.reported):
            self.reported = time.monotonic()
            if self.live:
                self.progress.update(self.bar, status=status)
            else:
                print(status, file=sys.stderr, flush=True)

    def _is_due(self, before: float) -> bool:
        """Whether the next line, or the next change of the bar, is due."""
        return (self.live or self.lines) and time.monotonic() - before >= (0.2 if self.live else SECONDS_PER_LINE)

    def on_update(self, loop: Loop) -> None:
        if not self._is_due(self.shown):
            return
        self.shown = time.monotonic()
        left = int(max(loop.seconds_left, 0))
        eta = f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"
        rate = loop.updates_per_second * self.batch_size
        status = f"update {loop.update}  loss {loop.last_loss:.4f}  {rate:,.0f}/s  ETA {eta}  {self.validation}"
        if self.live:
            self.progress.update(self.bar, completed=loop.progress, status=status)
        else:
            print(f"{loop.seconds / 60:7.1f} min  {status.rstrip()}", file=sys.stderr, flush=True)

    def on_validation(self, loop: Loop, figures: dict[str, float], is_best: bool) -> None:
        self.validation = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
        if self.lines and not self.live:
            self.shown = time.monotonic()
            minutes, loss = loop.seconds / 60, f"loss {loop.last_loss:.4g}" if loop.update else "at the start"
            print(
                f"{minutes:7.1f} min  update {loop.update:>7}  {loss}  {self.validation}", file=sys.stderr, flush=True
            )

    def on_end(self, loop: Loop) -> None:
        self.progress.stop()
        if self.lines and loop.stop_signal and not loop.finished:
            self._print(f"stopped at update {loop.update}; run the same command to resume")

    def _print(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
