"""Short ways first: a curriculum over how far a question reaches."""

MEMORY = 0.95
"""Share of the running accuracy that an update leaves unchanged."""


class Curriculum:
    """Asks for at most ``longest``, one more whenever the running accuracy on the furthest questions passes a mark."""

    def __init__(self, furthest: int, pass_mark: float, *, enabled: bool = True) -> None:
        self.furthest, self.pass_mark = furthest, pass_mark
        self.longest = 0 if enabled else furthest
        self.running = 0.0

    def observe(self, accuracy: float) -> None:
        """The accuracy of an update on questions of ``longest``."""
        self.running = MEMORY * self.running + (1 - MEMORY) * accuracy
        if self.running > self.pass_mark and self.longest < self.furthest:
            self.longest, self.running = self.longest + 1, 0.0

    def open(self) -> None:
        """Ask for everything from now on, passed or not."""
        self.longest = self.furthest

    def position(self) -> dict[str, float]:
        return {"longest": self.longest, "running": self.running}

    def restore(self, position: dict[str, float]) -> None:
        self.longest, self.running = int(position["longest"]), position["running"]
