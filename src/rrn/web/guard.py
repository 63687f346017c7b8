"""What stands between the application and its clients: hosts, sizes, times, shares, and headers."""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from fastapi import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rrn.errors import quote
from rrn.web import limits
from rrn.web.pool import as_json

LOOPBACK = ("localhost", "127.0.0.1", "::1")
ANY_ADDRESS = "*"
"""Among the hosts of a `Guard`: whatever is a number, not a name."""
HEADERS = {
    b"content-security-policy": b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-cache",
}
"""Of every response: browsers are to be strict."""


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(as_json({"error": message}), status, dict(headers or {}), "application/json")


class Guard:
    """Answers to its own names alone; caps bodies, whatever their headers say, and gives up on slow ones; ends the
    work of a client that leaves; lets no address have all places; sends long answers piece by piece."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] = LOOPBACK) -> None:
        self.app, self.hosts = app, {host.lower() for host in hosts}
        self.asking: Counter[str] = Counter()
        """Requests to the API that each address waits for, or is being sent the answer of."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sending = _Sending(send)
        address = scope["client"][0] if scope.get("client") else ""
        asks = scope["path"].startswith("/api/")
        refused = self._refusal(scope, address if asks else None)
        if refused is not None:
            await refused(scope, receive, sending)
            return
        self.asking[address] += asks
        try:
            await self._pass_on(scope, receive, sending)
        finally:
            self.asking[address] -= asks
            self.asking += Counter()  # forgets addresses that wait for nothing

    def _refusal(self, scope: Scope, asking: str | None) -> Response | None:
        named = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if not self._answers_to(named):
            return refusal(400, f"This server does not answer to the host {quote(named)}.", {"connection": "close"})
        if asking is not None and self.asking[asking] >= limits.PER_ADDRESS:
            many = f"{limits.PER_ADDRESS} requests from your address wait already; try again after a second."
            return refusal(429, many, {"retry-after": "1"})
        return None

    def _answers_to(self, named: str) -> bool:
        """Whether a Host header means us. Names of others that lead here are how other pages would reach in."""
        host = named.rpartition(":")[0] if named.rpartition(":")[2].isdigit() and not named.endswith("]") else named
        host = host.strip("[]").removesuffix(".").lower()
        if host in self.hosts and host != ANY_ADDRESS:
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return ANY_ADDRESS in self.hosts

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(limits.BODY_SECONDS):
                body = await _read_body(scope, receive)
        except TimeoutError:
            late = f"The body did not arrive within {limits.BODY_SECONDS:.0f} seconds."
            await refusal(408, late, {"connection": "close"})(scope, receive, send)
            return
        if body is None:
            long = f"The body is too long; at most {limits.BODY_BYTES:,} bytes are read."
            await refusal(413, long, {"connection": "close"})(scope, receive, send)
            return
        await self._work(scope, body, receive, send)

    async def _work(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Until it is done, or the client has left."""
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        leaving = asyncio.ensure_future(_disconnected(receive))

        async def replay() -> Message:
            return waiting.pop() if waiting else await asyncio.shield(leaving)

        working = asyncio.ensure_future(self.app(scope, replay, send))
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            for task in (working, leaving):
                task.cancel()
            await asyncio.wait({working, leaving})


class _Sending:
    """Adds the headers, and cuts long bodies, so that no more waits in memory for the network than it takes."""

    def __init__(self, send: Send) -> None:
        self.send = send

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS.items()]
        body = memoryview(message.get("body", b""))
        while len(body) > limits.PIECE_BYTES:
            await self.send({**message, "body": bytes(body[: limits.PIECE_BYTES]), "more_body": True})
            body = body[limits.PIECE_BYTES :]
        await self.send({**message, "body": bytes(body)} if "body" in message else message)


async def _disconnected(receive: Receive) -> Message:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message


async def _read_body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body; None if it is longer than allowed."""
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if declared.isdigit() and int(declared[:20]) > limits.BODY_BYTES:
        return None
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limits.BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)
