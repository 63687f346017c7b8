import gzip
from pathlib import Path

import numpy as np
import pytest

from rrn.errors import InputError
from rrn.tasks.sudoku.files import parse_puzzle, read_puzzles
from rrn.tasks.sudoku.grid import grid_to_line

Some = tuple[np.ndarray, np.ndarray]


def line(grid: np.ndarray, empty: str = ".") -> str:
    return grid_to_line(grid).replace(".", empty)


def rows(grid: np.ndarray) -> str:
    text = grid_to_line(grid)
    return "\n".join(text[start : start + 9] for start in range(0, 81, 9))


def spaced(grid: np.ndarray) -> str:
    """Nine lines of nine, with bars between the stacks and rules between the bands."""
    lines = [" | ".join(" ".join(row[start : start + 3]) for start in (0, 3, 6)) for row in rows(grid).split("\n")]
    rule = "------+-------+------"
    return "\n".join([*lines[:3], rule, *lines[3:6], rule, *lines[6:]])


@pytest.mark.parametrize("empty", [".", "0", "_"])
def test_one_line(some: Some, empty: str) -> None:
    assert (parse_puzzle(line(some[0][0], empty)) == some[0][0]).all()


@pytest.mark.parametrize("form", [rows, spaced, lambda grid: rows(grid).replace("\n", "\r\n") + "\r\n"])
def test_nine_lines(some: Some, form: object) -> None:
    assert (parse_puzzle(form(some[0][0])) == some[0][0]).all()  # type: ignore[operator]


def test_a_grid_with_borders_and_blank_lines_between_bands(some: Some) -> None:
    text = rows(some[0][0]).split("\n")
    border = "+-------+-------+-------+"
    framed = [border]
    for number, row in enumerate(text):
        framed.append("| " + " | ".join(" ".join(row[start : start + 3]) for start in (0, 3, 6)) + " |")
        if number in (2, 5):
            framed += ["", border]
    assert (parse_puzzle("\n".join([*framed, border])) == some[0][0]).all()


def test_several_grids_and_lines_in_one_text(some: Some) -> None:
    puzzles = some[0][:4]
    text = "\n".join(["# four", rows(puzzles[0]), spaced(puzzles[1]), "", line(puzzles[2]), "", rows(puzzles[3]), ""])
    parsed = read_puzzles("text", text)
    assert (parsed.puzzles == puzzles).all()
    assert not parsed.solutions.any()


def test_csv_forms(some: Some, tmp_path: Path) -> None:
    puzzles, solutions = some[0][:3], some[1][:3]
    pairs = [(line(puzzle, "0"), line(solution)) for puzzle, solution in zip(puzzles, solutions, strict=True)]
    forms = {
        "header": ["puzzle,solution", *(f"{puzzle},{solution}" for puzzle, solution in pairs)],
        "more": ["puzzle,solution,rating", *(f"{puzzle},{solution},22" for puzzle, solution in pairs)],
        "order": ["source,question,answer", *(f'x9,"{puzzle}","{solution}"' for puzzle, solution in pairs)],
        "bare": [f"{puzzle},{solution}" for puzzle, solution in pairs],
        "rated": [f"{puzzle} {solution}" for puzzle, solution in pairs],
    }
    for name, content in forms.items():
        plain, packed = tmp_path / f"{name}.csv", tmp_path / name
        plain.write_text("\ufeff" + "\n".join(content) + "\n", encoding="utf-8")
        packed.write_bytes(gzip.compress("\r\n".join(content).encode()))
        for path in (plain, packed):
            read = read_puzzles(path)
            assert (read.puzzles == puzzles).all(), path
            assert (read.solutions == solutions).all(), path


def test_columns_that_are_no_solution_are_passed_over(some: Some) -> None:
    text = "\n".join([f"{line(some[0][0])},17", "", f"{line(some[0][1])},", line(some[0][2])])
    parsed = read_puzzles("text", text)
    assert (parsed.puzzles == some[0][:3]).all()
    assert not parsed.solutions.any()


def test_proofs_fill_in_solutions(some: Some) -> None:
    puzzles, solutions = some[0][:3], some[1][:3]
    text = "\n".join(["puzzle,solution", f"{line(puzzles[0])},{line(solutions[0])}", *map(line, puzzles[1:])])
    assert not read_puzzles("text", text).solutions[1:].any()
    assert (read_puzzles("text", text, prove="unsolved").solutions == solutions).all()
    assert (read_puzzles("text", text, prove="all").solutions == solutions).all()


def test_the_limit_reads_no_further(some: Some) -> None:
    text = "\n".join([*map(line, some[0][:3]), "rubbish"])
    assert (read_puzzles("text", text, limit=2).puzzles == some[0][:2]).all()


def bad_texts(some: Some) -> dict[str, tuple[str, str]]:
    puzzle, solution = line(some[0][0]), line(some[1][0])
    two_solutions = line(np.where(np.arange(81) == np.flatnonzero(some[0][0])[0], 0, some[0][0]))
    wrong = line(np.where(some[1][0] == 1, 2, np.where(some[1][0] == 2, 1, some[1][0])))
    impossible = "12345678." + "........9" + "." * 63
    return {
        "short": (puzzle[:80], "80 cells"),
        "long": (puzzle + "1", "82 cells"),
        "foreign": (puzzle[:40] + "z" + puzzle[41:], "'z' in cell 41"),
        "superscript": (puzzle[:40] + "²" + puzzle[41:], "'²' in cell 41"),
        "clash": ("11" + "." * 79, "clash"),
        "impossible": (impossible, "no solution"),
        "ambiguous": (two_solutions, "more than one solution"),
        "not its solution": (f"{puzzle},{line(some[1][1])}", "does not solve"),
        "swapped digits": (f"{puzzle},{wrong}", "does not solve"),
        "unfinished solution": (f"{puzzle},{solution[:80]}.", "empty cells"),
        "short solution": (f"{puzzle},{solution[:80]}", "80 cells"),
        "row too short": (rows(some[0][0])[:-1], "row 9 of the grid has 8 cells"),
        "row missing": (rows(some[0][0])[:-10] + "\n", "a grid of 8 rows"),
        "foreign in grid": (rows(some[0][0])[:-1] + "a", "'a' in cell 81"),
        "word": ("hello", "cells, not 9"),
    }


BAD = [
    "short", "long", "foreign", "superscript", "clash", "impossible", "ambiguous", "not its solution",
    "swapped digits", "unfinished solution", "short solution", "row too short", "row missing", "foreign in grid",
    "word",
]  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_puzzles_are_named_with_file_and_line(some: Some, tmp_path: Path, kind: str) -> None:
    text, reason = bad_texts(some)[kind]
    path = tmp_path / "mixed.txt"
    path.write_text("\n".join([line(some[0][2]), text, line(some[0][3])]) + "\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_puzzles(path, prove="all")
    assert f"{path}:2: " in str(refused.value)
    assert reason in str(refused.value)
    read = read_puzzles(path, prove="all", skip_bad=True)
    assert (read.puzzles == some[0][2:4]).all()
    assert len(read.bad) == 1
    assert read.bad[0].startswith(f"{path}:2: ")
    assert reason in read.bad[0]


def test_every_bad_kind_is_tried(some: Some) -> None:
    assert list(bad_texts(some)) == BAD


def test_uniqueness_is_left_alone_unless_asked_for(some: Some) -> None:
    text = bad_texts(some)["ambiguous"][0]
    assert len(read_puzzles("text", text).puzzles) == 1
    with pytest.raises(InputError, match=r"text:1: the puzzle has more than one solution"):
        read_puzzles("text", text, prove="unsolved")


def test_a_flood_of_bad_puzzles_is_counted(some: Some) -> None:
    text = "\n".join([line(some[0][0]), *(["1" * 81] * 50)])
    with pytest.raises(InputError) as refused:
        read_puzzles("text", text)
    assert "... and 30 more" in str(refused.value)
    assert "50 bad and 1 good" in str(refused.value)


def test_files_that_hold_nothing(tmp_path: Path, some: Some) -> None:
    empty = tmp_path / "empty"
    empty.write_text("puzzle,solution\n")
    with pytest.raises(InputError, match="no valid puzzle"):
        read_puzzles(empty)
    only_bad = tmp_path / "bad"
    only_bad.write_text("1" * 81)
    with pytest.raises(InputError, match=r"bad:1: .*clash[\s\S]*no valid puzzle"):
        read_puzzles(only_bad, skip_bad=True)
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(line(some[0][0]).encode())[:-12])
    with pytest.raises(InputError, match="damaged gzip"):
        read_puzzles(broken)
    with pytest.raises(InputError, match="cannot be read"):
        read_puzzles(tmp_path / "absent")


def test_one_puzzle_means_one(some: Some) -> None:
    with pytest.raises(InputError, match="expected one puzzle, found 2"):
        parse_puzzle("\n".join(map(line, some[0][:2])))
