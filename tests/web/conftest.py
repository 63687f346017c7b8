import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.web.browsing import Visit

from rrn import tasks
from rrn.io.pretrained import save_pretrained, shipped
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.grid import grid_to_line
from rrn.web.app import create_app
from rrn.web.panels import PANELS
from rrn.web.server import Server

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
URL = "http://localhost"
REQUIRED = "RRN_BROWSER_REQUIRED"
BROWSER_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path | str]:
    """Weights of every panel: shipped ones, or untrained ones if none are shipped."""
    found: dict[str, Path | str] = {}
    for name, panel in PANELS.items():
        if panel.weights in shipped():
            found[name] = panel.weights
        else:
            preset = tasks.find_preset(panel.weights)
            found[name] = tmp_path_factory.mktemp("weights") / name
            save_pretrained(tasks.build_network(preset), found[name], preset, {})
    return found


@pytest.fixture(scope="session")
def app(weights: dict[str, Path | str]) -> FastAPI:
    return create_app(weights, workers=1)


@pytest.fixture(scope="session")
def client(app: FastAPI) -> TestClient:
    return TestClient(app, raise_server_exceptions=False, base_url=URL)


@pytest.fixture(scope="session")
def easy() -> str:
    """A puzzle that every trained network solves."""
    puzzles, _ = generate(1, np.random.default_rng(7), extra_givens=8)
    return grid_to_line(puzzles[0])


class LiveServer:
    def __init__(self, app: FastAPI) -> None:
        self.server = Server(app, port=0, lifespan="off")
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self) -> "LiveServer":
        self.thread.start()
        while not self.server.started:
            self.thread.join(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join(10)

    @property
    def port(self) -> int:
        return int(self.server.servers[0].sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@pytest.fixture(scope="module")
def live(app: FastAPI) -> Iterator[LiveServer]:
    with LiveServer(app) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        message = f"NO BROWSER ({', '.join(BROWSERS)}): the page is not tested; apt-get install chromium"
        pytest.fail(message) if os.environ.get(REQUIRED) else pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=BROWSER_FLAGS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any, live: Any) -> Iterator[Any]:
    """A function that opens the page in the browser; its visits are closed at the end."""
    visits: list[Visit] = []

    def begin(**options: Any) -> Visit:
        visits.append(Visit(browser, live.url, **options))
        return visits[-1]

    yield begin
    for each in visits:
        each.close()
