"""Declared constraints: candidates, and groups of them with exactly one or at most one true member.

A declaration makes problems, trains a network on them, and solves others with it. docs/constraints.md is the guide.
"""

from typing import TYPE_CHECKING

from rrn import _lazy_exports

if TYPE_CHECKING:
    from rrn.constraints.declare import Constraints
    from rrn.constraints.exact import UNKNOWN
    from rrn.constraints.problem import Problem
    from rrn.constraints.solve import Solver

__all__ = ["UNKNOWN", "Constraints", "Problem", "Solver"]

__getattr__, __dir__ = _lazy_exports(
    "rrn.constraints", {"Constraints": "declare", "Problem": "problem", "UNKNOWN": "exact", "Solver": "solve"}
)
