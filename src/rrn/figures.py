"""What the figures of all tasks share. matplotlib and Pillow are imported when something is drawn."""

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rrn.errors import InputError
from rrn.hints import needs_extra


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
