"""uvicorn with deadlines and limits for connections."""

import asyncio
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from rrn._compat import uvicorn_protocol
from rrn.web import limits
from rrn.web.guard import HEADERS, as_json

GRACE_SECONDS, KILL_SECONDS = 3, 8.0
"""After a signal: time to finish responses, and time until the process ends in any case."""
BACKLOG = 64
RESERVED_DESCRIPTORS = 32
"""File descriptors for everything but connections."""


_Protocol: Any = uvicorn_protocol()


class Connection(_Protocol or asyncio.Protocol):  # type: ignore[misc]
    """A connection that is closed if it is idle, or if its client does not read, for too long."""

    idle_since: float | None = None
    sending_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        same = [other for other in self.connections if other.client and other.client[0] == address]
        if len(self.connections) > self.config.limit_connections:
            self._refuse(503, "Too many connections are open; try again in a few seconds.")
        elif len(same) > self.config.limit_connections_per_address:
            self._refuse(503, "Too many connections of your address are open; close some of them.")

    def on_response_complete(self) -> None:
        self.idle_since = None
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _refuse(self, status: int, message: str) -> None:
        body = as_json({"error": message})
        headers = {
            b"content-type": b"application/json",
            b"content-length": b"%d" % len(body),
            b"connection": b"close",
            **HEADERS,
        }
        lines = [b"HTTP/1.1 %d " % status, *(b"\r\n%s: %s" % header for header in headers.items()), b"\r\n\r\n", body]
        self.transport.write(b"".join(lines))
        self.transport.close()

    def check_deadlines(self, now: float) -> None:
        """Close the connection if it is past a deadline; called every second."""
        sending = self.transport.get_write_buffer_size() > 0
        idle = not sending and (self.cycle is None or self.cycle.response_complete)
        self.sending_since = (self.sending_since or now) if sending else None
        self.idle_since = (self.idle_since or now) if idle else None
        late = self.sending_since is not None and now - self.sending_since > limits.SEND_SECONDS
        if late or (self.idle_since is not None and now - self.idle_since > limits.IDLE_SECONDS):
            self.transport.abort()


class Server(uvicorn.Server):
    """Calls ``ready`` once it listens. It limits connections to the available file descriptors."""

    def __init__(self, app: FastAPI, ready: Callable[[], None] = lambda: None, **options: Any) -> None:
        free = _free_descriptors()
        most = min(limits.CONNECTIONS, max(free // 2, 1))
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection if _Protocol else "auto",
                limit_concurrency=None if _Protocol else most,
                ws="none",
                log_level="error",
                backlog=min(BACKLOG, max(free // 4, 1)),
                timeout_keep_alive=int(limits.IDLE_SECONDS),
                timeout_graceful_shutdown=GRACE_SECONDS,
                server_header=False,
                **options,
            )
        )
        self.config.limit_connections = most  # type: ignore[attr-defined]
        self.config.limit_connections_per_address = min(limits.CONNECTIONS_PER_ADDRESS, max(most // 2, 1))  # type: ignore[attr-defined]
        self.ready = ready
        self.reported_at = -60.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._report)
        await super().startup(sockets)
        self.ready()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.check_deadlines(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # aborting requests is intended here
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        kill = threading.Timer(KILL_SECONDS, os._exit, (128 + sig,))
        kill.daemon = True
        kill.start()
        super().handle_exit(sig, frame)

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Print errors outside of requests, at most one per minute; a lack of sockets causes thousands."""
        if loop.time() - self.reported_at > 60:
            self.reported_at = loop.time()
            print(f"rrn: {context.get('message')} ({context.get('exception')!r:.200})", file=sys.stderr, flush=True)


def _free_descriptors() -> int:
    """File descriptors that this process can still open, after raising its soft limit."""
    try:
        import resource
    except ImportError:  # Windows
        return 2 * limits.CONNECTIONS + RESERVED_DESCRIPTORS
    least = 4 * limits.CONNECTIONS
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now < least:
        now = least if most == resource.RLIM_INFINITY else min(least, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
    used = len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else RESERVED_DESCRIPTORS
    return max(now - used - RESERVED_DESCRIPTORS, 2)
