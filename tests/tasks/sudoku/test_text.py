"""Puzzles in every form that people write them in, and in those that ``rrn solve`` itself prints."""

import json

import numpy as np
import pytest

from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.grid import BOXES, SYMBOLS, box_of, grid_to_line, line_to_grid
from rrn.tasks.sudoku.text import EMPTY, Entry, cells_of, entries

PUZZLES = {
    cells: generate(2, np.random.default_rng(cells), 60 if cells == 256 else 2, box=box) for cells, box in BOXES.items()
}
SIZES = pytest.mark.parametrize("cells", BOXES)


def puzzle(cells: int) -> np.ndarray:
    return PUZZLES[cells][0][0]


def text(cells: int, empty: str = ".") -> str:
    return grid_to_line(puzzle(cells)).replace(".", empty)


def rows(cells: int, empty: str = ".") -> list[str]:
    size = round(cells**0.5)
    return [text(cells, empty)[start : start + size] for start in range(0, cells, size)]


def barred(cells: int, empty: str = ".", bar: str = "|") -> list[str]:
    wide = box_of(cells)[1]
    return [
        f" {bar} ".join(" ".join(row[i : i + wide]) for i in range(0, len(row), wide)) for row in rows(cells, empty)
    ]


def with_rules(lines: list[str], high: int, rule: str) -> list[str]:
    ruled = []
    for number, line in enumerate(lines):
        ruled += [rule] * (number % high == 0) + [line]
    return [*ruled, rule]


def only(lines: list[str]) -> np.ndarray:
    (entry,) = entries(lines)
    assert entry.wrong is None, entry.wrong
    return line_to_grid(entry.puzzle)


@SIZES
@pytest.mark.parametrize("empty", [*EMPTY, "-"])
def test_one_line_and_rows_with_each_way_to_write_an_empty_cell(cells: int, empty: str) -> None:
    np.testing.assert_array_equal(only([text(cells, empty)]), puzzle(cells))
    np.testing.assert_array_equal(only(rows(cells, empty)), puzzle(cells))
    np.testing.assert_array_equal(only(barred(cells, empty)), puzzle(cells))
    np.testing.assert_array_equal(only([text(cells, empty).lower()]), puzzle(cells))


@SIZES
def test_drawn_lines(cells: int) -> None:
    high = box_of(cells)[0]
    for rule in ("+-----+-----+", "*-----------*", "├───┼───┤", "===", "-" * round(cells**0.5), ""):
        np.testing.assert_array_equal(only(with_rules(barred(cells, "·", "│"), high, rule)), puzzle(cells), rule)


def test_rows_of_dashes_are_rows_where_dashes_are_empty_cells() -> None:
    lines = ["-" * 9, "5---3---7", *["-" * 9] * 7]
    expected = np.zeros(81, np.uint8)
    expected[[9, 13, 17]] = 5, 3, 7
    np.testing.assert_array_equal(only(lines), expected)
    np.testing.assert_array_equal(only(["-" * 81]), np.zeros(81))


def test_full_width_digits() -> None:
    wide = str.maketrans("123456789.", "１２３４５６７８９．")
    np.testing.assert_array_equal(only([text(81).translate(wide)]), puzzle(81))
    np.testing.assert_array_equal(only([line.translate(wide) for line in barred(81)]), puzzle(81))


def test_numbers_beyond_nine_between_spaces() -> None:
    lines = [" ".join(str(SYMBOLS.find(c) + 1) if c != "." else c for c in row) for row in rows(256)]
    np.testing.assert_array_equal(only(lines), puzzle(256))


def test_sdk_files() -> None:
    lines = ["#A somebody", "#D easy", "[Puzzle]", *rows(81), "[State]", "123456789", "and more"]
    np.testing.assert_array_equal(only(lines), puzzle(81))


@SIZES
def test_json(cells: int) -> None:
    digits, size = puzzle(cells).tolist(), round(cells**0.5)
    square = [digits[i : i + size] for i in range(0, cells, size)]
    forms = [text(cells), digits, square, rows(cells), [d or None for d in digits], {"puzzle": text(cells)}]
    for form in (*forms[1:], [forms[0]], *[[form, form] for form in forms], {"puzzles": forms}):
        for layout in ([json.dumps(form)], json.dumps(form, indent=1).split("\n")):
            found = list(entries(layout))
            assert len(found) == (len(forms) if isinstance(form, dict) and "puzzles" in form else
                                  2 if form in [[f, f] for f in forms] else 1), form  # fmt: skip
            for entry in found:
                np.testing.assert_array_equal(line_to_grid(entry.puzzle), puzzle(cells))


def test_json_lines_and_solutions() -> None:
    solution = grid_to_line(PUZZLES[81][1][0])
    lines = [json.dumps({"puzzle": text(81), "solution": solution}), json.dumps({"quiz": text(16)}), text(36)]
    first, second, third = entries(lines)
    assert (first.solution, first.line, first.item) == (solution, 1, None)
    assert [len(entry.puzzle) for entry in (second, third)] == [16, 36]


@pytest.mark.parametrize(
    ("lines", "place", "wrong"),
    [
        (["[1, 2,"], "x:1", "not JSON: line 1"),
        (['["12", 5]'], "x: item 1", "2 cells where a puzzle has 16, 36, 81 or 256"),
        (['[{"grid": 5}]'], "x: item 1", "expected a string of cells"),
        (["[[1, 2], [17, 3]]"], "x: item 1", "2 cells"),
        (["", "123"], "x:2", "row 1 of the grid has 3 cells, not 9"),
        (["1" * 80], "x:1", "80 cells where a puzzle has 16, 36, 81 or 256"),
        (["5" + "." * 35, "7" + "." * 35], "x:2", "'7' in cell 1 is neither a digit nor an empty cell"),
    ],
)
def test_what_is_no_puzzle_is_named(lines: list[str], place: str, wrong: str) -> None:
    found = [entry for entry in entries(lines) if entry.wrong]
    assert found[0].place("x") == place
    assert found[0].wrong is not None
    assert wrong in found[0].wrong


def test_sixteen_cells_are_a_small_puzzle_or_a_row_of_a_large_one() -> None:
    small = [grid_to_line(grid) for grid in PUZZLES[16][0]]
    found = list(entries([*small * 10, "", *rows(256), *small, text(81)]))
    assert [len(entry.puzzle) for entry in found] == [16] * 20 + [256] + [16] * 2 + [81]
    assert [entry.line for entry in found] == [*range(1, 21), 22, 38, 39, 40]


def test_a_puzzle_is_known_as_soon_as_its_line_is_read() -> None:
    read = []

    def lines() -> "object":
        for number in range(1000):
            read.append(number)
            yield text(81)

    found = entries(lines())  # type: ignore[arg-type]
    assert next(found) == Entry(1, cells_of(text(81)))
    assert len(read) == 1


def test_cells_of_one_text() -> None:
    for write in (text, lambda cells: "\n".join(barred(cells, "_")), lambda cells: text(cells, "-")):  # type: Callable[[int], str]
        assert cells_of(write(81)) == text(81, "0")


@SIZES
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("blank", ["", " ", "0"])
def test_tables_of_spreadsheets(cells: int, separator: str, blank: str) -> None:
    """A cell per column, numbers for digits beyond 9, nothing in an empty cell; two grids with a blank line between."""
    size = round(cells**0.5)
    both = list(PUZZLES[cells][0][:2])
    lines = []
    for grid in both:
        for row in grid.reshape(size, size):
            lines.append(separator.join(str(digit) if digit else blank for digit in row) + "\r\n")
        lines.append("\r\n")
    assert [entry.puzzle for entry in entries(lines)] == [grid_to_line(grid).replace(".", "0") for grid in both]


def test_a_whole_puzzle_in_one_row_of_a_table() -> None:
    line = ",".join("" if cell == "." else cell for cell in text(81)) + "\n"
    assert [entry.puzzle for entry in entries([line])] == [text(81, "0")]


@pytest.mark.parametrize("stripped", [False, True])
def test_spaces_for_empty_cells(stripped: bool) -> None:
    """As in a text file; many editors remove the spaces at the end of a line."""
    lines = [row.rstrip() if stripped else row for row in rows(81, " ")]
    assert [entry.puzzle for entry in entries(f"{line}\n" for line in lines)] == [text(81, "0")]
    assert [entry.puzzle for entry in entries([text(81, " ") + "\n"])] == [text(81, "0")]
    empty_row = ["123456789"[shift:] + "123456789"[:shift] for shift in (0, 3, 6, 1, 4, 7, 2, 5)]
    empty_row[0] = "1 3456789"
    expected = "".join(empty_row).replace(" ", "0") + "0" * 9
    assert [entry.puzzle for entry in entries([*empty_row, "" if stripped else " " * 9])] == [expected]
