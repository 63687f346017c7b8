"""Networks run here, off the event loop, in few threads, with a queue that ends somewhere."""

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from fastapi import HTTPException, Response


class BusyError(Exception):
    """The queue is full."""


class Left(BaseException):
    """Nobody waits for the answer any more."""


class Pool:
    """``workers`` threads, and room for ``waiting`` calls more; `run` refuses whatever is beyond.

    Work whose caller is cancelled leaves the queue, or, if it has begun, ends with the next steps of its network: see
    `watch`.
    """

    def __init__(self, workers: int, waiting: int) -> None:
        import torch

        self._torch_threads = torch.get_num_threads()
        self.workers, self.waiting = workers, waiting
        self._set_torch_threads = torch.set_num_threads  # each worker computes on one thread
        self._threads = ThreadPoolExecutor(workers, "network", initializer=self._set_torch_threads, initargs=(1,))
        self._inside = 0
        self._closed = False
        self._lock = threading.Lock()
        self._here = threading.local()

    def watch(self, network: Any) -> None:
        """Let a network look, whenever it is called, whether the work it is part of is still wanted."""
        network.register_forward_pre_hook(lambda *_: self._stop_if_left())

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        left = threading.Event()
        future = self.submit(self._wanted, left, work, *arguments)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            left.set()
            raise
        except Left:
            raise HTTPException(503, "The server is going down.") from None

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        with self._lock:
            if self._inside >= self.workers + self.waiting:
                raise BusyError
            self._inside += 1
        future = self._threads.submit(work, *arguments)
        future.add_done_callback(self._leave)
        return future

    def _wanted(self, left: threading.Event, work: Callable[..., Any], *arguments: Any) -> Any:
        self._here.left = left
        try:
            return work(*arguments)
        finally:
            del self._here.left

    def _stop_if_left(self) -> None:
        left = getattr(self._here, "left", None)
        if self._closed or (left is not None and left.is_set()):
            raise Left

    def _leave(self, _: "Future[Any]") -> None:
        with self._lock:
            self._inside -= 1

    def close(self) -> None:
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._set_torch_threads(self._torch_threads)


def as_json(value: Any) -> bytes:
    """ASCII, so that whatever a user typed can be sent back."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


async def answer(pool: Pool, work: Callable[..., Any], *arguments: Any) -> Response:
    """The response with what ``work`` returns; a worker also writes the JSON, which can be long."""
    body = await pool.run(lambda: as_json(work(*arguments)))
    return Response(body, media_type="application/json")
