"""The cells of a grid in a photo, as small images of the same brightness, size and orientation."""

import numpy as np

from rrn.tasks.photo.grid import Grid
from rrn.tasks.photo.opencv import cv2

SIZE = 28
"""Rows and columns of a cell's image."""
EDGE = 0.07
"""The share of a cell that is left out at each edge: its lines."""
_FINE = 2
_USUAL_CELL = 60
"""Photos with larger cells, in pixels, are made smaller first."""


def cut_cells(gray: np.ndarray, grid: Grid) -> np.ndarray:
    """The cells of a grid, float32 (81, 28, 28): 0 is paper, 1 is the darkest ink in the grid."""
    a, b, c, d = grid.corners
    cell = np.sqrt(np.linalg.norm(c - a) * np.linalg.norm(d - b) / 2) / 9
    if cell > _USUAL_CELL:
        factor = _USUAL_CELL / cell
        gray = cv2.resize(gray, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
        grid = grid.scaled(factor)
    gray = 255 - gray if grid.inverted else gray
    fine = SIZE * _FINE
    within = EDGE + (np.arange(fine) + 0.5) / fine * (1 - 2 * EDGE)
    along = ((np.arange(9)[:, None] + within) / 9).ravel()
    flat = cv2.resize(grid.sample(gray, along), (9 * SIZE, 9 * SIZE), interpolation=cv2.INTER_AREA)
    return normalised(flat).reshape(9, SIZE, 9, SIZE).transpose(0, 2, 1, 3).reshape(81, SIZE, SIZE)


def normalised(flat: np.ndarray) -> np.ndarray:
    """A square of all cells, uint8, as ink: float32, 0 to 1, without shadows."""
    paper = cv2.dilate(cv2.medianBlur(flat, 3), np.ones((SIZE // 2 | 1, SIZE // 2 | 1), np.uint8))
    paper = cv2.GaussianBlur(paper.astype(np.float32), (0, 0), SIZE / 4)
    ink = np.clip(1 - flat / np.maximum(paper, 1), 0, 1)
    inner = ink.reshape(9, SIZE, 9, SIZE)[:, 4:-4, :, 4:-4].transpose(0, 2, 1, 3).reshape(81, -1)
    level = float(np.quantile(np.quantile(inner, 0.98, axis=1), 0.85))
    return np.minimum(ink / max(level, 0.12), 1).astype(np.float32)
