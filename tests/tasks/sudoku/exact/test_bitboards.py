from types import ModuleType

from rrn.tasks.sudoku.exact import bitboards


def test_the_tables_by_hand(plain_bitboards: ModuleType) -> None:
    everywhere, diagonal, first_row_fixed = 0b111_111_111, 0b100_010_001, 0b111_111_001
    within = plain_bitboards.WITHIN_PERMUTATIONS
    assert within[everywhere] == everywhere
    assert within[diagonal] == diagonal
    assert within[first_row_fixed] == 0b110_110_001
    assert within[0b111_001_001] == 0
    assert plain_bitboards.BOXES_OF_ROW[0b000_010_001] == 0b011
    assert plain_bitboards.CELLS_OF_MINIROWS[0b101] == 0b111_000_111
    assert plain_bitboards.SINGLE_IN_ROW[0b000_010_000] == 0b000_010_000
    assert plain_bitboards.SINGLE_IN_ROW[0b000_010_001] == 0


def test_draws_are_even_and_the_same_compiled(plain_bitboards: ModuleType) -> None:
    plain, compiled = plain_bitboards.integers(4), bitboards.integers(4)
    for word in range(4):
        plain[word] = compiled[word] = 2**32 - 1 - word
    drawn = [plain_bitboards._draw(plain, 9) for _ in range(9000)]
    assert drawn == [bitboards._draw(compiled, 9) for _ in range(9000)]
    counts = [drawn.count(number) for number in range(9)]
    assert sum(counts) == 9000
    assert min(counts) > 900
    assert max(counts) < 1100
    assert all(0 <= word < 2**32 for word in plain)
