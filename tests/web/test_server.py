"""Clients that disconnect, read slowly, idle, send invalid HTTP or ask too much do not disturb other clients."""

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
from rrn.web.guard import CLIENT_ADDRESS
from rrn.web.pool import Pool

STORY = "Ann is 20. Ann is 4 years older than Bob. How old is Bob?"
SOLVE = {"puzzles": ["." * 81], "steps": 256, "attempts": 9, "probabilities": False}
"""Seconds of work: no network solves an empty puzzle."""


def head(path: str, body: bytes, host: str = "localhost") -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def connect(live: LiveServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", live.port), timeout=30)


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "timeout"
        time.sleep(0.02)


def closed(connection: socket.socket) -> bool:
    """Whether the server closes the connection within the timeout."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return True


@pytest.fixture(scope="module")
def sudoku_server(weights: dict[str, Path | str]) -> Iterator[tuple[LiveServer, FastAPI]]:
    """A server with one worker and only the Sudoku panel."""
    app = create_app({"sudoku": weights["sudoku"]}, workers=1, waiting=4)
    with LiveServer(app) as live:
        yield live, app


def test_work_stops_when_its_client_disconnects(sudoku_server: tuple[LiveServer, FastAPI]) -> None:
    """Five clients ask for seconds of work each and disconnect; the next client does not wait for them."""
    live, app = sudoku_server
    service, body = app.state.service, json.dumps(SOLVE).encode()
    for _ in range(3):
        leaving = [connect(live) for _ in range(5)]
        for connection in leaving:
            connection.sendall(head("/api/sudoku/solve", body))
        wait_until(lambda: service.statistics()["problems"] == 5)
        for connection in leaving:
            connection.close()
        begun = time.process_time()
        wait_until(lambda: service.statistics()["problems"] == 0)
        assert time.process_time() - begun < 2
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=60)
    connection.request("POST", "/api/sudoku/solve", json.dumps({"puzzles": [EXAMPLES[0]]}))
    assert connection.getresponse().status in (200, 422)


def test_the_unfinished_requests_of_an_address_are_limited(
    weights: dict[str, Path | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REQUESTS_PER_ADDRESS", 2)
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
    assert one.get("/").status_code == 200  # the page itself is not limited
    release.set()
    for thread in (*threads, third):
        thread.join(30)
    assert sorted(codes) == [200, 200, 200, 429, 429, 429]
    assert blocked.result()
    assert one.post("/api/ages/ask", json={"story": STORY}).status_code == 200


def test_a_response_that_is_not_read_is_discarded(
    sudoku_server: tuple[LiveServer, FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    live, _ = sudoku_server
    monkeypatch.setattr(limits, "SEND_SECONDS", 1.0)
    body = json.dumps({"puzzles": ["." * 81] * 16, "steps": 128}).encode()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(60)
        slow.connect(("127.0.0.1", live.port))
        slow.sendall(head("/api/sudoku/solve", body))
        state = live.server.server_state
        wait_until(lambda: any(c.transport.get_write_buffer_size() for c in state.connections), 60)
        assert max(c.transport.get_write_buffer_size() for c in state.connections) < 4 * limits.CHUNK_BYTES
        wait_until(lambda: not any(c.transport.get_write_buffer_size() for c in state.connections), 20)
        assert closed(slow)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"\r\n"])
def test_idle_connections_are_closed(sent: bytes, live: LiveServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "IDLE_SECONDS", 0.5)
    with connect(live) as idle:
        idle.sendall(sent)
        assert closed(idle)


def test_a_client_that_asks_again_and_again_keeps_its_connection(live: LiveServer, monkeypatch: Any) -> None:
    """Its requests are shorter than the second between two checks of the deadlines."""
    monkeypatch.setattr(limits, "IDLE_SECONDS", 1.5)
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=30)
    connection.connect()
    used = connection.sock
    for _ in range(10):
        time.sleep(0.5)
        connection.request("GET", "/api/panels")
        connection.getresponse().read()
        assert connection.sock is used
    assert closed(used), "an idle connection is still closed"


def test_one_address_cannot_take_all_connections(live: LiveServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(live.server.config, "limit_connections_per_address", 3)
    wait_until(lambda: not live.server.server_state.connections)
    others = [connect(live) for _ in range(3)]
    wait_until(lambda: len(live.server.server_state.connections) == 3)
    for source, status in (("127.0.0.1", 503), ("127.0.0.2", 200)):
        client = http.client.HTTPConnection("127.0.0.1", live.port, timeout=30, source_address=(source, 0))
        client.request("GET", "/api/panels")
        assert client.getresponse().status == status
        client.close()
    for connection in others:
        connection.close()


def test_addresses_take_turns_in_the_queue(weights: dict[str, Path | str]) -> None:
    """A request of one address is answered after at most one more request of another that has many waiting."""
    app = create_app({"ages": weights["ages"]}, workers=1, waiting=16)
    pool, release, order = app.state.pool, threading.Event(), []
    blocked = pool.submit(release.wait)

    def ask(address: str) -> None:
        client = TestClient(app, base_url="http://localhost", client=(address, 1))
        assert client.post("/api/ages/ask", json={"story": STORY}).status_code == 200
        order.append(address)

    threads = []
    for number, address in enumerate(["10.0.0.1"] * 8 + ["10.0.0.2"] * 2, start=2):
        threads.append(threading.Thread(target=ask, args=(address,)))
        threads[-1].start()
        wait_until(lambda number=number: pool.unfinished == number)  # type: ignore[misc]
    release.set()
    for thread in threads:
        thread.join(30)
    assert blocked.result()
    assert sorted(order) == ["10.0.0.1"] * 8 + ["10.0.0.2"] * 2
    last = max(position for position, address in enumerate(order) if address == "10.0.0.2")
    assert last <= 4, order  # 3 if the responses arrive in order


def test_a_new_address_comes_before_the_address_served_last() -> None:
    pool, order = Pool(1, 8), []

    def submit(address: str, event: threading.Event) -> Any:
        CLIENT_ADDRESS.set(address)
        return pool.submit(lambda: (event.wait(10), order.append(address)))

    first, done = threading.Event(), threading.Event()
    done.set()
    calls = [submit("a", first), submit("a", done)]
    wait_until(calls[0].running)
    calls += [submit("b", done), submit("a", done), submit("c", done)]
    first.set()
    for call in calls:
        call.result(10)
    CLIENT_ADDRESS.set("")
    assert order == ["a", "b", "a", "c", "a"]


def test_closing_the_pool_cancels_waiting_calls() -> None:
    pool, release = Pool(1, 4), threading.Event()
    running, waiting = pool.submit(release.wait), pool.submit(release.wait)
    wait_until(running.running)
    pool.close()
    assert waiting.cancelled()
    release.set()
    assert running.result(10)


def test_connections_are_limited_and_the_refusal_is_json(live: LiveServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(live.server.config, "limit_connections", 2)
    wait_until(lambda: not live.server.server_state.connections)
    others = [connect(live) for _ in range(2)]
    wait_until(lambda: len(live.server.server_state.connections) == 2)
    with connect(live) as third:
        response = http.client.HTTPResponse(third)
        response.begin()
        assert (response.status, list(json.loads(response.read()))) == (503, ["error"])
        assert response.getheader("content-security-policy") is not None
    for connection in others:
        connection.close()


def test_invalid_http_is_refused_as_json(live: LiveServer) -> None:
    for invalid in (
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 100_000,
        b"GET \xff\r\n\r\n",
    ):
        with connect(live) as speaking:
            speaking.sendall(invalid)
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


def test_custom_hosts() -> None:
    named = TestClient(create_app({}, hosts={"rrn.example"}), base_url="http://rrn.example")
    assert named.get("/").status_code == 200
    assert named.get("/", headers={"host": "10.0.0.7"}).status_code == 400
    everywhere = TestClient(create_app({}, hosts={"localhost", "*"}), base_url="http://10.0.0.7:80")
    assert everywhere.get("/").status_code == 200
    assert everywhere.get("/", headers={"host": "evil.example"}).status_code == 400
    assert everywhere.get("/", headers={"host": "*"}).status_code == 400


def test_a_lack_of_sockets_is_reported_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    one = server.Server(create_app({}))
    loop = asyncio.new_event_loop()
    for _ in range(1000):
        one._report(loop, {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many")})
    loop.close()
    assert capsys.readouterr().err.count("\n") == 1


def test_connections_are_fewer_than_file_descriptors() -> None:
    one = server.Server(create_app({}))
    assert one.config.limit_connections + one.config.backlog < server._free_descriptors()
    assert one.config.limit_connections <= limits.CONNECTIONS
