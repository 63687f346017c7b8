"""rrn serve: how it starts, listens and ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rrn.errors import needs_extra
from rrn.tasks.sudoku.examples import EXAMPLES

Call = Callable[..., tuple[int, str, str]]
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: "subprocess.Popen[str]") -> float:
    """What a process has used of a processor: on a busy machine the clock on the wall says nothing."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@pytest.fixture(scope="module")
def served() -> Iterator[tuple["subprocess.Popen[str]", str]]:
    command = [sys.executable, "-m", "rrn.cli", "serve", "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.match(r"rrn: serving at (http://127\.0\.0\.1:\d+) after [\d.]+ s; Ctrl\+C ends it\n", line)
        assert found, line + process.stderr.read()
        yield process, found[1]
        process.kill()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to read a process's time from")
def test_it_starts_in_5_seconds_and_solves_in_1(served: tuple["subprocess.Popen[str]", str]) -> None:
    process, url = served
    started = cpu_seconds(process)
    assert started < 5
    urllib.request.urlopen(f"{url}/api/panels", timeout=60).read()
    body = json.dumps({"puzzles": [EXAMPLES[0]], "attempts": 9}).encode()
    request = urllib.request.Request(f"{url}/api/sudoku/solve", body, {"content-type": "application/json"})
    (found,) = json.load(urllib.request.urlopen(request, timeout=60))["puzzles"]
    warm_up_and_solve = cpu_seconds(process) - started
    before = cpu_seconds(process)
    json.load(urllib.request.urlopen(request, timeout=60))
    assert found["solved"]
    assert cpu_seconds(process) - before < 1
    assert warm_up_and_solve < 5


def test_it_listens_on_loopback_alone(served: tuple["subprocess.Popen[str]", str]) -> None:
    port = int(served[1].rsplit(":", 1)[1])
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in addresses - {"127.0.0.1"}:
        with socket.socket() as knocking, pytest.raises(OSError, match="refused"):
            knocking.connect((str(address), port))


def test_a_port_in_use_is_named(served: tuple["subprocess.Popen[str]", str], call: Call) -> None:
    port = served[1].rsplit(":", 1)[1]
    code, _, err = call("serve", "--port", port)
    assert code == 2
    assert err.startswith(f"rrn: cannot listen at 127.0.0.1, port {port} (")
    assert "--port 0 takes a free one" in err


def test_control_c_ends_it(served: tuple["subprocess.Popen[str]", str]) -> None:
    process, _ = served
    process.send_signal(signal.SIGINT)
    assert process.wait(60) in (0, 130)
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "65536"], "rrn: --port: expected at most 65,535, got 65536\n"),
        (["--workers", "0"], "rrn: --workers: expected at least 1, got 0\n"),
        (["--host", "no.such.host.invalid"], "rrn: cannot listen at no.such.host.invalid, port 8000 ("),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str, call: Call) -> None:
    code, out, err = call("serve", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(message)


def test_without_the_extra_it_says_what_to_install(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = call("serve", "--port", "0")
    assert (code, err) == (2, f"rrn: {needs_extra('serving', 'web')}\n")


def test_few_file_descriptors_and_clients_that_do_not_leave() -> None:
    """With room for a handful of sockets, 200 connections are refused or wait, and the log stays short; and SIGTERM
    ends it within 10 seconds, whatever clients are doing."""
    resource = pytest.importorskip("resource")
    command = [sys.executable, "-m", "rrn.cli", "serve", "--port", "0", "--workers", "1"]

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=few) as process:
        try:
            assert process.stderr is not None
            port = int(re.findall(r":(\d+) after", process.stderr.readline())[0])
            crowd = []
            for _ in range(200):
                crowd.append(socket.socket())
                crowd[-1].setblocking(False)
                crowd[-1].connect_ex(("127.0.0.1", port))
            time.sleep(2)
            for connection in crowd:
                connection.close()
            time.sleep(1)
            url = f"http://127.0.0.1:{port}"
            assert urllib.request.urlopen(f"{url}/api/panels", timeout=60).status == 200
            staying = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(4)]
            body = json.dumps({"puzzles": ["." * 81] * 8, "steps": 256}).encode()
            asked = b"POST /api/sudoku/solve HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            for connection, sent in zip(staying, (b"", b"GET /", asked, asked + body), strict=True):
                connection.sendall(sent)
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            begun = time.monotonic()
            process.wait(30)
            assert time.monotonic() - begun < 10
            for connection in staying:
                connection.close()
            logged = process.stderr.read()
            assert len(logged) < 2000, logged
            assert "Traceback" not in logged
        finally:
            process.kill()
