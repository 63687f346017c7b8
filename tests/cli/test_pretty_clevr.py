import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rrn.cli import main
from rrn.tasks.pretty_clevr import data

Call = Callable[..., tuple[int, str, str]]
TINY = ["--hidden", 16, "--message-width", 8, "--update-width", 16, "--batch-size", 8, "--scenes", 20]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a tiny network after three updates: it knows nothing."""
    folder = tmp_path_factory.mktemp("pretty-clevr") / "run"
    flags = [*TINY, "--updates", 3, "--minutes", "None", "--folder", folder, "--quiet"]
    assert main(["train", "pretty-clevr", *map(str, flags)]) == 0
    return folder / "best"


def test_asking_prints_the_answer_after_each_step_and_draws_the_scene(
    call: Call, weights: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "scene.svg"
    flags = ["--seed", 7, "--start", "green", "--jumps", 3, "--weights", weights, "--out", picture]
    code, out, _ = call("ask", "pretty-clevr", *flags, "--json")
    assert code == 0
    said = json.loads(out)
    scene = data.sample_scenes(1, np.random.default_rng(7)).scene(0)
    assert said["truth"] == data.NAMES[scene.answer(data.number_of("green"), 3)]
    assert said["right"] == (said["answer"] == said["truth"])
    assert len(said["path"]) == 4
    assert said["path"][0].startswith("green ")
    assert said["path"][-1].endswith(said["truth"])
    assert [step["step"] for step in said["steps"]] == list(range(1, 9))
    assert "<svg" in picture.read_text()
    code, out, _ = call("ask", "pretty-clevr", *flags, "--steps", 2)
    assert code == 0
    assert "green, 3 jumps" in out
    assert said["path"][1] in out


def test_the_shipped_network_is_right(call: Call, tmp_path: Path) -> None:
    out_of = tmp_path / "scene.png"
    code, out, _ = call("ask", "pretty-clevr", "--start", "heart", "--jumps", 7, "--out", out_of, "--json")
    assert code == 0
    assert json.loads(out)["right"]
    assert out_of.read_bytes().startswith(b"\x89PNG")


def test_no_picture_where_none_is_asked_for(
    call: Call, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    code, out, err = call("ask", "pretty-clevr", "--weights", weights, "--json")
    assert code == 0
    assert json.loads(out)["picture"] is None
    assert "drawn" not in err
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--jumps", 8], "--jumps"),
        (["--start", "pink"], "'pink'"),
        (["--steps", 0], "--steps"),
        (["--seed", -1], "--seed"),
        (["--weights", "no-such"], "no-such"),
    ],
)
def test_what_cannot_be_asked_is_refused(call: Call, flags: list[object], named: str, tmp_path: Path) -> None:
    code, out, err = call("ask", "pretty-clevr", *flags, "--out", tmp_path / "x.svg")
    assert code == 2
    assert named in err
    assert out == ""
    assert not (tmp_path / "x.svg").exists()


def test_writing_the_data_set(call: Call, tmp_path: Path) -> None:
    flags = ["--train", 4, "--valid", 2, "--test", 2, "--images", 32]
    code, _, err = call("data", "pretty-clevr", "--out", tmp_path / "set", *flags)
    assert code == 0
    assert "8 scenes with 1,024 questions" in err
    np.testing.assert_array_equal(data.read(tmp_path / "set", "test").positions, data.scenes("test", 2).positions)
    assert len(list((tmp_path / "set/train/images").glob("*.png"))) == 4


def test_drawing_pictures_writes_no_data(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, _ = call("data", "pretty-clevr", "--contact-sheet", "sheet.png", "--question", "question.svg")
    assert code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["question.svg", "sheet.png"]


@pytest.mark.parametrize("flags", [["--train", 0], ["--seed", -1], ["--images", 3], ["--contact-sheet", "sheet.txt"]])
def test_data_that_cannot_be_written_is_refused(call: Call, flags: list[object], tmp_path: Path) -> None:
    code, _, err = call("data", "pretty-clevr", "--out", tmp_path / "set", *flags)
    assert code == 2
    assert str(flags[0]) in err or "sheet.txt" in err
    assert not (tmp_path / "set").exists()


def test_evaluating_trained_weights(call: Call, weights: Path, tmp_path: Path) -> None:
    written, figure = tmp_path / "result.json", tmp_path / "result.png"
    code, out, _ = call(
        "evaluate", "pretty-clevr", "--weights", weights, "--limit", 256, "--json", "--out", written, "--figure", figure
    )
    assert code == 0
    result = json.loads(out)
    assert result == json.loads(written.read_text())
    assert result["n"] == 256
    assert set(result["accuracy_by_jumps"]) == {str(jumps) for jumps in range(8)}
    assert figure.stat().st_size > 10_000
    code, out, _ = call("evaluate", "pretty-clevr", "--weights", weights, "--limit", 256)
    assert code == 0
    assert "of 256 questions" in out


def test_a_killed_run_goes_on(call: Call, weights: Path) -> None:
    folder = weights.parent
    again = [*TINY, "--updates", 5, "--minutes", "None", "--folder", folder]
    code, _, err = call("train", "pretty-clevr", *again)
    assert code == 0
    assert "resuming from update 3" in err
