"""Misbehaving clients against a process of ``rrn serve``: clients that disconnect, do not read, or do not finish their
request; also while the server stops; and clients of one address that ask for everything."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.web import limits
from rrn.web.panels.sudoku import IMPOSSIBLE
from rrn.web.server import GRACE_SECONDS

TICKS = os.sysconf("SC_CLK_TCK")
LONG = {"puzzles": ["." * 81], "steps": 256, "attempts": 9, "probabilities": False}
"""Seconds of work."""
LARGE = {"puzzles": [IMPOSSIBLE] * 16, "steps": 128}
"""A response of megabytes."""
SMALL = {"puzzles": [EXAMPLES[0]], "probabilities": False}
HEAD = ("POST /api/sudoku/solve HTTP/1.1", "Host: localhost", "Content-Type: application/json")
IDLE = (
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n",
    "\r\n".join([*HEAD, "Content-Length: 99", "", "{"]).encode(),
)
"""Unfinished requests."""
SLACK = 10.0
"""Allowed delay of a deadline on a busy machine, in seconds."""
ANSWERED_SECONDS = 300.0
"""Deadline for the begin of every response."""
DROPPED_SECONDS = 1.0
"""Limit of the processor time of a request whose client disconnected."""
GROWTH = 1.15
"""Limit of the memory after clients that do not read, relative to that before."""


@dataclass
class Served:
    """A server process and its port."""

    process: "subprocess.Popen[str]"
    port: int

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # set before connecting: responses do not fit
        connection.settimeout(ANSWERED_SECONDS)
        connection.bind((source, 0))
        connection.connect(("127.0.0.1", self.port))
        return connection

    def ask(self, body: dict[str, Any], source: str = "127.0.0.1") -> int:
        """The status of the response to a client that reads it."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=ANSWERED_SECONDS, source_address=(source, 0)
        )
        with contextlib.closing(connection):
            connection.request("POST", "/api/sudoku/solve", json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            response.read()
            return response.status

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> float:
        """Resident megabytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def serve() -> Iterator[Served]:
    command = [sys.executable, "-m", "rrn.cli", "serve", "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port = int(re.findall(r":(\d+) after", process.stderr.readline())[0])
            served = Served(process, port)
            served.ask(SMALL)
            yield served
        finally:
            process.kill()


def request(body: dict[str, Any]) -> bytes:
    sent = json.dumps(body).encode()
    lines = [*HEAD, f"Content-Length: {len(sent)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + sent


def closed(connection: socket.socket, until: float) -> bool:
    """Whether the server closes a connection before the time ``until``."""
    try:
        while True:
            connection.settimeout(max(until - time.monotonic(), 0.1))
            if not connection.recv(1 << 20):
                return True
    except TimeoutError:
        return False
    except OSError:
        return True


def drop(served: Served, clients: int, wave: int = 12) -> tuple[dict[str, Any], list[str]]:
    """Clients that ask for seconds of work and disconnect; after each wave another client asks and reads.

    The result contains the processor time of a whole request and of a dropped one."""
    before = served.cpu_seconds()
    served.ask(LONG)
    whole, losses, cost = served.cpu_seconds() - before, [], 0.0
    for first in range(0, clients, wave):
        leaving = [served.connect() for _ in range(min(wave, clients - first))]
        before = served.cpu_seconds()
        for connection in leaving:
            connection.sendall(request(LONG))
        time.sleep(0.2)
        for connection in leaving:
            connection.close()
        status = served.ask(SMALL)
        spent = served.cpu_seconds() - before
        cost += spent
        if status != 200:
            losses.append(f"drop: another client got {status}")
        if spent > len(leaving) * DROPPED_SECONDS:
            losses.append(f"drop: {len(leaving)} dropped requests took {spent:.1f} seconds")
    seconds = {"whole": round(whole, 2), "dropped": round(cost / clients, 3)}
    return {"trials": clients, "processor_seconds_each": seconds}, losses


def idle(served: Served, clients: int) -> tuple[dict[str, Any], list[str]]:
    """Clients that do not finish their request."""
    asking = [served.connect() for _ in range(clients)]
    for number, connection in enumerate(asking):
        connection.sendall(IDLE[number % len(IDLE)])
    begun = time.monotonic()
    status = served.ask(SMALL)
    until = begun + max(limits.IDLE_SECONDS, limits.BODY_SECONDS) + SLACK
    losses = ["idle: still open" for connection in asking if not closed(connection, until)]
    losses += [f"idle: another client got {status}"] if status != 200 else []
    return {"trials": clients, "last_closed_after_seconds": round(time.monotonic() - begun, 1)}, losses


def slow(served: Served, clients: int) -> tuple[dict[str, Any], list[str]]:
    """Clients that do not read their responses, which the server discards.

    The server keeps the memory of one such response, so one is read before the measurement."""
    statuses = [served.ask(LARGE)]
    before = served.memory()
    reading = [served.connect() for _ in range(clients)]
    for connection in reading:
        connection.sendall(request(LARGE))
    statuses.append(served.ask(SMALL))
    begun = time.monotonic()
    while any(_unanswered(connection) for connection in reading) and time.monotonic() - begun < ANSWERED_SECONDS:
        time.sleep(0.5)
    time.sleep(limits.SEND_SECONDS + SLACK)
    losses = ["slow readers: the response was not discarded" for connection in reading if not _cut(connection)]
    statuses.append(served.ask(SMALL))
    after = served.memory()
    losses += [f"slow readers: another client got {status}" for status in statuses if status != 200]
    if after > before * GROWTH:
        losses.append(f"slow readers: {before:.0f} MB before, {after:.0f} MB after")
    return {"trials": clients, "memory_mb": {"before": round(before), "after": round(after)}}, losses


def _unanswered(connection: socket.socket) -> bool:
    """Whether no byte has arrived for a client."""
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False


def _cut(connection: socket.socket) -> bool:
    """Whether a response was begun, and discarded before all of it was sent."""
    connection.settimeout(SLACK)
    content = b""
    try:
        while part := connection.recv(1 << 16):
            content += part
    except TimeoutError:
        return False
    except OSError:
        pass
    head, _, body = content.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return head.startswith(b"HTTP/1.1 200") and length is not None and len(body) < int(length[1])


def starve(served: Served, requests: int) -> tuple[dict[str, Any], list[str]]:
    """One address asks for much work; a small request of another waits for at most one of its requests."""
    begun = time.monotonic()
    served.ask(LONG)
    one = time.monotonic() - begun
    asking = [served.connect() for _ in range(requests)]
    for connection in asking:
        connection.sendall(request(LONG))
    time.sleep(0.5)
    begun = time.monotonic()
    status = served.ask(SMALL, "127.0.0.2")
    waited = time.monotonic() - begun
    for connection in asking:
        connection.close()
    losses = [f"starve: another address got {status}"] if status != 200 else []
    if waited > one + SLACK:
        losses.append(f"starve: another address waited {waited:.1f} s; one request takes {one:.1f} s")
    return {"trials": requests, "seconds": {"one_request": round(one, 1), "other_address": round(waited, 1)}}, losses


def crowd(served: Served, connections: int) -> tuple[dict[str, Any], list[str]]:
    """One address opens many connections; another is still answered."""
    opened = [served.connect() for _ in range(connections)]
    status = served.ask(SMALL, "127.0.0.2")
    for connection in opened:
        connection.close()
    return {"trials": connections}, [f"crowd: another address got {status}"] if status != 200 else []


def terminate(trials: int) -> tuple[dict[str, Any], list[str]]:
    """SIGTERM while clients wait, do not read, and stay connected."""
    losses, slowest = [], 0.0
    for _ in range(trials):
        with serve() as served:
            staying = [served.connect() for _ in range(len(IDLE) + 3)]
            for connection, sent in zip(staying, (*IDLE, request(LONG), request(LARGE), request(LARGE)), strict=True):
                connection.sendall(sent)
            time.sleep(0.5)
            begun = time.monotonic()
            served.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                served.process.wait(60)
            took = time.monotonic() - begun
            slowest = max(slowest, took)
            assert served.process.stderr is not None
            served.process.kill()
            printed = served.process.stderr.read()
            if took > 10:
                losses.append(f"SIGTERM: it took {took:.1f} seconds")
            if "Traceback" in printed:
                losses.append(f"SIGTERM: {printed[-300:]!r}")
            for connection in staying:
                connection.close()
    return {"trials": trials, "slowest_seconds": round(slowest, 1), "answers_get_seconds": GRACE_SECONDS}, losses
