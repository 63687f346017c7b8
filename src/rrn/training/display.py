"""The progress of training on standard error: a live bar on a terminal, optional lines elsewhere."""

import math
import sys
import threading
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rrn.training.loop import Callback, Loop
from rrn.training.pace import PATIENCE, Pace, Ticker

REFRESH = 0.2
"""Seconds between two changes of the bar."""
SLOW = 5.0
"""Seconds without an update after which the bar shows what the update does."""


def progress_bar(title: str, batch_size: int) -> list[Callback]:
    """A progress bar with ETA on standard error, if it is a terminal."""
    return [Display(title, batch_size)] if sys.stderr is not None and sys.stderr.isatty() else []


class Display(Callback):
    """Shows update, loss, graphs per second and ETA. ``lines``: elsewhere than on a terminal, a line after the first
    update, then at a `Pace`, and per validation. ``description`` is printed first.

    Before the first update, and in an update that takes long, a thread shows what was last reported with `report`.
    """

    def __init__(self, title: str, batch_size: int, lines: bool = False, description: str = "") -> None:
        self.batch_size, self.lines, self.description = batch_size, lines, description
        self.validation, self.activity = "", "starting"
        self.began, self.updated, self.refreshed = time.monotonic(), -math.inf, -math.inf
        self.pace, self.lock, self.ticker = Pace(), threading.Lock(), Ticker(self._show_activity)
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
        self.bar = self.progress.add_task(title, total=1.0, status=self.activity)

    def on_start(self, loop: Loop, resumed: bool) -> None:
        if self.description:
            self._print(self.description)
        if resumed and (self.lines or self.live):
            self._print(f"resuming from update {loop.update} in {loop.folder}")
        self.progress.start()
        if self.lines or self.live:
            self.ticker.start()

    def report(self, activity: str) -> None:
        """Say what is done now, and how far it is. It is shown unless updates are."""
        self.activity = activity
        if self.updated == -math.inf:
            self._show_activity(0.0)

    def _show_activity(self, patience: float = PATIENCE) -> None:
        with self.lock:
            if self.live and time.monotonic() - self.updated >= SLOW:
                self._refresh(self.activity)
            elif self.lines and not self.live and self.pace.is_due(patience):
                self._line(f"{time.monotonic() - self.began:7.0f} s    {self.activity}")

    def on_update(self, loop: Loop) -> None:
        with self.lock:
            first, self.updated = self.updated == -math.inf, time.monotonic()
            if self.live:
                self._refresh(self._status(loop), completed=loop.progress)
            elif self.lines and (first or self.pace.is_due()):
                self._line(f"{loop.seconds / 60:7.1f} min  {self._status(loop).rstrip()}")

    def _status(self, loop: Loop) -> str:
        left = int(max(loop.seconds_left, 0))
        eta = f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"
        rate = loop.updates_per_second * self.batch_size
        return f"update {loop.update}  loss {loop.last_loss:.4f}  {rate:,.0f}/s  ETA {eta}  {self.validation}"

    def _refresh(self, status: str, completed: float | None = None) -> None:
        if time.monotonic() - self.refreshed >= REFRESH:
            self.refreshed = time.monotonic()
            self.progress.update(self.bar, completed=completed, status=status)

    def _line(self, text: str) -> None:
        self.pace.printed()
        print(text, file=sys.stderr, flush=True)

    def on_validation(self, loop: Loop, figures: dict[str, float], is_best: bool) -> None:
        with self.lock:
            self.validation = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
            if self.lines and not self.live:
                minutes, loss = loop.seconds / 60, f"loss {loop.last_loss:.4g}" if loop.update else "at the start"
                self._line(f"{minutes:7.1f} min  update {loop.update:>7}  {loss}  {self.validation}")

    def on_end(self, loop: Loop) -> None:
        self.ticker.stop()
        self.progress.stop()
        if self.lines and loop.stop_signal and not loop.finished:
            self._print(f"stopped at update {loop.update}; run the same command to resume")

    def _print(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
