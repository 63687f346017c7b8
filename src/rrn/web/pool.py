"""Networks run here, off the event loop, in few threads, with a queue that ends somewhere."""

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from fastapi import Response


class BusyError(Exception):
    """The queue is full."""


class Pool:
    """``workers`` threads, and room for ``waiting`` calls more; `run` refuses whatever is beyond."""

    def __init__(self, workers: int, waiting: int) -> None:
        import torch

        torch.set_num_threads(1)
        self.workers, self.waiting = workers, waiting
        self._threads = ThreadPoolExecutor(workers, "network", initializer=torch.set_num_threads, initargs=(1,))
        self._inside = 0
        self._lock = threading.Lock()

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.wrap_future(self.submit(work, *arguments))

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        with self._lock:
            if self._inside >= self.workers + self.waiting:
                raise BusyError
            self._inside += 1
        future = self._threads.submit(work, *arguments)
        future.add_done_callback(self._leave)
        return future

    def _leave(self, _: "Future[Any]") -> None:
        with self._lock:
            self._inside -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def as_json(value: Any) -> bytes:
    """ASCII, so that whatever a user typed can be sent back."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


async def answer(pool: Pool, work: Callable[..., Any], *arguments: Any) -> Response:
    """The response with what ``work`` returns; a worker also writes the JSON, which can be long."""
    body = await pool.run(lambda: as_json(work(*arguments)))
    return Response(body, media_type="application/json")
