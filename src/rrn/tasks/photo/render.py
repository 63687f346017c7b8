"""Rendered photos of Sudokus: printed and handwritten puzzles, bent, tilted, shaded, blurred and noisy.

They train the digit reader, and measure reading and solving together. Needs the extras vision and figures.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rrn.errors import needs_extra
from rrn.tasks.photo.grid import Grid, cut_cells
from rrn.tasks.photo.opencv import cv2
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.visual_sudoku.data import Digits, drawn_digits

_FONTS = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic",
    "DejaVuSansMono", "DejaVuSansMono-Bold", "STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic",
    "cmr10", "cmb10", "cmss10", "cmtt10",
)  # fmt: skip
"""Fonts that come with matplotlib."""
_LETTERS = list("abcdefghijklmnopqrstuvwxyz") + list("eeetttaaooiinnssrr")


@dataclass(frozen=True)
class Photo:
    """A rendered photo, uint8 (rows, columns, 3) RGB, its puzzle (81,) and solution (81,), and what was drawn."""

    image: np.ndarray
    puzzle: np.ndarray
    solution: np.ndarray
    corners: np.ndarray
    """The corners of the grid in pixels (4, 2): x and y, from the top left clockwise."""
    handwritten: bool


@cache
def font_files(more: Path | None = None) -> tuple[str, ...]:
    """Fonts with digits: those of matplotlib, and those in the folder ``more``."""
    try:
        import matplotlib
    except ImportError as error:
        raise needs_extra("rendering printed digits", "figures") from error
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    files = [folder / f"{name}.ttf" for name in _FONTS]
    files += sorted(more.glob("*.ttf")) if more else []
    return tuple(str(path) for path in files if path.is_file())


@cache
def _font(path: str, size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.truetype(path, size)


def _text(text: str, font: str, size: int) -> np.ndarray:
    """Printed text, uint8, cropped to its ink; ``size`` is the font's in pixels."""
    from PIL import Image, ImageDraw

    left, top, right, bottom = _font(font, size).getbbox(text)
    image = Image.new("L", (max(1, int(right - left)) + 2, max(1, int(bottom - top)) + 2))
    ImageDraw.Draw(image).text((1 - left, 1 - top), text, 255, font=_font(font, size))
    return np.asarray(image)


def render_photo(rng: np.random.Generator, handwriting: Digits | None = None, puzzle: Any = None) -> Photo:
    """A random photo. ``handwriting`` has the handwritten digits; None: digits drawn from strokes."""
    if puzzle is None:
        puzzles, solutions = generate(1, rng, (0, 15))
        puzzle, solution = puzzles[0], solutions[0]
    else:
        puzzle, solution = puzzle
    handwritten = bool(rng.random() < 0.4)
    cell = int(rng.integers(44, 68))
    grid = _draw_grid(puzzle, cell, handwritten, handwriting, rng)
    page, corners = _draw_page(grid, rng)
    image, corners = _photograph(page, corners, rng)
    return Photo(image, puzzle, solution, corners, handwritten)


def _draw_grid(
    puzzle: np.ndarray,
    cell: int,
    handwritten: bool | None,
    handwriting: Digits | None,
    rng: np.random.Generator,
    fonts: tuple[str, ...] | None = None,
) -> np.ndarray:
    """The ink of a grid, float (9 · cell + margins)², 0 to 1. Handwritten or printed; None: each cell differently."""
    thick, thin = int(rng.integers(2, 6)), int(rng.integers(1, 3))
    faint, pad = rng.uniform(0.55, 1.0), 6
    side = 9 * cell + 2 * pad
    ink = np.zeros((side, side), np.float32)
    for k in [*(k for k in range(10) if k % 3), 0, 3, 6, 9]:
        width, dark = (thick, 1.0) if k % 3 == 0 else (thin, faint)
        low = pad + k * cell - width // 2
        for part in (ink[low : low + width, pad : side - pad], ink[pad : side - pad, low : low + width]):
            part[:] = np.maximum(part, dark)
    fonts = fonts or font_files()
    font, share = str(rng.choice(fonts)), rng.uniform(0.55, 0.85)
    strength = rng.uniform(0.6, 1.0) if handwritten else rng.uniform(0.8, 1.0)
    cells = np.flatnonzero(puzzle)
    drawn = (handwriting or drawn_digits()).draw_cells(puzzle[None], rng, distort=handwritten is None)[0][cells]
    for at, image in zip(cells, drawn, strict=True):
        if handwritten is None:
            font, share, strength = str(rng.choice(fonts)), rng.uniform(0.5, 0.9), rng.uniform(0.4, 1.0)
        if handwritten or (handwritten is None and rng.random() < 0.6):
            size = int(cell * rng.uniform(0.7, 1.05))
            digit = cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA if size < 28 else cv2.INTER_CUBIC)
            away = rng.normal(0, 0.05 * cell, 2)
        else:
            digit, away = _text(str(puzzle[at]), font, max(8, int(cell * share))), np.zeros(2)
            if handwritten is None:
                digit, away = _as_in_another_font(digit, cell, rng), rng.normal(0, 0.04 * cell, 2)
        high, wide = digit.shape
        top, left = (
            int(pad + (place + 0.5) * cell - length / 2 + shift)
            for place, length, shift in zip(divmod(at, 9), (high, wide), away, strict=True)
        )
        top, left = max(0, min(top, side - high)), max(0, min(left, side - wide))
        part = ink[top : top + high, left : left + wide]
        part[:] = np.maximum(part, strength * digit.astype(np.float32) / 255)
    return ink


def _as_in_another_font(digit: np.ndarray, cell: int, rng: np.random.Generator) -> np.ndarray:
    """A printed digit made wider or narrower, slanted, bolder or thinner."""
    high, wide = digit.shape
    slant, stretch = rng.normal(0, 0.12), rng.uniform(0.75, 1.35)
    reach = int(abs(slant) * high) + 1
    matrix = np.array([[stretch, -slant, reach * (slant > 0)], [0, 1, 0]], np.float32)
    digit = cv2.warpAffine(digit, matrix, (min(int(wide * stretch) + reach, cell), high))
    change, kernel = rng.random(), np.ones((2, 2), np.uint8)
    if change < 0.15 and high > 24:
        return cv2.erode(digit, kernel)
    return cv2.dilate(digit, kernel) if change > 0.8 else digit


def _draw_page(grid: np.ndarray, rng: np.random.Generator, surroundings: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The page around the grid, float RGB 0 to 255, and the corners of the grid."""
    side, pad = len(grid), 6
    left, top, right, bottom = (int(rng.uniform(0.15, 1.2) * side * 0.5 * surroundings) for _ in range(4))
    ink = np.zeros((top + side + bottom, left + side + right), np.float32)
    if surroundings and rng.random() < 0.75:
        _write_text(ink, (top, left, side), rng)
    ink[top : top + side, left : left + side] = grid
    paper = np.array([1.0, 1.0, 1.0]) if rng.random() < 0.4 else 1 - rng.uniform(0, 0.25, 3) * rng.uniform(0.3, 1)
    paper = 255 * paper * rng.uniform(0.75, 1.0)
    dark = paper * rng.uniform(0.05, 0.35, 3 if rng.random() < 0.3 else 1)
    noise = rng.standard_normal(ink.shape, np.float32)
    grain = cv2.GaussianBlur(noise, (0, 0), 1.2) * np.float32(rng.uniform(0, 12))
    page = paper * (1 - ink[..., None]) + dark * ink[..., None] + grain[..., None]
    x0, y0, x1, y1 = left + pad, top + pad, left + side - pad, top + side - pad
    return page.astype(np.float32), np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float32)


def _write_text(ink: np.ndarray, hole: tuple[int, int, int], rng: np.random.Generator) -> None:
    """Lines of text around a square hole, as in a newspaper, and a heading or a frame."""
    top, left, side = hole
    font, size = str(rng.choice(font_files()[:14])), int(rng.integers(11, 20))
    gap = int(rng.integers(6, 30))
    column = int(rng.integers(160, 360))
    for x in range(4, ink.shape[1] - 40, column + 16):
        for y in range(4, ink.shape[0] - size - 4, int(size * 1.35)):
            wide = min(column, ink.shape[1] - x - 4)
            if x < left + side + gap and x + wide > left - gap and top - gap - size < y < top + side + gap:
                wide = left - gap - x  # text left of the grid only
            if wide < 40:
                continue
            words = ["".join(rng.choice(_LETTERS, int(rng.integers(2, 9)))) for _ in range(wide // (3 * size) + 1)]
            line = _text(" ".join(words), font, size)[:, :wide]
            high = min(len(line), ink.shape[0] - y)
            ink[y : y + high, x : x + line.shape[1]] = line[:high].astype(np.float32) / 255 * 0.9
    if rng.random() < 0.3 and min(top, left) > 30:
        a, b = int(min(top, left) * 0.6), int(rng.integers(1, 4))
        cv2.rectangle(ink, (left - a, top - a), (left + side + a, top + side + a), 0.9, b)


def _photograph(page: np.ndarray, corners: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Curvature, perspective, surroundings, light, blur, noise and compression."""
    high, wide = page.shape[:2]
    scale = rng.uniform(700, 1300) / max(high, wide)
    rows, columns = int(high * scale * rng.uniform(1.0, 1.25)), int(wide * scale * rng.uniform(1.0, 1.25))
    box = np.array([[0, 0], [wide, 0], [wide, high], [0, high]], np.float32)
    tilt = rng.uniform(0.0, 0.12) * min(rows, columns)
    slack = np.array([columns - wide * scale, rows - high * scale]) * rng.uniform(0.2, 0.8, 2)
    target = box * scale + slack + rng.uniform(-tilt, tilt, (4, 2))
    angle = np.radians(rng.normal(0, 5))
    middle = np.array([columns, rows]) / 2
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    target = ((target - middle) @ turn.T + middle).astype(np.float32)
    to_page = cv2.getPerspectiveTransform(target, box)
    bend, phase = rng.uniform(0, 0.018) * max(high, wide), rng.uniform(0, 2 * np.pi, 2)
    period = rng.uniform(0.8, 2.0, 2) * max(high, wide)

    def bent(points: np.ndarray) -> np.ndarray:
        """Points of the page (n, 2) moved along smooth waves."""
        moved = points.copy()
        moved[:, 1] += bend * np.sin(2 * np.pi * points[:, 0] / period[0] + phase[0])
        moved[:, 0] += 0.4 * bend * np.sin(2 * np.pi * points[:, 1] / period[1] + phase[1])
        return moved

    x, y = np.meshgrid(np.linspace(0, columns, 65), np.linspace(0, rows, 65))
    coarse = bent(cv2.perspectiveTransform(np.stack([x, y], -1).reshape(1, -1, 2), to_page)[0])
    fine = [(np.arange(length, dtype=np.float32) * (64 / length)) for length in (columns, rows)]
    places = cv2.remap(coarse.reshape(65, 65, 2).astype(np.float32), *np.meshgrid(*fine), cv2.INTER_LINEAR)
    table = _table((rows, columns), rng)
    smooth = cv2.GaussianBlur(page, (0, 0), max(0.01, 0.45 / scale)) if scale < 1 else page
    seen = cv2.remap(smooth, places, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=(-1, -1, -1))
    on_page = (places >= 0).all(-1) & (places[..., 0] < wide - 1) & (places[..., 1] < high - 1)
    image = np.where(on_page[..., None], seen, table).astype(np.float32)
    image *= _light((rows, columns), rng)[..., None]
    image = cv2.GaussianBlur(image, (0, 0), float(rng.uniform(0.3, 1.5)))
    if rng.random() < 0.2:
        length = int(rng.integers(2, 6))
        image = cv2.filter2D(image, -1, np.eye(length)[:: rng.choice([-1, 1])] / length)
    image += rng.standard_normal(image.shape, np.float32) * np.float32(rng.uniform(0, 9))
    image = np.clip(image, 0, 255).astype(np.uint8)
    quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(45, 96))]
    image = cv2.imdecode(cv2.imencode(".jpg", image, quality)[1], cv2.IMREAD_COLOR)
    unbent = corners
    for _ in range(5):  # inverse of the bending, by iteration
        unbent = corners - (bent(unbent) - unbent)
    back = cv2.perspectiveTransform(unbent[None].astype(np.float32), np.linalg.inv(to_page))[0]
    return image, back


def _table(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """What lies under the page: a smooth pattern of one colour."""
    rows, columns = shape
    coarse = rng.normal(
        0, 1, (max(2, rows // int(rng.integers(10, 120))), max(2, columns // int(rng.integers(10, 120))))
    )
    pattern = cv2.resize(coarse.astype(np.float32), (columns, rows), interpolation=cv2.INTER_CUBIC)
    return rng.uniform(20, 200, 3) + pattern[..., None] * rng.uniform(2, 22)


def _light(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Brightness: a gradient and, often, a soft shadow with a straight edge."""
    rows, columns = shape
    x, y = np.meshgrid(np.linspace(-1, 1, columns), np.linspace(-1, 1, rows))
    angle = rng.uniform(0, 2 * np.pi)
    light = 1 - rng.uniform(0, 0.25) * (1 + np.cos(angle) * x + np.sin(angle) * y) / 2
    if rng.random() < 0.5:
        angle, edge = rng.uniform(0, 2 * np.pi), rng.uniform(-0.5, 0.5)
        across = np.cos(angle) * x + np.sin(angle) * y - edge
        light = light * (1 - rng.uniform(0.15, 0.5) / (1 + np.exp(-across / rng.uniform(0.01, 0.1))))
    return light.astype(np.float32)


def render_cells(
    rng: np.random.Generator, handwriting: Digits | None = None, fonts: Path | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The cells of a rendered grid with any digits, as `cut_cells` makes them: (81, 28, 28), and the digits (81,).

    Every cell has another font or handwriting. The grid is cut slightly beside its lines.
    """
    digits = rng.integers(1, 10, 81).astype(np.uint8)
    digits[rng.random(81) < rng.uniform(0.1, 0.6)] = 0
    cell = int(rng.integers(26, 60))
    stroked = rng.random() < 0.35
    ink = _draw_grid(digits, cell, None, None if stroked else handwriting, rng, font_files(fonts))
    page, corners = _draw_page(ink, rng, surroundings=False)
    image = page.mean(-1) * _light(page.shape[:2], rng)
    image = cv2.GaussianBlur(image, (0, 0), float(rng.uniform(0.3, 1.6) * cell / 45 + 0.2))
    image += rng.standard_normal(image.shape, np.float32) * np.float32(rng.uniform(0, 10))
    image = np.clip(image, 0, 255).astype(np.uint8)
    quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(45, 96))]
    gray = cv2.imdecode(cv2.imencode(".jpg", image, quality)[1], cv2.IMREAD_GRAYSCALE)
    unit = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    moved = corners + rng.normal(0, 0.04 * cell, (4, 2)) + rng.normal(0, 0.02 * cell, (1, 2))
    grid = Grid(cv2.getPerspectiveTransform(unit, moved.astype(np.float32)), bending=rng.normal(0, 0.0015, (10, 2)))
    return cut_cells(gray, grid), digits
