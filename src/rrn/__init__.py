"""rrn: many-step relational reasoning for PyTorch, after Palm, Paquet and Winther (2018).

``from rrn import RRN`` is the network; `rrn.graphs` has graph layouts, `rrn.nn` its parts and the loss at every step.
Names are imported on first use, so that ``rrn --help`` does not wait for torch.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rrn.errors import InputError
    from rrn.estimators import RRNClassifier, RRNRegressor
    from rrn.graphs import CompleteGraphs, EdgeList, NeighbourTable
    from rrn.network import RRN
    from rrn.nn.updates import State

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


def _lazy_exports(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that imports each name from its module on first use."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find


__getattr__ = _lazy_exports(
    "rrn",
    {
        "RRN": "network",
        "RRNClassifier": "estimators",
        "RRNRegressor": "estimators",
        "State": "nn.updates",
        "CompleteGraphs": "graphs",
        "EdgeList": "graphs",
        "NeighbourTable": "graphs",
        "InputError": "errors",
    },
)
