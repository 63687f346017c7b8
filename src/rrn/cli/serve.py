"""rrn serve: the web page that shows networks at work, and its API."""

import socket
import sys
import time
import webbrowser
from dataclasses import dataclass
from typing import Annotated

from rrn.cli import parse
from rrn.errors import InputError, needs_extra
from rrn.training.presets import Device, Range


@dataclass(frozen=True)
class Options:
    host: str = "127.0.0.1"
    """The address to listen on. Beyond loopback, other machines can use the page: it has no password."""
    port: Annotated[int, Range(least=0, most=65535)] = 8000
    """The port; 0: any free one."""
    workers: Annotated[int, Range(least=1, most=1024)] | None = None
    """Number of threads that run networks. Default: one per core."""
    device: Device = "auto"
    names: tuple[str, ...] = ()
    """Additional host names that requests may use, such as that of a proxy."""
    open: bool = False
    """Open the page in a browser."""


def main(arguments: list[str]) -> int:
    started = time.monotonic()
    options = parse(Options, arguments, "rrn serve", "Serve the web page: networks at work, step by step.")
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise needs_extra("serving", "web") from error
    listening = _listen(options.host, options.port)
    from rrn.web.app import create_app
    from rrn.web.guard import ANY_ADDRESS, LOOPBACK
    from rrn.web.server import Server

    address, port = listening.getsockname()[:2]
    hosts = {*LOOPBACK, options.host, address, *options.names}
    if options.host not in LOOPBACK:
        print(f"rrn: {options.host} is reachable from other machines; the page has no password", file=sys.stderr)
        hosts |= {socket.gethostname(), ANY_ADDRESS}
    app = create_app(workers=options.workers, device=options.device, hosts=hosts)
    url = f"http://{f'[{address}]' if ':' in address else address}:{port}"

    def ready() -> None:
        seconds = time.monotonic() - started
        print(f"rrn: serving at {url} after {seconds:.1f} s; Ctrl+C ends it", file=sys.stderr, flush=True)
        if options.open:
            webbrowser.open(url)

    Server(app, ready).run(sockets=[listening])
    return 0


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise InputError(
            f"cannot listen at {host}, port {port} ({error.strerror}); --port 0 takes a free one"
        ) from error
