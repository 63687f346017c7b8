"""One running batch for the problems of many callers: see `Service`."""

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rrn.errors import Failure, InputError
from rrn.inference.attempts import NOISE, AttemptLoop, Problems, Slots, Trial, result_of
from rrn.inference.result import Result

if TYPE_CHECKING:
    import asyncio

Entry = tuple[int, int]
"""A problem and an attempt."""
OLDEST_SHARE = 4
"""One slot in this many goes to the oldest request, so that new requests cannot starve it."""
LEVEL_STEPS = 256
"""A request is new, at level 0, up to this many steps; each further level has twice as many. An attempt of usual length
ends before: if newer requests paused it, the slowest answers would wait longest."""
OLD_LEVEL = 1
"""Requests of this level are restricted while there are new ones."""
PAUSED_PER_SLOT = 2
"""Paused attempts for each slot, whose states stay in memory. Beyond that only new requests enter."""
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper limits of the classes of seconds in `Service.statistics`."""


class BusyError(Failure):
    """The service has as many unfinished problems as it may have."""


class ClosedError(Failure):
    """The service was closed before the result was known."""


@dataclass(eq=False)
class Request:
    """The problems of one call and their trials."""

    problems: Problems
    trials: list[Trial]
    client: str
    begun: float = field(default_factory=time.monotonic)
    future: "Future[Result]" = field(default_factory=Future)

    @property
    def level(self) -> int:
        """Requests of a lower level come first."""
        return (sum(trial.spent for trial in self.trials) // LEVEL_STEPS).bit_length()


class FairLoop(AttemptLoop):
    """An attempt loop in which requests share the slots.

    If there are more attempts than slots, clients take turns; of one client, requests with few steps so far come first.
    One slot in `OLDEST_SHARE` goes to the oldest request. While it is ``restricted``, because there are new requests,
    requests with many steps get these slots only: their attempts and searches pause.
    """

    def __init__(self, problems: Problems, noise: float) -> None:
        super().__init__(problems, noise)
        self.requests: dict[int, Request] = {}
        """By the number of the problem."""

    def place(self, request: Request) -> None:
        """Add all problems of a request."""
        numbers = (number for number in range(len(self.trials) + len(request.trials)) if number not in self.trials)
        for row, (number, trial) in enumerate(zip(list(numbers), request.trials, strict=False)):
            self.problems.put(number, request.problems, row)
            self.requests[number] = request
            self.add(number, trial)

    def fill(self, slots: int) -> None:
        self.waiting = deque(entry for entry in self.waiting if entry[0] in self.trials)
        resident = self.running
        if self.paused is not None:
            resident = self.paused if resident is None else resident.join(self.paused)
        entries, waiting = [] if resident is None else resident.entries(), self.waiting
        chosen = self.choose(entries, list(waiting), slots)
        self.running, self.paused = resident, None
        if resident is not None and not chosen.issuperset(entries):
            mask = torch.tensor([entry in chosen for entry in entries], dtype=torch.bool, device="cpu")
            self.running, self.paused = resident.select(mask), resident.select(~mask)
        self.waiting = deque(entry for entry in waiting if entry not in chosen)
        self.enter([entry for entry in waiting if entry in chosen])
        if self.problems.search is not None:
            self.problems.search.paused = set() if self.paused is None else set(self.paused.entries())

    def choose(self, resident: list[Entry], waiting: list[Entry], slots: int) -> set[Entry]:
        """The attempts that run in the next stride, of those with a state and of those that wait."""
        levels = {number: request.level for number, request in self.requests.items()}
        if _count(self.paused) >= PAUSED_PER_SLOT * slots:  # no further states in memory
            waiting = [entry for entry in waiting if levels[entry[0]] < OLD_LEVEL]
        entries = sorted(resident + waiting, key=lambda entry: self.requests[entry[0]].begun)
        chosen = set(entries[: slots // OLDEST_SHARE])
        by_client: dict[str, deque[Entry]] = {}
        for entry in sorted(entries, key=lambda entry: levels[entry[0]]):
            if entry not in chosen and not (self.restricted and levels[entry[0]] >= OLD_LEVEL):
                by_client.setdefault(self.requests[entry[0]].client, deque()).append(entry)
        while by_client and len(chosen) < slots:
            for client in list(by_client):
                if len(chosen) < slots:
                    chosen.add(by_client[client].popleft())
                if not by_client[client]:
                    del by_client[client]
        return chosen


class Service:
    """Solves the problems of many callers in one running batch.

    ``service.submit(problems, …)`` returns the future of what ``run_attempts(problems, …)`` returns. Problems enter
    free slots between strides and leave when they are solved. A cancelled future frees its slots after the stride.

    Args:
        slots: size of the running batch of one worker.
        workers: threads with a running batch each; a thread computes on one core.
        capacity: problems that may be unfinished; `submit` raises `BusyError` beyond that.
        noise: standard deviation of the noise of further attempts.
    """

    def __init__(self, *, slots: int = 32, workers: int = 1, capacity: int = 512, noise: float = NOISE) -> None:
        for name, value in (("slots", slots), ("workers", workers), ("capacity", capacity)):
            if value < 1:
                raise InputError(f"{name}: expected at least 1, got {value}")
        self.slots, self.capacity, self.noise = slots, capacity, noise
        self._changed = threading.Condition()
        self._waiting: deque[Request] = deque()
        self._workers = [dict[Hashable, FairLoop]() for _ in range(workers)]
        self._problems = [0] * workers  # unfinished problems of each worker
        self._unfinished = 0
        self._closed = False
        self._counts: Counter[str] = Counter()
        self._seconds: Counter[float] = Counter()
        self._seconds_sum = 0.0
        ready, threads = threading.Barrier(workers + 1), torch.get_num_threads()
        for number in range(workers):
            threading.Thread(target=self._work, args=(number, ready), name=f"service-{number}", daemon=True).start()
        ready.wait()
        torch.set_num_threads(threads)  # other threads compute as before

    def submit(
        self,
        problems: Problems,
        *,
        max_steps: int,
        attempts: int = 1,
        seed: int = 0,
        record: Callable[[Tensor], Tensor] | None = None,
        client: str = "",
    ) -> "Future[Result]":
        """The future result of problems; arguments as of `run_attempts`.

        ``seed`` is that of the noise. Clients, for example addresses, take turns. Cancel the future to stop.
        """
        generator = torch.Generator().manual_seed(seed) if attempts > 1 else None
        trials = [Trial(problems, row, max_steps, attempts, generator, record) for row in range(len(problems))]
        for name, value in (("max_steps", max_steps), ("attempts", attempts), ("problems", len(trials))):
            if value < 1:
                raise InputError(f"{name}: expected at least 1, got {value}")
        request = Request(problems, trials, client)
        with self._changed:
            if self._closed:
                raise ClosedError("the service is closed")
            if self._unfinished + len(trials) > self.capacity:
                self._counts["refused"] += 1
                raise BusyError(f"more than {self.capacity} problems would be unfinished; try again later")
            self._unfinished += len(trials)
            self._waiting.append(request)
            self._changed.notify_all()
        # neither callback refers to the request: a cycle would keep its recorded outputs in memory for long
        request.future.add_done_callback(partial(self._count, len(trials), request.begun))
        return request.future

    async def solve(self, problems: Problems, **options: Any) -> Result:
        """The result of problems; arguments as of `submit`. Cancelling the coroutine stops the work."""
        import asyncio

        loop = asyncio.get_running_loop()
        done, future = loop.create_future(), self.submit(problems, **options)
        future.add_done_callback(partial(_wake, loop, done))
        try:
            await done
        except asyncio.CancelledError:
            future.cancel()
            raise
        return future.result()

    def statistics(self) -> dict[str, Any]:
        """Counts for monitoring.

        "problems": unfinished ones; "running" and "paused": attempts; "slots": the most that can run; "requests":
        finished requests by outcome; "seconds": (limit, requests that took at most that long) of `BUCKETS`.
        """
        loops = [loop for worker in self._workers for loop in list(worker.values())]
        with self._changed:
            total, seconds = 0, []
            for limit in (*BUCKETS, float("inf")):
                total += self._seconds[limit]
                seconds.append((limit, total))
            return {
                "problems": self._unfinished,
                "running": sum(_count(loop.running) for loop in loops),
                "paused": sum(_count(loop.paused) for loop in loops),
                "slots": self.slots * len(self._workers),
                "requests": {name: self._counts[name] for name in ("answered", "cancelled", "failed", "refused")},
                "seconds": seconds,
                "seconds_sum": self._seconds_sum,
            }

    def close(self) -> None:
        """End the workers after their current stride; unfinished requests get a `ClosedError`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _count(self, problems: int, begun: float, future: "Future[Result]") -> None:
        seconds = time.monotonic() - begun
        outcome = "cancelled" if future.cancelled() else "failed" if future.exception() else "answered"
        with self._changed:
            self._unfinished -= problems
            self._counts[outcome] += 1
            if outcome == "answered":
                self._seconds[next((limit for limit in BUCKETS if seconds <= limit), float("inf"))] += 1
                self._seconds_sum += seconds

    @torch.inference_mode()
    def _work(self, number: int, ready: threading.Barrier) -> None:
        loops = self._workers[number]
        torch.set_num_threads(1)
        ready.wait()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._waiting or loops)
                closed, taken = self._closed, [*self._waiting] if self._closed else self._take(number)
            if closed:
                for request in (*taken, *(each for loop in loops.values() for each in loop.requests.values())):
                    _finish(request.future, partial(_raise, ClosedError("the service is closed")))
                return
            for request in taken:
                key = request.problems.batch_key()
                if key not in loops:
                    loops[key] = FairLoop(request.problems.empty(), self.noise)
                loops[key].place(request)
            levels = [request.level for loop in loops.values() for request in loop.requests.values()]
            for key, loop in list(loops.items()):
                loop.restricted = min(levels) < OLD_LEVEL <= max(levels)
                try:
                    self._advance(loop)
                except Exception as error:
                    for request in loop.requests.values():
                        _finish(request.future, partial(_raise, error))
                    del loops[key]
                else:
                    if not loop.trials:
                        del loops[key]
            self._problems[number] = sum(len(loop.trials) for loop in loops.values())

    def _advance(self, loop: FairLoop) -> None:
        """Drop the problems of cancelled requests, run one stride, and finish requests."""
        for problem in [number for number, request in loop.requests.items() if request.future.cancelled()]:
            loop.drop(problem)
            del loop.requests[problem]
        for problem in loop.advance(self.slots):
            request = loop.requests.pop(problem)
            if all(trial.done for trial in request.trials):
                _finish(request.future, partial(result_of, request.problems, request.trials))

    def _take(self, number: int) -> list[Request]:
        """The requests that a worker begins: as many that all workers have about the same number of problems."""
        taken, waiting = [], sum(len(request.trials) for request in self._waiting)
        share = -(-(sum(self._problems) + waiting) // len(self._workers))
        while self._waiting and self._problems[number] < share:
            request = self._waiting.popleft()
            if not request.future.cancelled():
                taken.append(request)
                self._problems[number] += len(request.trials)
        return taken


def _count(slots: Slots | None) -> int:
    return 0 if slots is None else len(slots.problems)


def _finish(future: "Future[Result]", compute: Callable[[], Result]) -> None:
    """Set the result of a future that may be cancelled meanwhile."""
    with contextlib.suppress(InvalidStateError):
        try:
            future.set_result(compute())
        except InvalidStateError:
            raise
        except Exception as error:
            future.set_exception(error)


def _wake(loop: "asyncio.AbstractEventLoop", done: "asyncio.Future[None]", _: "Future[Result]") -> None:
    """Resume the coroutine that awaits ``done``. `asyncio.wrap_future` would make a cycle with the result in it."""
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(lambda: None if done.done() else done.set_result(None))


def _raise(error: Exception) -> Result:
    raise error
