"""rrn: recurrent relational networks for PyTorch, after Palm, Paquet and Winther (2018).

`RRN` is the network. `rrn.nn` has its parts and losses, `rrn.graphs` the graph layouts.
Names are imported on first use, so that ``rrn --help`` does not import torch.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from rrn import constraints, graphs, nn
    from rrn.constraints import Constraints
    from rrn.errors import InputError
    from rrn.estimators import RRNClassifier, RRNRegressor
    from rrn.graphs import *
    from rrn.inference.result import Result, Status
    from rrn.network import RRN
    from rrn.nn import *
    from rrn.tasks.weights import from_pretrained

__all__ = [
    "RRN",
    "AttentionMessage",
    "CompleteGraphs",
    "Constraints",
    "DotReadout",
    "EdgeList",
    "EdgeReadout",
    "GRUUpdate",
    "GatedMessage",
    "Graph",
    "GraphReadout",
    "GroupMessage",
    "Groups",
    "InputError",
    "LSTMUpdate",
    "MLPMessage",
    "MLPUpdate",
    "Message",
    "NeighbourTable",
    "NoUpdate",
    "NodeReadout",
    "Outputs",
    "PackedGraphs",
    "RRNClassifier",
    "RRNRegressor",
    "Readout",
    "ResidualUpdate",
    "Result",
    "SharedLayerUpdate",
    "State",
    "Status",
    "Update",
    "__version__",
    "accuracy_by_step",
    "constraints",
    "cross_entropy",
    "every_step",
    "from_networkx",
    "from_pretrained",
    "from_pyg",
    "graphs",
    "last_step",
    "nn",
    "squared_error",
    "step_losses",
    "union",
]


def _lazy_exports(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that imports each name from its module on first use.

    A name whose module is "" is a submodule.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not modules[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    def names() -> list[str]:
        return sorted(import_module(package).__all__)

    return find, names


_MODULES = {
    "RRN": "network",
    "Constraints": "constraints",
    "InputError": "errors",
    "RRNClassifier": "estimators",
    "RRNRegressor": "estimators",
    "Result": "inference.result",
    "Status": "inference.result",
    "constraints": "",
    "from_pretrained": "tasks.weights",
    "graphs": "",
    "nn": "",
}
_GRAPHS = "CompleteGraphs EdgeList Graph Groups NeighbourTable PackedGraphs from_networkx from_pyg union".split()  # noqa: SIM905
_PARTS = (name for name in __all__ if name not in (*_MODULES, *_GRAPHS, "__version__"))
__getattr__, __dir__ = _lazy_exports("rrn", _MODULES | dict.fromkeys(_GRAPHS, "graphs") | dict.fromkeys(_PARTS, "nn"))
