"""Engines compute the steps of a network. All give the same outputs, states and gradients; some are faster.

`RRN` runs on the first engine that fits. `only` selects one, for tests and comparisons::

    with engines.only("plain"):
        outputs = network(x, edge_index, steps=8)

=========  ====================================================================  ==============================
groups     many steps of a shared-layer network on `Groups`, derivatives by hand  numba, float32, CPU
edges      one hidden layer in f: a compiled pass over sorted edges               numba, CPU
chunked    several hidden layers in f: edges in cache-sized chunks                CPU
plain      the equations of the paper, step by step                               everywhere
=========  ====================================================================  ==============================

An engine other than plain fits only parts of exactly the known types, without hooks: subclasses run plain. With several
threads, ``edges`` and ``chunked`` compute whole graphs of a batch on each thread; within one graph, ``chunked`` gives
each thread a share of the edges.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import torch

from rrn.engines.chunked import Chunked
from rrn.engines.edges import Edges
from rrn.engines.groups import Groups
from rrn.engines.plain import Engine, Plain
from rrn.errors import InputError
from rrn.nn.messages import GroupMessage, MLPMessage
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Groups(), Edges(), Chunked(), Plain())}
"""By name, faster engines first."""

_BY_MESSAGE: dict[type, tuple[Engine, ...]] = {
    GroupMessage: (ENGINES["groups"],),
    MLPMessage: (ENGINES["edges"], ENGINES["chunked"]),
}
"""Engines that may fit a type of message function."""

_only: ContextVar[str | None] = ContextVar("_only", default=None)


def choose(network: "RRN", given: "Prepared", state: State) -> Engine:
    """The fastest engine that fits, or the one that `only` selects."""
    if torch.compiler.is_compiling():
        return ENGINES["plain"]
    name = _only.get()
    if name is None:
        for engine in _BY_MESSAGE.get(type(network.message), ()):
            if engine.fits(network, given, state):
                return engine
        return ENGINES["plain"]
    if not ENGINES[name].fits(network, given, state):
        raise InputError(f"engines.only({name!r}): this engine does not fit this network, graph and device")
    return ENGINES[name]


@contextmanager
def only(name: str) -> Iterator[None]:
    """In this context every network runs on the named engine; one that does not fit raises an `InputError`."""
    if name not in ENGINES:
        raise InputError(f"no engine {name!r}; there are {', '.join(ENGINES)}")
    before = _only.set(name)
    try:
        yield
    finally:
        _only.reset(before)
