"""Sudoku of every size as declared constraints: the same graph, so the shipped weights solve declared Sudokus."""

from functools import cache
from itertools import product

from rrn.constraints import Constraints, Solver
from rrn.errors import InputError
from rrn.tasks.sudoku.grid import USUAL, Box, candidate_groups, size_of

EXACTLY = ("cell", "digit in row", "digit in column", "digit in box")
AT_MOST = ("digit in row of box", "digit in column of box")
"""These follow from the others; they give the network more direct messages."""


@cache
def sudoku(box: Box = USUAL) -> Constraints:
    """Candidates (row, column, digit), each counted from 0, and the six types of `candidate_groups`."""
    names = list(product(range(size_of(box)), repeat=3))
    groups = [dict(zip(names, column, strict=True)).get for column in candidate_groups(box)[0].T.tolist()]
    exactly, at_most = zip(EXACTLY, groups, strict=False), zip(AT_MOST, groups[len(EXACTLY) :], strict=True)
    return Constraints(names, dict(exactly), dict(at_most))


def solver(weights: str = "sudoku") -> Solver:
    """A network for Sudoku as the solver of problems with Sudoku's group types."""
    from rrn.tasks.sudoku.model import CandidateSudoku
    from rrn.tasks.sudoku.predict import load

    network = load(weights)
    if not isinstance(network, CandidateSudoku):
        raise InputError(f"weights {weights!r}: expected a network on candidates")
    return Solver(network.rrn, (*EXACTLY, *AT_MOST), network.detects_contradictions)
