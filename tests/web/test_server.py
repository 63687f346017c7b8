"""Clients that leave, read slowly, stay, or do not speak HTTP: the others notice nothing."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.web.conftest import LiveServer

from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.web import limits, server
from rrn.web.app import create_app

STORY = "Ann is 20. Ann is 4 years older than Bob. How old is Bob?"
SOLVE = {"puzzles": ["." * 81], "steps": 256, "restarts": 8, "probabilities": False}
"""Seconds of work: nobody solves an empty puzzle."""


def head(path: str, body: bytes, host: str = "localhost") -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def connect(live: LiveServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", live.port), timeout=30)


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def closed(connection: socket.socket) -> bool:
    """Whether the server ends it within the timeout."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return True


@pytest.fixture(scope="module")
def own(weights: dict[str, Path | str]) -> Iterator[tuple[LiveServer, FastAPI]]:
    """A server with one worker, for Sudoku alone."""
    app = create_app({"sudoku": weights["sudoku"]}, workers=1, waiting=4)
    with LiveServer(app) as live:
        yield live, app


def test_work_stops_when_its_client_leaves(own: tuple[LiveServer, FastAPI]) -> None:
    """Of six clients that ask for some seconds of work each and leave, none costs the seventh its place or its time."""
    live, app = own
    pool, body = app.state.pool, json.dumps(SOLVE).encode()
    for _ in range(3):
        leaving = [connect(live) for _ in range(5)]
        for connection in leaving:
            connection.sendall(head("/api/sudoku/solve", body))
        wait_until(lambda: pool._inside == 5)
        for connection in leaving:
            connection.close()
        begun = time.process_time()
        wait_until(lambda: pool._inside == 0)
        assert time.process_time() - begun < 2
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=60)
    connection.request("POST", "/api/sudoku/solve", json.dumps({"puzzles": [EXAMPLES[0]]}))
    assert connection.getresponse().status in (200, 422)


def test_no_address_has_all_places(weights: dict[str, Path | str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PER_ADDRESS", 2)
    app = create_app({"ages": weights["ages"]}, workers=1, waiting=8)
    release = threading.Event()
    blocked = app.state.pool.submit(release.wait)
    one, other = (TestClient(app, base_url="http://localhost", client=(name, 1)) for name in ("10.0.0.1", "10.0.0.2"))
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(one.post("/api/ages/ask", json={"story": STORY}).status_code))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(codes) == 3)
    assert codes == [429] * 3
    third = threading.Thread(
        target=lambda: codes.append(other.post("/api/ages/ask", json={"story": STORY}).status_code)
    )
    third.start()
    assert one.get("/").status_code == 200  # the page itself is nobody's share
    release.set()
    for thread in (*threads, third):
        thread.join(30)
    assert sorted(codes) == [200, 200, 200, 429, 429, 429]
    assert blocked.result()
    assert one.post("/api/ages/ask", json={"story": STORY}).status_code == 200


def test_an_answer_that_is_not_read_is_thrown_away(
    own: tuple[LiveServer, FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    live, _ = own
    monkeypatch.setattr(limits, "SEND_SECONDS", 1.0)
    body = json.dumps({"puzzles": ["." * 81] * 16, "steps": 128}).encode()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(60)
        slow.connect(("127.0.0.1", live.port))
        slow.sendall(head("/api/sudoku/solve", body))
        state = live.server.server_state
        wait_until(lambda: any(c.transport.get_write_buffer_size() for c in state.connections), 60)
        assert max(c.transport.get_write_buffer_size() for c in state.connections) < 4 * limits.PIECE_BYTES
        wait_until(lambda: not any(c.transport.get_write_buffer_size() for c in state.connections), 20)
        assert closed(slow)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"\r\n"])
def test_connections_that_ask_for_nothing_are_closed(sent: bytes, live: LiveServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "IDLE_SECONDS", 0.5)
    with connect(live) as idle:
        idle.sendall(sent)
        assert closed(idle)


def test_connections_are_capped_and_the_refusal_is_json(live: LiveServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(live.server.config, "limit_connections", 2)
    wait_until(lambda: not live.server.server_state.connections)
    kept = [connect(live) for _ in range(2)]
    wait_until(lambda: len(live.server.server_state.connections) == 2)
    with connect(live) as third:
        response = http.client.HTTPResponse(third)
        response.begin()
        assert (response.status, list(json.loads(response.read()))) == (503, ["error"])
        assert response.getheader("content-security-policy") is not None
    for connection in kept:
        connection.close()


def test_what_is_no_http_is_refused_as_json(live: LiveServer) -> None:
    for nonsense in (
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 100_000,
        b"GET \xff\r\n\r\n",
    ):
        with connect(live) as speaking:
            speaking.sendall(nonsense)
            response = http.client.HTTPResponse(speaking)
            response.begin()
            assert (response.status, list(json.loads(response.read()))) == (400, ["error"])
            assert response.getheader("x-content-type-options") == "nosniff"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8000", 200),
        ("[::1]", 200),
        ("localhost.", 200),
        ("evil.example", 400),
        ("localhost.evil.example", 400),
        ("10.0.0.7", 400),
        ("[fe80::1]:80", 400),
        ("", 400),
        ("localhost:80:80", 400),
    ],
)
def test_the_host_header_is_checked(host: str, status: int, client: TestClient) -> None:
    response = client.get("/api/panels", headers={"host": host})
    assert response.status_code == status
    if status == 400:
        assert "does not answer to the host" in response.json()["error"]
        assert "content-security-policy" in response.headers


def test_hosts_that_are_asked_for() -> None:
    named = TestClient(create_app({}, hosts={"rrn.example"}), base_url="http://rrn.example")
    assert named.get("/").status_code == 200
    assert named.get("/", headers={"host": "10.0.0.7"}).status_code == 400
    everywhere = TestClient(create_app({}, hosts={"localhost", "*"}), base_url="http://10.0.0.7:80")
    assert everywhere.get("/").status_code == 200
    assert everywhere.get("/", headers={"host": "evil.example"}).status_code == 400
    assert everywhere.get("/", headers={"host": "*"}).status_code == 400


def test_a_lack_of_sockets_is_told_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    one = server.Server(create_app({}))
    loop = asyncio.new_event_loop()
    for _ in range(1000):
        one._tell(loop, {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many")})
    loop.close()
    assert capsys.readouterr().err.count("\n") == 1


def test_connections_fit_into_the_file_descriptors() -> None:
    one = server.Server(create_app({}))
    assert one.config.limit_connections + one.config.backlog < server._free_descriptors()
    assert one.config.limit_connections <= limits.CONNECTIONS
