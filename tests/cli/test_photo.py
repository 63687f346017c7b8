"""rrn solve PHOTO."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from tests.tasks.photo.drawing import draw_grid

from rrn.tasks.photo import predict
from rrn.tasks.photo.render import Photo, render_photo
from rrn.tasks.sudoku.grid import grid_to_line

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Photo]:
    made, path = render_photo(np.random.default_rng(2)), tmp_path_factory.mktemp("photo") / "Sudoku.JPG"
    path.write_bytes(cv2.imencode(".jpg", cv2.cvtColor(made.image, cv2.COLOR_RGB2BGR))[1].tobytes())
    return path, made


def test_the_puzzle_as_read_and_its_solution(photo: tuple[Path, Photo], call: Call) -> None:
    path, made = photo
    code, out, _ = call("solve", path, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["puzzle"] == grid_to_line(made.puzzle)
    assert found["solution"] == grid_to_line(made.solution)
    assert np.array(found["corners"]).shape == (4, 2)
    assert isinstance(found["doubtful"], list)


def test_a_photo_under_any_name(photo: tuple[Path, Photo], call: Call, tmp_path: Path) -> None:
    (tmp_path / "IMG").write_bytes(photo[0].read_bytes())
    code, out, errors = call("solve", "--photo", tmp_path / "IMG")
    assert code == 0
    assert f"read {(photo[1].puzzle > 0).sum()} digits in the photo" in errors
    assert "solved in" in out


def test_a_photo_and_a_puzzle(call: Call) -> None:
    code, _, errors = call("solve", "a.txt", "--photo", "b.png")
    assert code == 2
    assert "--photo: give one puzzle" in errors


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("page.pdf", b"%PDF-1.7", "a PDF; save the page as a picture"),
        ("damaged.jpg", b"\xff\xd8\xff\xe0 damaged", "not a readable picture"),
        ("none.png", None, "cannot be read"),
        ("empty.png", cv2.imencode(".png", draw_grid())[1].tobytes(), "the grid in the photo is empty"),
    ],
)
def test_what_is_no_photo(name: str, content: bytes | None, message: str, call: Call, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code, out, errors = call("solve", tmp_path / name, "--json")
    assert (code, out) == (2, "")
    assert message in errors


def test_digits_that_contradict_each_other(
    photo: tuple[Path, Photo], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = np.full((81, 10), 1e-12)
    wrong[:, 0] = 1
    wrong[:2] = np.eye(10)[5] + 1e-12
    monkeypatch.setattr(predict, "read_cells", lambda network, cells: wrong)
    code, out, _ = call("solve", photo[0], "--json")
    assert code == 1
    assert json.loads(out)["puzzle"] == "55" + 79 * "."
    code, _, errors = call("solve", photo[0])
    assert code == 2
    assert "contradict each other: 5 in row 1, column 1 and in row 1, column 2" in errors


def test_without_the_extra(photo: tuple[Path, Photo], call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cells", "grid", "opencv"):
        monkeypatch.delitem(sys.modules, f"rrn.tasks.photo.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "cv2", None)
    code, _, errors = call("solve", photo[0])
    assert code == 2
    assert "reading photos needs the extra 'vision'" in errors
