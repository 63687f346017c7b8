"""Images of digits: files, splits, and cells."""

from pathlib import Path

import numpy as np
import pytest

from rrn.errors import InputError
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.visual_sudoku.data import Digits, distorted, drawn_digits, read_digits
from rrn.tasks.visual_sudoku.strokes import draw_digits


@pytest.fixture
def file(tmp_path: Path) -> Path:
    labels = np.arange(600) % 10
    images = draw_digits(np.maximum(labels, 1), np.random.default_rng(3))
    np.savez(tmp_path / "digits.npz", images=images, labels=labels)
    return tmp_path / "digits.npz"


def test_a_file_is_read_without_its_zeros(file: Path) -> None:
    digits = read_digits(file)
    assert set(digits.labels.tolist()) == set(range(1, 10))
    assert len(digits.images) == 540


def test_an_image_is_in_one_part_only_whatever_its_place_in_the_file(file: Path) -> None:
    digits = read_digits(file)
    parts = {name: digits.part(name) for name in ("train", "valid", "test")}
    keys = {name: {image.tobytes() for image in part.images} for name, part in parts.items()}
    assert sum(map(len, keys.values())) == len(set().union(*keys.values()))
    order = np.random.default_rng(0).permutation(len(digits.images))
    shuffled = Digits(digits.images[order], digits.labels[order], "shuffled")
    assert {image.tobytes() for image in shuffled.part("test").images} == keys["test"]


def test_cells_show_the_givens_and_nothing_else() -> None:
    digits = drawn_digits()
    puzzles, _ = generate(3, np.random.default_rng(0))
    cells = digits.draw_cells(puzzles, np.random.default_rng(1))
    np.testing.assert_array_equal(cells.any((2, 3)), puzzles > 0)
    label_of = {image.tobytes(): label for image, label in zip(digits.images, digits.labels, strict=True)}
    for cell, digit in zip(cells[puzzles > 0], puzzles[puzzles > 0], strict=True):
        assert label_of[cell.tobytes()] == digit


def test_distorted_images_keep_their_ink() -> None:
    images = drawn_digits().images[:50]
    moved = distorted(images, np.random.default_rng(0))
    assert (moved != images).any((1, 2)).all()
    np.testing.assert_allclose(moved.sum((1, 2)), images.sum((1, 2)), rtol=0.6)


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"pictures": np.zeros(3)}, "not a file of digits"),
        ({"images": np.zeros((4, 28, 28)), "labels": np.zeros(4)}, "expected images uint8"),
        ({"images": np.ones((4, 8, 8), np.uint8), "labels": np.zeros(4)}, "expected images uint8"),
        ({"images": np.ones((4, 28, 28), np.uint8), "labels": np.arange(4)}, "all digits from 1 to 9"),
        ({"images": np.array([{}], dtype=object), "labels": np.zeros(1)}, "not a file of digits"),
    ],
)
def test_refused_files(arrays: dict[str, np.ndarray], expected: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError, match=expected):
        read_digits(tmp_path / "bad.npz")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file of digits"):
        read_digits(tmp_path / "none.npz")
