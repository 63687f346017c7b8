"""rrn: many-step relational reasoning for PyTorch, after Palm, Paquet and Winther (2018).

``from rrn import RRN`` is the module; `rrn.graphs` has helpers for graphs, `rrn.losses` the loss at every step.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rrn.errors import InputError
    from rrn.estimator import RRNClassifier, RRNRegressor
    from rrn.graphs import CompleteGraphs, EdgeList, NeighbourTable
    from rrn.network import RRN
    from rrn.updates import State

__all__ = [
    "RRN",
    "CompleteGraphs",
    "EdgeList",
    "InputError",
    "NeighbourTable",
    "RRNClassifier",
    "RRNRegressor",
    "State",
    "__version__",
]

_HOMES = {
    "RRN": "rrn.network",
    "RRNClassifier": "rrn.estimator",
    "RRNRegressor": "rrn.estimator",
    "State": "rrn.updates",
    "CompleteGraphs": "rrn.graphs",
    "EdgeList": "rrn.graphs",
    "NeighbourTable": "rrn.graphs",
    "InputError": "rrn.errors",
}


def __getattr__(name: str) -> Any:
    """Import torch only when something that needs it is asked for, so that ``rrn --help`` is instant."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rrn' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
