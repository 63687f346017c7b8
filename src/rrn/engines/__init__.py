"""Engines compute the steps of a network. All give the same outputs, states and gradients; some are faster.

`RRN` runs on the first engine that fits. `only` selects one, for tests and comparisons::

    with engines.only("plain"):
        outputs = network(x, edge_index, steps=8)

=========  ====================================================================  ==============================
groups     many steps of a shared-layer network on `Groups`, derivatives by hand  numba, float32, CPU
edges      one hidden layer in f: a compiled pass over sorted edges               numba, CPU
chunked    several hidden layers in f: edges in cache-sized chunks                numba, CPU
plain      the equations of the paper, step by step                               everywhere
=========  ====================================================================  ==============================

An engine other than plain fits only parts of exactly the known types, without hooks: subclasses run plain. With several
threads, ``edges`` and ``chunked`` compute whole graphs of a batch on each thread; within one graph, ``chunked`` gives
each thread a share of the edges.
"""

from rrn.engines.chunked import Chunked
from rrn.engines.edges import Edges
from rrn.engines.groups import Groups
from rrn.engines.plain import ENGINES, Plain, choose, next_state, only

__all__ = ["ENGINES", "choose", "next_state", "only"]

ENGINES.update({engine.name: engine for engine in (Groups(), Edges(), Chunked(), Plain())})
