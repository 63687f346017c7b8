import importlib.util
import sys
from types import ModuleType

import pytest

import rrn._compat
from rrn.tasks.sudoku.exact import integers


def load(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_draws_are_even_and_the_same_compiled() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numba", None)
        patch.setitem(sys.modules, "rrn._compat", load("plain_compiled", rrn._compat.__file__))
        without = load("plain_integers", integers.__file__)
    plain, compiled = without.integers(4), integers.integers(4)
    assert isinstance(plain, list)
    for word in range(4):
        plain[word] = compiled[word] = 2**32 - 1 - word
    drawn = [without.draw(plain, 9) for _ in range(9000)]
    assert drawn == [integers.draw(compiled, 9) for _ in range(9000)]
    counts = [drawn.count(number) for number in range(9)]
    assert sum(counts) == 9000
    assert min(counts) > 900
    assert max(counts) < 1100
    assert all(0 <= word < 2**32 for word in plain)


def test_bits() -> None:
    assert integers.count_bits(0b1011) == 3
    assert integers.nth_bit(0b1011, 2) == 0b1000
