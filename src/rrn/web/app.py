"""The application: the page, the API, and everything that guards them."""

import os
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as StarletteHTTPException
from torch import nn

import rrn
from rrn.errors import InputError
from rrn.inference.devices import find_device, host
from rrn.io.pretrained import shipped
from rrn.tasks.accuracy import ACCURACY
from rrn.tasks.weights import from_pretrained
from rrn.training.presets import Preset
from rrn.web import limits
from rrn.web.guard import HEADERS, LOOPBACK, Guard, refusal
from rrn.web.panels import PANELS
from rrn.web.pool import BusyError, Pool

STATIC = Path(__file__).parent / "static"
WAITING = 32
"""Requests that may wait for a free worker."""
DESCRIPTION = f"""Recurrent relational networks think in steps; this API returns the answer after every one of them.

Errors are JSON: `{{"error": "what is wrong"}}`. Bodies hold at most {limits.BODY_BYTES:,} bytes. When too many requests
wait, the answer is 429."""


class PanelInfo(BaseModel):
    """A network that is loaded."""

    task: str
    title: str
    about: str
    accuracy: str = Field(description="How good the shipped weights are; empty for others.")
    parameters: int
    steps: int


def create_app(
    weights: Mapping[str, str | Path] | None = None,
    workers: int | None = None,
    waiting: int = WAITING,
    device: str = "cpu",
    hosts: Collection[str] = LOOPBACK,
) -> FastAPI:
    """The application with its networks loaded.

    Args:
        weights: where each panel's weights are, by the panel's name. Unset: those of `PANELS` that ship.
        workers: threads that run networks. Unset: one per core.
        waiting: requests that may wait for one of them; more get 429.
        device: where networks are computed: see `rrn.inference.devices`.
        hosts: the names that requests may call it by.
    """
    if weights is None:
        weights = {name: panel.weights for name, panel in PANELS.items() if panel.weights in shipped()}
    pool = Pool(workers or os.cpu_count() or 1, waiting)
    place = find_device(device)

    def load(name: str | Path) -> tuple[nn.Module, Preset]:
        network = from_pretrained(name)
        pool.watch(network)
        return host(network, place), network.preset

    loaded = {name: load(weights[name]) for name in PANELS if name in weights}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for name, (network, _preset) in loaded.items():
            pool.submit(PANELS[name].warm_up, network)
        yield
        pool.close()

    app = FastAPI(
        title="rrn",
        version=rrn.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.pool = pool
    infos = [
        PanelInfo(
            task=name,
            title=PANELS[name].title,
            about=PANELS[name].about,
            accuracy=ACCURACY[name] if weights[name] == PANELS[name].weights else "",
            parameters=sum(p.numel() for p in network.parameters()),
            steps=preset.steps,
        )
        for name, (network, preset) in loaded.items()
    ]

    @app.get("/api/panels", tags=["Page"], summary="The networks that are loaded")
    async def panels() -> list[PanelInfo]:
        return infos

    for name, (network, preset) in loaded.items():
        panel, told = PANELS[name], {}
        if panel.stronger in shipped() and weights[name] == panel.weights:
            told["stronger"] = load(panel.stronger)[0]
        app.include_router(panel.router(network, preset, pool, **told))
    app.mount("/", StaticFiles(directory=STATIC, html=True), name="page")
    _add_refusals(app)
    app.add_middleware(Guard, hosts=hosts)
    return app


def _add_refusals(app: FastAPI) -> None:
    @app.exception_handler(InputError)
    async def bad_input(_: Request, error: InputError) -> Response:
        return refusal(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def bad_request(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        malformed = first["type"] == "json_invalid"
        return refusal(400 if malformed else 422, "The body is not JSON." if malformed else _sentence(first))

    @app.exception_handler(BusyError)
    async def busy(_: Request, error: BusyError) -> Response:
        return refusal(429, "Too many requests wait already; try again after a second.", {"retry-after": "1"})

    @app.exception_handler(StarletteHTTPException)
    async def http_error(_: Request, error: HTTPException) -> Response:
        return refusal(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(Exception)
    async def our_mistake(_: Request, error: Exception) -> Response:
        said = refusal(500, "Something went wrong in the server; its log says what.")
        said.raw_headers += HEADERS.items()  # it does not pass the guard
        return said


def _sentence(error: dict[str, Any]) -> str:
    """ "steps: Input should be less than or equal to 256"."""
    place = ".".join(str(part) for part in error["loc"] if part not in ("body", "query"))
    return f"{place or 'body'}: {error['msg']}"
