import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rrn.tasks.babi.reader import read_babi
from rrn.tasks.babi.vocabulary import PLAIN_WORDS

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


@pytest.mark.parametrize(
    ("story", "question", "answer"),
    [
        ("Mary went to the office. John took the milk.", "Where is John?", "not in the story"),
        ("Julie walked to the park. Fred went to the school.", "Where is Daniel?", "not in the story"),
        ("Mary went to the office. John took the milk.", "Where is the apple?", "not in the story"),
        ("The box is bigger than the chest.", "Is the suitcase bigger than the box?", "not in the story"),
        ("Mary went to the office. John ran to the garden.", "Where is John?", "garden"),
        ("John gave the milk to Mary. Mary went to the garden.", "Where is the milk?", "garden"),
        (
            "Mary and John went to the park. Mary got the apple. Mary gave the apple to John. John went to the office.",
            "Where is the apple?",
            "office",
        ),
        ("John gave the milk to Mary.", "Where is the milk?", "not in the story"),
        ("Mary took the milk. Mary took the apple. Mary took the ball.", "How many objects is Mary carrying?", "three"),
        (
            "Yann took the milk. Yann took the apple. Yann put the milk down.",
            "How many objects is Yann carrying?",
            "one",
        ),
    ],
)
def test_it_knows_its_limits_and_counts_to_three(call: Call, story: str, question: str, answer: str) -> None:
    code, out, err = call("ask", "babi", story, question, "--json")
    assert code == 0, err
    said = json.loads(out)
    assert said["answer"] == answer
    assert (said["not_in_the_story"] > 0.5) == (answer == "not in the story")


def test_everyday_words_are_said_to_be_read_as_others(call: Call, weights: Path) -> None:
    story = ("Mary ran to the corridor.", "Where is Mary?", "--weights", weights)
    code, out, _ = call("ask", "babi", *story, "--json")
    assert code == 0
    assert json.loads(out)["read_as"] == {"ran": "went", "corridor": "hallway"}
    code, out, _ = call("ask", "babi", *story)
    assert code == 0
    assert "(read: ran as went, corridor as hallway)" in out


def test_the_words_are_listed(call: Call) -> None:
    code, out, _ = call("ask", "babi", "--words")
    assert code == 0
    assert "people: Mary, John" in out
    assert "walked" in out
    code, out, _ = call("ask", "babi", "--words", "--json")
    assert code == 0
    listed = json.loads(out)
    known = {word.lower() for words in listed["words"].values() for word in words}
    assert known == set(PLAIN_WORDS.split())
    assert listed["read_as"]["walked"] == "went"


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


def test_each_question_is_about_the_facts_before_it(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "Mary went to the kitchen\nWhere is Mary?\nMary moved to the garden\nWhere is Mary?\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    code, out, _ = call("ask", "babi", "--json")
    assert code == 0
    first, second = json.loads(out)
    assert [first["answer"], second["answer"]] == ["kitchen", "garden"]
    assert not any("?" in fact["fact"] for fact in second["facts"])
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    code, out, _ = call("ask", "babi")
    assert code == 0
    assert out.count("Where is Mary?") == 2


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
    code, out, _ = call("data", "babi", "--out", tmp_path / "other", "--train", 1, "--valid", 0, "--test", 0, "--json")
    assert code == 0
    assert json.loads(out)["questions_per_task"] == {"train": 1}
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
    code, out, _ = call("evaluate", "babi", "--weights", weights, "--limit", 40, "--limits")
    assert code == 0
    assert "failed tasks" in out
    assert "calibration error of the probability that the answer is not in the story" in out


def test_limits_are_measured_by_task(call: Call, weights: Path) -> None:
    code, out, _ = call("evaluate", "babi", "--weights", weights, "--limit", 40, "--limits", "--json")
    assert code == 0
    limits = json.loads(out)["limits"]
    assert list(limits["by_task"]) == [str(task) for task in range(1, 21)]
    for kind in ("answerable", "unanswerable"):
        parts = [figures[kind] for figures in limits["by_task"].values()]
        assert sum(part["n"] for part in parts) == limits[kind]["n"]
        right = sum(part["n"] * part["accuracy"] for part in parts)
        assert right == pytest.approx(limits[kind]["n"] * limits[kind]["accuracy"])
    assert 0 <= limits["calibration_error"] <= 1
    assert list(limits["composed"]["by_task"]) == ["1", "2", "3", "5", "6", "7", "8"]
    assert limits["composed"]["answerable"]["n"] + limits["composed"]["unanswerable"]["n"] == 7 * 20


def test_a_killed_run_goes_on(call: Call, weights: Path) -> None:
    flags = [*TINY, "--tasks", 1, 2, "--updates", 5, "--folder", weights.parent]
    code, _, err = call("train", "babi", *flags)
    assert code == 0
    assert "resuming from update 3" in err
