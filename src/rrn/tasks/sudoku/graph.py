"""Sudoku as graphs: of its cells, as in the paper, or of its candidates."""

from functools import cache

import torch
from torch import Tensor

from rrn.errors import InputError
from rrn.graphs import Aggregate, Graph, NeighbourTable

KINDS = 6
"""A candidate (row, column, digit) stands in six groups: those of its cell, and those of its digit in its row, its
column, its box, and in the parts that its row and its column have in common with its box. Exactly one candidate of each
of the first four is true. The last two are where a row or a column learns what goes on in a box."""


@cache
def cell_neighbours() -> Tensor:
    """The 20 other cells that share a row, a column or a box with each of the 81: (81, 20)."""
    row, column = torch.arange(81) // 9, torch.arange(81) % 9
    box = row // 3 * 3 + column // 3
    same = (row[:, None] == row) | (column[:, None] == column) | (box[:, None] == box)
    return (same & ~torch.eye(81, dtype=torch.bool)).nonzero()[:, 1].view(81, 20)


@cache
def cell_graph(puzzles: int) -> NeighbourTable:
    """The paper's graph, for a batch: a node a cell, 1,620 edges a puzzle."""
    return NeighbourTable.repeat(cell_neighbours(), puzzles)


class CandidateGraph(Graph):
    """A node for each candidate of each cell, n³ a puzzle, ordered by row, column, digit.

    Everybody hears everybody in its six groups, itself included; an edge knows which kind of group it belongs to.
    There are far more edges than nodes, so sums are taken a group at a time (`group_sums`) and edges are never listed.

    Args:
        puzzles: how many.
        box: rows and columns of a box; (3, 3) is the usual Sudoku.
    """

    def __init__(self, puzzles: int, box: tuple[int, int] = (3, 3)) -> None:
        if puzzles < 1:
            raise InputError(f"puzzles: expected at least 1, got {puzzles}")
        self.puzzles, self.box = puzzles, box
        self.size = box[0] * box[1]
        self.num_nodes = puzzles * self.size**3
        self.edge_shape = (self.num_nodes, 4 * self.size + sum(box))

    def group_sums(self, values: Tensor) -> Tensor:
        """(nodes, 6 · width) → the same shape: part k of a node's row is summed over its group of kind k."""
        n, (high, wide), p = self.size, self.box, self.puzzles
        grid = values.view(p, n // high, high, n // wide, wide, n, -1)
        summed_over = ((5,), (3, 4), (1, 2), (2, 4), (4,), (2,))
        parts = grid.chunk(KINDS, dim=-1)
        sums = [part.sum(over, keepdim=True).expand_as(part) for part, over in zip(parts, summed_over, strict=True)]
        return torch.cat(sums, dim=-1).view_as(values)

    def members(self) -> list[Tensor]:
        """Who each node hears from, kind by kind: (nodes, members of such a group). For tests and for those who want
        the edges after all."""
        n, (high, wide) = self.size, self.box
        row, column, digit = torch.meshgrid(*[torch.arange(n)] * 3, indexing="ij")
        band, stack = row // high, column // wide
        same = (
            (row, column),
            (digit, row),
            (digit, column),
            (digit, band, stack),
            (digit, row, stack),
            (digit, column, band),
        )
        kinds = []
        for shared in same:
            keys = torch.stack([key.flatten() for key in shared])
            alike = (keys[:, :, None] == keys[:, None]).all(0)
            one = alike.nonzero()[:, 1].view(n**3, -1)
            kinds.append((one[None] + torch.arange(self.puzzles)[:, None, None] * n**3).flatten(0, 1))
        return kinds

    def _table(self) -> NeighbourTable:
        return NeighbourTable(torch.cat(self.members(), dim=1))

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        return self._table().pair(source, target)

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        return self._table().collect(values, how)

    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        return self._table().weighted_sums(source, weights)

    def ends(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._table().ends()

    def in_degree(self) -> Tensor:
        return torch.full((self.num_nodes, 1), float(self.edge_shape[1]))
