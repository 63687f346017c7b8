"""rrn: recurrent relational networks for PyTorch, after Palm, Paquet and Winther (2018).

`RRN` is the network. `rrn.nn` has its parts and losses, `rrn.graphs` the graph layouts.
Names are imported on first use, so that ``rrn --help`` does not import torch.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from rrn import constraints as constraints
    from rrn import graphs as graphs
    from rrn import nn as nn
    from rrn.constraints import Constraints as Constraints
    from rrn.errors import InputError as InputError
    from rrn.estimators import RRNClassifier as RRNClassifier
    from rrn.estimators import RRNRegressor as RRNRegressor
    from rrn.graphs import *
    from rrn.inference.result import Result as Result
    from rrn.inference.result import Status as Status
    from rrn.network import RRN as RRN
    from rrn.nn import *
    from rrn.tasks.weights import from_pretrained as from_pretrained

_NAMES = {
    "": "constraints graphs nn",
    "constraints": "Constraints",
    "errors": "InputError",
    "estimators": "RRNClassifier RRNRegressor",
    "graphs": "CompleteGraphs EdgeList Graph Groups NeighbourTable PackedGraphs from_networkx from_pyg union",
    "inference.result": "Result Status",
    "network": "RRN",
    "nn": "Message AttentionMessage GatedMessage GroupMessage MLPMessage "
    "State Update GRUUpdate LSTMUpdate MLPUpdate NoUpdate ResidualUpdate SharedLayerUpdate "
    "Readout DotReadout EdgeReadout GraphReadout NodeReadout Outputs "
    "accuracy_by_step cross_entropy every_step last_step squared_error step_losses",
    "tasks.weights": "from_pretrained",
}
"""The exported names by module; of "" they are submodules."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_MODULES]


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


__getattr__, __dir__ = _lazy_exports("rrn", _MODULES)
