"""When a line of progress is due, and a thread that prints one while the work itself prints none. Imports no torch."""

import math
import threading
import time
from collections.abc import Callable
from typing import Self

LONGEST = 30.0
"""Seconds between two lines of a log, at last."""
PATIENCE = 1.0
"""Further seconds without a line after which the thread prints one: a line of the work itself says more."""
POLL = 0.25


class Pace:
    """A first line is due at once, the next after 1, 2, 4, 8 and 16 seconds, then every 30 seconds."""

    def __init__(self) -> None:
        self.last, self.wait = -math.inf, 0.0

    def is_due(self, patience: float = 0.0) -> bool:
        return time.monotonic() - self.last >= self.wait + patience

    def printed(self) -> None:
        self.last, self.wait = time.monotonic(), min(max(2 * self.wait, 1.0), LONGEST)


class Ticker:
    """A thread that calls ``tick`` several times a second, from `start` to `stop`."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self.tick, self.ended = tick, threading.Event()
        self.thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join()

    def _run(self) -> None:
        while not self.ended.wait(POLL):
            self.tick()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
