"""rrn: many-step relational reasoning for PyTorch, after Palm, Paquet and Winther (2018).

``from rrn import RRN`` is the module; `rrn.graphs` has helpers for graphs, `rrn.losses` the loss at every step.
"""

from typing import TYPE_CHECKING

from rrn.lazy import lazily

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

__getattr__ = lazily(
    "rrn",
    {
        "RRN": "network",
        "RRNClassifier": "estimator",
        "RRNRegressor": "estimator",
        "State": "updates",
        "CompleteGraphs": "graphs",
        "EdgeList": "graphs",
        "NeighbourTable": "graphs",
        "InputError": "errors",
    },
)
