"""The Sudoku grid: its units, its rules, and how it is written as text.

Everywhere in this folder a grid is 81 numbers of type uint8, row by row from the top left, 0 for an empty cell, and a
batch of grids has shape (n, 81).
"""

from typing import Any

import numpy as np

from rrn.errors import InputError

CELLS = 81
EMPTY = "0._"
SEPARATORS = "|-+=│─┼║═╬┃━╋╪╫┆┄ \t\r\n"

_cell = np.arange(CELLS)
ROW_OF, COLUMN_OF = _cell // 9, _cell % 9
BOX_OF = ROW_OF // 3 * 3 + COLUMN_OF // 3
# (27, 9): the cells of the nine rows, the nine columns and the nine boxes.
UNITS = np.stack([np.flatnonzero(kind == index) for kind in (ROW_OF, COLUMN_OF, BOX_OF) for index in range(9)])
# (81, 20): the other cells that share a row, a column or a box with each cell, each of them once.
PEERS = np.stack([np.setdiff1d(UNITS[np.isin(UNITS, cell).any(axis=1)], cell) for cell in range(CELLS)])


def as_grids(grids: Any) -> np.ndarray:
    """The same grids as a uint8 array (n, 81); accepts (81,), (9, 9), (n, 9, 9) and any integer type."""
    array = np.asarray(grids)
    if array.shape == (CELLS,) or array.shape == (9, 9):
        array = array[None]
    if array.ndim == 3 and array.shape[1:] == (9, 9):
        array = array.reshape(len(array), CELLS)
    if array.ndim != 2 or array.shape[1] != CELLS or not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"grids must be integers of shape (n, 81), not {array.dtype} of shape {np.shape(grids)}")
    if array.size and (array.min() < 0 or array.max() > 9):
        raise InputError("grids must hold digits 1 to 9, and 0 for an empty cell")
    return np.ascontiguousarray(array, dtype=np.uint8)


def clashes(grids: Any) -> np.ndarray:
    """Which filled cells share a row, column or box with the same digit: bool (n, 81)."""
    grids = as_grids(grids)
    clashing = np.zeros(grids.shape, dtype=bool)
    for unit in UNITS:
        members = grids[:, unit]
        same = (members[:, :, None] == members[:, None, :]) & (members[:, :, None] > 0)
        clashing[:, unit] |= same.sum(axis=2) > 1
    return clashing


def breaks_a_rule(grids: Any) -> np.ndarray:
    """Whether any digit stands twice in a row, column or box: bool (n,)."""
    grids = as_grids(grids)
    broken = np.zeros(len(grids), dtype=bool)
    for unit in UNITS:
        bits = np.left_shift(1, grids[:, unit], dtype=np.int32)
        bits[bits == 1] = 0
        broken |= np.bitwise_or.reduce(bits, axis=1) != bits.sum(axis=1)
    return broken


def describe_clash(grid: Any) -> str | None:
    """Two cells (rows and columns counted from 1) that share a row, column or box and a digit, or None if none do."""
    grid = as_grids(grid)[0]
    for unit in UNITS:
        members = grid[unit]
        for place, digit in enumerate(members):
            before = np.flatnonzero(members[:place] == digit)
            if digit and len(before):
                cells = (unit[before[0]], unit[place])
                return f"{digit} in " + " and in ".join(f"row {cell // 9 + 1}, column {cell % 9 + 1}" for cell in cells)
    return None


def is_solved(grids: Any) -> np.ndarray:
    """Whether every cell is filled and no rule broken: bool (n,)."""
    grids = as_grids(grids)
    return (grids > 0).all(axis=1) & ~breaks_a_rule(grids)


def solves(solutions: Any, puzzles: Any) -> np.ndarray:
    """Whether each solution is a solved grid that keeps every given of its puzzle: bool (n,)."""
    solutions, puzzles = as_grids(solutions), as_grids(puzzles)
    return is_solved(solutions) & ((puzzles == 0) | (puzzles == solutions)).all(axis=1)


def grid_to_line(grid: Any) -> str:
    """81 characters, ``.`` for an empty cell."""
    return "".join(str(digit) if digit else "." for digit in as_grids(grid)[0].tolist())


def grid_to_text(grid: Any) -> str:
    """Nine lines of nine, with ``|`` between the stacks and ``------+-------+------`` between the bands."""
    line = grid_to_line(grid)
    rows = [" | ".join(" ".join(line[9 * row + start :][:3]) for start in (0, 3, 6)) for row in range(9)]
    rule = "------+-------+------"
    return "\n".join([*rows[:3], rule, *rows[3:6], rule, *rows[6:]])


def cells_of(text: str) -> str:
    """The text without separators and spaces, each way to write an empty cell turned into 0; nothing is checked."""
    return text.translate(_TO_CELLS)


def foreign_character(cells: str) -> str | None:
    """What is wrong with the first of the `cells_of` a text that is not a digit, or None if all are."""
    if cells.isascii() and (cells.isdigit() or not cells):
        return None
    place = next(place for place, cell in enumerate(cells) if cell not in "0123456789")
    return f"{cells[place]!r} in place {place + 1} is neither a digit nor an empty cell (0, . or _)"


_TO_CELLS = {**{ord(separator): None for separator in SEPARATORS}, **{ord(empty): "0" for empty in EMPTY}}
