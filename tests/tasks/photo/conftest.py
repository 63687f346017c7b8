from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from rrn.tasks.photo.render import Photo, render_photo
from rrn.tasks.sudoku.exact import solve_exactly
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.files import parse_puzzle

Save = Callable[[str, np.ndarray], Path]


@pytest.fixture(scope="session")
def photo() -> Photo:
    puzzle = parse_puzzle(EXAMPLES[0])
    return render_photo(np.random.default_rng(1), puzzle=(puzzle, solve_exactly(puzzle)[0][0]))


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write an image, gray or RGB, and return its path."""

    def write(name: str, image: np.ndarray) -> Path:
        path = tmp_path / name
        cv2.imwrite(str(path), image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
        return path

    return write
