"""Image files as gray pixels. An unusable file raises an `InputError` that names the reason."""

import io
import warnings
from pathlib import Path

import numpy as np

from rrn.errors import InputError, as_input_error, needs_extra
from rrn.io.files import read_bytes

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".heic", ".pdf")
"""Names of files that `rrn solve` reads as photos; the last two are refused with advice."""
MOST_BYTES = 40_000_000
MOST_PIXELS = 60_000_000
LEAST_SIDE = 100
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")
_STARTS = {
    b"%PDF": "a PDF; save the page as a picture (PNG or JPEG)",
    b"<svg": "an SVG drawing; save it as a picture (PNG or JPEG)",
    b"<?xml": "an XML file, no photo; give a PNG or JPEG",
}


def read_image(source: str | Path | bytes, name: str = "the photo") -> np.ndarray:
    """The gray pixels of an image file, uint8 (rows, columns), upright as the camera held it."""
    if not isinstance(source, bytes):
        name = str(source)
        with as_input_error(f"{name}: cannot be read"):
            source = read_bytes(Path(source), MOST_BYTES)
    for start, what in _STARTS.items():
        if source.lstrip()[:8].startswith(start):
            raise InputError(f"{name}: {what}")
    if source[4:8] == b"ftyp":
        raise InputError(f"{name}: a HEIC or AVIF picture, or a video; save it as PNG or JPEG")
    return _decode(source, name)


def _decode(content: bytes, name: str) -> np.ndarray:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise needs_extra(f"{name}: reading photos", "vision") from error
    damaged = f"{name}: not a readable picture (PNG, JPEG, WebP, BMP, GIF or TIFF), or damaged"
    with warnings.catch_warnings(), as_input_error(damaged):
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            file = Image.open(io.BytesIO(content), formats=_FORMATS)
        except Image.DecompressionBombError as error:
            raise InputError(f"{name}: its pixels exceed the limit of {MOST_PIXELS:,}") from error
        wide, high = file.size
        if wide * high > MOST_PIXELS:
            raise InputError(f"{name}: {wide} × {high} pixels exceed the limit of {MOST_PIXELS:,}")
        if min(wide, high) < LEAST_SIDE:
            raise InputError(
                f"{name}: {wide} × {high} pixels are too few to read digits; at least {LEAST_SIDE} each way"
            )
        file.draft("L", (2000, 2000))
        image: Image.Image = ImageOps.exif_transpose(file)
        if image.mode in ("RGBA", "LA", "PA", "P"):
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        return np.asarray(image.convert("L"))
