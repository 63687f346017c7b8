"""Plots and images that all tasks share. matplotlib and Pillow are imported when something is drawn."""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rrn.errors import InputError, needs_extra
from rrn.nn.losses import IGNORE

if TYPE_CHECKING:
    from torch import Tensor

    from rrn.viewing.trace import Record

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#6a3d9a")
"""Colours of classes; the first are those of Okabe and Ito, which colour-blind readers can distinguish."""


@dataclass(frozen=True)
class Drawn:
    """A picture that was written; a notebook shows it if it is the last line of a cell."""

    path: Path

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        content, kind = self.path.read_bytes(), self.path.suffix.lower().lstrip(".")
        if kind == "svg":
            return {"image/svg+xml": content.decode()}
        kind = "application/pdf" if kind == "pdf" else f"image/{kind}"
        return {kind: base64.b64encode(content).decode()}


def pillow(what: str = "drawing") -> Any:
    """Pillow's module ``Image``."""
    try:
        import matplotlib  # noqa: F401  includes the fonts
        from PIL import Image
    except ImportError as error:
        raise needs_extra(what, "figures") from error
    return Image


def check_drawing(path: str | Path | None, ending: str) -> None:
    """Raise an error before long work if the file has another ending, or if Pillow is missing."""
    if path is None:
        return
    if Path(path).suffix.lower() != ending:
        raise InputError(f"{path}: expected a name that ends in {ending}")
    pillow()


@cache
def font(size: float, bold: bool = False) -> Any:
    import matplotlib
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


def beside(images: Sequence[Any]) -> Any:
    """Join images of one size from left to right."""
    width, height = images[0].size
    sheet = pillow().new("RGB", (len(images) * width, height))
    for index, image in enumerate(images):
        sheet.paste(image, (index * width, 0))
    return sheet


def gif(frames: Sequence[Any], durations: Sequence[int], colours: int) -> bytes:
    """An endless animation. Durations in milliseconds; the palette is that of three frames."""
    palette = beside([frames[0], frames[len(frames) // 2], frames[-1]]).quantize(colours)
    first, *others = [frame.quantize(palette=palette, dither=0) for frame in frames]
    content = io.BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    return content.getvalue()


def png(image: Any, colours: int) -> bytes:
    content = io.BytesIO()
    image.quantize(colours, dither=0).save(content, "PNG", optimize=True)
    return content.getvalue()


def subplots(rows: int = 1, columns: int = 1, *, figsize: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A figure for a file and its axes, in our style. matplotlib's backend and settings stay as they are."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise needs_extra("drawing", "figures") from error
    figure = Figure(figsize=figsize)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, **options)
    for one in np.ravel(axes):
        one.spines[["top", "right"]].set_visible(False)
        one.grid(True, alpha=0.25)
    return figure, axes


def plot_lines(axes: Any, lines: Mapping[str, Mapping[str, float]]) -> None:
    """Plot lines by name, such as {"17": {"8": 0.5, "16": 0.9}}, shaded from the first to the last."""
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0, 0.9, len(lines)))
    for (name, heights), shade in zip(lines.items(), shades, strict=True):
        keys = sorted(heights, key=int)
        style = {"marker": "o" if len(keys) <= 20 else "", "markersize": 3.5, "linewidth": 1.4}
        axes.plot([int(key) for key in keys], [heights[key] for key in keys], color=shade, label=name, **style)


def add_legend(axes: Any, title: str | None = None) -> None:
    """The names of the lines, to the right of the axes."""
    columns = 1 if len(axes.get_lines()) <= 20 else 2
    axes.legend(title=title, fontsize=8, ncols=columns, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)


def transpose(figures: Mapping[str, Mapping[str, float]], name: Callable[[str], str]) -> dict[str, dict[str, float]]:
    """{"0 jumps": {"8": 0.5}} → {"8 steps": {"0 jumps": 0.5}}; ``name`` makes the names of the lines."""
    inner = next(iter(figures.values()))
    return {name(key): {outer: heights[key] for outer, heights in figures.items()} for key in inner}


def mark(axes: Any, x: float, label: str) -> None:
    """A dashed vertical line with a label above it."""
    axes.axvline(x, color="black", linestyle="--", linewidth=1)
    axes.text(x, 1.03, label, ha="center", va="bottom", fontsize=8)


def check_figure(path: Path | None) -> None:
    """Raise an error before long work if matplotlib is missing, or if it cannot write such a file."""
    if path is not None:
        _check_ending(subplots(figsize=(1, 1))[0], path)


def _check_ending(figure: Any, path: Path) -> None:
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".") not in known:
        raise InputError(f"{path}: expected a name that ends in one of {', '.join(sorted(known))}")


def save(figure: Any, path: str | Path) -> None:
    """Write a figure; the ending of ``path`` is the format."""
    path = Path(path)
    _check_ending(figure, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.part{path.suffix}")
    figure.savefig(temporary, dpi=150, bbox_inches="tight")
    temporary.replace(path)


def plot_convergence(
    record: "Record",
    path: str | Path,
    targets: "Tensor | np.ndarray | None" = None,
    *,
    ignore_index: int = IGNORE,
) -> Drawn:
    """Plot the residual of every graph by step and, with ``targets`` (answers,), its accuracy.

    A line ends at the last step of its graph, with a dot if the graph finished. The thick line is the median of the
    residuals, or the mean of the accuracies, of all graphs; a graph that has ended counts with its last value.
    """
    panels = [("residual", record.residuals)]
    if targets is not None:
        panels.append(("accuracy", record.accuracy(targets, ignore_index)))
    figure, all_axes = subplots(1, len(panels), figsize=(5.2 * len(panels), 3.6), squeeze=False)
    lasts, finished = record.steps.tolist(), record.finished.tolist()
    opacity = max(0.06, min(0.6, 6 / len(lasts)))
    for axes, (title, values) in zip(all_axes[0], panels, strict=True):
        filled = _fill_forward(values.numpy(), record.steps.numpy())
        steps = np.arange(1, len(filled) + 1)
        for number, last in enumerate(lasts):
            axes.plot(steps[:last], filled[:last, number], color=PALETTE[0], alpha=opacity, linewidth=1)
            if finished[number]:
                axes.plot(last, filled[last - 1, number], "o", color=PALETTE[0], alpha=opacity, markersize=3)
        if title == "residual":
            axes.plot(steps, np.median(filled, axis=1), color=PALETTE[1], linewidth=2.2)
            axes.set_yscale("log")
        else:
            axes.plot(steps, np.nanmean(filled, axis=1), color=PALETTE[1], linewidth=2.2)
            axes.set_ylim(-0.02, 1.02)
        axes.set(xlabel="steps", ylabel=title, xlim=(1, max(2, len(filled))))
    figure.suptitle(f"{sum(finished)} of {len(lasts)} graphs finished", fontsize=10)
    save(figure, path)
    return Drawn(Path(path))


def _fill_forward(values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """(steps, graphs), with each graph's value at its last step in all later steps."""
    rows = np.minimum(np.arange(len(values))[:, None], steps - 1)
    return np.take_along_axis(values, rows, axis=0)
