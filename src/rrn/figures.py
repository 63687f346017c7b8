"""What the figures of all tasks share. matplotlib is imported when something is drawn."""

from pathlib import Path
from typing import Any

from rrn.errors import InputError
from rrn.hints import needs_extra


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
