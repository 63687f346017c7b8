"""Your own constraints: say which candidates there are and which groups of them have exactly one, or at most one, true
member; make problems, train a network on them, and solve others with it. docs/constraints.md is the guide."""

from typing import TYPE_CHECKING

from rrn import _lazy_exports

if TYPE_CHECKING:
    from rrn.constraints.declaring import Constraints, Problem
    from rrn.constraints.search import UNKNOWN
    from rrn.constraints.solving import Solutions, Solver

__all__ = ["UNKNOWN", "Constraints", "Problem", "Solutions", "Solver"]

__getattr__, __dir__ = _lazy_exports(
    "rrn.constraints",
    {
        "Constraints": "declaring",
        "Problem": "declaring",
        "UNKNOWN": "search",
        "Solutions": "solving",
        "Solver": "solving",
    },
)
