"""Sudoku. ``from rrn.tasks.sudoku import solve`` solves puzzles with the shipped network."""

from typing import TYPE_CHECKING

from rrn import _lazy_exports

if TYPE_CHECKING:
    from rrn.tasks.sudoku.predict import solve

__all__ = ["solve"]

__getattr__, __dir__ = _lazy_exports("rrn.tasks.sudoku", {"solve": "predict"})
