"""Middleware that protects the application: host names, body size, deadlines, requests per address, headers."""

import asyncio
import ipaddress
import json
from collections import Counter
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from fastapi import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rrn.errors import quote
from rrn.web import limits

LOOPBACK = ("localhost", "127.0.0.1", "::1")
ANY_ADDRESS = "*"
"""As a host of `Guard`: every IP address, but no host name."""
HEADERS = {
    b"content-security-policy": b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-cache",
}
"""Headers of every response."""


CLIENT_ADDRESS: ContextVar[str] = ContextVar("client_address", default="")
"""Address of the client whose request is being answered."""


class Metrics(Protocol):
    """Counts the responses of the API by status."""

    responses: Counter[int]


def as_json(value: Any) -> bytes:
    """ASCII JSON, so that any text of a request can be sent back."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(as_json({"error": message}), status, dict(headers or {}), "application/json")


class Guard:
    """ASGI middleware. It checks the Host header, limits the body, and limits the unfinished requests per address.

    It cancels a request whose client disconnects, and writes long responses in chunks.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, hosts: Collection[str] = LOOPBACK) -> None:
        self.app, self.metrics, self.hosts = app, metrics, {host.lower() for host in hosts}
        self.unfinished: Counter[str] = Counter()
        """Unfinished API requests by address."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _chunked(send, self.metrics if scope["path"].startswith("/api/") else None)
        address = scope["client"][0] if scope.get("client") else ""
        counted = scope["path"].startswith("/api/")
        refused = self._refusal(scope, address if counted else None)
        if refused is not None:
            await refused(scope, receive, send)
            return
        CLIENT_ADDRESS.set(address)
        self.unfinished[address] += counted
        try:
            await self._forward(scope, receive, send)
        finally:
            self.unfinished[address] -= counted
            self.unfinished += Counter()  # removes zero counts

    def _refusal(self, scope: Scope, address: str | None) -> Response | None:
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if not self._is_our_host(host):
            return refusal(400, f"This server does not answer to the host {quote(host)}.", {"connection": "close"})
        if address is not None and self.unfinished[address] >= limits.REQUESTS_PER_ADDRESS:
            many = f"{limits.REQUESTS_PER_ADDRESS} requests of your address are unfinished; try again in a second."
            return refusal(429, many, {"retry-after": "1"})
        return None

    def _is_our_host(self, header: str) -> bool:
        """Whether a Host header names this server. The check prevents DNS rebinding."""
        host = header.rpartition(":")[0] if header.rpartition(":")[2].isdigit() and not header.endswith("]") else header
        host = host.strip("[]").removesuffix(".").lower()
        if host in self.hosts and host != ANY_ADDRESS:
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return ANY_ADDRESS in self.hosts

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(limits.BODY_SECONDS):
                body = await _read_body(scope, receive)
        except TimeoutError:
            late = f"The body did not arrive within {limits.BODY_SECONDS:.0f} seconds."
            await refusal(408, late, {"connection": "close"})(scope, receive, send)
            return
        if body is None:
            long = f"The body exceeds the limit of {limits.BODY_BYTES:,} bytes."
            await refusal(413, long, {"connection": "close"})(scope, receive, send)
            return
        await self._run(scope, body, receive, send)

    async def _run(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Run the application until it is done or the client disconnects."""
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))

        async def replay() -> Message:
            return messages.pop() if messages else await asyncio.shield(disconnect)

        response = asyncio.ensure_future(self.app(scope, replay, send))
        try:
            await asyncio.wait({response, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            if response.done():
                response.result()
        finally:
            for task in (response, disconnect):
                task.cancel()
            await asyncio.wait({response, disconnect})


def _chunked(send: Send, metrics: Metrics | None) -> Send:
    """Adds `HEADERS`, counts the status, and writes long bodies in chunks: little of a response waits in memory."""

    async def send_chunks(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS.items()]
            if metrics is not None:
                metrics.responses[message["status"]] += 1
        body = memoryview(message.get("body", b""))
        while len(body) > limits.CHUNK_BYTES:
            await send({**message, "body": bytes(body[: limits.CHUNK_BYTES]), "more_body": True})
            body = body[limits.CHUNK_BYTES :]
        await send({**message, "body": bytes(body)} if "body" in message else message)

    return send_chunks


async def _wait_for_disconnect(receive: Receive) -> Message:
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
