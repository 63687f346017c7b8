"""The server under load: ``python -m benchmarks.serve`` writes results/serve.json. Loopback only, some minutes.

Each part starts ``rrn serve`` as a process, and 32 clients request generated puzzles.

* before: the code of ``--before``, where each request was a batch of its own;
* now: this code, for as long, and until `REQUESTS` are answered, in which memory must not grow;
* hard: the same, beside one client that sends generated hard puzzles without pause;
* dropping: one client in four disconnects before its response; the others must not be affected.

Status 429 is counted separately. The exit code is 1 after any other error or if memory grows.
"""

import http.client
import io
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from benchmarks import clients
from rrn.io.files import write_json
from rrn.io.machine import machine
from rrn.tasks.sudoku.exact import generate, generate_hard
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.grid import grid_to_line

OUT = Path(__file__).parent.parent / "results" / "serve.json"
DROPPING = 4
"""One client in this many disconnects, after at most `LEAVE_SECONDS`."""
LEAVE_SECONDS = 0.3
ADDRESSES = 4
"""Loopback addresses of the clients; the requests of one address are limited."""
GROWTH = 1.15
"""Limit of the resident memory at the end, relative to that after a third of the time."""
HARD = {"steps": 256, "attempts": 9, "probabilities": False}
"""A request of hard puzzles, without the puzzles."""
HARD_PUZZLES, LEAST_GUESSES = 3, 100
"""How many of them are generated, and how many guesses of the exact search each needs at least."""
REQUESTS = 3_000
SERVE = "from rrn.cli import main; main(['serve', '--port', '0'])"
"""Also starts the server of older commits."""


@dataclass
class Options:
    seconds: float = 30
    clients: int = 32
    puzzles: int = 1
    """Puzzles per request."""
    seed: int = 0
    requests: int = REQUESTS
    """Requests after which memory is measured."""
    before: str = "d9e4f2e"
    """Commit to compare with; empty: none."""
    only_dropping: bool = False
    """Run only the last part, which measures no times, so that other programs may run meanwhile."""
    out: Path = OUT


@dataclass
class Tally:
    begun: float
    ended: float = 0.0
    """When the last puzzle was answered."""
    seconds: list[float] = field(default_factory=list)
    page_seconds: list[float] = field(default_factory=list)
    solved: int = 0
    puzzles: int = 0
    dropped: int = 0
    hard: int = 0
    busy: int = 0
    errors: list[str] = field(default_factory=list)


def main() -> int:
    options = tyro.cli(Options, description=__doc__)
    result: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.only_dropping:
        measured = []
    else:
        result = {"command": "python -m benchmarks.serve", "date": date.today().isoformat(), "machine": machine()}
        if options.before:
            with tempfile.TemporaryDirectory() as folder:
                _progress(f"before: {options.before}")
                result["before"] = {"commit": options.before, **measure(options, checkout(options.before, folder))}
        _progress("now")
        result["now"] = measure(options, requests=options.requests)
        _progress("hard")
        result["hard"] = measure(options, hard=True)
        p95 = [result[part]["latency_seconds"]["p95"] for part in ("hard", "now")]
        result["hard"]["p95_ratio"] = round(p95[0] / p95[1], 2)
        measured = [result["now"], result["hard"]]
    _progress("dropping")
    result["dropping"] = measure_dropping(options)
    print(json.dumps(result, indent=2))
    write_json(options.out, result)
    return 1 if any(part["errors"] or part["memory_mb"]["grew"] for part in (*measured, result["dropping"])) else 0


def checkout(commit: str, folder: str) -> Path:
    """The folder of the package at a commit."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=OUT.parent.parent, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return Path(folder) / "src"


def measure(options: Options, source: Path | None = None, requests: int = 0, hard: bool = False) -> dict[str, Any]:
    puzzles, _ = generate(512, np.random.default_rng(options.seed))
    lines = [grid_to_line(puzzle) for puzzle in puzzles]
    fewest = min(EXAMPLES, key=lambda puzzle: 81 - puzzle.count("."))
    environment = os.environ | ({} if source is None else {"PYTHONPATH": str(source)})
    begun, load_before = time.monotonic(), os.getloadavg()[0]
    with subprocess.Popen([sys.executable, "-c", SERVE], stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stderr is not None
            lines_read = iter(server.stderr.readline, "")
            ports = (re.search(r"serving at .*:(\d+) after", line) for line in lines_read)
            port = int(next(found for found in ports if found)[1])
            started = time.monotonic() - begun
            first, answer = _timed(port, {"puzzles": [fewest]})
            _timed(port, {"puzzles": lines[:64], "steps": 128, "probabilities": False})  # compiles what is left
            tally, memory = _load(options, port, server.pid, lines, requests=requests, hard=hard)
        finally:
            server.terminate()
    answered = np.array(tally.seconds or [np.nan])
    beside = ", beside one client that sends generated hard puzzles without pause" if hard else ""
    return {
        "about": f"{options.clients} clients for {options.seconds:g} s, {options.puzzles} generated per "
        f"request (minimal givens), one attempt of at most 128 steps, without probabilities{beside}",
        "start_seconds": round(started, 2),
        "first_solve": {"givens": 81 - fewest.count("."), "seconds": round(first, 3), "solved": answer["solved"]},
        "requests": len(tally.seconds),
        **({"hard_requests": tally.hard} if hard else {}),
        "puzzles_per_second": round(tally.puzzles / max(tally.ended - tally.begun, 1e-9), 1),
        "solved": round(tally.solved / max(tally.puzzles, 1), 4),
        "latency_seconds": {
            name: round(float(np.percentile(answered, share)), 3)
            for name, share in (("p50", 50), ("p95", 95), ("p99", 99))
        },
        "page_p95_seconds": round(float(np.percentile(tally.page_seconds or [np.nan], 95)), 3),
        "busy_429": tally.busy,
        "errors": tally.errors[:5],
        "memory_mb": _flat(memory),
        "load": {"before": round(load_before, 2), "after": round(os.getloadavg()[0], 2)},
    }


def measure_dropping(options: Options) -> dict[str, Any]:
    puzzles, _ = generate(512, np.random.default_rng(options.seed))
    with clients.serve() as served:
        lines = [grid_to_line(puzzle) for puzzle in puzzles]
        tally, memory = _load(options, served.port, served.process.pid, lines, DROPPING)
    return {
        "command": "python -m benchmarks.serve --only-dropping",
        "about": f"{options.clients} clients for {options.seconds:g} s, one in {DROPPING} of which asks for seconds of "
        "work and disconnects within 0.3 s, repeatedly; no times are measured",
        "dropped": tally.dropped,
        "requests_of_the_others": len(tally.seconds) + tally.busy,
        "answered": len(tally.seconds),
        "busy_429": tally.busy,
        "errors": tally.errors[:5],
        "memory_mb": _flat(memory),
        "date": date.today().isoformat(),
        "machine": machine(),
    }


def _progress(part: str) -> None:
    print(f"{part} …", file=sys.stderr, flush=True)


def _flat(memory: list[float]) -> dict[str, Any]:
    late = memory[len(memory) // 3 :]
    return {
        "after_a_third": round(late[0], 1),
        "at_the_end": round(late[-1], 1),
        "grew": bool(late[-1] > GROWTH * late[0]),
    }


def _load(
    options: Options,
    port: int,
    pid: int,
    lines: list[str],
    dropping: int | None = None,
    requests: int = 0,
    hard: bool = False,
) -> tuple[Tally, list[float]]:
    """Run the clients; one in ``dropping`` disconnects repeatedly. Returns the tally and the memory by time.

    It lasts until the time is over and so many ``requests`` are answered. With ``hard``, one more client sends `HARD`.
    """
    hard_lines: list[str] = []
    if hard:  # before the clock runs
        puzzles, _, _ = generate_hard(HARD_PUZZLES, np.random.default_rng(options.seed), LEAST_GUESSES)
        hard_lines = [grid_to_line(puzzle) for puzzle in puzzles]
    tally, lock, until = Tally(time.monotonic()), threading.Lock(), time.monotonic() + options.seconds

    def more() -> bool:
        return time.monotonic() < until or len(tally.seconds) < requests

    def client(number: int) -> None:
        rng = np.random.default_rng([options.seed, number])
        if dropping and number % dropping == 0:
            while more():
                with socket.create_connection(("127.0.0.1", port), timeout=60) as leaving:
                    leaving.sendall(clients.request(clients.LONG))
                    time.sleep(rng.uniform(0, LEAVE_SECONDS))
                with lock:
                    tally.dropped += 1
            return
        address = f"127.0.0.{1 + number % ADDRESSES}"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(address, 0))
        while more():
            chosen = [lines[k] for k in rng.integers(len(lines), size=options.puzzles)]
            body = {"puzzles": chosen, "steps": 128, "probabilities": False}
            seconds, status, answer = _ask(connection, body)
            with lock:
                if status == 200:
                    tally.seconds.append(seconds)
                    tally.puzzles += len(chosen)
                    tally.ended = time.monotonic()
                    tally.solved += sum(row["solved"] for row in answer["puzzles"])
                elif status == 429:
                    tally.busy += 1
                else:
                    tally.errors.append(f"{status}: {answer}")
            if status == 429:
                time.sleep(0.2)

    def send_hard() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while more():
            _, status, answer = _ask(connection, HARD | {"puzzles": hard_lines})
            tally.hard += status == 200
            if status not in (200, 429):
                tally.errors.append(f"hard: {status}: {answer}")

    def reader() -> None:
        """Opens the page repeatedly meanwhile."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while more():
            begun = time.monotonic()
            connection.request("GET", "/")
            connection.getresponse().read()
            tally.page_seconds.append(time.monotonic() - begun)
            time.sleep(0.25)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(options.clients)]
    threads += [threading.Thread(target=each) for each in ((reader, send_hard) if hard else (reader,))]
    for thread in threads:
        thread.start()
    memory = []
    while any(thread.is_alive() for thread in threads):
        memory.append(_resident(pid))
        time.sleep(0.5)
    return tally, memory


def _timed(port: int, body: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    seconds, status, answer = _ask(http.client.HTTPConnection("127.0.0.1", port, timeout=900), body)
    if status != 200:
        raise RuntimeError(f"the first requests gave {status}: {answer}")
    return seconds, answer["puzzles"][0]


def _ask(connection: http.client.HTTPConnection, body: dict[str, Any]) -> tuple[float, int, Any]:
    begun = time.monotonic()
    try:
        connection.request("POST", "/api/sudoku/solve", json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        connection.close()
        return time.monotonic() - begun, 0, repr(error)
    return time.monotonic() - begun, response.status, answer


def _resident(pid: int) -> float:
    """Megabytes."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    sys.exit(main())
