"""Simple drawings of grids."""

import cv2
import numpy as np


def draw_grid(
    size: int = 9, cell: int = 40, box: int = 3, digits: dict[tuple[int, int], str] | None = None
) -> np.ndarray:
    """A gray image of an upright grid with a margin of 40 pixels."""
    image = np.full((size * cell + 80, size * cell + 80), 255, np.uint8)
    for k in range(size + 1):
        width = 3 if k % box == 0 else 1
        cv2.line(image, (40 + k * cell, 40), (40 + k * cell, 40 + size * cell), 0, width)
        cv2.line(image, (40, 40 + k * cell), (40 + size * cell, 40 + k * cell), 0, width)
    for (row, column), text in (digits or {}).items():
        place = (40 + column * cell + cell // 4, 40 + row * cell + 3 * cell // 4)
        cv2.putText(image, text, place, cv2.FONT_HERSHEY_SIMPLEX, cell / 45, 0, 2)
    return image
