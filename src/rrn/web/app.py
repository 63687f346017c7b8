"""The FastAPI application: the page, the API of each panel, and error responses."""

import os
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as StarletteHTTPException
from torch import nn

import rrn
from rrn.errors import InputError
from rrn.inference.devices import find_device, place
from rrn.inference.service import BusyError, ClosedError, Service
from rrn.io.pretrained import shipped
from rrn.tasks.evaluation import ACCURACY
from rrn.tasks.weights import from_pretrained
from rrn.training.presets import Preset
from rrn.web import limits
from rrn.web.guard import HEADERS, LOOPBACK, Guard, refusal
from rrn.web.metrics import Metrics
from rrn.web.panels import PANELS, Panel, PanelInfo, panel_info
from rrn.web.pool import Pool

STATIC = Path(__file__).parent / "static"
SLOTS = 5
"""Puzzles in the running batch of a worker. With more, a step takes longer, and so do puzzles with many steps. With
fewer, the network runs more often on less data."""
WAITING = 32
"""Requests that can wait for a free worker."""
DESCRIPTION = f"""This API runs recurrent relational networks and returns their answer after every step.

Errors are JSON: `{{"error": "message"}}`. A body has at most {limits.BODY_BYTES:,} bytes. If too many requests are
waiting, the status is 429."""


def create_app(
    weights: Mapping[str, str | Path] | None = None,
    workers: int | None = None,
    waiting: int = WAITING,
    device: str = "cpu",
    hosts: Collection[str] = LOOPBACK,
) -> FastAPI:
    """The application with its networks loaded.

    Args:
        weights: folder or shipped name of the weights, by panel. Default: the shipped weights of all `PANELS`.
        workers: threads that run networks, each with a running batch of puzzles. Default: one per core.
        waiting: requests other than puzzles that can wait for a worker; further ones get status 429.
        device: device of the networks: see `rrn.inference.devices`.
        hosts: accepted Host headers.
    """
    if weights is None:
        weights = {name: panel.weights for name, panel in PANELS.items() if panel.weights in shipped()}
    workers = workers or os.cpu_count() or 1
    pool, service = Pool(workers, waiting), Service(slots=SLOTS, workers=workers, capacity=limits.UNFINISHED_PUZZLES)
    target = find_device(device)

    def load(name: str | Path, panel: Panel) -> tuple[nn.Module, Preset]:
        network = from_pretrained(name)
        if not panel.batched:
            pool.add_cancellation_check(network)
        return place(network, target), network.preset

    loaded = {name: load(weights[name], panel) for name, panel in PANELS.items() if name in weights}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for name, (network, _preset) in loaded.items():
            pool.submit(partial(PANELS[name].warm_up, network))
        yield
        pool.close()
        service.close()

    app = FastAPI(
        title="rrn", version=rrn.__version__, description=DESCRIPTION, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    app.state.pool, app.state.service, metrics = pool, service, Metrics(pool, service)
    infos: list[PanelInfo] = []

    @app.get("/api/panels", tags=["Page"], summary="The loaded networks")
    async def panels() -> list[PanelInfo]:
        return infos

    @app.get("/metrics", include_in_schema=False)
    async def measured() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    for name, (network, preset) in loaded.items():
        panel, shown = PANELS[name], weights[name] == PANELS[name].weights
        others = {other: load(other, panel)[0] for other in panel.others if shown and other in shipped()}
        infos.append(panel_info(name, network, preset.steps, ACCURACY[name] if shown else "", others))
        options = {"service": service, "others": others} if panel.batched else {}
        app.include_router(panel.router(network, preset, pool, **options))
    app.mount("/", StaticFiles(directory=STATIC, html=True), name="page")
    for kind in (InputError, RequestValidationError, BusyError, ClosedError, StarletteHTTPException, Exception):
        app.add_exception_handler(kind, _refuse)
    app.add_middleware(Guard, hosts=hosts, metrics=metrics)
    return app


async def _refuse(_: Request, error: Any) -> Response:
    """The response to a request that raised an error."""
    match error:
        case InputError():
            return refusal(422, str(error))
        case RequestValidationError():
            first = error.errors()[0]
            if first["type"] == "json_invalid":
                return refusal(400, "The body is not JSON.")
            field = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
            return refusal(422, f"{field or 'body'}: {first['msg']}")
        case BusyError():
            return refusal(429, "Too many requests are waiting; try again in a second.", {"retry-after": "1"})
        case ClosedError():
            return refusal(503, "The server is stopping.")
        case StarletteHTTPException():
            return refusal(error.status_code, str(error.detail), error.headers)
    response = refusal(500, "Internal error; see the server's log.")
    response.raw_headers += HEADERS.items()  # this response bypasses the guard
    return response
