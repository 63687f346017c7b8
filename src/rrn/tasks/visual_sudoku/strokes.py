"""Handwritten-looking digits, drawn from strokes: the training images if there is no file of digits."""

from functools import cache
from itertools import pairwise

import numpy as np

POINTS = 16
"""Segments of a digit, at least."""
PART = 64
"""Digits drawn together: their pixels stay in the processor's cache."""


def _arc(x: float, y: float, wide: float, high: float, start: float, end: float, points: int = 12) -> list[list[float]]:
    """Points of an ellipse around (x, y); angles in degrees, clockwise from the right. y grows downwards."""
    angle = np.radians(np.linspace(start, end, points))
    return np.stack([x + wide * np.cos(angle), y + high * np.sin(angle)], axis=1).tolist()


_PATHS: dict[int, list[list[list[list[float]]]]] = {
    1: [[[[0, -1], [0, 1]]], [[[-0.35, -0.6], [0.05, -1], [0.05, 1]]]],
    2: [
        [[*_arc(0, -0.5, 0.55, 0.5, -190, 30), [-0.6, 1], [0.6, 1]]],
        [[*_arc(0, -0.45, 0.5, 0.55, -170, 60), *_arc(-0.35, 0.8, 0.2, 0.2, 60, 300, 6), [0.65, 0.95]]],
    ],
    3: [
        [[*_arc(-0.05, -0.5, 0.5, 0.5, -150, 90), *_arc(-0.05, 0.48, 0.58, 0.52, -90, 150)]],
        [[[-0.5, -1], [0.5, -1], [-0.05, -0.15], *_arc(-0.05, 0.43, 0.58, 0.57, -90, 150)]],
    ],
    4: [
        [[[0.15, -1], [-0.6, 0.3], [0.65, 0.3]], [[0.25, -0.3], [0.25, 1]]],
        [[[-0.5, -0.95], [-0.55, 0.1], [0.5, 0.05]], [[0.45, -1], [0.4, 1]]],
    ],
    5: [
        [[[0.5, -1], [-0.4, -1], [-0.45, -0.15], *_arc(-0.05, 0.4, 0.6, 0.58, -120, 140)]],
        [[[-0.4, -0.95], [-0.45, -0.15], *_arc(-0.05, 0.4, 0.58, 0.58, -120, 140)], [[-0.4, -0.95], [0.55, -1]]],
    ],
    6: [
        [[[0.35, -1], [-0.25, -0.4], *_arc(0, 0.45, 0.52, 0.54, 190, 560, 16)]],
        [[*_arc(0.15, 0.1, 0.7, 1.1, -80, -180, 8), *_arc(0, 0.5, 0.52, 0.48, 190, 540, 14)]],
    ],
    7: [
        [[[-0.55, -0.95], [0.55, -0.95], [-0.1, 1]]],
        [[[-0.55, -0.95], [0.55, -0.95], [0, 1]], [[-0.35, 0.05], [0.45, 0.0]]],
    ],
    8: [
        [[*_arc(0, -0.5, 0.45, 0.48, 90, 450, 14), *_arc(0, 0.5, 0.55, 0.5, -90, 270, 14)]],
        [[*_arc(0, -0.5, 0.45, 0.5, -20, -270, 10), *_arc(0, 0.5, 0.5, 0.5, -90, 180, 10), [0.42, -0.6]]],
    ],
    9: [
        [[*_arc(0, -0.45, 0.5, 0.52, 0, -360, 14), [0.45, 1]]],
        [[*_arc(0, -0.45, 0.5, 0.52, -10, -360, 14), *_arc(-0.1, 0.3, 0.6, 0.7, -20, 120, 8)]],
    ],
}
"""The ways to write each digit: strokes of points (x, y) from -1 to 1."""


@cache
def _segments() -> tuple[np.ndarray, np.ndarray]:
    """All ways to write all digits as segments of equal number: (ways, POINTS, 2 ends, 2), and their digits (ways,)."""
    ways, digits = [], []
    for digit, variants in _PATHS.items():
        for strokes in variants:
            pairs = [pair for stroke in strokes for pair in pairwise(stroke)]
            while len(pairs) < POINTS:  # halve the longest segment
                longest = max(range(len(pairs)), key=lambda at: np.hypot(*np.subtract(*pairs[at])))
                a, b = pairs[longest]
                middle = ((np.array(a) + b) / 2).tolist()
                pairs[longest : longest + 1] = [(a, middle), (middle, b)]
            ways.append(pairs[: 2 * POINTS])
            digits.append(digit)
    most = max(map(len, ways))
    return np.array([pairs + [pairs[-1]] * (most - len(pairs)) for pairs in ways], np.float32), np.array(digits)


def draw_digits(digits: np.ndarray, rng: np.random.Generator, size: int = 28) -> np.ndarray:
    """Images of digits (n,) from 1 to 9, each written differently: uint8 (n, size, size), ink is 255."""
    parts = [_draw(digits[low : low + PART], rng, size) for low in range(0, len(digits), PART)]
    return np.concatenate([np.zeros((0, size, size), np.uint8), *parts])


def _draw(digits: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
    every, of = _segments()
    lengths = np.bincount(of, minlength=10)
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    n = len(digits)
    way = first[digits] + rng.integers(1 << 30, size=n) % lengths[digits]
    ends = every[way].reshape(n, -1, 2)
    for scale, strength in ((1.5, 0.10), (3.0, 0.05)):  # smooth displacement
        wave, phase = rng.normal(0, scale, (n, 2, 2)), rng.uniform(0, 2 * np.pi, (n, 1, 2))
        ends = ends + strength * np.sin(ends @ wave + phase)
    angle, slant = rng.normal(0, 0.10, n), rng.normal(0.1, 0.18, n)
    wide, high = 0.30 * rng.uniform(0.75, 1.25, n), 0.34 * rng.uniform(0.88, 1.12, n)
    cos, sin = np.cos(angle), np.sin(angle)
    linear = np.stack([wide * cos, -wide * sin, -slant * wide - high * sin, high * cos], 1).reshape(n, 2, 2)
    ends = ends @ linear + rng.normal(0, 0.03, (n, 1, 2)) + 0.5
    ends = ends.reshape(n, -1, 2, 2).astype(np.float32)
    middle = (np.arange(size, dtype=np.float32) + 0.5) / size
    pixel = np.stack(np.meshgrid(middle, middle, indexing="xy"), -1).reshape(1, -1, 2)
    nearest = np.full((n, size * size), np.inf, np.float32)
    for a, b in ends.transpose(1, 2, 0, 3)[..., None]:
        (x, y), (along_x, along_y) = a.transpose(1, 0, 2), (b - a).transpose(1, 0, 2)
        right, down = pixel[..., 0] - x, pixel[..., 1] - y
        share = np.clip((right * along_x + down * along_y) / (along_x**2 + along_y**2 + 1e-9), 0, 1)
        np.minimum(nearest, (right - share * along_x) ** 2 + (down - share * along_y) ** 2, out=nearest)
    half = rng.uniform(0.03, 0.065, (n, 1)).astype(np.float32)
    ink = np.clip((half - np.sqrt(nearest)) * size * 0.9 + 0.5, 0, 1).reshape(n, size, size)
    return np.asarray(ink * 255, np.uint8)
