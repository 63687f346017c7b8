"""Worker threads that run the networks, with a bounded queue in which client addresses take turns."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from fastapi import HTTPException, Response

from rrn.inference.service import BusyError
from rrn.web.guard import CLIENT_ADDRESS, as_json


class CancelledWork(BaseException):
    """The client has disconnected, or the server is stopping."""


class Pool:
    """``workers`` threads and a queue of ``waiting`` calls. `submit` raises `BusyError` when the queue is full.

    Addresses take turns: the next call comes from the address that was served longest ago. A cancelled call is removed
    from the queue; if it runs already, its network stops at its next forward pass (`add_cancellation_check`).
    """

    def __init__(self, workers: int, waiting: int) -> None:
        import torch

        self._torch_threads = torch.get_num_threads()
        self.workers, self.waiting = workers, waiting
        self.unfinished = 0
        """Calls that run or wait."""
        self._set_torch_threads = torch.set_num_threads  # each worker computes on one thread
        self._threads = ThreadPoolExecutor(workers, "network", initializer=self._set_torch_threads, initargs=(1,))
        self._queues: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        """Waiting calls of each address; the address that has waited longest for its turn comes first."""
        self._served: deque[str] = deque(maxlen=workers)
        """The addresses served last; others come first."""
        self._closed = False
        self._lock = threading.Lock()
        self._current = threading.local()

    def add_cancellation_check(self, network: Any) -> None:
        """Make each forward pass of a network raise `CancelledWork` once its call is cancelled."""
        network.register_forward_pre_hook(lambda *_: self._raise_if_cancelled())

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """The result of ``work(*arguments)``, computed by a worker. Cancelling this coroutine cancels the call."""
        cancelled = threading.Event()

        def call() -> Any:
            self._current.cancelled = cancelled
            try:
                return work(*arguments)
            finally:
                del self._current.cancelled

        try:
            return await asyncio.wrap_future(self.submit(call))
        except asyncio.CancelledError:
            cancelled.set()
            raise
        except CancelledWork:
            raise HTTPException(503, "The server is stopping.") from None

    def submit(self, call: Callable[[], Any]) -> "Future[Any]":
        future: Future[Any] = Future()
        with self._lock:
            if self.unfinished >= self.workers + self.waiting:
                raise BusyError("too many requests are waiting")
            self.unfinished += 1
            self._queues.setdefault(CLIENT_ADDRESS.get(), deque()).append((future, call))
        future.add_done_callback(self._finish)
        self._threads.submit(self._run_next)
        return future

    def _run_next(self) -> None:
        with self._lock:
            if not self._queues:
                return
            first = next(iter(self._queues))
            address = next((each for each in self._queues if each not in self._served), first)
            self._served.append(address)
            queue = self._queues.pop(address)
            future, call = queue.popleft()
            if queue:
                self._queues[address] = queue  # last in turn
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def _finish(self, _: "Future[Any]") -> None:
        with self._lock:
            self.unfinished -= 1

    def _raise_if_cancelled(self) -> None:
        cancelled = getattr(self._current, "cancelled", None)
        if self._closed or (cancelled is not None and cancelled.is_set()):
            raise CancelledWork

    def close(self) -> None:
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            waiting = [future for queue in self._queues.values() for future, _ in queue]
            self._queues.clear()
        for future in waiting:
            future.cancel()
        self._set_torch_threads(self._torch_threads)


async def respond(pool: Pool, work: Callable[..., Any], *arguments: Any) -> Response:
    """A response with the result of ``work``. A worker also encodes the JSON, which can be long."""
    body = await pool.run(lambda: as_json(work(*arguments)))
    return Response(body, media_type="application/json")
