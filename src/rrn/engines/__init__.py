"""How steps are computed: engines that all give the same outputs, states and gradients, some of them faster.

`RRN` asks `choose` for the first engine that fits what it is about to run and never looks at its kind again; nobody
else needs to know that engines exist. `only` is the one switch, for tests, comparisons and doubts::

    with engines.only("plain"):
        outputs = network(x, edge_index, steps=8)

=========  =============================================================  ====================================
groups     many steps of a shared-layer network on `Groups`, by hand       numba, float32, on a CPU
edges      one hidden layer in f: a compiled pass over sorted edges        numba, on a CPU
chunked    several hidden layers in f: a cache's worth of edges at a time  on a CPU
plain      the equations as they stand                                     everywhere
=========  =============================================================  ====================================

With several threads, ``edges`` and ``chunked`` give each whole graphs of a batch where it can be cut (`apart`); of one
graph, ``chunked`` gives each a share of the edges (`threads`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import torch

from rrn.engines.chunked import Chunked
from rrn.engines.edges import Edges
from rrn.engines.engine import Engine, Plain
from rrn.engines.groups import Groups
from rrn.errors import InputError
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Groups(), Edges(), Chunked(), Plain())}
"""The faster ones first."""

_only: ContextVar[str | None] = ContextVar("_only", default=None)


def choose(network: "RRN", given: "Prepared", state: State) -> Engine:
    """The first engine that fits."""
    if torch.compiler.is_compiling():
        return ENGINES["plain"]
    name = _only.get()
    if name is not None:
        engine = ENGINES[name]
        if not engine.fits(network, given, state):
            raise InputError(f"engines.only({name!r}): this engine does not fit this network, graph and device")
        return engine
    fitting = (engine for engine in ENGINES.values() if isinstance(network.message, engine.message))
    return next(engine for engine in fitting if engine.fits(network, given, state))


@contextmanager
def only(name: str) -> Iterator[None]:
    """Within it every network runs on this engine, or says that it does not fit."""
    if name not in ENGINES:
        raise InputError(f"no engine {name!r}; there are {', '.join(ENGINES)}")
    before = _only.set(name)
    try:
        yield
    finally:
        _only.reset(before)
