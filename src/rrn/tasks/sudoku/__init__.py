"""Sudoku. ``from rrn.tasks.sudoku import solve`` solves puzzles with the shipped network."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rrn.tasks.sudoku.predict import Solved, solve

__all__ = ["Solved", "solve"]


def __getattr__(name: str) -> Any:
    """Import torch only when something is to be solved."""
    if name not in __all__:
        raise AttributeError(f"module 'rrn.tasks.sudoku' has no attribute {name!r}")
    from rrn.tasks.sudoku import predict

    return getattr(predict, name)
