import json
import re
import shlex
from collections.abc import Callable
from importlib import import_module, resources
from pathlib import Path
from typing import Any, NoReturn

import pytest
from benchmarks.reproduce_page import PAGE, page

from rrn.cli.reproduce import fill

Call = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]
CONTENT = json.loads((resources.files("rrn.tasks") / "reproduce.json").read_text("utf-8"))
ROWS: dict[str, dict[str, Any]] = {row["id"]: row for part in CONTENT["sections"] for row in part["rows"]}


@pytest.mark.parametrize("column", ["same_inputs", "best"])
def test_every_published_figure_is_in_the_file_it_names(column: str) -> None:
    for row in ROWS.values():
        if figure := row[column]:
            content = json.loads((ROOT / figure["file"]).read_text())
            assert fill(figure["template"], content) == figure["figure"], row["id"]
            assert figure["n"] in {content.get("n"), *content.get("n_by_givens", {}).values()}, row["id"]


@pytest.mark.parametrize("id", [id for id, row in ROWS.items() if row["command"]])
def test_every_command_parses(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, name, *arguments = shlex.split(ROWS[id]["command"])
    assert program == "rrn"
    module = import_module(f"rrn.cli.{name}")
    parse = module.parse

    class ParsedError(Exception):
        pass

    def parse_only(*arguments: Any) -> NoReturn:
        parse(*arguments)
        raise ParsedError

    monkeypatch.setattr(module, "parse", parse_only)
    with pytest.raises(ParsedError):
        import_module(f"rrn.cli.{name}").main(arguments)


def test_the_list_has_every_table_and_figure_of_the_paper(call: Call) -> None:
    code, out, _ = call("reproduce", "--list", "--json")
    rows = {row["id"]: row for row in json.loads(out)}
    assert code == 0
    assert len(rows) == sum(len(part["rows"]) for part in CONTENT["sections"])
    assert len([id for id in rows if id.startswith("sudoku-table-")]) == 8
    assert len([id for id in rows if id.startswith("babi-table-")]) == 11
    assert rows["sudoku-table-rrn"]["paper"] == "96.6"
    assert rows["sudoku-table-rrn"]["where"] == "Table 2, Sudoku"


def test_the_list_shows_whole_ids_at_80_columns(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call("reproduce", "--list")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for id in ROWS:
        assert f" {id} " in out


def test_the_page_is_made_from_the_rows() -> None:
    assert PAGE.read_text() == page(CONTENT), "run 'make reproduce'"


def test_templates() -> None:
    result = {"by": {"1": {"8": 1.0}, "2": {"8": 0.99999}, "3": {"8": 0.5}, "4": {"8": 0.0}}, "failed": [3, 7], "n": 12}
    assert fill("{by.*.8}; {failed} failed of {n}", result) == "100 / 99.99 / 50.0 / 0; 2 failed of 12"
    assert fill("{error} %", {"error": 0.0025}) == "0.25 %"


def test_a_row_is_measured(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = call("reproduce", "sudoku-unfolding", "--json")
    assert code == 0
    row = json.loads(out)
    assert row["measured"]["figure"] == str(row["measured"]["result"]["steps"])
    assert list(tmp_path.iterdir()) == []
    code, out, _ = call("reproduce", "sudoku-unfolding", "--out", "measured.json")
    assert code == 0
    for text in ("the paper", "same inputs and supervision", "best", "now", row["measured"]["figure"]):
        assert text in out
    assert json.loads(Path("measured.json").read_text())["result"] == row["measured"]["result"]


def test_a_limit_replaces_the_one_of_the_row(call: Call) -> None:
    code, out, _ = call("reproduce", "ages-steps", "--limit", 50, "--json")
    measured = json.loads(out)["measured"]
    assert code == 0
    assert measured["n"] == 50
    assert measured["command"] == "rrn evaluate ages-answers --limit 50"


def test_custom_weights(call: Call, tiny_ages_run: Path) -> None:
    code, out, _ = call("reproduce", "ages-steps-paper", "--weights", tiny_ages_run / "best", "--limit", 30, "--json")
    assert code == 0
    assert json.loads(out)["measured"]["result"]["preset"] == "ages"


@pytest.mark.parametrize(
    ("row", "data", "differs"),
    [
        ("sudoku-table-parallel-bp", "generated minimal puzzles", "Gordon Royle's list"),
        ("babi-table-lstm", "generated questions", "the valid files of bAbI 1.2"),
        ("pretty-clevr-jumps-mlp", "generated test scenes", "the whole generated test set"),
        ("ages-steps-paper", "generated test questions", "the whole generated test set"),
    ],
)
def test_the_data_of_a_measurement_is_named(row: str, data: str, differs: str, call: Call) -> None:
    code, out, _ = call("reproduce", row, "--limit", 20)
    words = " ".join(out.split())
    assert code == 0
    assert re.search(rf"Now: n = 20\. Data: {data}[^.]*\. Published figures are of {differs}", words)


def test_a_row_without_a_command(call: Call) -> None:
    code, out, _ = call("reproduce", "babi-table-sdnc")
    assert code == 1
    assert "6.4 ± 2.5" in out
    assert "does not implement it" in " ".join(out.split())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "rrn: expected the ID of a row, or --list"),
        (["ages-steps", "--list"], "rrn: expected the ID of a row, or --list"),
        (["ages-step"], "rrn: no row 'ages-step'; did you mean 'ages-steps'?"),
        (["magic"], "rrn: no row 'magic'; 'rrn reproduce --list' prints all"),
        (["--list", "--limit", 3], "rrn: --limit: --list measures nothing"),
        (["ages-steps", "--limit", 0], "rrn: --limit: expected at least 1, got 0"),
        (["sudoku-unfolding", "--limit", 4], "rrn: --limit: sudoku-unfolding is about one problem: rrn solve"),
        (["sudoku-steps-33", "--limit", 2], "rrn: --limit 2: no problem of the kind that sudoku-steps-33 counts"),
    ],
)
def test_mistakes_are_named(flags: list[object], message: str, call: Call) -> None:
    code, out, err = call("reproduce", *flags)
    assert code == 2
    assert err.removeprefix("measured on cpu\n").startswith(message)
    assert out == ""
