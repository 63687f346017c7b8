"""rrn solve PHOTO: read the Sudoku in a photo, then solve it."""

import sys
from typing import TYPE_CHECKING, Any

from rrn.cli import load, print_json
from rrn.errors import InputError, plural
from rrn.tasks.sudoku.grid import describe_clash, grid_to_line

if TYPE_CHECKING:
    from rrn.cli.solve import Options
    from rrn.tasks.photo.predict import Reading


def solve_photo(source: str, options: "Options") -> int:
    from rrn.cli.solve import show_one, solve_puzzles
    from rrn.tasks.photo.predict import read_photo

    reading = read_photo(source)
    details = describe(reading)
    if clash := describe_clash(reading.puzzle):
        message = f"the digits read in the photo contradict each other: {clash}"
        if not options.json:
            raise InputError(f"{source}: {message}; read {grid_to_line(reading.puzzle)}")
        found = {"puzzle": grid_to_line(reading.puzzle), "status": "impossible", "valid": False, "message": message}
        print_json(found | details)
        return 1
    if not options.json and not options.quiet:
        print(_summary(reading), file=sys.stderr)
    drawn = bool(options.trace or options.gif or options.png)
    network = load(options.weights, "sudoku", options.device)
    result = solve_puzzles(network, [reading.puzzle], options, record=drawn)[0]
    return show_one(result, options, details)


def describe(reading: "Reading") -> dict[str, Any]:
    """The corners of the grid in pixels, and the doubtful cells with their likeliest readings, as JSON values."""
    doubtful = []
    for cell in sorted({*reading.doubtful, *reading.reconsidered}):
        likeliest = reading.probabilities[cell].argsort()[::-1][:2]
        readings = {str(digit): round(float(reading.probabilities[cell, digit]), 4) for digit in likeliest}
        doubtful.append(
            {"row": cell // 9 + 1, "column": cell % 9 + 1, "read": int(reading.puzzle[cell]), "probabilities": readings}
        )
    return {"corners": reading.corners.round(1).tolist(), "doubtful": doubtful}


def _summary(reading: "Reading") -> str:
    parts = [f"read {plural(int((reading.puzzle > 0).sum()), 'digit')} in the photo"]
    for cell in reading.reconsidered:
        was, now = (str(digit or "empty") for digit in (reading.probabilities[cell].argmax(), reading.puzzle[cell]))
        parts.append(
            f"row {cell // 9 + 1}, column {cell % 9 + 1} looks like {was}, which contradicts others: taken as {now}"
        )
    left = len(set(reading.doubtful) - set(reading.reconsidered))
    if left:
        parts.append(f"{plural(left, 'digit')} doubtful (--json lists them)")
    return "; ".join(parts)
