"""The Sudoku grid: its geometry, its rules, and how it is written as text.

Everywhere in this folder a grid is 81 numbers of type uint8, row by row from the top left, 0 for an empty cell, and a
batch of grids has shape (n, 81). Sudokus of other sizes are known by their ``box``, rows and columns of a box: with
``box=(high, wide)`` there are n = high · wide digits, n² cells, and n³ candidates (row, column, digit), ordered by
row, column, digit.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rrn.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

Box = tuple[int, int]
USUAL: Box = (3, 3)
CELLS = 81
BOXES: dict[int, Box] = {16: (2, 2), 36: (2, 3), 81: USUAL, 256: (4, 4)}
"""The boxes of Sudokus that can be read and drawn, by their number of cells."""
SYMBOLS = "123456789ABCDEFG"
"""How digits are written."""


def size_of(box: Box) -> int:
    """The number of digits of a Sudoku with such boxes."""
    high, wide = box
    if high < 1 or wide < 1 or high * wide < 2:
        raise InputError(f"box {box}: expected rows and columns of a box, such as (2, 3)")
    return high * wide


@cache
def places(box: Box = USUAL) -> np.ndarray:
    """The row, the column and the box of each cell: (3, n²)."""
    n, (high, wide) = size_of(box), box
    row, column = np.divmod(np.arange(n * n), n)
    return np.stack([row, column, row // high * high + column // wide])


@cache
def units(box: Box = USUAL) -> np.ndarray:
    """The cells of the n rows, the n columns and the n boxes: (3 n, n)."""
    return np.stack([np.flatnonzero(kind == index) for kind in places(box) for index in range(size_of(box))])


@cache
def units_of_cells(box: Box = USUAL) -> np.ndarray:
    """The row, the column and the box of each cell, as indices of `units`: (n², 3)."""
    return (places(box) + size_of(box) * np.arange(3)[:, None]).T


@cache
def neighbours(box: Box = USUAL) -> np.ndarray:
    """The other cells that share a row, a column or a box with each cell, each of them once: (n², 20) if usual."""
    kinds = places(box)
    share = (kinds[:, :, None] == kinds[:, None, :]).any(axis=0) & ~np.eye(kinds.shape[1], dtype=bool)
    return np.nonzero(share)[1].reshape(kinds.shape[1], -1)


@cache
def candidate_groups(box: Box = USUAL) -> tuple[np.ndarray, np.ndarray]:
    """The group of each candidate, for each group type: (n³, 6), numbered from 0; and the number of groups, (6,).

    The types: candidates of its cell; those of its digit in its row, in its column, in its box; and those of its digit
    in the cells that its row, and its column, have in common with its box. Of each group of the first four types
    exactly one candidate is true; the last two connect a row or a column with a box.
    """
    n, (high, wide) = size_of(box), box
    row, column, in_box = (np.repeat(kind, n) for kind in places(box))
    digit = np.arange(n**3) % n
    band, stack = row // high, column // wide
    rows_in_box, columns_in_box = high * row + stack, wide * column + band
    kinds = [n * row + column, *(n * at + digit for at in (row, column, in_box, rows_in_box, columns_in_box))]
    return np.stack(kinds, axis=1), np.array([n * n] * 4 + [n * n * high, n * n * wide])


def candidates_of(puzzles: "Tensor", box: Box = USUAL) -> "tuple[Tensor, Tensor]":
    """The given and the open candidates of puzzles (n, cells), a tensor: two of (n, cells · digits), bool.

    All others are ruled out: by the digit given in the same cell, or by a given in the same row, column or box.
    """
    from torch.nn.functional import one_hot

    (high, wide), n, count = box, box[0] * box[1], puzzles.shape[0]
    given = one_hot(puzzles, n + 1)[..., 1:].bool().view(count, n, n, n)
    boxes = given.view(count, n // high, high, n // wide, wide, n)
    in_box = boxes.any(4, keepdim=True).any(2, keepdim=True).expand_as(boxes).reshape_as(given)
    seen = given.any(2, keepdim=True) | given.any(1, keepdim=True) | in_box
    open_ = (puzzles == 0).view(count, n, n, 1) & ~seen
    return given.flatten(1), open_.flatten(1)


def as_grids(grids: Any, box: Box = USUAL) -> np.ndarray:
    """The same grids as a uint8 array (m, n²); accepts (n²,), (n, n), (m, n, n) and any integer type."""
    array, n = np.asarray(grids), size_of(box)
    if array.shape in ((n * n,), (n, n)):
        array = array[None]
    if array.ndim == 3 and array.shape[1:] == (n, n):
        array = array.reshape(len(array), n * n)
    if array.ndim != 2 or array.shape[1] != n * n or not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"grids must be integers of shape (n, {n * n}), not {array.dtype} of shape {np.shape(grids)}")
    if array.size and (array.min() < 0 or array.max() > n):
        raise InputError(f"grids must hold digits 1 to {n}, and 0 for an empty cell")
    return np.ascontiguousarray(array, dtype=np.uint8)


def box_of(cells: int) -> Box:
    """The box of a Sudoku of so many cells."""
    if cells not in BOXES:
        raise InputError(f"a grid of {cells} cells: expected {', '.join(map(str, BOXES))}")
    return BOXES[cells]


def clashes(grids: Any, box: Box = USUAL) -> np.ndarray:
    """Which filled cells share a row, column or box with the same digit: bool (n, 81)."""
    grids = as_grids(grids, box)
    parts = np.array_split(grids, 1 + len(grids) // 500)
    return np.concatenate([_clashes(part, box) for part in parts])


def _clashes(grids: np.ndarray, box: Box) -> np.ndarray:
    bits = np.left_shift(1, grids, dtype=np.int32) & ~1
    in_units = bits[:, units(box)]
    again = in_units[..., 1:] & np.bitwise_or.accumulate(in_units, axis=2)[..., :-1]
    twice = np.bitwise_or.reduce(again, axis=2)  # the digits that occur more than once in each unit
    return np.asarray((bits & np.bitwise_or.reduce(twice[:, units_of_cells(box)], axis=2)) > 0)


def as_puzzles(grids: Any, box: Box = USUAL) -> np.ndarray:
    """The same as `as_grids`, for grids whose givens do not clash."""
    grids = as_grids(grids, box)
    clashing = clashes(grids, box).any(1)
    if clashing.any():
        raise InputError(f"puzzle {int(clashing.argmax()) + 1}: two of its givens clash")
    return grids


def breaks_a_rule(grids: Any, box: Box = USUAL) -> np.ndarray:
    """Whether any digit occurs twice in a row, column or box: bool (n,)."""
    return np.asarray(clashes(grids, box).any(axis=1))


def clashing_pair(grid: np.ndarray, box: Box = USUAL) -> list[int]:
    """Two cells that share a row, column or box and a digit; empty if no two do."""
    for unit in units(box):
        first: dict[int, int] = {}
        for cell, digit in zip(unit.tolist(), grid[unit].tolist(), strict=True):
            if digit and digit in first:
                return [first[digit], cell]
            first[digit] = cell
    return []


def describe_clash(grid: Any, box: Box = USUAL) -> str | None:
    """Two cells that clash, with rows and columns counted from 1, or None if none do."""
    grid, n = as_grids(grid, box)[0], size_of(box)
    pair = clashing_pair(grid, box)
    places = [f"row {cell // n + 1}, column {cell % n + 1}" for cell in pair]
    return f"{grid[pair[0]]} in {places[0]} and in {places[1]}" if pair else None


def is_solved(grids: Any, box: Box = USUAL) -> np.ndarray:
    """Whether every cell is filled and no rule broken: bool (n,). Of n digits, a bit each, only all make up the sum."""
    grids, n = as_grids(grids, box), size_of(box)
    bits = (np.left_shift(1, some, dtype=np.int32) for some in np.array_split(grids, 1 + len(grids) // 50_000))
    return np.concatenate([(some[:, units(box)].sum(axis=-1) == 2 ** (n + 1) - 2).all(axis=1) for some in bits])


def solves(solutions: Any, puzzles: Any, box: Box = USUAL) -> np.ndarray:
    """Whether each solution is a solved grid that keeps every given of its puzzle: bool (n,)."""
    solutions, puzzles = as_grids(solutions, box), as_grids(puzzles, box)
    return is_solved(solutions, box) & ((puzzles == 0) | (puzzles == solutions)).all(axis=1)


def grid_to_line(grid: Any) -> str:
    """81 characters, or as many as it has cells; ``.`` for an empty cell."""
    return grids_to_lines(as_grids(grid, box_of(np.size(grid))))[0]


def grids_to_lines(grids: np.ndarray) -> list[str]:
    """`grid_to_line` of each grid, (n, cells). Nothing is checked."""
    width, text = grids.shape[1], _SYMBOLS[grids].tobytes().decode()
    return [text[start : start + width] for start in range(0, len(text), width)]


def line_to_grid(cells: str) -> np.ndarray:
    """The grid of a line of digits, uint8 (cells,); other characters are empty cells."""
    return _CODES[np.frombuffer(cells.encode(), np.uint8)]


_CODES = np.zeros(256, np.uint8)
_CODES[list(SYMBOLS.encode())] = np.arange(1, len(SYMBOLS) + 1)
_SYMBOLS = np.frombuffer(b"." + SYMBOLS.encode(), np.uint8)
