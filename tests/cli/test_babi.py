import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rrn.tasks.babi.reader import read_babi

Call = Callable[..., tuple[int, str, str]]
TINY = ["--hidden", 16, "--word-width", 8, "--update-width", 16, "--head-width", 4, "--roles", 3, "--batch-size", 8]
STORY = "Mary went to the kitchen. John moved to the garden. Mary took the milk there. Mary travelled to the office."


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a tiny network after three updates: it knows nothing."""
    from rrn.cli import main

    folder = tmp_path_factory.mktemp("babi") / "run"
    flags = [*TINY, "--tasks", 1, 2, "--updates", 3, "--folder", folder, "--quiet"]
    assert main(["train", "babi", *map(str, flags)]) == 0
    return folder / "best"


def test_the_shipped_network_answers_and_names_the_facts(call: Call) -> None:
    code, out, err = call("ask", "babi", STORY, "Where is the milk?", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert said["answer"] == "office"
    assert said["steps"][-1]["probability"] > 0.5
    assert [step["step"] for step in said["steps"]] == [1, 2, 3, 4]
    assert said["facts"][0]["fact"] in ("Mary took the milk there.", "Mary travelled to the office.")


def test_asking_in_words(call: Call, weights: Path) -> None:
    code, out, _ = call("ask", "babi", STORY + " Where is Mary?", "--weights", weights, "--steps", 2)
    assert code == 0
    assert "Where is Mary?" in out
    assert "runners-up" in out
    code, out, _ = call("ask", "babi", "--example", "--weights", weights)
    assert code == 0
    assert "Where is the milk?" in out


def test_a_story_on_standard_input(call: Call, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(STORY.replace(". ", ".\n") + "\nWhere is John?\n"))
    code, out, _ = call("ask", "babi", "--weights", weights, "--json")
    assert code == 0
    assert json.loads(out)["question"] == "Where is John?"


def test_a_prompt_takes_facts_and_questions(call: Call, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(
        ["Mary went to the kitchen.", "Mary went to the ofice.", "Where is Mary?", "new", "Where is John?", "end"]
    )
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda shown: next(lines))
    code, out, err = call("ask", "babi", "--weights", weights, "--json")
    assert code == 0
    assert [json.loads(line)["question"] for line in out.splitlines()] == ["Where is Mary?"]
    assert "'ofice'; did you mean 'office'" in err
    assert "no facts" in err


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ([STORY], "the question: none"),
        ([STORY, "Where is the unicorn?"], "unicorn"),
        (["", "Where is Mary?"], "no facts"),
        ([STORY, "Where is Mary?", "--steps", 0], "--steps"),
        ([STORY, "Where is Mary?", "--weights", "ages"], "'ages'"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    call: Call, flags: list[object], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, out, err = call("ask", "babi", *flags)
    assert code == 2
    assert named in err
    assert out == ""


def test_writing_data(call: Call, tmp_path: Path) -> None:
    code, _, err = call("data", "babi", "--out", tmp_path / "set", "--train", 5, "--valid", 2, "--test", 0)
    assert code == 0
    assert "140 questions" in err
    assert sum(len(story.questions) for story in read_babi(tmp_path / "set", "train", [7])[7]) == 5


@pytest.mark.parametrize("flags", [["--train", -1], ["--seed", -1]])
def test_data_that_cannot_be_written_is_refused(call: Call, flags: list[object], tmp_path: Path) -> None:
    code, _, err = call("data", "babi", "--out", tmp_path / "set", *flags)
    assert code == 2
    assert str(flags[0]) in err
    assert not (tmp_path / "set").exists()


def test_evaluating(call: Call, weights: Path, tmp_path: Path) -> None:
    written, figure = tmp_path / "result.json", tmp_path / "result.png"
    flags = ["--weights", weights, "--limit", 40, "--out", written, "--figure", figure]
    code, out, _ = call("evaluate", "babi", *flags, "--json")
    assert code == 0
    result = json.loads(out)
    assert result == json.loads(written.read_text())
    assert {"n", "mean_error", "failed_tasks", "error_by_task"} <= result.keys()
    assert figure.stat().st_size > 10_000
    code, out, _ = call("evaluate", "babi", "--weights", weights, "--limit", 40)
    assert code == 0
    assert "failed tasks" in out


def test_a_killed_run_goes_on(call: Call, weights: Path) -> None:
    flags = [*TINY, "--tasks", 1, 2, "--updates", 5, "--folder", weights.parent]
    code, _, err = call("train", "babi", *flags)
    assert code == 0
    assert "going on from update 3" in err
