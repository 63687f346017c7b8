"""Finding the grid of a Sudoku in a photo, the course of its lines, and the images of its cells."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rrn.errors import InputError
from rrn.tasks.photo.opencv import cv2

WORKING_SIDE = 1000
"""Pixels of the longer side of the image in which the grid is searched."""
CELL, MARGIN = 32, 16
"""Pixels of a cell, and around the grid, in the straightened image in which lines are measured."""
MOST_CANDIDATES = 12
SIZE = 28
"""Rows and columns of a cell's image."""
EDGE = 0.07
"""The share of a cell that is left out at each edge: its lines."""
_FINE = 2
_USUAL_CELL = 60
"""Photos with larger cells, in pixels, are made smaller first."""
OTHER_SIZES = (4, 6, 16)
_ROUNDS = ((2, 0.42), (3, 0.28), (4, 0.16))
"""Degree of the bending and search window in cells, from round to round of following the lines."""


class Lines(NamedTuple):
    """How clearly the lines of a grid are seen."""

    found: float
    """The share of the pieces of all lines that are seen, in the faintest but one of the lines."""
    contrast: float
    """The strength of the lines over that of what lies between them."""


@dataclass(frozen=True)
class Grid:
    """A mapping from places in the grid, (0, 0) to (1, 1), to pixels: a bending, then a perspective."""

    perspective: np.ndarray
    bending: np.ndarray | None = None
    """Coefficients (terms, 2) of a polynomial that is added to places."""
    size: int = 9
    lines: Lines | None = None
    inverted: bool = False
    """Whether the ink is lighter than the paper."""

    def pixels(self, places: np.ndarray) -> np.ndarray:
        """Pixels (…, 2), x and y, of places (…, 2), across and down."""
        flat = places.reshape(-1, 2).astype(np.float64)
        if self.bending is not None:
            flat = flat + _bent(flat, self.bending)
        ahead = np.concatenate([flat, np.ones((len(flat), 1))], 1) @ self.perspective.T
        return (ahead[:, :2] / ahead[:, 2:]).reshape(places.shape)

    def sample(self, image: np.ndarray, along: np.ndarray) -> np.ndarray:
        """The image at all pairs of places ``along`` (n,) each side: (n, n)."""
        nodes = np.linspace(-0.1, 1.1, 50)
        coarse = self.pixels(np.stack(np.meshgrid(nodes, nodes), -1)).astype(np.float32)
        at = ((along - nodes[0]) / (nodes[1] - nodes[0])).astype(np.float32)
        pixels = cv2.remap(coarse, *np.meshgrid(at, at), cv2.INTER_LINEAR)
        return cv2.remap(image, pixels, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)

    @property
    def corners(self) -> np.ndarray:
        """(4, 2), from the top left clockwise."""
        return self.pixels(np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float))

    def scaled(self, factor: float) -> "Grid":
        """The same grid in an image of ``factor`` times the size."""
        return replace(self, perspective=np.diag([factor, factor, 1.0]) @ self.perspective)


def find_grid(gray: np.ndarray) -> Grid:
    """The 9 × 9 grid in a gray image uint8 (rows, columns). Refuses images without one, or with several."""
    factor = min(1.0, WORKING_SIDE / max(gray.shape))
    small = cv2.resize(gray, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA) if factor < 1 else gray
    others: list[Grid] = []
    cut_off = False
    for inverted in (False, True):
        seen = 255 - small if inverted else small
        ink = ink_of(seen)
        for widening in (1, 3, 5):
            found: list[Grid] = []
            for corners, at_edge in _candidates(seen, widening):
                middle = tuple(corners.mean(0).tolist())
                if any(cv2.pointPolygonTest(grid.corners.astype(np.float32), middle, False) >= 0 for grid in found):
                    continue
                grid = follow_lines(ink, corners)
                if _is_grid(grid):
                    found.append(replace(grid, inverted=inverted))
                elif at_edge:
                    cut_off = True
                else:
                    others += [other for n in OTHER_SIZES if _is_grid(other := follow_lines(ink, corners, n))]
            if len(found) > 1:
                raise InputError(f"the photo shows {len(found)} grids; show one")
            if found:
                return found[0].scaled(1 / factor)
    if others:
        n = max(others, key=lambda grid: grid.lines.contrast if grid.lines else 0).size
        raise InputError(f"the photo shows a grid of {n} × {n} cells; expected 9 × 9")
    cut = "; what may be one reaches the edge of the photo: show the whole grid" if cut_off else ""
    raise InputError(f"no Sudoku grid of 9 × 9 cells was found in the photo{cut}")


def _is_grid(grid: Grid) -> bool:
    return grid.lines is not None and grid.lines.found >= 0.55 and grid.lines.contrast > 2.0


def ink_of(gray: np.ndarray) -> np.ndarray:
    """How much darker each pixel is than the paper around it: float32, 0 to 1."""
    reach = max(7, max(gray.shape) // 40 | 1)
    paper = cv2.dilate(cv2.medianBlur(gray, 3), np.ones((reach, reach), np.uint8))
    paper = cv2.GaussianBlur(paper.astype(np.float32), (0, 0), reach / 2)
    return np.clip(1 - gray / np.maximum(paper, 1), 0, 1).astype(np.float32)


def _candidates(gray: np.ndarray, widening: int) -> list[tuple[np.ndarray, bool]]:
    """Corners (4, 2) of the largest connected drawings, and whether they reach the edge of the image."""
    rows, columns = gray.shape
    block = max(11, max(rows, columns) // 32) | 1
    calm = cv2.GaussianBlur(gray, (0, 0), 1.0)
    mask = cv2.adaptiveThreshold(calm, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, block, 6)
    if widening > 1:
        mask = cv2.dilate(mask, np.ones((widening, widening), np.uint8))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    wide, high = stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]
    extent = np.minimum(wide, high)
    extent[0] = 0
    extent[(np.maximum(wide, high) > 3 * extent) | (extent < 0.12 * min(rows, columns))] = 0
    chosen = []
    for label in np.argsort(-extent, kind="stable")[:MOST_CANDIDATES]:
        if extent[label] == 0:
            break
        left, top = stats[label, cv2.CC_STAT_LEFT], stats[label, cv2.CC_STAT_TOP]
        part = labels[top : top + high[label], left : left + wide[label]] == label
        y, x = np.nonzero(part)
        hull = cv2.convexHull(np.stack([x + left, y + top], 1).astype(np.int32))[:, 0].astype(float)
        if len(hull) >= 4:
            at_edge = left <= 1 or top <= 1 or left + wide[label] >= columns - 1 or top + high[label] >= rows - 1
            chosen.append((_four_corners(hull), bool(at_edge)))
    return chosen


def _four_corners(hull: np.ndarray) -> np.ndarray:
    """The four corners of a convex outline that cut off the least, from the top left clockwise."""
    points = [np.asarray(point) for point in hull]
    while len(points) > 4:
        before, after = points[-1:] + points[:-1], points[1:] + points[:1]
        areas = [abs(_cross(b - a, c - a)) for a, b, c in zip(before, points, after, strict=True)]
        points.pop(int(np.argmin(areas)))
    corners = np.array(points)
    if _cross(corners[1] - corners[0], corners[2] - corners[1]) < 0:
        corners = corners[::-1]
    return np.roll(corners, -int(np.argmin(corners.sum(1))), axis=0)


def _cross(a: np.ndarray, b: np.ndarray) -> float:
    return float(a[0] * b[1] - a[1] * b[0])


def follow_lines(ink: np.ndarray, corners: np.ndarray, size: int = 9) -> Grid:
    """The grid with these corners, bent so that its lines run along the ink, and how clearly they are seen."""
    unit = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    grid = Grid(cv2.getPerspectiveTransform(unit, corners.astype(np.float32)), size=size)
    for degree, window in _ROUNDS:
        places, shifts, weights = _measure(straightened(ink, grid), size, window)
        old = np.zeros_like(shifts) if grid.bending is None else _bent(places, grid.bending)
        grid = replace(grid, bending=_fit(places, old + shifts, weights, degree))
    return replace(grid, lines=_judge(straightened(ink, grid), size))


def straightened(ink: np.ndarray, grid: Grid) -> np.ndarray:
    """The grid as a square image, `CELL` pixels a cell, with a margin of `MARGIN`."""
    side = 9 * CELL
    return grid.sample(ink, (np.arange(side + 2 * MARGIN) + 0.5 - MARGIN) / side)


def _ridges(image: np.ndarray, size: int) -> np.ndarray:
    """How much every pixel looks like one of a horizontal line."""
    cell = 9 * CELL / size
    apart = max(2, round(0.15 * cell))
    smooth = cv2.blur(cv2.GaussianBlur(image, (1, 5), 0, sigmaY=1.0), (max(3, round(0.8 * cell)), 1))
    padded = np.pad(smooth, ((apart, apart), (0, 0)), mode="edge")
    return smooth - np.maximum(padded[: -2 * apart], padded[2 * apart :])


def _profiles(ridges: np.ndarray, size: int, window: float, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Strength near every horizontal line: (lines, pieces, 2 · reach + 1), and the places of the pieces."""
    cell = 9 * CELL / size
    reach = max(1, round(window * cell))
    lines, pieces = np.arange(size + 1) + offset, np.arange(2 * size) / 2 + 0.25
    rows = np.round(MARGIN + cell * lines - 0.5).astype(int)[:, None, None] + np.arange(-reach, reach + 1)
    columns = np.round(MARGIN + cell * pieces - 0.5).astype(int)[None, :, None]
    last = len(ridges) - 1
    places = np.stack(np.broadcast_arrays(pieces[None] / size, lines[:, None] / size), -1)
    return ridges[np.clip(rows, 0, last), columns], places


def _measure(image: np.ndarray, size: int, window: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where lines run beside their places: places (n, 2), shifts (n, 2) with NaN along the line, weights (n,)."""
    cell = 9 * CELL / size
    every, shifts, weights = [], [], []
    for axis, turned in enumerate((image, image.T)):
        strengths, places = _profiles(_ridges(turned, size), size, window)
        reach = strengths.shape[-1] // 2
        away = np.abs(np.arange(-reach, reach + 1)) / reach
        at = (strengths * (1 - 0.4 * away)).argmax(-1)
        strength = np.take_along_axis(strengths, at[..., None], -1)[..., 0]
        shift = np.full((*at.shape, 2), np.nan)
        shift[..., 1] = (at - reach) / cell / size
        every.append((places if axis == 0 else places[..., ::-1]).reshape(-1, 2))
        shifts.append((shift if axis == 0 else shift[..., ::-1]).reshape(-1, 2))
        weights.append(np.clip(strength, 0, None).ravel())
    return np.concatenate(every), np.concatenate(shifts), np.concatenate(weights)


def _degree(terms: int) -> int:
    return next(degree for degree in range(10) if (degree + 1) * (degree + 2) // 2 == terms)


def _terms(places: np.ndarray, degree: int) -> np.ndarray:
    x, y = 2 * places[:, 0] - 1, 2 * places[:, 1] - 1
    return np.stack([x**a * y**b for a in range(degree + 1) for b in range(degree + 1 - a)], 1)


def _bent(places: np.ndarray, bending: np.ndarray) -> np.ndarray:
    return _terms(places, _degree(len(bending))) @ bending


def _fit(places: np.ndarray, shifts: np.ndarray, weights: np.ndarray, degree: int) -> np.ndarray:
    """Coefficients (terms, 2) of the polynomial nearest to the shifts; shifts far from it lose their weight."""
    terms = _terms(places, degree)
    coefficients = np.zeros((terms.shape[1], 2))
    for axis in (0, 1):
        known = ~np.isnan(shifts[:, axis])
        a, b = terms[known], shifts[known, axis]
        weight = np.minimum(weights[known], 2 * np.median(weights[known]) + 1e-6)
        current = weight
        for _ in range(6):
            weighted = a * current[:, None]
            found = np.linalg.solve(weighted.T @ a + 1e-4 * np.eye(a.shape[1]), weighted.T @ b)
            far = (b - a @ found) / 0.012
            current = weight / (1 + far**2) ** 2
        coefficients[:, axis] = found
    return coefficients


def _judge(image: np.ndarray, size: int) -> Lines:
    on, off = [], []
    for turned in (image, image.T):
        ridges = _ridges(turned, size)
        on.append(_profiles(ridges, size, 0.1)[0].max(-1))
        off.append(_profiles(ridges, size, 0.1, offset=0.5)[0][:-1].max(-1).ravel())
    strengths = np.concatenate(on)
    usual = float(np.median(strengths))
    seen = np.sort((strengths > max(0.02, 0.35 * usual)).mean(1))
    return Lines(float(seen[1]), usual / max(float(np.quantile(np.concatenate(off), 0.6)), 0.01))


def cut_cells(gray: np.ndarray, grid: Grid) -> np.ndarray:
    """The cells of a grid, float32 (81, 28, 28): 0 is paper, 1 is the darkest ink in the grid."""
    a, b, c, d = grid.corners
    cell = np.sqrt(np.linalg.norm(c - a) * np.linalg.norm(d - b) / 2) / 9
    if cell > _USUAL_CELL:
        factor = _USUAL_CELL / cell
        gray = cv2.resize(gray, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
        grid = grid.scaled(factor)
    gray = 255 - gray if grid.inverted else gray
    fine = SIZE * _FINE
    within = EDGE + (np.arange(fine) + 0.5) / fine * (1 - 2 * EDGE)
    along = ((np.arange(9)[:, None] + within) / 9).ravel()
    flat = cv2.resize(grid.sample(gray, along), (9 * SIZE, 9 * SIZE), interpolation=cv2.INTER_AREA)
    return normalised(flat).reshape(9, SIZE, 9, SIZE).transpose(0, 2, 1, 3).reshape(81, SIZE, SIZE)


def normalised(flat: np.ndarray) -> np.ndarray:
    """A square of all cells, uint8, as ink: float32, 0 to 1, without shadows."""
    paper = cv2.dilate(cv2.medianBlur(flat, 3), np.ones((SIZE // 2 | 1, SIZE // 2 | 1), np.uint8))
    paper = cv2.GaussianBlur(paper.astype(np.float32), (0, 0), SIZE / 4)
    ink = np.clip(1 - flat / np.maximum(paper, 1), 0, 1)
    inner = ink.reshape(9, SIZE, 9, SIZE)[:, 4:-4, :, 4:-4].transpose(0, 2, 1, 3).reshape(81, -1)
    level = float(np.quantile(np.quantile(inner, 0.98, axis=1), 0.85))
    return np.minimum(ink / max(level, 0.12), 1).astype(np.float32)
