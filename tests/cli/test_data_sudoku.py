import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rrn.tasks.sudoku.data import read_sets
from rrn.tasks.sudoku.exact import count_guesses, generate
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.grid import grid_to_line, solves

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve good puzzles, with one that clashes in line 4."""
    puzzles, solutions = generate(12, np.random.default_rng(3))
    lines = [
        f"{grid_to_line(puzzle)},{grid_to_line(solution)}" for puzzle, solution in zip(puzzles, solutions, strict=True)
    ]
    path = tmp_path_factory.mktemp("pool") / "pool.csv"
    path.write_text("\n".join(["puzzle,solution", *lines[:2], "55" + "." * 79 + ",", *lines[2:]]) + "\n")
    return path


PAPER_FLAGS = ["--test", 3, "--valid", 2, "--train-per-givens", 4, "--valid-per-givens", 2, "--test-per-givens", 1]


def test_generated_puzzles(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    code, out, err = call("data", "sudoku", "--out", folder, "--count", 30, "--seed", 4, "--extra-givens", 2, 5)
    assert (code, out) == (0, "")
    assert err == f"puzzles written to {folder}: generated 30\n"
    sets, about = read_sets(folder)
    assert solves(sets["generated"].solutions, sets["generated"].puzzles).all()
    assert (about["seed"], about["extra_givens"], about["counts"]) == (4, [2, 5], {"generated": 30})
    call("data", "sudoku", "--out", tmp_path / "again", "--count", 30, "--seed", 4, "--extra-givens", 2, 5)
    for name in ("dataset.json", "generated_puzzles.npy", "generated_solutions.npy"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_hard_puzzles(call: Call, pool: Path, tmp_path: Path) -> None:
    out, avoided = tmp_path / "hard.csv", tmp_path / "avoided.txt"
    avoided.write_text("\n".join(pool.read_text().split("\n")[1:3]))
    flags = ["--hard", "--count", 3, "--least-guesses", 2, "--pool-avoid", avoided]
    code, printed, err = call("data", "sudoku", "--out", out, *flags)
    assert (code, printed) == (0, "")
    assert f"puzzles written to {out}: hard 3\n" in err
    assert " puzzles per second\n" in err
    assert (count_guesses(read_puzzles(out, prove="all").puzzles) >= 2).all()
    assert list(json.loads((tmp_path / "hard.json").read_text())["avoided"]) == ["avoided.txt"]


def test_the_papers_sets_from_a_pool(call: Call, pool: Path, tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    code, out, err = call("data", "sudoku", "--pool", pool, "--out", folder, "--skip-bad", *PAPER_FLAGS)
    assert (code, out) == (0, "")
    assert f"left out: {pool}:4: two equal givens clash: 5 in row 1, column 1 and in row 1, column 2" in err
    assert "the pool: 7 for train, 2 for valid, 3 for test; 0 left out as relatives of these" in err
    assert f"puzzles written to {folder}: train 72, valid 36, test 18" in err
    about = json.loads((folder / "dataset.json").read_text())
    assert about["pool"]["file"] == "pool.csv"
    assert len(about["pool"]["bad_left_out"]) == 1


def test_a_split_seed_shuffles_the_pool(call: Call, pool: Path, tmp_path: Path) -> None:
    first = {}
    for seed in (None, 1, 1):
        shuffled = [] if seed is None else ["--split-seed", seed]
        folder = tmp_path / f"{len(first)}"
        assert call("data", "sudoku", "--pool", pool, "--out", folder, "--skip-bad", *PAPER_FLAGS, *shuffled)[0] == 0
        first[folder] = read_sets(folder)[0]["test"].puzzles
    plain, shuffled, again = first.values()
    assert not np.array_equal(plain, shuffled)
    np.testing.assert_array_equal(shuffled, again)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--count", 0], "--count: expected at least 1, got 0"),
        (["--processes", 0], "--processes: expected at least 1, got 0"),
        (["--seed", -1], "--seed: expected at least 0, got -1"),
        (["--extra-givens", 5, 2], "--extra-givens: expected the smaller number first, got (5, 2)"),
        (["--split-seed", 1], "--split-seed: does nothing without --pool; leave it out"),
        (["--skip-bad"], "--skip-bad: does nothing without --pool; leave it out"),
        (["--least-guesses", 30], "--least-guesses: does nothing without --hard; leave it at 20"),
        (["--pool-avoid", "no.csv"], "--pool-avoid: does nothing without --hard; leave it out"),
        (["--hard", "--pool", "no.csv"], "--hard: does nothing with --pool; leave it out"),
        (["--hard", "--extra-givens", 0, 3], "--extra-givens: does nothing with --hard; leave it at (0, 17)"),
        (["--hard", "--out", "set"], "set: expected the name of a file that ends in .csv or .csv.gz"),
        (["--pool", "no.csv", "--count", 5], "--count: does nothing with --pool; leave it out"),
        (["--pool", "no.csv"], "no.csv: cannot be read (No such file or directory)"),
        (["--pool", "no.csv", "--test-per-givens", 0], "--test-per-givens: expected at least 1, got 0"),
    ],
)
def test_mistakes_are_named(flags: list[object], message: str, call: Call, tmp_path: Path) -> None:
    code, out, err = call("data", "sudoku", "--out", tmp_path / "set", *flags)
    assert (code, out) == (2, "")
    assert err == f"rrn: {message}\n"
    assert not (tmp_path / "set").exists()


def test_bad_puzzles_refuse_the_whole_pool_unless_skipped(call: Call, pool: Path, tmp_path: Path) -> None:
    code, _, err = call("data", "sudoku", "--pool", pool, "--out", tmp_path / "set", *PAPER_FLAGS)
    assert code == 2
    assert f"{pool}:4: two equal givens clash" in err
    assert "1 bad and 12 good puzzles" in err
    assert not (tmp_path / "set").exists()
