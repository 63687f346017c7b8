"""Counts for monitoring, in the text format of Prometheus: ``GET /metrics``."""

from collections import Counter
from collections.abc import Iterable

from rrn.inference.service import Service
from rrn.web.pool import Pool

Sample = tuple[str, float]
"""What follows the name of a metric, and its value."""


class Metrics:
    """What the page and its service count."""

    def __init__(self, pool: Pool, service: Service) -> None:
        self.pool, self.service = pool, service
        self.responses: Counter[int] = Counter()
        """Responses of the API by status."""

    def text(self) -> str:
        now = self.service.statistics()
        seconds = [
            (f'_bucket{{le="{"+Inf" if limit == float("inf") else limit}"}}', count) for limit, count in now["seconds"]
        ]
        seconds += [("_sum", round(now["seconds_sum"], 6)), ("_count", now["seconds"][-1][1])]
        parts = [
            _metric("responses_total", "counter", "API responses.", _by("status", self.responses.items())),
            _metric("requests_total", "counter", "Requests for puzzles.", _by("outcome", now["requests"].items())),
            _metric("request_seconds", "histogram", "Seconds of answered requests for puzzles.", seconds),
            _metric("unfinished_puzzles", "gauge", "Puzzles that run or wait.", [("", now["problems"])]),
            _metric("slots", "gauge", "Attempts that can run at a time.", [("", now["slots"])]),
            _metric("attempts", "gauge", "Attempts.", _by("state", [(s, now[s]) for s in ("running", "paused")])),
            _metric("waiting_calls", "gauge", "Unfinished calls of other panels.", [("", self.pool.unfinished)]),
        ]
        return "".join(parts)


def _by(label: str, values: Iterable[tuple[object, float]]) -> list[Sample]:
    return [(f'{{{label}="{name}"}}', value) for name, value in sorted(values, key=lambda pair: str(pair[0]))]


def _metric(name: str, kind: str, about: str, samples: list[Sample]) -> str:
    lines = [f"# HELP rrn_{name} {about}", f"# TYPE rrn_{name} {kind}"]
    return "\n".join(lines + [f"rrn_{name}{labels} {value}" for labels, value in samples]) + "\n"
