"""The reader of puzzles in text, for files, commands and the web page. The format is detected line by line:

* a puzzle per line, 16, 36, 81 or 256 characters, with ``0 . _ * ? x - ·`` for an empty cell;
* CSV: a puzzle, a comma and its solution; other columns are ignored. A header such as ``puzzle,solution`` is optional
  and may put the columns in another order;
* a table, as spreadsheets save it: a cell per column, between commas, semicolons or tabs; blanks are empty cells;
* nine characters per row, or 81 per line, with spaces for empty cells;
* one line per row, optionally with spaces, ``| - +`` or box-drawing characters between cells and rows; ``.sdk`` files;
* JSON: strings as above, arrays of digits, arrays of rows, objects with a key such as ``puzzle``, and arrays of any of
  these; or one such value per line;
* the output of ``rrn solve``, as text or JSON.

Digits beyond 9 are ``A`` to ``G``; between spaces and in JSON also numbers. Blank lines and lines that start with
``#`` are ignored.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from math import isqrt
from typing import Any, NamedTuple

from rrn.errors import plural
from rrn.tasks.sudoku.grid import BOXES, SYMBOLS

EMPTY = "0._*?xX·•∙⋅．＊？"
SEPARATORS = "|-+=│─┼┌┬┐├┤└┴┘║═╬┃━╋╪╫┆┄╔╦╗╠╣╚╩╝ \u3000\t\r\n"
_COLUMNS = (
    ("puzzle", "puzzles", "quiz", "quizzes", "question", "sudoku"),
    ("solution", "solutions", "answer", "answers"),
)
"""Column names, or JSON keys, of puzzles and of solutions."""
LONGEST_GRID_ROW = 20
ALL_SIZES = tuple(BOXES)

_TO_CELLS = {
    **{ord(separator): None for separator in SEPARATORS},
    **{ord(empty): "0" for empty in EMPTY},
    **{ord("０") + digit: str(digit) for digit in range(10)},
}
_DASHES_EMPTY = {**_TO_CELLS, ord("-"): "0"}
_SECTION = re.compile(r"\[([A-Za-z ]+)\]")
_VERDICT = re.compile(r"(not |already )?solved\b|no solution\b|step \d")
_DIGITS_AND_SPACES = re.compile("[0-9 ]*")
_RULE = re.compile(r"[*+|\s]*-{3,}[-*+|\s]*")


class Entry(NamedTuple):
    """A puzzle in a text, its first line, and its ``item`` number in a JSON array.

    Cells are digits, letters and 0 for empty. ``wrong`` is the error if the entry is not a puzzle."""

    line: int
    puzzle: str
    solution: str | None = None
    wrong: str | None = None
    item: int | None = None

    def place(self, name: str) -> str:
        return f"{name}:{self.line}" if self.item is None else f"{name}: item {self.item}"


def cells_of(text: str) -> str:
    """The text without separators and spaces, with 0 for every empty cell. Nothing is checked.

    A dash is an empty cell if the text is a puzzle then, otherwise a separator.
    """
    if "-" in text and "+" not in text:
        with_dashes = text.translate(_DASHES_EMPTY)
        if len(with_dashes) in BOXES:
            return with_dashes
    return text.translate(_TO_CELLS)


def entries_of(text: str) -> list[Entry]:
    """All puzzles of a text."""
    return list(entries(text.split("\n")))


def entries(lines: Iterable[str], sizes: Collection[int] = ALL_SIZES) -> Iterator[Entry]:
    """Yield the puzzles of a text as soon as each is complete; ``sizes`` are the allowed numbers of cells."""
    grid, numbered, skipping = _Grid(sizes), enumerate(lines, start=1), False
    columns: list[int | None] | None = None  # of puzzle and solution; empty: no header; None: unknown
    for line, raw in numbered:
        content = raw.strip()
        if (cells := "" if skipping or columns else _table_cells(raw, sizes)) or grid.takes_spaces(raw):
            if len(cells) > LONGEST_GRID_ROW:
                yield from grid.close()
                yield _checked(line, cells, "", sizes)
            else:
                yield from grid.add(line, cells or raw.strip("\r\n").replace(" ", "0").ljust(9, "0"))
        elif section := _SECTION.fullmatch(content):
            skipping = section[1].lower() not in ("puzzle", "puzzles")
        elif content[:1] in ("[", "{"):
            yield from grid.close()
            yield from _from_json(content, line, numbered, sizes)
        elif skipping or content.startswith("#"):
            continue
        elif not content or _VERDICT.match(content):
            yield from grid.close(blank=not content)
        elif len(content) == 81 and not columns and 81 in sizes and _only_digits(cells := cells_of(content)):
            yield from grid.close()  # the fast path: most lines of most files
            yield Entry(line, cells)
            columns = []
        else:
            fields = [field.strip().strip('"') for field in re.split("[,;]", content)]
            if columns is None and (columns := _header(fields)):
                continue
            if columns:
                puzzle, solution = (cells_of(fields[c]) if c is not None and c < len(fields) else "" for c in columns)
                yield _checked(line, puzzle, solution, sizes)
                continue
            cells = (_with_numbers(content) if " " in content else "") or cells_of(fields[0])
            if len(fields) == 1 and len(cells) <= LONGEST_GRID_ROW:
                yield from grid.add(line, content)
            else:
                yield from grid.close()
                yield _from_line(line, content, cells, fields[1:], sizes)
    yield from grid.close()


def _table_cells(raw: str, sizes: Collection[int]) -> str:
    """The cells of a line that is a row, or a puzzle, with one cell per column; otherwise empty."""
    raw = raw.strip("\r\n")
    if len(raw) == 81 and 81 in sizes and " " in raw and _DIGITS_AND_SPACES.fullmatch(raw):
        return raw.replace(" ", "0")
    for separator in ",;\t":
        fields = [field.strip().strip('"').strip() for field in raw.split(separator)]
        if len(fields) in {isqrt(size) for size in sizes} | set(sizes):
            cells = [_table_cell(field) for field in fields]
            return "".join(cells) if all(cells) else ""
    return ""


def _table_cell(field: str) -> str:
    """The symbol of a cell of a table, 0 if it is blank; an empty string if the field is no cell."""
    if not field or (len(field) == 1 and field in EMPTY + "-"):
        return "0"
    if re.fullmatch("1[0-6]|[1-9]", field):
        return SYMBOLS[int(field) - 1]
    return field if len(field) == 1 and field.upper() in SYMBOLS else ""


def _only_digits(cells: str) -> bool:
    return len(cells) == 81 and cells.isascii() and cells.isdigit()


def _header(fields: list[str]) -> list[int | None]:
    """The columns of puzzle and solution if the fields are a header, otherwise empty."""
    found = [[column for column, field in enumerate(fields) if field.lower() in names] for names in _COLUMNS]
    puzzle, solution = (columns[0] if columns else None for columns in found)
    return [] if puzzle is None else [puzzle, solution]


def _wrong(cells: str, sizes: Collection[int]) -> str | None:
    """Why these cells are not a grid with one of these numbers of cells; None if they are."""
    if len(cells) not in sizes:
        *others, last = map(str, sizes)
        return f"{len(cells)} cells where a puzzle has {', '.join(others) + ' or ' if others else ''}{last}"
    if _only_digits(cells):
        return None
    symbols = "0" + SYMBOLS[: isqrt(len(cells))]
    index = next((index for index, cell in enumerate(cells) if cell.upper() not in symbols), None)
    if index is None:
        return None
    return f"{cells[index]!r} in cell {index + 1} is neither a digit nor an empty cell (0, . or _)"


def _checked(line: int, puzzle: str, solution: str, sizes: Collection[int]) -> Entry:
    """An entry of well-formed cells, or an entry with the error; the solution may be empty."""
    wrong = _wrong(puzzle, sizes)
    if solution and not wrong:
        why = "it has empty cells" if "0" in solution else _wrong(solution, (len(puzzle),))
        wrong = why and f"the stated solution: {why}"
    return Entry(line, "", wrong=wrong) if wrong else Entry(line, puzzle.upper(), solution.upper() or None)


def _from_json(first: str, line: int, rest: Iterator[tuple[int, str]], sizes: Collection[int]) -> Iterator[Entry]:
    """The puzzles of a JSON value in one line, or in the rest of the text."""
    try:
        try:
            value = json.loads(first)
        except ValueError:
            value = json.loads("\n".join([first, *(content for _, content in rest)]))
    except RecursionError:
        yield Entry(line, "", wrong="not JSON: nested too deeply")
        return
    except ValueError as error:
        at = f"line {line + error.lineno - 1}: " if isinstance(error, json.JSONDecodeError) else ""
        yield Entry(line, "", wrong=f"not JSON: {at}{getattr(error, 'msg', error)}")
        return
    if isinstance(value, dict) and isinstance(value.get("puzzles"), list):
        value = value["puzzles"]
    several = isinstance(value, list) and not _json_cells(value)
    for item, part in enumerate(value if several else [value], start=1):
        puzzle, solution = part, None
        if isinstance(part, dict):
            puzzle, solution = (next((part[key] for key in names if key in part), None) for names in _COLUMNS)
        if cells := _json_cells(puzzle):
            entry = _checked(line, cells, _json_cells(solution), sizes)
        else:
            expected = "a string of cells, an array of digits or of rows, or an object with a key 'puzzle'"
            entry = Entry(line, "", wrong=f"expected {expected}")
        yield entry._replace(item=item) if several else entry


def _json_cells(value: Any) -> str:
    """The cells of a string, an array of digits or an array of rows; empty for any other value."""
    if isinstance(value, str):
        return cells_of(value)
    if not isinstance(value, list) or not value:
        return ""
    if all(isinstance(row, list) and len(row) == len(value) for row in value):
        cells = [cell for row in value for cell in row]
        return "" if any(isinstance(cell, list) for cell in cells) else _json_cells(cells)
    if all(isinstance(row, str) and len(cells_of(row)) == len(value) for row in value):
        return "".join(map(cells_of, value))
    if all(cell is None or (type(cell) is int and 0 <= cell <= len(SYMBOLS)) for cell in value):
        return "".join(SYMBOLS[cell - 1] if cell else "0" for cell in value)
    return ""


def _from_line(line: int, content: str, cells: str, further: list[str], sizes: Collection[int]) -> Entry:
    """A puzzle in one line, with its solution in another column or directly after it. Of several words, as `rrn solve`
    prints them, the one that is a puzzle."""
    solution, half = cells_of(further[0]) if further else "", len(cells) // 2
    if len(solution) <= LONGEST_GRID_ROW:
        solution = ""
    if not further and half in sizes and len(cells) == 2 * half and len(cells) not in sizes:
        cells, solution = cells[:half], cells[half:]
    entry = _checked(line, cells, solution, sizes)
    if entry.wrong:
        words = [word for word in map(cells_of, content.split()) if len(word) > LONGEST_GRID_ROW]
        if len(words) == 1 and not _wrong(words[0], sizes):
            return _checked(line, words[0], "", sizes)
    return entry


def _with_numbers(content: str) -> str:
    """The cells of a row of numbers between spaces, if one of them is 10 or more; otherwise empty."""
    words = [word for word in re.split(r"[\s|│]+", content) if word]
    cells = [SYMBOLS[int(word) - 1] if re.fullmatch("1[0-6]|[1-9]", word) else word for word in words]
    return "".join(cells).translate(_TO_CELLS) if any(len(word) == 2 and word.isdigit() for word in words) else ""


class _Row(NamedTuple):
    """A line of a grid.

    ``rule``: dashes only, either empty cells or a line between bands; the whole grid decides. ``dashed``: digits and
    dashes, which are empty cells."""

    line: int
    cells: str
    rule: bool
    dashed: bool


class _Grid:
    """Collects the rows of a grid over several lines."""

    def __init__(self, sizes: Collection[int]) -> None:
        self.sizes, self.widths = sizes, {isqrt(cells) for cells in sizes}
        self.rows: list[_Row] = []
        self.spaced = False
        """Whether the rows collected so far have spaces for empty cells."""

    def takes_spaces(self, raw: str) -> bool:
        """Whether a line is a row of 9 × 9 with spaces for empty cells. At the end of a line they may be missing."""
        raw = raw.strip("\r\n")
        if 9 not in self.widths or len(raw) > 9 or not _DIGITS_AND_SPACES.fullmatch(raw):
            return False
        if self.rows:
            return self.spaced
        several = "  " in raw or raw.startswith(" ")
        digits = len(raw.replace(" ", ""))
        self.spaced = digits > 0 and " " in raw and (len(raw) == 9 or (several and digits not in self.widths))
        return self.spaced

    def add(self, line: int, content: str) -> Iterator[Entry]:
        """Add a line; of two grids side by side, as `rrn solve` prints them, only the left one counts."""
        content = re.split(r"[│|] {3,}[│|]", content)[0]
        cells = _with_numbers(content) or content.translate(_TO_CELLS)
        rule, dashed = False, False
        if "-" in content and "+" not in content:
            with_dashes = content.translate(_DASHES_EMPTY)
            if len(with_dashes) in ({len(self.rows[0].cells)} if self.rows else self.widths):
                rule, dashed, cells = not cells, bool(cells), with_dashes
        if not cells or (_RULE.fullmatch(content) and not rule and not dashed):
            return
        self.rows.append(_Row(line, cells, rule, dashed))
        width = len(self.rows[0].cells)
        sure = sum(not row.rule for row in self.rows)
        if sure == width or (len(self.rows) == width and any(row.dashed for row in self.rows)):
            yield from self.close()

    def close(self, blank: bool = False) -> Iterator[Entry]:
        """Yield the grid of the collected rows; a blank line between two bands does not end it."""
        rows, sure = self.rows, [row for row in self.rows if not row.rule]
        width = len(rows[0].cells) if rows and len(rows[0].cells) in self.widths else 9
        small = width == 16 and all(len(row.cells) == 16 and set(row.cells) <= set("01234") for row in sure)
        if blank and not small and 0 < len(sure) < width and len(sure) % BOXES[width * width][0] == 0:
            return
        self.rows, self.spaced = [], False
        if small:
            yield from (_checked(row.line, row.cells, "", self.sizes) for row in sure)  # 4 × 4, a puzzle per line
        elif sure or len(rows) >= width:
            yield self._grid(sure if len(sure) == width else rows, width)

    def _grid(self, rows: list[_Row], width: int) -> Entry:
        uneven = next((number for number, row in enumerate(rows, 1) if len(row.cells) != width), None)
        if uneven is not None:
            wrong = f"row {uneven} of the grid has {plural(len(rows[uneven - 1].cells), 'cell')}, not {width}"
        elif len(rows) != width:
            wrong = f"a grid of {plural(len(rows), 'row')}, not {width}"
        else:
            return _checked(rows[0].line, "".join(row.cells for row in rows), "", self.sizes)
        return Entry(rows[0].line, "", wrong=wrong)
