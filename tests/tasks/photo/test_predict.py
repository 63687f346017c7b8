"""Reading photos, and reconsidering doubtful digits that contradict others."""

import numpy as np
import pytest
from tests.tasks.photo.conftest import Save
from tests.tasks.photo.drawing import draw_grid

from rrn.errors import InputError
from rrn.tasks.photo.predict import likeliest_puzzle, read_photo
from rrn.tasks.photo.render import Photo
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.files import parse_puzzle


def probabilities_of(puzzle: np.ndarray, sure: float = 0.999) -> np.ndarray:
    spread = np.full((81, 10), (1 - sure) / 9)
    spread[np.arange(81), puzzle] = sure
    return spread


def test_a_photo_is_read(photo: Photo, save: Save) -> None:
    reading = read_photo(save("photo.jpg", photo.image))
    np.testing.assert_array_equal(reading.puzzle, photo.puzzle)
    assert reading.probabilities.shape == (81, 10)
    assert np.abs(reading.corners - photo.corners).max() < 10


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_turned_photo_is_read(turns: int, photo: Photo, save: Save) -> None:
    reading = read_photo(save("photo.jpg", np.rot90(photo.image, turns)))
    np.testing.assert_array_equal(reading.puzzle, photo.puzzle)


def test_an_empty_grid_is_refused(save: Save) -> None:
    with pytest.raises(InputError, match="the grid in the photo is empty"):
        read_photo(save("empty.png", draw_grid()))


def test_a_doubtful_digit_that_contradicts_others_is_reconsidered() -> None:
    """The likeliest reading of one cell repeats a digit of its row; the second likeliest is right."""
    puzzle = parse_puzzle(EXAMPLES[0])
    row = next(row for row in range(9) if (puzzle[9 * row : 9 * row + 9] > 0).sum() > 1)
    first, second = 9 * row + np.flatnonzero(puzzle[9 * row : 9 * row + 9])[:2]
    doubtful = probabilities_of(puzzle)
    doubtful[first] = 1e-6
    doubtful[first, puzzle[second]], doubtful[first, puzzle[first]] = 0.6, 0.4
    np.testing.assert_array_equal(likeliest_puzzle(doubtful), puzzle)


def test_a_digit_that_was_overlooked_is_reconsidered() -> None:
    """Without one given of a minimal puzzle there are many solutions."""
    puzzle = parse_puzzle(EXAMPLES[1])
    doubtful, cell = probabilities_of(puzzle), np.flatnonzero(puzzle)[3]
    doubtful[cell] = 1e-6
    doubtful[cell, 0], doubtful[cell, puzzle[cell]] = 0.8, 0.2
    np.testing.assert_array_equal(likeliest_puzzle(doubtful), puzzle)


def test_certain_digits_are_never_changed() -> None:
    puzzle = parse_puzzle(EXAMPLES[0]).copy()
    filled = np.flatnonzero(puzzle)
    puzzle[filled[1]] = puzzle[filled[0]] = 5  # whatever it breaks
    certain = probabilities_of(puzzle, 1 - 1e-9)
    np.testing.assert_array_equal(likeliest_puzzle(certain), puzzle)


def test_several_wrong_digits_are_reconsidered() -> None:
    """Four likeliest readings clash with other givens; the second likeliest of each is right."""
    puzzle = parse_puzzle(EXAMPLES[0])
    doubtful, pairs = probabilities_of(puzzle), 0
    for row in range(9):
        given = 9 * row + np.flatnonzero(puzzle[9 * row : 9 * row + 9])
        if len(given) > 1 and pairs < 4:
            first, second = given[:2]
            doubtful[first] = 1e-6
            doubtful[first, puzzle[second]], doubtful[first, puzzle[first]] = 0.9, 0.1
            pairs += 1
    assert pairs == 4
    np.testing.assert_array_equal(likeliest_puzzle(doubtful), puzzle)
