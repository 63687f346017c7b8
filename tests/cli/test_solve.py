"""rrn solve and rrn demo, with the shipped weights, on puzzles easy enough for any of them."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rrn.cli import solve as command
from rrn.tasks.sudoku.exact import generate, solve_exactly
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.files import parse_puzzles
from rrn.tasks.sudoku.grid import grid_to_line, solves
from rrn.tasks.sudoku.symmetry import fingerprints

Call = Callable[..., tuple[int, str, str]]
EASY, SOLUTIONS = generate(3, np.random.default_rng(8), 30)
LINES, ANSWERS = [grid_to_line(puzzle) for puzzle in EASY], [grid_to_line(solution) for solution in SOLUTIONS]
# No cell of the first row is filled, and the last of them can hold no digit.
IMPOSSIBLE = (
    "." * 9 + "........1" + "........2" + "........3" + "........4" + "........5" + "......67." + "......89." + "." * 9
)
ANYTHING = "." * 81
QUICK = ["--max-steps", 6, "--restarts", 1]


def without_frames(out: str) -> list[str]:
    """The rows of digits of every grid printed, both sides."""
    return ["".join(c for c in line if c in "123456789·!") for line in out.splitlines() if line.startswith("│")]


def test_a_puzzle_as_an_argument(call: Call) -> None:
    code, out, err = call("solve", LINES[0])
    assert (code, err) == (0, "")
    assert "solved in " in out
    assert " from the first start; confidence " in out
    rows = without_frames(out)
    assert "".join(row[:9] for row in rows) == LINES[0].replace(".", "·")
    assert "".join(row[9:] for row in rows) == ANSWERS[0]


@pytest.mark.parametrize("empty", ["0", "_"])
def test_other_ways_to_write_it(empty: str, call: Call) -> None:
    for text in (
        LINES[0].replace(".", empty),
        "\n".join(" | ".join(" ".join(LINES[0][i + j : i + j + 3]) for j in (0, 3, 6)) for i in range(0, 81, 9)),
        " ".join(LINES[0][i : i + 9] for i in range(0, 81, 9)),
    ):
        code, out, _ = call("solve", text, "--json")
        assert code == 0
        assert json.loads(out)["puzzles"][0]["solution"] == ANSWERS[0]


def test_one_json_object(call: Call) -> None:
    code, out, err = call("solve", LINES[1], "--json", "--trace")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    result = json.loads(out)
    (puzzle,) = result.pop("puzzles")
    assert result == {"n": 1, "solved": 1}
    assert set(puzzle) == {"puzzle", "solution", "valid", "steps", "starts", "confidence", "trace"}
    assert (puzzle["puzzle"], puzzle["solution"], puzzle["valid"], puzzle["starts"]) == (LINES[1], ANSWERS[1], True, 1)
    assert 0 < puzzle["confidence"] <= 1
    assert len(puzzle["trace"]) == puzzle["steps"]
    assert puzzle["trace"][-1] == ANSWERS[1]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_of_many(compressed: bool, call: Call, tmp_path: Path) -> None:
    content = ("puzzle,solution\n" + "".join(f"{p},{s}\n" for p, s in zip(LINES, ANSWERS, strict=True))).encode()
    path = tmp_path / "puzzles"
    path.write_bytes(gzip.compress(content) if compressed else content)
    code, out, err = call("solve", path)
    assert (code, err) == (0, "")
    *rows, summary = out.splitlines()
    assert [row.split()[-1] for row in rows] == ANSWERS
    assert all(row.split()[1] == "solved" and "1 start " in row for row in rows)
    assert summary.startswith("3 of 3 solved, 3 of them from the first start; ")
    _, out, _ = call("solve", path, "--quiet")
    assert out.startswith("3 of 3 solved")
    assert out.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input(arguments: list[str], call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(LINES)))
    code, out, _ = call("solve", *arguments, "--json")
    assert code == 0
    assert [puzzle["solution"] for puzzle in json.loads(out)["puzzles"]] == ANSWERS


def test_on_a_terminal_there_is_an_example(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    _, out, err = call("solve", "--json", *QUICK)
    assert json.loads(out)["puzzles"][0]["puzzle"] == EXAMPLES[0]
    assert "an example" in err


@pytest.mark.parametrize(
    ("puzzle", "reason"),
    [
        (IMPOSSIBLE, "the puzzle has no solution"),
        (ANYTHING, "the puzzle has several solutions; any of them would have been accepted"),
    ],
)
def test_what_is_not_solved_is_said_so_and_marked(puzzle: str, reason: str, call: Call) -> None:
    code, out, err = call("solve", puzzle, *QUICK)
    assert (code, err) == (1, "")
    assert "not solved: 2 starts of 6 steps" in out
    assert reason in out
    assert not out.startswith("solved")
    answer = "".join(row[9:] for row in without_frames(out))
    grid = np.array([[int(digit) for digit in answer if digit != "!"]])
    assert not solves(grid, parse_puzzles(puzzle, "").puzzles)[0]
    marks = f"the {answer.count('!')} cells marked ! break a rule"
    assert marks in out
    assert answer.count("!") > 1
    code, out, _ = call("solve", puzzle, *QUICK, "--json")
    (found,) = json.loads(out)["puzzles"]
    assert code == 1
    assert (found["valid"], found["reason"]) == (False, reason)
    assert "solution" not in found
    assert found["answer"] == answer.replace("!", "")


def test_a_puzzle_the_network_does_not_find_is_told_from_a_bad_one(call: Call) -> None:
    code, out, _ = call("solve", EXAMPLES[0], "--max-steps", 1, "--restarts", 0)
    assert code == 1
    assert "not solved: 1 start of 1 steps" in out
    assert "the puzzle has a solution, which the network did not find" in out


def test_one_unsolved_of_many_exits_with_1(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "puzzles.txt"
    path.write_text("\n".join([LINES[0], ANYTHING, LINES[2]]))
    code, out, _ = call("solve", path, "--max-steps", 64, "--restarts", 0)
    assert code == 1
    rows = out.splitlines()
    assert ["not solved" in row for row in rows] == [False, True, False, False]
    assert "several solutions" in rows[1]
    assert rows[-1].startswith("2 of 3 solved, 2 of them from the first start")


def test_the_trace_grows_from_the_givens_to_the_solution(call: Call) -> None:
    code, out, _ = call("solve", LINES[0], "--trace")
    assert code == 0
    givens = sum(cell != "." for cell in LINES[0])
    assert f"step 0: {givens} given" in out
    assert ": 81 filled" in out
    steps = np.full((3, 81, 9), 0.05)
    steps[:, np.arange(81), SOLUTIONS[0] - 1] = np.array([0.4, 0.6, 0.45])[:, None]
    grids = command.decided_cells(EASY[0], steps)
    np.testing.assert_array_equal(grids, [EASY[0], SOLUTIONS[0], SOLUTIONS[0]])


def test_pictures(call: Call, tmp_path: Path) -> None:
    gif, png = tmp_path / "a.gif", tmp_path / "b" / "a.png"
    code, out, err = call("solve", LINES[0], "--gif", gif, "--png", png, "--quiet")
    assert code == 0
    assert out.startswith("solved in ")
    assert err == f"drawn: {gif}, {png}\n"
    assert gif.read_bytes().startswith(b"GIF89a")
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt"], "missing.txt: neither a file nor a puzzle (81 characters with 0, . or _ for empty cells)"),
        (["123"], "puzzle:1: row 1 of the grid has 3 cells, not 9"),
        (["." * 80], "puzzle:1: 80 cells where a puzzle has 81"),
        (["." * 80 + "x"], "puzzle:1: 'x' in place 81 is neither a digit nor an empty cell (0, . or _)"),
        (
            ["7" + "." * 9 + "7" + "." * 70],
            "puzzle:1: two equal givens clash: 7 in row 1, column 1 and in row 2, column 2",
        ),
        ([LINES[0], "--max-steps", "0"], "--max-steps: expected at least 1, got 0"),
        ([LINES[0], "--restarts", "-1"], "--restarts: expected 0 or more, got -1"),
        ([LINES[0], "--weights", "ages"], "weights 'ages' are for the task 'ages', not for Sudoku"),
        ([f"{LINES[0]}\n{LINES[1]}", "--gif", "a.gif"], "--gif: shows one puzzle, but these are 2; give it one"),
        ([LINES[0], "--gif", "a.png"], "a.png: expected a name that ends in .gif"),
    ],
)
def test_mistakes_are_named_and_exit_with_2(arguments: list[str], message: str, call: Call) -> None:
    code, out, err = call("solve", *arguments)
    assert (code, out) == (2, "")
    assert err == f"rrn: {message}\n"


def test_bad_puzzles_of_a_file_are_named_and_left_out_if_wished(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "puzzles.txt"
    path.write_text("\n".join([LINES[0], "11" + "." * 79, LINES[1]]))
    code, out, err = call("solve", path, "--json")
    assert (code, out) == (2, "")
    assert f"{path}:2: two equal givens clash: 1 in row 1, column 1 and in row 1, column 2" in err
    code, out, err = call("solve", path, "--json", "--skip-bad")
    assert code == 0
    assert [puzzle["solution"] for puzzle in json.loads(out)["puzzles"]] == ANSWERS[:2]
    assert err.startswith(f"left out: {path}:2: ")


def test_a_terminal_without_unicode_gets_plain_lines(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", property(lambda options: True))
    _, out, _ = call("solve", LINES[0], "--trace")
    assert out.isascii()
    assert "+---------+" in out


def examples() -> np.ndarray:
    return parse_puzzles("\n".join(EXAMPLES), "examples").puzzles


def test_the_examples_are_five_puzzles_of_17_givens_with_one_solution() -> None:
    puzzles = examples()
    solutions, counts = solve_exactly(puzzles)
    assert (puzzles > 0).sum(1).tolist() == [17] * 5
    assert counts.tolist() == [1] * 5
    assert len(set(fingerprints(solutions).tolist())) == 5


def test_no_example_is_a_puzzle_of_the_pool() -> None:
    pool = Path(__file__).parents[2].parent / "shared" / "data" / "sudoku" / "royle17.csv.gz"
    if not pool.is_file():
        pytest.skip(f"{pool} is not here")
    known = gzip.decompress(pool.read_bytes()).decode().replace("0", ".")
    assert len(known) > 100 * 81
    assert not [puzzle for puzzle in EXAMPLES if puzzle in known]


def test_the_demo(call: Call, tmp_path: Path) -> None:
    gif = tmp_path / "demo.gif"
    code, out, err = call("demo", "--gif", gif)
    unsolved = sum(" not solved " in line for line in out.splitlines()[:8])
    assert (code, err) == (int(unsolved > 0), "")
    assert out.splitlines()[0] == "Five Sudokus with 17 givens, the fewest a Sudoku can have"
    assert sum(" start" in line for line in out.splitlines()[:8]) == 5
    assert "step by step" in out
    assert "step 0: 17 given" in out
    assert "rrn ask ages" in out
    assert gif.read_bytes().startswith(b"GIF89a")
    assert gif.stat().st_size < 1_500_000
