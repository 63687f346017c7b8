from types import ModuleType


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
