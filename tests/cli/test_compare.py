import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rrn.tasks.sudoku.exact import generate

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def written(tmp_path: Path) -> list[object]:
    return ["--out", tmp_path / "compared.json", "--figure", tmp_path / "compared.png"]


def test_the_table_the_file_and_the_chart(call: Call, tmp_path: Path, written: list[object]) -> None:
    puzzles, _ = generate(6, np.random.default_rng(0), 17)
    file = tmp_path / "puzzles.txt"
    file.write_text("\n".join("".join(map(str, puzzle)) for puzzle in puzzles))
    code, out, _ = call("compare", "sudoku", "--data", file, "--limit", 4, "--systems", "parallel,random", *written)
    assert code == 0
    for text in ("system", "the paper", "ours", "givens", "steps", "53.2%", "61.7%", "Bauke"):
        assert text in out
    result = json.loads((tmp_path / "compared.json").read_text())
    assert (result["n"], result["data"], list(result["systems"])) == (4, "puzzles.txt", ["parallel", "random"])
    assert (tmp_path / "compared.png").read_bytes().startswith(b"\x89PNG")


def test_rows_of_the_same_puzzles_are_kept_and_others_are_not(
    call: Call, tmp_path: Path, written: list[object]
) -> None:
    for limit, systems, expected in (
        (3, "parallel", {"parallel"}),
        (3, "sudoku-learned-messages-one", {"parallel", "sudoku-learned-messages-one"}),
        (2, "parallel", {"parallel"}),
    ):
        code, out, _ = call("compare", "sudoku", "--limit", limit, "--systems", systems, "--json", *written)
        result = json.loads(out)
        assert code == 0
        assert out.count("\n") == 1
        assert set(result["systems"]) == expected
        assert json.loads((tmp_path / "compared.json").read_text()) == result


def test_nothing_is_written_where_nothing_was_told(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call("compare", "sudoku", "--limit", 2, "--systems", "parallel")
    assert code == 0
    assert "Bauke" in out
    assert "written" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ages"], "rrn: rrn compare: no task 'ages'; there are sudoku\n"),
        (["sudoku", "--limit", "0"], "rrn: --limit: expected at least 1, got 0\n"),
        (["sudoku", "--systems", "magic"], "rrn: --systems: no system 'magic'; there are "),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str, call: Call) -> None:
    code, _, err = call("compare", *arguments)
    assert code == 2
    assert err.startswith(message)
