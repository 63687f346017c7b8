"""The page's scripts find grids and read digits as the Python package does."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from static_site.digit_reader import FILE, numbers
from tests.tasks.photo.drawing import draw_grid

from rrn.tasks.photo.grid import cut_cells, find_grid
from rrn.tasks.photo.predict import load_reader, read_cells
from rrn.tasks.photo.render import render_photo
from rrn.web.app import STATIC

SCRIPT = Path(__file__).parent / "read_photo.mjs"


def by_script(folder: Path, images: list[np.ndarray]) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    files = []
    for number, gray in enumerate(images):
        files.append(folder / f"{number}.gray")
        files[-1].write_bytes(np.array(gray.shape[::-1], "<i4").tobytes() + np.ascontiguousarray(gray).tobytes())
    (folder / "package.json").write_text('{"type": "module"}')
    shutil.copytree(STATIC, folder / "static")
    command = [node, str(SCRIPT), str(folder / "static"), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_page_has_the_shipped_weights() -> None:
    assert FILE.read_bytes() == numbers(load_reader()).tobytes(), "run: python -m static_site.digit_reader"


def test_photos_are_read_as_in_python(tmp_path: Path) -> None:
    photos = [render_photo(np.random.default_rng(seed)) for seed in range(3)]
    images = []
    for photo in photos:
        gray = cv2.cvtColor(photo.image, cv2.COLOR_RGB2GRAY)
        factor = min(1, 1000 / max(gray.shape))
        images.append(cv2.resize(gray, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA))
    for photo, gray, found in zip(photos, images, by_script(tmp_path, images), strict=True):
        grid = find_grid(gray)
        cell = np.linalg.norm(grid.corners[1] - grid.corners[0]) / 9
        assert np.abs(np.array(found["corners"]) - grid.corners).max() < 0.1 * cell
        assert np.abs(np.array(found["probabilities"]) - read_cells(load_reader(), cut_cells(gray, grid))).mean() < 0.02
        np.testing.assert_array_equal(found["digits"], photo.puzzle)


def test_refused_photos(tmp_path: Path) -> None:
    blank = np.full((300, 300), 240, np.uint8)
    two, four, half = np.hstack([draw_grid(), draw_grid()]), draw_grid(4, 90, 2), draw_grid()[:, :230]
    expected = ["No Sudoku grid", "2 grids", "4 × 4 cells", "show the whole grid"]
    for found, message in zip(by_script(tmp_path, [blank, two, four, half]), expected, strict=True):
        assert message in found["error"]
