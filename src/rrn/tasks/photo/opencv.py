"""OpenCV, or a sentence that says how to install it."""

from importlib import import_module
from typing import Any

from rrn.errors import needs_extra

try:
    cv2: Any = import_module("cv2")
except ImportError as error:
    raise needs_extra("reading photos", "vision") from error
