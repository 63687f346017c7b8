"""Image files: what is no usable photo is refused with a sentence."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.tasks.photo.conftest import Save

from rrn.errors import InputError
from rrn.tasks.photo.image import read_image


def png_header(wide: int, high: int) -> bytes:
    content = b"IHDR" + struct.pack(">IIBBBBB", wide, high, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + content + struct.pack(">I", zlib.crc32(content))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 1000) + b"IDAT"


def test_gray_colour_and_transparent_images(save: Save, tmp_path: Path) -> None:
    gray = np.arange(120 * 130, dtype=np.uint8).reshape(120, 130)
    np.testing.assert_array_equal(read_image(save("gray.png", gray)), gray)
    clear = np.zeros((120, 130, 4), np.uint8)
    Image.fromarray(clear).save(tmp_path / "clear.png")
    assert (read_image(tmp_path / "clear.png") == 255).all(), "what is transparent is paper"


def test_the_camera_s_orientation_is_undone(tmp_path: Path) -> None:
    image = Image.new("L", (200, 120))
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "turned.jpg", exif=exif)
    assert read_image(tmp_path / "turned.jpg").shape == (200, 120)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"%PDF-1.7 ...", "a PDF; save the page as a picture"),
        (b"\0\0\0\x18ftypheic....", "a HEIC or AVIF picture"),
        (b"<svg></svg>", "an SVG drawing"),
        (b"nothing like a picture", "not a readable picture"),
        (b"", "not a readable picture"),
        (png_header(200, 200), "not a readable picture"),
        (png_header(9_000, 9_000), "9000 × 9000 pixels exceed the limit of 60,000,000"),
        (png_header(100_000, 100_000), "its pixels exceed the limit of 60,000,000"),
        (png_header(90, 90), "90 × 90 pixels are too few"),
    ],
)
def test_refused(content: bytes, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        read_image(content)


def test_a_damaged_photo(save: Save) -> None:
    path = save("damaged.png", np.random.default_rng(0).integers(0, 255, (300, 300), np.uint8))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(InputError, match=r"damaged\.png: not a readable picture .* or damaged"):
        read_image(path)


def test_a_huge_file(tmp_path: Path) -> None:
    with open(tmp_path / "huge.jpg", "wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(InputError, match="exceeds the size limit of 40,000,000 bytes"):
        read_image(tmp_path / "huge.jpg")
