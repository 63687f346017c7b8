"""How SIGINT and SIGTERM end a training run."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class StopNow(BaseException):
    """A signal arrived while stopping at once loses nothing."""


class Stopping:
    """Lets SIGINT or SIGTERM end the run after the current update, with a checkpoint."""

    def __init__(self) -> None:
        self.asked = 0
        """The number of the signal."""
        self.interrupting = False

    def __enter__(self) -> "Stopping":
        try:
            self.before = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread
            self.before = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """In this block a signal raises `StopNow`."""
        self.interrupting = True
        try:
            if self.asked:
                raise StopNow
            yield
        finally:
            self.interrupting = False

    def _ask(self, number: int, frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = number
        if self.interrupting:
            raise StopNow
