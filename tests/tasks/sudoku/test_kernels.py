import importlib.util
from types import ModuleType

import pytest

from rrn.tasks.sudoku import kernels


def test_the_tables_by_hand(plain_kernels: ModuleType) -> None:
    everywhere, diagonal, first_row_fixed = 0b111_111_111, 0b100_010_001, 0b111_111_001
    within = plain_kernels.WITHIN_PERMUTATIONS
    assert within[everywhere] == everywhere
    assert within[diagonal] == diagonal
    assert within[first_row_fixed] == 0b110_110_001
    assert within[0b111_001_001] == 0
    assert plain_kernels.BOXES_OF_ROW[0b000_010_001] == 0b011
    assert plain_kernels.CELLS_OF_MINIROWS[0b101] == 0b111_000_111
    assert plain_kernels.SINGLE_IN_ROW[0b000_010_000] == 0b000_010_000
    assert plain_kernels.SINGLE_IN_ROW[0b000_010_001] == 0


def test_draws_are_even_and_the_same_compiled(plain_kernels: ModuleType) -> None:
    plain, compiled = plain_kernels.integers(4), kernels.integers(4)
    for word in range(4):
        plain[word] = compiled[word] = 2**32 - 1 - word
    drawn = [plain_kernels._draw(plain, 9) for _ in range(9000)]
    assert drawn == [kernels._draw(compiled, 9) for _ in range(9000)]
    counts = [drawn.count(number) for number in range(9)]
    assert sum(counts) == 9000
    assert min(counts) > 900
    assert max(counts) < 1100
    assert all(0 <= word < 2**32 for word in plain)


def test_a_place_that_cannot_keep_the_cache_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    caching = pytest.importorskip("numba.core.caching")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    spec = importlib.util.spec_from_file_location("uncached_kernels", kernels.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module._count_bits(0b1011) == 3
