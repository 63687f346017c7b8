"""--start-from takes shipped weights by name."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch
from tests.training.runs import train

from rrn.cli import main
from rrn.errors import InputError
from rrn.io.pretrained import find_weights
from rrn.tasks import find_preset, make_experiment
from rrn.tasks.weights import from_pretrained


def run(folder: Path, start_from: str, updates: int = 1) -> None:
    settings = {"updates": updates, "minutes": None, "lr": 1e-12, "validate_every": 10}
    preset = dataclasses.replace(find_preset("ages-answers"), start_from=Path(start_from), **settings)
    train(make_experiment(preset), folder, quiet=True)


def test_shipped_weights_by_name(tmp_path: Path) -> None:
    run(tmp_path / "run", "ages-answers")
    trained = from_pretrained(tmp_path / "run" / "best")
    shipped = from_pretrained("ages-answers")
    for name, weight in shipped.state_dict().items():
        torch.testing.assert_close(trained.state_dict()[name], weight)


def test_a_path_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where shipped weights have its name, and never a name on the hub."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rrn.io.pretrained._download", lambda *_: pytest.fail("asked the hub"))
    flags = ["--updates", "1", "--minutes", "1", "--validate-every", "10", "--quiet", "--folder"]
    for missing in ("./ages-answers", "./runs/best"):
        assert main(["train", "ages-answers", *flags, "run", "--start-from", missing]) == 2
    shutil.copytree(find_weights("ages-answers"), "best")
    assert main(["train", "ages-answers", *flags, "run", "--start-from", "./best"]) == 0


def test_a_run_resumes_although_its_first_weights_are_gone(tmp_path: Path) -> None:
    shutil.copytree(find_weights("ages-answers"), tmp_path / "start")
    run(tmp_path / "run", str(tmp_path / "start"))
    shutil.rmtree(tmp_path / "start")
    run(tmp_path / "run", str(tmp_path / "start"), updates=2)
    with pytest.raises(InputError, match="no such folder"):
        run(tmp_path / "other", str(tmp_path / "start"))


def test_no_such_weights(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no weights 'nothing-of-that-name'"):
        run(tmp_path / "run", "nothing-of-that-name")


def test_weights_that_ties_would_average_are_refused_and_the_flag_named_works(tmp_path: Path) -> None:
    preset = dataclasses.replace(
        find_preset("sudoku"), start_from=Path("sudoku"), few_givens_pool=0, updates=1, minutes=None, validate_every=10
    )
    with pytest.raises(InputError, match=r"trained without weight tying.*--no-tie-rows-and-columns"):
        train(make_experiment(preset), tmp_path / "run", quiet=True)
    free = dataclasses.replace(preset, tie_rows_and_columns=False)
    assert train(make_experiment(free), tmp_path / "free", quiet=True).finished


def test_a_name_on_the_hub_reaches_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    asked = []

    def download(repository: str, **_: object) -> str:
        asked.append(repository)
        return str(find_weights("ages-answers"))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    flags = ["--updates", "1", "--validate-every", "10", "--folder", str(tmp_path / "run"), "--quiet"]
    assert main(["train", "ages-answers", "--start-from", "hf://owner/name", *flags]) == 0
    assert asked == ["owner/name"]
    config = json.loads((tmp_path / "run" / "best" / "config.json").read_text())
    assert config["preset"]["start_from"] == "hf://owner/name"
    assert "--start-from hf://owner/name" in (tmp_path / "run" / "best" / "README.md").read_text()
