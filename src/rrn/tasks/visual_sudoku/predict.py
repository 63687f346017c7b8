"""Solving Sudokus from images of their cells."""

import numpy as np
import torch

from rrn.tasks.visual_sudoku.data import Digits
from rrn.tasks.visual_sudoku.model import VisualSudoku

PUZZLES, IMAGES = 32, 512
"""Puzzles solved and images read together."""


def last_answers(network: VisualSudoku, cells: np.ndarray, steps: int) -> np.ndarray:
    """The most probable digits at the last step: uint8 (n, 81, 28, 28) → (n, 81)."""
    parts = []
    with torch.inference_mode():
        for low in range(0, len(cells), PUZZLES):
            some = torch.from_numpy(cells[low : low + PUZZLES]).to(network.device)
            outputs, _ = network({"cells": some}, steps=steps)
            parts.append(outputs[-1].view(len(some), 81, -1)[..., 1:].argmax(-1).cpu().numpy() + 1)
    return np.concatenate(parts).astype(np.uint8)


def read_images(network: VisualSudoku, images: np.ndarray) -> np.ndarray:
    """Probabilities of the digits 1 to 9: uint8 (n, 28, 28) → (n, 9)."""
    with torch.inference_mode():
        parts = torch.from_numpy(images).split(IMAGES)
        return torch.cat([network.encode(part.to(network.device)).softmax(-1).cpu() for part in parts]).numpy()


def digit_accuracy(network: VisualSudoku, digits: Digits) -> float:
    """The share of images whose most probable digit is right."""
    return float((read_images(network, digits.images).argmax(-1) + 1 == digits.labels).mean())
