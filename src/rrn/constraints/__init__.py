"""Your own constraints: say which candidates there are and which groups of them have exactly one, or at most one, true
member; make problems, train a network on them, and solve others with it. docs/constraints.md is the guide."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rrn.constraints.declaring import Constraints, Problem
    from rrn.constraints.search import UNKNOWN
    from rrn.constraints.solving import Solutions, Solver

__all__ = ["UNKNOWN", "Constraints", "Problem", "Solutions", "Solver"]

_HOMES = {
    "Constraints": "declaring",
    "Problem": "declaring",
    "UNKNOWN": "search",
    "Solutions": "solving",
    "Solver": "solving",
}


def __getattr__(name: str) -> Any:
    """Import torch only when something that needs it is asked for: `rrn.constraints.search` does not."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rrn.constraints' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rrn.constraints.{_HOMES[name]}"), name)
