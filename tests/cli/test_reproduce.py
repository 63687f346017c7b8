import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rrn.cli import COMMANDS
from rrn.cli.reproduce import _words
from rrn.io.pretrained import shipped
from rrn.tasks import presets, reproducing
from rrn.tasks.reproducing import ROWS, find_row, part_of, percent, published

Call = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]
KEYS = {"id", "paper", "like_for_like", "best", "command", "minutes"}


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in reproducing.listed(shipped())}


@pytest.fixture
def published_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts files of results in the place of the repository's."""
    monkeypatch.setattr(reproducing, "results_folder", lambda: tmp_path)

    def put(**files: dict[str, Any]) -> None:
        for name, content in files.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content))

    return put


def test_the_list_is_json_and_covers_the_tables_and_figures(call: Call) -> None:
    code, out, _ = call("reproduce", "--list", "--json")
    listed = json.loads(out)
    assert code == 0
    assert out.count("\n") == 1
    assert all(set(row) == KEYS for row in listed)
    assert len({row["id"] for row in listed}) == len(listed)
    paper = "\n".join(row["paper"] for row in listed)
    for figure in ("96.6", "92.5", "61.7", "53.2", "70 %", "96.7", "94.1"):  # Sudoku
        assert figure in paper
    for error in (
        "0.46",
        "6.4",
        "8.7",
        "11.5",
        "12.8",
        "26.6",
        "28.7",
        "9.7",
        "1.2",
        "7.5",
        "0.48",
        "0.20",
        "0.53",
        "1.74",
    ):
        assert re.search(rf"(^| ){re.escape(error)}\b", paper, re.MULTILINE), error
    assert len([row for row in listed if row["id"].startswith("sudoku-table-")]) == 8
    assert len([row for row in listed if row["id"].startswith("babi-table-")]) == 11
    for figure in ("sudoku-steps", "sudoku-unfolding", "sudoku-positions", "pretty-clevr-jumps", "ages-steps"):
        assert figure in {row["id"] for row in listed}


def test_every_network_of_a_row_exists_and_what_ships_is_measured() -> None:
    from rrn.tasks.sudoku.baselines.compare import SYSTEMS

    systems = {system.name for system in SYSTEMS}
    for row in ROWS:
        for name in {row.like, row.best} - {None}:
            assert name in (systems if row.arguments[0] == "compare" else presets()), row.id
            if row.trained and name not in shipped():
                continue
            assert row.command(shipped()) is not None
            assert "rrn train" not in str(row.command(shipped()))


def test_commands_name_no_file_outside_and_exist(rows: dict[str, dict[str, Any]]) -> None:
    for row in rows.values():
        for command in (row["command"] or "").split(" && "):
            if command:
                program, name, *rest = shlex.split(command)
                assert program == "rrn"
                assert name in COMMANDS
                assert not [
                    word for word in rest if word.startswith(("/", "..")) and not set(word) <= set(".0123456789")
                ]


def test_figures_come_from_the_results(rows: dict[str, dict[str, Any]]) -> None:
    known = json.loads((ROOT / "results" / "sudoku_17.json").read_text())
    assert f"{percent(known['accuracy']['64'])} % within 64 steps" in rows["sudoku-table-rrn"]["best"]
    known = json.loads((ROOT / "results" / "sudoku_compared.json").read_text())["systems"]["random"]
    assert rows["sudoku-table-random-bp"]["like_for_like"].startswith(f"{percent(known['accuracy'])} % of 1,000")


def test_new_results_are_picked_up_by_their_name(call: Call, published_results: Callable[..., None]) -> None:
    def listed() -> dict[str, Any]:
        _, out, _ = call("reproduce", "--list", "--json")
        return {row["id"]: row for row in json.loads(out)}["babi-table-rrn"]

    def error(of: float) -> dict[str, Any]:
        return {"n": 20, "data": "generated questions", "mean_error": of, "failed_tasks": [3] if of > 0.01 else []}

    published_results()
    assert (listed()["like_for_like"], listed()["best"]) == (None, None)
    published_results(babi={**error(0.001), "beside": {"babi-answers": error(0.0916)}})
    assert listed()["like_for_like"] == "9.16 % mean error, 1 task failed; 20 questions (generated)"
    assert listed()["best"] == "0.10 % mean error, no task failed; 20 questions (generated)"
    seeds = {"runs": 3, "mean_error": 0.0004, "deviation": 0.0001, "failed_tasks": [0, 0, 0]}
    published_results(babi_answers={**error(0.0004), "over_seeds": seeds})
    assert listed()["like_for_like"].startswith("0.04 ± 0.01 % mean error over 3 seeds, no task failed at most")
    assert listed()["best"] == listed()["like_for_like"]


def test_17_givens_count_and_exactly_at_a_step_before_within() -> None:
    measured = {
        "n": 30,
        "n_by_givens": {"17": 10, "33": 20},
        "accuracy": {"32": 0.7, "64": 0.8},
        "accuracy_by_givens_and_steps": {"17": {"10": 0, "32": 0.5, "64": 0.6}, "33": {"10": 0.9, "32": 1, "64": 1}},
    }
    row = find_row("sudoku-table-rrn")
    said = published(row, "sudoku-paper", {"sudoku_paper": measured})
    assert said is not None
    assert said.text == "60.0 % within 64 steps; 10 puzzles with 17 givens"
    steps = published(find_row("sudoku-steps"), "sudoku-paper", {"sudoku_paper": measured})
    assert steps is not None
    assert steps.text == (
        "17 givens (10): 50.0 % within 32 steps, 60.0 % within 64 steps; 33 givens (20): 90.0 % within 10 steps"
    )
    only = {**measured, "n": 10, "n_by_givens": {"17": 10}, "accuracy_at_step": {"32": 0.4, "64": 0.55}}
    both = {"sudoku_paper": measured, "sudoku_paper_17": only}
    said = published(row, "sudoku-paper", both)
    assert said is not None
    assert said.text == "55.0 % at 64 steps; 10 puzzles with 17 givens"
    assert published(find_row("sudoku-positions"), "sudoku-paper", both) is None


def test_nearly_all_is_not_all() -> None:
    assert [percent(share) for share in (1.0, 0.99999, 0.9947, 0.5, 0.0)] == ["100", "99.99", "99.47", "50.0", "0"]


def test_parts_know_the_data_of_the_whole() -> None:
    whole = {"n": 5, "data": "x", "systems": {"random": {"accuracy": 0.5}}}
    assert part_of(whole, "random") == {"n": 5, "data": "x", "accuracy": 0.5}
    assert part_of(whole, "parallel") is None


def test_the_cheapest_row_for_real(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = call("reproduce", "sudoku-unfolding", "--json")
    assert code == 0
    assert out.count("\n") == 1
    said = json.loads(out)
    assert said["measured"].startswith(f"17 givens, {said['result']['status']} after {said['result']['steps']} steps")
    assert len(said["result"]["trace"]) == said["result"]["steps"] > 1
    assert said["paper"] == find_row("sudoku-unfolding").paper
    assert list(tmp_path.iterdir()) == []
    code, out, err = call("reproduce", "sudoku-unfolding", "--out", "measured.json")
    assert code == 0
    for text in ("the paper", "like for like", "best", said["measured"].split(";")[0]):
        assert text in out
    assert err.endswith("written: measured.json\n")
    assert json.loads(Path("measured.json").read_text())["result"] == said["result"]


def test_a_measurement_with_a_limit(call: Call) -> None:
    code, out, _ = call("reproduce", "ages-steps", "--limit", 50, "--json")
    assert code == 0
    said = json.loads(out)
    assert said["result"]["n"] == 50
    assert said["measured"].startswith("differences 0 to ")
    assert "--limit 50" in said["command"]
    assert "4000" not in said["command"]


def test_a_system_without_weights(call: Call, tmp_path: Path) -> None:
    code, out, _ = call("reproduce", "sudoku-table-parallel-bp", "--limit", 2, "--json")
    assert code == 0
    assert json.loads(out)["measured"].startswith(("0 %", "50.0 %", "100 %"))


def test_weights_that_do_not_ship(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrn.io.pretrained.shipped", lambda: ["sudoku"])
    code, out, _ = call("reproduce", "ages-steps-paper", "--json")
    said = json.loads(out)
    assert code == 1
    assert said["measured"] is None
    assert "no weights ship for 'ages-paper'" in said["why_not"]
    assert "rrn train ages-paper" in said["why_not"]
    assert said["command"].startswith("rrn train ages-paper && rrn evaluate ages-paper ")
    code, out, _ = call("reproduce", "ages-steps-paper")
    assert code == 1
    assert "not measured" in out


def test_weights_of_ones_own(call: Call, tiny_ages_run: Path) -> None:
    code, out, _ = call("reproduce", "ages-steps-paper", "--weights", tiny_ages_run / "best", "--limit", 30, "--json")
    assert code == 0
    assert json.loads(out)["preset"] == "ages"


def test_what_is_not_built_here_says_so(call: Call) -> None:
    code, out, _ = call("reproduce", "babi-table-sdnc")
    assert code == 1
    assert "6.4 ± 2.5 %" in out
    assert "not built here" in out


def test_flags_replace_those_of_the_row() -> None:
    from rrn.cli.reproduce import Options

    row = find_row("sudoku-table-rrn")
    words = _words(row, "sudoku", Options(id=row.id, data=Path("x.csv"), limit=7))
    assert words.count("--limit") == 1
    assert words[words.index("--limit") + 1] == "7"
    assert words[words.index("--data") + 1] == "x.csv"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "rrn: expected the ID of a row, or --list"),
        (["ages-steps", "--list"], "rrn: expected the ID of a row, or --list"),
        (["ages-step"], "rrn: no row 'ages-step'; did you mean 'ages-steps'?"),
        (["magic"], "rrn: no row 'magic'; 'rrn reproduce --list' names them"),
        (["--list", "--limit", 3], "rrn: --limit: --list measures nothing"),
        (["ages-steps", "--markdown"], "rrn: --markdown: with --list"),
        (["ages-steps", "--limit", 0], "rrn: --limit: expected at least 1, got 0"),
        (["sudoku-unfolding", "--limit", 3], "rrn: --limit: not for sudoku-unfolding"),
        (["sudoku-table-rn-node", "--weights", "x"], "rrn: --weights: not for sudoku-table-rn-node"),
    ],
)
def test_mistakes_are_named(flags: list[object], message: str, call: Call) -> None:
    code, out, err = call("reproduce", *flags)
    assert code == 2
    assert err.startswith(message)
    assert out == ""


def test_the_page_and_the_packaged_list_are_those_of_the_results(rows: dict[str, dict[str, Any]]) -> None:
    listed = list(rows.values())
    remedy = "run 'make reproduce'"
    assert (ROOT / "docs" / "reproduce.md").read_text() == reproducing.markdown(listed), remedy
    assert json.loads((ROOT / "src" / "rrn" / reproducing.PACKAGED).read_text()) == listed, remedy


def test_an_installed_package_reads_the_packaged_list(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    _, before, _ = call("reproduce", "--list", "--json")
    monkeypatch.setattr(reproducing, "results_folder", lambda: None)
    code, after, _ = call("reproduce", "--list", "--json")
    assert code == 0
    assert after == before


def test_writing_the_page(call: Call, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    code, out, _ = call("reproduce", "--list", "--markdown", "--out", page)
    assert code == 0
    assert page.read_text() == out
    for row in ROWS:
        assert f"| `{row.id}` |" in out
