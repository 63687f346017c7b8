"""How many rendered photos are read and solved, by kind of writing, and how long that takes."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from torch import nn

from rrn.errors import InputError
from rrn.tasks.evaluation import EvaluateOptions, Progress
from rrn.tasks.photo.opencv import cv2
from rrn.tasks.photo.predict import read_photo
from rrn.tasks.photo.presets import DigitReaderPreset
from rrn.tasks.photo.render import render_photo
from rrn.tasks.sudoku.predict import load, solve
from rrn.tasks.visual_sudoku.data import drawn_digits, read_digits
from rrn.viewing.plots import add_legend, save, subplots

PHOTOS, SEED = 200, 2018


@dataclass(frozen=True, kw_only=True)
class Options(EvaluateOptions):
    """``--data`` is a file of images of digits for the handwritten puzzles (.npz); its test part is used."""

    folder: Path | None = None
    """Write the photos to this folder."""


def evaluate(network: nn.Module, preset: DigitReaderPreset, options: Options, progress: Progress) -> dict[str, Any]:
    handwriting = (read_digits(options.data) if options.data else drawn_digits()).part("test")
    count = options.limit or PHOTOS
    found, right, solved, cells, handwritten, seconds = (np.zeros(count) for _ in range(6))
    solver = load("sudoku")
    reconsidered = 0
    for number in range(count):
        photo = render_photo(np.random.default_rng([SEED, number]), handwriting)
        encoded = cv2.imencode(".jpg", cv2.cvtColor(photo.image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 92])[1]
        if options.folder:
            options.folder.mkdir(parents=True, exist_ok=True)
            (options.folder / f"{number:03}.jpg").write_bytes(encoded.tobytes())
        handwritten[number] = photo.handwritten
        started = time.perf_counter()
        try:
            reading = read_photo(encoded.tobytes(), network)
            found[number] = 1
            cells[number] = (reading.puzzle == photo.puzzle).mean()
            right[number] = (reading.puzzle == photo.puzzle).all()
            reconsidered += len(reading.reconsidered)
            solved[number] = (solve(reading.puzzle, network=solver).answers[0] == photo.solution).all()
        except InputError:
            pass
        seconds[number] = time.perf_counter() - started
        progress(number + 1, count)
    kinds = {"printed": handwritten == 0, "handwritten": handwritten == 1, "all": handwritten >= 0}
    figures = {"grids_found": found, "cells_right": cells, "read_right": right, "solved": solved}
    return {
        "n": count,
        "accuracy": float(solved.mean()),
        "by_kind": {
            kind: {"n": int(rows.sum()), **{name: float(figure[rows].mean()) for name, figure in figures.items()}}
            for kind, rows in kinds.items()
            if rows.any()
        },
        "unsolved": np.flatnonzero(solved == 0).tolist(),
        "cells_reconsidered": reconsidered,
        "seconds_per_photo": {"median": float(np.median(seconds)), "most": float(seconds.max())},
        "handwriting": handwriting.name,
        "photo_seed": SEED,
    }


def tables(result: dict[str, Any]) -> list[Any]:
    columns = ("grids found", "cells right", "read right", "solved")
    table = Table("photos", "n", *columns, box=None, header_style="bold")
    for kind, figures in result["by_kind"].items():
        table.add_row(kind, str(figures["n"]), *(f"{figures[name.replace(' ', '_')]:.1%}" for name in columns))
    took = result["seconds_per_photo"]
    return [table, f"\n{took['median']:.2f} s per photo (median), at most {took['most']:.2f} s"]


def draw_result(result: dict[str, Any], path: Path) -> None:
    figure, axes = subplots(figsize=(6, 4))
    for shift, (kind, figures) in enumerate(result["by_kind"].items()):
        names = [name for name in figures if name != "n"]
        places = [place + 0.25 * (shift - 1) for place in range(len(names))]
        axes.bar(places, [figures[name] for name in names], width=0.24, label=f"{kind} ({figures['n']})")
    axes.set_xticks(range(len(names)), [name.replace("_", " ") for name in names])
    axes.set(ylabel="share", ylim=(0, 1.02))
    axes.set_title(f"{result['n']:,} rendered photos", fontsize=10)
    add_legend(axes)
    save(figure, path)
