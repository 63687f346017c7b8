"""Sudoku as graphs: of its cells, as in the paper, or of its candidates."""

from functools import cache

import torch
from torch import Tensor

from rrn.errors import InputError
from rrn.graphs import Aggregate, Graph, NeighbourTable

KINDS = 4
"""A candidate (row, column, digit) stands in four groups: those of its cell, and those of its digit in its row, its
column and its box. Exactly one candidate of each group is true."""


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

    Everybody hears everybody in its four groups, itself included; an edge knows which kind of group it belongs to.
    With 9 × 4 incoming edges a node there are far more edges than nodes, so sums are taken a group at a time
    (`group_sums`) and edges are never listed.

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
        self.edge_shape = (self.num_nodes, KINDS * self.size)

    def group_sums(self, values: Tensor) -> Tensor:
        """(nodes, 4 · width) → the same shape: part k of a node's row is summed over its group of kind k."""
        n, (high, wide), p = self.size, self.box, self.puzzles
        grid = values.view(p, n, n, n, -1)
        cell, row, column, box = grid.chunk(KINDS, dim=-1)
        width = cell.shape[-1]
        boxes = box.reshape(p, n // high, high, n // wide, wide, n, width)
        sums = [
            cell.sum(3, keepdim=True).expand_as(cell),
            row.sum(2, keepdim=True).expand_as(cell),
            column.sum(1, keepdim=True).expand_as(cell),
            boxes.sum((2, 4), keepdim=True).expand_as(boxes).reshape_as(cell),
        ]
        return torch.cat(sums, dim=-1).view_as(values)

    def members(self) -> Tensor:
        """Who each node hears from: (nodes, 4, n). For tests and for those who want the edges after all."""
        n, (high, wide) = self.size, self.box
        index = torch.arange(n**3).view(n, n, n)
        boxes = index.view(n // high, high, n // wide, wide, n)
        box_of = boxes.permute(0, 2, 4, 1, 3).reshape(n // high, n // wide, n, n)
        kinds = [
            index[:, :, None].expand(n, n, n, n),
            index.transpose(1, 2)[:, None].expand(n, n, n, n),
            index.permute(1, 2, 0)[None].expand(n, n, n, n),
            box_of[torch.arange(n)[:, None] // high, torch.arange(n)[None] // wide],
        ]
        one = torch.stack([kind.reshape(n**3, n) for kind in kinds], dim=1)
        return (one[None] + torch.arange(self.puzzles)[:, None, None, None] * n**3).flatten(0, 1)

    def _table(self) -> NeighbourTable:
        return NeighbourTable(self.members().flatten(1))

    def pair(self, source: Tensor, target: Tensor) -> Tensor:
        return self._table().pair(source, target)

    def collect(self, values: Tensor, how: Aggregate) -> Tensor:
        return self._table().collect(values, how)

    def weighted_sums(self, source: Tensor, weights: Tensor) -> Tensor:
        return self._table().weighted_sums(source, weights)

    def in_degree(self) -> Tensor:
        return torch.full((self.num_nodes, 1), float(KINDS * self.size))
