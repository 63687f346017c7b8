"""What the figures of all tasks share. matplotlib and Pillow are imported when something is drawn."""

import io
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rrn.errors import InputError, needs_extra


def pillow(what: str = "drawing") -> Any:
    """Pillow's module of images."""
    try:
        import matplotlib  # noqa: F401  it brings the fonts
        from PIL import Image
    except ImportError as error:
        raise needs_extra(what, "figures") from error
    return Image


def check_drawing(path: str | Path | None, ending: str) -> None:
    """Refuse to begin what cannot be finished: a file that is not of this kind, or nothing to draw it with."""
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


def stamp(image: Any, text: str, size: float, bold: bool, colour: tuple[int, int, int], x: float, y: float) -> None:
    """Put a text's middle at (x, y)."""
    mask = _glyph(text, round(2 * size), bold)
    image.paste(colour, (round(x - mask.width / 2), round(y - mask.height / 2)), mask)


@cache
def _glyph(text: str, half_points: int, bold: bool) -> Any:
    from PIL import Image, ImageDraw

    face = font(half_points / 2, bold)
    left, top, right, bottom = face.getbbox(text)
    mask = Image.new("L", (max(round(right - left), 1), max(round(bottom - top), 1)))
    ImageDraw.Draw(mask).text((-left, -top), text, 255, face)
    return mask


def beside(images: Sequence[Any]) -> Any:
    """Images of one size as one, from left to right."""
    width, height = images[0].size
    sheet = pillow().new("RGB", (len(images) * width, height))
    for place, image in enumerate(images):
        sheet.paste(image, (place * width, 0))
    return sheet


def gif(frames: Sequence[Any], durations: Sequence[int], colours: int) -> bytes:
    """An animation that goes on for ever; durations in milliseconds, colours those of three of its frames."""
    palette = beside([frames[0], frames[len(frames) // 2], frames[-1]]).quantize(colours)
    first, *others = [frame.quantize(palette=palette, dither=0) for frame in frames]
    content = io.BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    return content.getvalue()


def png(image: Any, colours: int) -> bytes:
    content = io.BytesIO()
    image.quantize(colours, dither=0).save(content, "PNG", optimize=True)
    return content.getvalue()


def pyplot() -> Any:
    """matplotlib.pyplot for files, without a screen."""
    try:
        import matplotlib
    except ImportError as error:
        raise needs_extra("drawing", "figures") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "font.size": 10, "axes.grid": True})
    plt.rcParams.update({"grid.alpha": 0.25, "legend.frameon": False})
    return plt


def plot_lines(axes: Any, lines: Mapping[str, Mapping[str, float]]) -> None:
    """Lines by name, such as {"17": {"8": 0.5, "16": 0.9}}; several are shaded from the first to the last."""
    shades = pyplot().cm.viridis(np.linspace(0, 0.9, len(lines)))
    for (name, heights), shade in zip(lines.items(), shades, strict=True):
        at = sorted(heights, key=int)
        look = {"marker": "o" if len(at) <= 20 else "", "markersize": 3.5, "linewidth": 1.4}
        axes.plot([int(x) for x in at], [heights[x] for x in at], color=shade, label=name, **look)


def name_lines(axes: Any, title: str | None = None) -> None:
    """What the lines are called, beside them."""
    columns = 1 if len(axes.get_lines()) <= 20 else 2
    axes.legend(title=title, fontsize=8, ncols=columns, loc="center left", bbox_to_anchor=(1, 0.5))


def turned(figures: Mapping[str, Mapping[str, float]], name: Callable[[str], str]) -> dict[str, dict[str, float]]:
    """{"0 jumps": {"8": 0.5}} → {"8 steps": {"0 jumps": 0.5}}; ``name`` says how lines are called."""
    inner = next(iter(figures.values()))
    return {name(key): {outer: heights[key] for outer, heights in figures.items()} for key in inner}


def mark(axes: Any, at: float, what: str) -> None:
    """A dashed line, with what it means above it."""
    axes.axvline(at, color="black", linestyle="--", linewidth=1)
    axes.text(at, 1.03, what, ha="center", va="bottom", fontsize=8)


def draw_counts(counts: Mapping[str, np.ndarray], path: Path, of: str, things: str) -> None:
    """How often each count of some ``things`` comes: a line for each set, by name, the share of it in each bin."""
    most = max(int(some.max(initial=1)) for some in counts.values())
    edges = np.unique(np.geomspace(1, most + 2, 28).round())
    figure, axes = pyplot().subplots(figsize=(7.5, 4))
    for shade, (name, some) in zip(("#145aaa", "#b8bcc6", "#c8651b"), counts.items(), strict=False):
        shares = 100 * np.histogram(some + 1, edges)[0] / len(some)
        label = f"{name}: {np.median(some):.0f} in the middle, none for {(some == 0).mean():.0%}"
        axes.stairs(shares, edges, color=shade, linewidth=1.6, label=label)
    ticks = [tick for tick in (0, 1, 3, 10, 30, 100, 300, 1000, 3000) if tick <= most]
    axes.set_xscale("log")
    axes.set_xticks([tick + 1 for tick in ticks], [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel=of, ylabel=f"% of the {things}")
    axes.legend(fontsize=8)
    save(figure, path)


def save(figure: Any, path: str | Path) -> None:
    """Write and close a figure; the ending of ``path`` is the format."""
    path = Path(path)
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".") not in known:
        raise InputError(f"{path}: cannot draw this kind of file; endings are {', '.join(sorted(known))}")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.part{path.suffix}")
    figure.savefig(temporary, dpi=150, bbox_inches="tight")
    temporary.replace(path)
    pyplot().close(figure)
