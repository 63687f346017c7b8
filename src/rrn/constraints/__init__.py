"""Your own constraints: say which candidates there are and which groups of them have exactly one, or at most one, true
member; make problems, train a network on them, and solve others with it. docs/constraints.md is the guide."""

from rrn.constraints.declaring import Constraints, Problem
from rrn.constraints.search import UNKNOWN
from rrn.constraints.solving import Solutions, Solver

__all__ = ["UNKNOWN", "Constraints", "Problem", "Solutions", "Solver"]
