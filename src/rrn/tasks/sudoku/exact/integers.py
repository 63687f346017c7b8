"""Integer arithmetic with the same results with and without numba: work arrays, bits, random numbers, hashes.

Values stay below 2^63. Work arrays are flat: numpy arrays if compiled, otherwise lists, which plain Python indexes
faster.
"""

from typing import Any

import numpy as np

from rrn._compat import COMPILED, compiled

UNLIMITED = 1 << 62


def table(values: list[int]) -> Any:
    """A lookup table for compiled loops."""
    return np.array(values, dtype=np.int64) if COMPILED else values


@compiled
def _compiled_integers(count: int) -> Any:
    return np.zeros(count, dtype=np.int64)


def _listed_integers(count: int) -> Any:
    return [0] * count


integers = _compiled_integers if COMPILED else _listed_integers
"""A work array of ``count`` zeros."""


@compiled
def draw(random: Any, below: int) -> int:
    """A number from 0 to below - 1 by Marsaglia's xorshift128; ``random`` is its state, four words of 32 bits."""
    mixed = random[0] ^ (random[0] << 11 & 0xFFFFFFFF)
    random[0], random[1], random[2] = random[1], random[2], random[3]
    random[3] = random[3] ^ random[3] >> 19 ^ mixed ^ mixed >> 8
    return random[3] * below >> 32


@compiled
def shuffle(numbers: Any, start: int, stop: int, random: Any) -> None:
    for last in range(stop - 1, start, -1):
        other = start + draw(random, last + 1 - start)
        numbers[last], numbers[other] = numbers[other], numbers[last]


@compiled
def nth_bit(bits: int, which: int) -> int:
    for _ in range(which):
        bits &= bits - 1
    return bits & -bits


@compiled
def count_bits(bits: int) -> int:
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


def mix(numbers: np.ndarray) -> np.ndarray:
    """Scatter 64-bit numbers (the finaliser of splitmix64); never maps 0 to itself."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)
