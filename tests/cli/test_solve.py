"""rrn solve and rrn demo, with the shipped weights, on puzzles easy enough for any of them."""

import gzip
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rrn.cli import solve as solve_command
from rrn.cli.puzzles import decided_cells
from rrn.tasks.sudoku import predict
from rrn.tasks.sudoku.exact import generate, solve_exactly
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.files import read_puzzles
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
QUICK = ["--max-steps", 6, "--attempts", 2]


def without_frames(out: str) -> list[str]:
    """The rows of digits of every grid printed, both sides."""
    return ["".join(c for c in line if c in "123456789·!") for line in out.splitlines() if line.startswith("│")]


def test_a_puzzle_as_an_argument(call: Call) -> None:
    code, out, err = call("solve", LINES[0])
    assert (code, err) == (0, "")
    assert "solved in " in out
    assert " of the first attempt; confidence " in out
    rows = without_frames(out)
    assert "".join(row[:9] for row in rows) == LINES[0].replace(".", "·")
    assert "".join(row[9:] for row in rows) == ANSWERS[0]


@pytest.mark.parametrize("empty", ["0", "_"])
def test_other_notations_of_a_puzzle(empty: str, call: Call) -> None:
    for text in (
        LINES[0].replace(".", empty),
        "\n".join(" | ".join(" ".join(LINES[0][i + j : i + j + 3]) for j in (0, 3, 6)) for i in range(0, 81, 9)),
        " ".join(LINES[0][i : i + 9] for i in range(0, 81, 9)),
        json.dumps(EASY[0].reshape(9, 9).tolist()),
    ):
        code, out, _ = call("solve", text, "--json")
        assert code == 0
        assert json.loads(out)["solution"] == ANSWERS[0]


def test_one_json_object(call: Call) -> None:
    code, out, err = call("solve", LINES[1], "--json", "--trace")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    puzzle = json.loads(out)
    assert set(puzzle) == {"puzzle", "status", "solution", "valid", "steps", "attempts", "confidence", "trace"}
    assert puzzle["status"] == "solved"
    assert (puzzle["puzzle"], puzzle["solution"], puzzle["valid"]) == (LINES[1], ANSWERS[1], True)
    assert puzzle["attempts"] == 1
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
    assert all(row.split()[1] == "solved" and "1 attempt " in row for row in rows)
    assert summary.startswith("3 of 3 solved, 3 of them in the first attempt; ")
    _, out, _ = call("solve", path, "--quiet")
    assert out.startswith("3 of 3 solved")
    assert out.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input(arguments: list[str], call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(LINES)))
    code, out, _ = call("solve", *arguments, "--json")
    assert code == 0
    assert [json.loads(line)["solution"] for line in out.splitlines()] == ANSWERS


def test_on_a_terminal_there_is_an_example(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    _, out, err = call("solve", "--json", *QUICK)
    assert json.loads(out)["puzzle"] == EXAMPLES[0]
    assert "an example" in err


def test_an_unsolved_puzzle_is_reported_and_its_clashes_are_marked(call: Call) -> None:
    message = "the puzzle has several solutions, and the network found none of them"
    code, out, err = call("solve", ANYTHING, *QUICK)
    assert (code, err) == (1, "")
    assert "ambiguous: 4 attempts of 6 steps" in out, "two of each network"
    assert message in out
    answer = "".join(row[9:] for row in without_frames(out))
    grid = np.array([[int(digit) for digit in answer if digit != "!"]])
    assert not solves(grid, read_puzzles("", ANYTHING).puzzles)[0]
    assert f"the {answer.count('!')} cells marked ! break a rule" in out
    assert answer.count("!") > 1
    code, out, _ = call("solve", ANYTHING, *QUICK, "--json")
    found = json.loads(out)
    assert code == 1
    assert (found["valid"], found["status"], found["message"]) == (False, "ambiguous", message)
    assert found["attempts"] == 4
    assert "solution" not in found
    assert found["answer"] == answer.replace("!", "")


def test_an_impossible_puzzle_costs_one_attempt(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, load = [], solve_command.load
    monkeypatch.setattr(solve_command, "load", lambda name, *more: loaded.append(name) or load(name, *more))
    code, out, err = call("solve", IMPOSSIBLE)
    assert (code, err) == (1, "")
    assert loaded == ["sudoku"], "no fallback"
    assert out.splitlines()[-1] == "impossible: the puzzle has no solution, proved by exact search"
    assert "".join(without_frames(out)) == IMPOSSIBLE.replace(".", "·")
    code, out, _ = call("solve", IMPOSSIBLE, "--json")
    found = json.loads(out)
    assert (code, found["status"], found["valid"], found["attempts"]) == (1, "impossible", False, 1)
    assert not {"answer", "solution"} & found.keys()
    assert found["confidence"] is None


def test_a_full_grid_is_already_solved(call: Call, tmp_path: Path) -> None:
    code, out, _ = call("solve", ANSWERS[0])
    assert (code, out.splitlines()[-1]) == (0, "already solved: the grid is full and breaks no rule")
    path = tmp_path / "puzzles.txt"
    path.write_text("\n".join([LINES[0], ANSWERS[1]]))
    code, out, _ = call("solve", path, "--json")
    assert code == 0
    assert [json.loads(line)["status"] for line in out.splitlines()] == ["solved", "already solved"]
    assert json.loads(out.splitlines()[1])["solution"] == ANSWERS[1]


@pytest.mark.parametrize("box", [(2, 2), (2, 3), (4, 4)])
def test_other_sizes(box: tuple[int, int], call: Call, tmp_path: Path) -> None:
    puzzles, solutions = generate(2, np.random.default_rng(3), 120 if box == (4, 4) else 4, box=box)
    lines, answers = ([grid_to_line(grid) for grid in grids] for grids in (puzzles, solutions))
    code, out, _ = call("solve", lines[0], "--trace")
    assert code == 0
    size = box[0] * box[1]
    rows = [line for line in out.splitlines() if line.startswith("│")]
    assert "".join(c for row in rows for c in row.split("│   │")[1] if c.isalnum()) == answers[0]
    assert f": {size * size} filled" in out
    mixed = tmp_path / "mixed"
    mixed.write_text("\n".join([*lines, LINES[0]]))
    code, out, _ = call("solve", mixed, "--json")
    assert code == 0
    assert [json.loads(line)["solution"] for line in out.splitlines()] == [*answers, ANSWERS[0]]


def test_printed_output_can_be_read_again(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "printed"
    _, out, _ = call("solve", LINES[0])
    path.write_text(out)
    _, again, _ = call("solve", path)
    assert again == out
    many = tmp_path / "many"
    many.write_text("\n".join([LINES[0], ANYTHING, LINES[2]]))
    for flags, puzzles in (([], [ANSWERS[0], ANYTHING, ANSWERS[2]]), (["--json"], [LINES[0], ANYTHING, LINES[2]])):
        _, out, _ = call("solve", many, *QUICK, *flags)
        path.write_text(out)
        _, again, _ = call("solve", path, *QUICK, "--json")
        assert [json.loads(line)["puzzle"] for line in again.splitlines()] == puzzles


def test_an_unsolved_puzzle_with_a_solution_is_distinguished(call: Call) -> None:
    code, out, _ = call("solve", EXAMPLES[0], "--max-steps", 1, "--attempts", 1)
    assert code == 1
    assert "unsolved: 1 attempt of 1 step;" in out
    assert "the puzzle has one solution, which the network did not find" in out


@pytest.mark.parametrize(
    ("options", "loaded"),
    [
        ([], ["sudoku"]),
        (["--max-steps", 2], ["sudoku", "sudoku-hard"]),
        (["--max-steps", 2, "--attempts", 1], ["sudoku"]),
        (["--max-steps", 2, "--weights", "sudoku-hard"], ["sudoku-hard"]),
    ],
)
def test_puzzles_that_the_first_network_leaves_go_to_the_fallback(
    options: list[object], loaded: list[str], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, load = [], solve_command.load
    monkeypatch.setattr(solve_command, "load", lambda name, *more: names.append(name) or load(name, *more))
    call("solve", EXAMPLES[0], *options)
    assert names == loaded


def test_one_unsolved_of_many_exits_with_1(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "puzzles.txt"
    path.write_text("\n".join([LINES[0], ANYTHING, LINES[2]]))
    code, out, _ = call("solve", path, "--max-steps", 64, "--attempts", 1)
    assert code == 1
    rows = out.splitlines()
    assert ["ambiguous" in row for row in rows] == [False, True, False, False]
    assert "several solutions" in rows[1]
    assert rows[-1].startswith("2 of 3 solved, 2 of them in the first attempt")


def test_the_trace_begins_with_the_givens_and_ends_with_the_solution(call: Call) -> None:
    code, out, _ = call("solve", LINES[0], "--trace")
    assert code == 0
    givens = sum(cell != "." for cell in LINES[0])
    assert f"step 0: {givens} given" in out
    assert ": 81 filled" in out
    steps = np.full((3, 81, 9), 0.05)
    steps[:, np.arange(81), SOLUTIONS[0] - 1] = np.array([0.4, 0.6, 0.45])[:, None]
    grids = decided_cells(EASY[0], steps)
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
        (["." * 80], "puzzle:1: 80 cells where a puzzle has 16, 36, 81 or 256"),
        (["." * 80 + "z"], "puzzle:1: 'z' in cell 81 is neither a digit nor an empty cell (0, . or _)"),
        (
            ["7" + "." * 9 + "7" + "." * 70],
            "puzzle:1: two equal givens clash: 7 in row 1, column 1 and in row 2, column 2",
        ),
        ([LINES[0], "--max-steps", "0"], "--max-steps: expected at least 1, got 0"),
        ([LINES[0], "--attempts", "0"], "--attempts: expected at least 1, got 0"),
        ([LINES[0], "--weights", "ages"], "weights 'ages': for the task 'ages', not for 'sudoku'"),
        (
            [f"{LINES[0]}\n{LINES[1]}", "--gif", "a.gif"],
            "--gif: shows one puzzle, but the input has more; give one puzzle",
        ),
        ([LINES[0], "--gif", "a.png"], "a.png: expected a name that ends in .gif"),
    ],
)
def test_invalid_arguments_are_named_and_exit_with_2(arguments: list[str], message: str, call: Call) -> None:
    code, out, err = call("solve", *arguments)
    assert (code, out) == (2, "")
    assert err == f"rrn: {message}\n"


def test_an_invalid_puzzle_ends_the_run_or_is_skipped(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "puzzles.txt"
    path.write_text("\n".join([LINES[0], "11" + "." * 79, LINES[1]]))
    code, out, err = call("solve", path, "--json")
    assert code == 2
    assert [json.loads(line)["solution"] for line in out.splitlines()] == ANSWERS[:1], "results before it are written"
    assert err == f"rrn: {path}:2: two equal givens clash: 1 in row 1, column 1 and in row 1, column 2\n"
    code, out, err = call("solve", path, "--json", "--skip-bad")
    assert code == 0
    assert [json.loads(line)["solution"] for line in out.splitlines()] == ANSWERS[:2]
    assert err.startswith(f"skipped: {path}:2: ")
    for nothing in ("", "# nothing\n"):
        path.write_text(nothing)
        code, out, err = call("solve", path)
        assert (code, out, err) == (2, "", f"rrn: {path}: no usable puzzle in it\n")


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A program that writes puzzles without end, a hundred at a time."""
    script = tmp_path / "endless.py"
    script.write_text(
        "import sys\nfor n in range(10**9):\n"
        f"    sys.stdout.write({LINES[0]!r} + '\\n')\n"
        "    if n % 100 == 0: sys.stdout.flush()\n"
    )
    return script


def test_an_endless_input_needs_constant_memory_and_an_interrupt_loses_no_result(endless: Path, tmp_path: Path) -> None:
    out, resident = tmp_path / "out.jsonl", []
    with (
        subprocess.Popen([sys.executable, endless], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer,
        out.open("w") as file,
        subprocess.Popen(
            [sys.executable, "-m", "rrn.cli", "solve", "-", "--json"],
            stdin=writer.stdout, stdout=file, stderr=subprocess.PIPE, text=True,
        ) as solver,
    ):  # fmt: skip
        assert writer.stdout is not None
        writer.stdout.close()
        deadline, wanted = time.monotonic() + 120, 600
        while len(resident) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
            if out.read_bytes().count(b"\n") >= wanted * (2 * len(resident) + 1):
                status = Path(f"/proc/{solver.pid}/status").read_text()
                resident.append(int(status.split("VmRSS:")[1].split()[0]) / 1024)
        solver.send_signal(signal.SIGINT)
        _, error = solver.communicate(timeout=60)
        writer.kill()
    results = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(resident) == 2, error
    assert resident[1] < resident[0] + 20, "megabytes, after three times the puzzles"
    assert solver.returncode == 130
    assert {result["solution"] for result in results} == {ANSWERS[0]}
    assert f"interrupted: {len(results):,} of {len(results):,} solved" in error


def test_a_terminal_without_unicode_gets_ascii(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", property(lambda options: True))
    _, out, _ = call("solve", LINES[0], "--trace")
    assert out.isascii()
    assert "+---------+" in out


def examples() -> np.ndarray:
    return read_puzzles("examples", "\n".join(EXAMPLES)).puzzles


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


def test_a_puzzle_that_stays_unsolved_gets_longer_attempts_and_a_line_says_so(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual attempts of both networks are cut to one step, so only a longer one can solve the puzzle."""
    run = predict.run_attempts
    monkeypatch.setattr(
        predict, "run_attempts", lambda *a, max_steps, **k: run(*a, max_steps=1 if max_steps == 128 else max_steps, **k)
    )
    code, out, err = call("solve", EXAMPLES[0])
    assert code == 0, out
    assert err == (
        "rrn: thinking longer about 1 puzzle: 8 attempts of 512 steps by sudoku-hard, round 1 of 4; "
        "--attempts K sets a limit\n"
    )
    code, out, err = call("solve", EXAMPLES[0], "--attempts", 2)
    assert (code, err) == (1, "")
    assert "to try harder: rrn solve " in out


def test_giving_up_names_what_to_try(call: Call) -> None:
    code, out, _ = call("solve", EXAMPLES[0], "--max-steps", 1, "--attempts", 1)
    assert code == 1
    assert "to try harder: rrn solve " in out
    assert out.rstrip().endswith(" --weights sudoku-hard --max-steps 16 --attempts 100")
