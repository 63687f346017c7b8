"""Finding grids: in rendered photos, upside down, light on dark; and refusing what is no 9 × 9 grid."""

import cv2
import numpy as np
import pytest
from tests.tasks.photo.drawing import draw_grid

from rrn.errors import InputError
from rrn.tasks.photo.grid import cut_cells, find_grid
from rrn.tasks.photo.render import Photo, render_photo


@pytest.mark.parametrize("seed", range(3))
def test_corners_of_rendered_photos_are_found(seed: int) -> None:
    photo = render_photo(np.random.default_rng(seed))
    grid = find_grid(cv2.cvtColor(photo.image, cv2.COLOR_RGB2GRAY))
    cell = np.linalg.norm(photo.corners[1] - photo.corners[0]) / 9
    assert np.abs(grid.corners - photo.corners).max() < 0.15 * cell


def test_a_grid_without_surroundings_is_found_exactly() -> None:
    corners = find_grid(draw_grid()).corners
    np.testing.assert_allclose(corners, [[40, 40], [400, 40], [400, 400], [40, 400]], atol=2)


def test_light_ink_on_dark_paper() -> None:
    grid = find_grid(255 - draw_grid(digits={(0, 0): "5"}))
    assert grid.inverted
    cells = cut_cells(255 - draw_grid(digits={(0, 0): "5"}), grid)
    assert cells[0].max() > 0.5
    assert cells[1:].mean() < 0.1


def test_a_photo_ten_times_as_large_has_the_same_cells(photo: Photo) -> None:
    gray = cv2.cvtColor(photo.image, cv2.COLOR_RGB2GRAY)
    large = cv2.resize(gray, None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC)
    small, big = cut_cells(gray, find_grid(gray)), cut_cells(large, find_grid(large))
    assert np.abs(small - big).mean() < 0.05


def test_no_grid() -> None:
    image = np.full((500, 500), 230, np.uint8)
    for row in range(20, 480, 22):
        cv2.putText(image, "the quick brown fox jumps over", (10, row), cv2.FONT_HERSHEY_SIMPLEX, 0.5, 20, 1)
    with pytest.raises(InputError, match="no Sudoku grid of 9 × 9 cells was found"):
        find_grid(image)


def test_half_a_grid() -> None:
    with pytest.raises(InputError, match="reaches the edge of the photo: show the whole grid"):
        find_grid(draw_grid()[:, :230])


def test_two_grids() -> None:
    with pytest.raises(InputError, match="shows 2 grids; show one"):
        find_grid(np.hstack([draw_grid(), draw_grid()]))


@pytest.mark.parametrize(("size", "box"), [(4, 2), (16, 4)])
def test_a_grid_of_another_size(size: int, box: int) -> None:
    with pytest.raises(InputError, match=f"a grid of {size} × {size} cells; expected 9 × 9"):
        find_grid(draw_grid(size, 360 // size, box))
