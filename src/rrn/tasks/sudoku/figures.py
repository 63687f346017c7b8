"""Figures of the steps of a network, as in the paper: nine digits in each cell, sized by probability, step by step.

Step 0 is before the first step: the givens, and uniform probabilities in all other cells.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rrn.errors import InputError
from rrn.io.files import write_atomically
from rrn.tasks.sudoku.grid import as_grids, clashes, solves
from rrn.viewing.plots import beside, check_drawing, font, gif, png

CELL = 48
"""Pixels of a cell."""
MARGIN, CAPTION = 14, 34
SIDE = 9 * CELL + 2 * MARGIN

PAPER, GIVEN_CELL = (255, 255, 255), (234, 236, 241)
INK, FAINT, WRONG = (30, 34, 42), (186, 190, 200), (205, 40, 40)
UNSURE, SURE = (140, 170, 205), (20, 90, 170)
THIN, THICK = (190, 194, 204), (60, 66, 78)

SMALLEST, LARGEST = 6.0, 33.0
"""Font sizes of the smallest visible digit and of a certain one."""
SHADES = 12
MOST_FRAMES, COLOURS = 100, 32
SECONDS, FASTEST, SLOWEST, HOLD = 7.0, 60, 320, 3500
"""Target duration of a GIF in seconds; shortest and longest frame, and the last frame, in milliseconds."""


def draw_gif(path: str | Path, puzzle: Any, probabilities: np.ndarray, attempt: int | None = None) -> None:
    """An animation from step 0 on that stays on the answer; ``probabilities`` are (steps, 81, 9).

    Every step has a frame, or, of very many steps, every second or third: the file stays below 1.5 MB. The last frame
    is the answer, one digit per cell; its caption has the ``attempt`` that found it, if given.
    """
    puzzle, probabilities = _checked(path, ".gif", puzzle, probabilities)
    last = len(probabilities)
    shown = np.unique(np.linspace(0, last, min(last + 1, MOST_FRAMES - 1)).round().astype(int)).tolist()
    frames = [_panel(puzzle, probabilities[step - 1] if step else None, f"step {step}") for step in shown]
    frames.append(_answer_panel(puzzle, probabilities, attempt))
    each = int(np.clip(1000 * SECONDS / len(frames), FASTEST, SLOWEST))
    durations = [4 * each, *[each] * (len(frames) - 2), HOLD]
    write_atomically(path, gif(frames, durations, COLOURS))


def draw_steps_png(
    path: str | Path, puzzle: Any, probabilities: np.ndarray, steps: Iterable[int], attempt: int | None = None
) -> None:
    """Some steps side by side; ``probabilities`` are (steps, 81, 9), with step t in row t - 1.

    The last step is drawn as the answer, as in `draw_gif`.
    """
    puzzle, probabilities = _checked(path, ".png", puzzle, probabilities)
    chosen, last = sorted(set(steps)), len(probabilities)
    if not chosen or chosen[0] < 0 or chosen[-1] > last:
        raise InputError(f"steps to draw: expected some of 0 to {last}, got {', '.join(map(str, chosen)) or 'none'}")
    panels = [
        _panel(puzzle, probabilities[step - 1] if step else None, f"step {step}") for step in chosen if step < last
    ]
    sheet = beside([*panels, *([_answer_panel(puzzle, probabilities, attempt)] if chosen[-1] == last else [])])
    write_atomically(path, png(sheet, 128))


def _checked(path: str | Path, ending: str, puzzle: Any, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    check_drawing(path, ending)
    probabilities = np.asarray(probabilities)
    if probabilities.ndim != 3 or probabilities.shape[1:] != (81, 9) or not len(probabilities):
        raise InputError(f"probabilities: expected the shape (steps, 81, 9), got {probabilities.shape}")
    return as_grids(puzzle)[0], probabilities


def _answer_panel(puzzle: np.ndarray, probabilities: np.ndarray, attempt: int | None) -> Any:
    """The most probable digit of every cell after the last step, what clashes marked, and whether that solves it."""
    answer = np.where(puzzle > 0, puzzle, probabilities[-1].argmax(-1) + 1).astype(np.uint8)
    last = f"{len(probabilities)} step{'s' * (len(probabilities) != 1)}"
    if not solves(answer, puzzle)[0]:
        caption = f"not solved after {last}"
    else:
        caption = f"solved in {last}" + ("" if attempt is None else f", attempt {attempt}")
    return _panel(puzzle, np.eye(9)[answer - 1], caption, clashes(answer)[0])


def _panel(puzzle: np.ndarray, probabilities: np.ndarray | None, caption: str, wrong: np.ndarray | None = None) -> Any:
    """The grid with nine digits in each cell by ``probabilities`` (81, 9); uniform if None."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (SIDE, SIDE + CAPTION), PAPER)
    draw = ImageDraw.Draw(image)
    probabilities = np.full((81, 9), 1 / 9) if probabilities is None else probabilities
    wrong = np.zeros(81, dtype=bool) if wrong is None else wrong
    for cell in range(81):
        left, top = MARGIN + cell % 9 * CELL, MARGIN + cell // 9 * CELL
        if puzzle[cell]:
            draw.rectangle((left, top, left + CELL, top + CELL), GIVEN_CELL)
            colour = WRONG if wrong[cell] else INK
            draw.text((left + CELL / 2, top + CELL / 2), str(puzzle[cell]), colour, font(LARGEST, True), "mm")
        else:
            _draw_probabilities(draw, probabilities[cell], left, top, bool(wrong[cell]))
    for line in range(10):
        at = MARGIN + line * CELL
        for ends in ((MARGIN, at, SIDE - MARGIN, at), (at, MARGIN, at, SIDE - MARGIN)):
            draw.line(ends, THICK if line % 3 == 0 else THIN, 3 if line % 3 == 0 else 1)
    draw.text((SIDE / 2, SIDE + CAPTION / 2 - 8), caption, WRONG if wrong.any() else INK, font(17.0, False), "mm")
    return image


def _draw_probabilities(draw: Any, probabilities: np.ndarray, left: int, top: int, wrong: bool) -> None:
    """Nine digits in three rows of three; a more probable digit is larger and nearer to the centre."""
    for rank, digit in enumerate(np.argsort(probabilities)):
        probability = float(probabilities[digit])
        size = LARGEST * probability**0.54
        if size < SMALLEST:
            continue
        row, column = divmod(int(digit), 3)
        pull = probability**3
        x = left + CELL * (0.5 + (column - 1) * 0.31 * (1 - pull))
        y = top + CELL * (0.5 + (row - 1) * 0.31 * (1 - pull))
        colour = WRONG if wrong and rank == 8 else _shade(probability)
        draw.text((x, y), str(digit + 1), colour, font(round(2 * size) / 2), "mm")


def _shade(probability: float) -> tuple[int, int, int]:
    share = round(SHADES * probability) / SHADES
    red, green, blue = (round(weak + (strong - weak) * share) for weak, strong in zip(UNSURE, SURE, strict=True))
    return red, green, blue
