"""Puzzles as people write them, told apart line by line:

* a puzzle per line, 16, 36, 81 or 256 characters, with ``0 . _ * ? x - ·`` for an empty cell;
* the same followed by a comma and its solution (other columns are ignored), with a header such as ``puzzle,solution``
  that may put the columns in another order, or without;
* as many lines as rows, with spaces and ``| - +`` or drawn lines between cells and lines, or without; ``.sdk`` files;
* JSON: strings as above, arrays of digits, arrays of rows, objects with a key such as ``puzzle``, and arrays of any of
  these; or one such value per line;
* what ``rrn solve`` itself prints, as text or JSON.

Digits beyond 9 are ``A`` to ``G``, or, between spaces and in JSON, numbers. Blank lines and lines that start with
``#`` are passed over.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from rrn.tasks.sudoku.grid import BOXES, SYMBOLS, size_of

EMPTY = "0._*?xX·•∙⋅．＊？"
SEPARATORS = "|-+=│─┼┌┬┐├┤└┴┘║═╬┃━╋╪╫┆┄╔╦╗╠╣╚╩╝ \u3000\t\r\n"
PUZZLE_COLUMNS = ("puzzle", "puzzles", "quiz", "quizzes", "question", "sudoku")
SOLUTION_COLUMNS = ("solution", "solutions", "answer", "answers")
LONGEST_GRID_ROW = 20
ALL_SIZES = tuple(BOXES)

_TO_CELLS = {
    **{ord(separator): None for separator in SEPARATORS},
    **{ord(empty): "0" for empty in EMPTY},
    **{ord("０") + digit: str(digit) for digit in range(10)},
}
_DASHES_EMPTY = {**_TO_CELLS, ord("-"): "0"}
_SECTION = re.compile(r"\[([A-Za-z ]+)\]")
_SAID = re.compile(r"(not |already )?solved\b|no solution\b|step \d")
_RULE = re.compile(r"[*+|\s]*-{3,}[-*+|\s]*")


class Entry(NamedTuple):
    """A puzzle of a text and the line it begins on; of a JSON array, which ``item`` it is. Cells are digits, letters
    and 0 for empty. ``wrong`` says why it is none, where it is none."""

    line: int
    puzzle: str
    solution: str | None = None
    wrong: str | None = None
    item: int | None = None

    def place(self, name: str) -> str:
        return f"{name}:{self.line}" if self.item is None else f"{name}: item {self.item}"


def cells_of(text: str) -> str:
    """The text without separators and spaces, each way to write an empty cell turned into 0; nothing is checked.

    A dash is an empty cell where that makes a puzzle of it, and a separator elsewhere.
    """
    if "-" in text and "+" not in text:
        with_dashes = text.translate(_DASHES_EMPTY)
        if len(with_dashes) in BOXES:
            return with_dashes
    return text.translate(_TO_CELLS)


def wrong_cells(cells: str, sizes: Collection[int] = ALL_SIZES) -> str | None:
    """Why these `cells_of` a text are no grid of one of these numbers of cells; None if they are."""
    if len(cells) not in sizes:
        *others, last = map(str, sizes)
        return f"{len(cells)} cells where a puzzle has {', '.join(others) + ' or ' if others else ''}{last}"
    if cells.isascii() and cells.isdigit() and len(cells) == 81:
        return None
    symbols = "0" + SYMBOLS[: size_of(BOXES[len(cells)])]
    place = next((place for place, cell in enumerate(cells) if cell.upper() not in symbols), None)
    if place is None:
        return None
    return f"{cells[place]!r} in place {place + 1} is neither a digit nor an empty cell (0, . or _)"


def entries(lines: Iterable[str], sizes: Collection[int] = ALL_SIZES) -> Iterator[Entry]:
    """The puzzles of a text, one after the other, as soon as each is complete; ``sizes`` are the numbers of cells."""
    scanner, numbered = _Scanner(sizes), enumerate(lines, start=1)
    for number, content in numbered:
        content = content.strip()
        if content[:1] in ("[", "{") and not _SECTION.fullmatch(content):
            yield from scanner.close_grid()
            try:
                value = json.loads(content)
            except ValueError:
                yield from _from_document(content, number, numbered, scanner.sizes)
                continue
            yield from _from_json(value, number, scanner.sizes)
        else:
            yield from scanner.feed(number, content)
    yield from scanner.close_grid()


def _from_document(first: str, line: int, rest: Iterator[tuple[int, str]], sizes: Collection[int]) -> Iterator[Entry]:
    """A JSON value of many lines: all that is left of the text."""
    try:
        value = json.loads("\n".join([first, *(content for _, content in rest)]))
    except ValueError as error:
        at = f"line {line + error.lineno - 1}: " if isinstance(error, json.JSONDecodeError) else ""
        yield Entry(line, "", wrong=f"not JSON: {at}{getattr(error, 'msg', error)}")
        return
    yield from _from_json(value, line, sizes)


def _from_json(value: Any, line: int, sizes: Collection[int]) -> Iterator[Entry]:
    if isinstance(value, dict) and isinstance(value.get("puzzles"), list):
        value = value["puzzles"]
    if isinstance(value, list) and not _json_cells(value):
        for item, part in enumerate(value, start=1):
            yield _one_of_json(part, line, sizes)._replace(item=item)
    else:
        yield _one_of_json(value, line, sizes)


def _one_of_json(value: Any, line: int, sizes: Collection[int]) -> Entry:
    solution = None
    if isinstance(value, dict):
        solution = next((value[key] for key in SOLUTION_COLUMNS if key in value), None)
        value = next((value[key] for key in PUZZLE_COLUMNS if key in value), None)
    puzzle, solved = _json_cells(value), _json_cells(solution)
    if not puzzle:
        return Entry(line, "", wrong="expected a string of cells, an array of digits or of rows, or an object with "
                     "a key 'puzzle'")  # fmt: skip
    return checked(line, puzzle, solved or None, sizes)


def _json_cells(value: Any) -> str:
    """The cells of a string, an array of digits or an array of rows of digits; empty if it is none of these."""
    if isinstance(value, str):
        return cells_of(value)
    if not isinstance(value, list) or not value:
        return ""
    if all(isinstance(row, list) and len(row) == len(value) for row in value):
        return _json_cells([cell for row in value for cell in row])
    if all(isinstance(row, str) and len(cells_of(row)) == len(value) for row in value):
        return "".join(map(cells_of, value))
    if all(cell is None or (type(cell) is int and 0 <= cell <= len(SYMBOLS)) for cell in value):
        return "".join(SYMBOLS[cell - 1] if cell else "0" for cell in value)
    return ""


def checked(line: int, puzzle: str, solution: str | None, sizes: Collection[int]) -> Entry:
    """An entry of well-formed cells, or one that says what is wrong with them."""
    wrong = wrong_cells(puzzle, sizes) or (_wrong_solution(solution, len(puzzle)) if solution else None)
    return Entry(line, "", wrong=wrong) if wrong else Entry(line, puzzle.upper(), (solution or "").upper() or None)


def _wrong_solution(cells: str, count: int) -> str | None:
    if len(cells) != count:
        return f"the stated solution has {len(cells)} cells, not {count}"
    if "0" in cells:
        return "the stated solution has empty cells"
    wrong = wrong_cells(cells, (count,))
    return wrong and f"the stated solution: {wrong}"


class _Row(NamedTuple):
    """``rule``: dashes alone, a row of empty cells or the line between two bands; which, the whole grid decides.
    ``dashed``: digits with dashes between them, which are empty cells then."""

    line: int
    cells: str
    rule: bool
    dashed: bool


class _Scanner:
    """Takes lines one at a time; holds the rows of a grid that is spread over lines until it is complete."""

    def __init__(self, sizes: Collection[int]) -> None:
        self.sizes = tuple(sizes)
        self.widths = {size_of(BOXES[cells]) for cells in self.sizes}
        self.rows: list[_Row] = []
        self.at_start = True
        self.columns: tuple[int, int | None] | None = None
        self.skipping = False

    def feed(self, line: int, content: str) -> Iterator[Entry]:
        if content.startswith("#"):
            return
        if section := _SECTION.fullmatch(content):
            self.skipping = section[1].lower() not in ("puzzle", "puzzles")
        elif self.skipping:
            return
        elif not content:
            yield from self.close_grid(blank=True)
        elif _SAID.match(content):
            yield from self.close_grid()
        else:
            yield from self._content(line, content)

    def _content(self, line: int, content: str) -> Iterator[Entry]:
        if len(content) == 81 and 81 in self.sizes and not self.columns:  # most lines of most files, so quickly
            cells = cells_of(content)
            if len(cells) == 81 and cells.isascii() and cells.isdigit():
                self.at_start = False
                yield from self.close_grid()
                yield Entry(line, cells)
                return
        fields = [field.strip().strip('"') for field in re.split("[,;]", content)]
        if self.at_start:
            self.at_start = False
            self.columns = _header(fields)
            if self.columns:
                return
        if self.columns:
            puzzle_column, solution_column = self.columns
            puzzle = fields[puzzle_column] if puzzle_column < len(fields) else ""
            has_solution = solution_column is not None and solution_column < len(fields)
            solution = cells_of(fields[solution_column or 0]) if has_solution else None
            yield checked(line, cells_of(puzzle), solution, self.sizes)
            return
        cells = (_with_numbers(content) if " " in content else "") or cells_of(fields[0])
        if len(fields) > 1:
            yield from self.close_grid()
            second = cells_of(fields[1])
            yield self._line(line, content, cells, second if len(second) > LONGEST_GRID_ROW else None)
        elif len(cells) > LONGEST_GRID_ROW:
            yield from self.close_grid()
            half = len(cells) // 2
            if len(cells) not in self.sizes and len(cells) == 2 * half and half in self.sizes:
                yield checked(line, cells[:half], cells[half:], self.sizes)
            else:
                yield self._line(line, content, cells, None)
        else:
            yield from self._row(line, content)

    def _line(self, line: int, content: str, cells: str, solution: str | None) -> Entry:
        """A puzzle in one line; of several words, such as `rrn solve` prints them, the one that is a puzzle."""
        entry = checked(line, cells, solution, self.sizes)
        if entry.wrong:
            words = [word for word in map(cells_of, content.split()) if len(word) > LONGEST_GRID_ROW]
            good = [word for word in words if not wrong_cells(word, self.sizes)]
            if len(words) == len(good) == 1:
                return checked(line, good[0], None, self.sizes)
        return entry

    def _row(self, line: int, content: str) -> Iterator[Entry]:
        """A row of a grid, or a line between rows; of two grids side by side, as `rrn solve` prints them, the left."""
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
            yield from self.close_grid()

    def close_grid(self, blank: bool = False) -> Iterator[Entry]:
        """Whatever the rows held make; a blank line may also stand between two bands."""
        rows, sure = self.rows, [row for row in self.rows if not row.rule]
        if not rows:
            return
        width = len(rows[0].cells)
        if width not in self.widths:
            width = 9
        small = width == 16 and all(len(row.cells) == 16 and set(row.cells) <= set("01234") for row in sure)
        if blank and not small and 0 < len(sure) < width and len(sure) % BOXES[width * width][0] == 0:
            return
        self.rows = []
        if len(sure) == width or small:
            rows = sure
        if not sure and len(rows) < width:
            return
        if small:
            yield from (checked(row.line, row.cells, None, self.sizes) for row in rows)  # 4 × 4, a puzzle per line
            return
        yield self._grid([row.cells for row in rows], rows[0].line, width)

    def _grid(self, rows: list[str], line: int, width: int) -> Entry:
        uneven = next((number for number, row in enumerate(rows) if len(row) != width), None)
        if uneven is not None:
            found = len(rows[uneven])
            return Entry(line, "", wrong=f"row {uneven + 1} of the grid has {found} cells, not {width}")
        if len(rows) != width:
            return Entry(line, "", wrong=f"a grid of {len(rows)} row{'s' * (len(rows) != 1)}, not {width}")
        return checked(line, "".join(rows), None, self.sizes)


def _with_numbers(content: str) -> str:
    """The cells of a row whose digits are numbers between spaces, if any of them is 10 or more."""
    words = [word for word in re.split(r"[\s|│]+", content) if word]
    cells = [SYMBOLS[int(word) - 1] if re.fullmatch("1[0-6]|[1-9]", word) else word for word in words]
    return "".join(cells).translate(_TO_CELLS) if any(len(word) == 2 and word.isdigit() for word in words) else ""


def _header(fields: list[str]) -> tuple[int, int | None] | None:
    """The columns of puzzle and solution, if these are the names of columns."""
    names = [field.lower() for field in fields]
    puzzle = next((column for column, name in enumerate(names) if name in PUZZLE_COLUMNS), None)
    if puzzle is None:
        return None
    return puzzle, next((column for column, name in enumerate(names) if name in SOLUTION_COLUMNS), None)
