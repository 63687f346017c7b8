"""OpenCV, or a sentence that says how to install it."""

from rrn.errors import needs_extra

try:
    import cv2
except ImportError as error:
    raise needs_extra("reading photos", "vision") from error

__all__ = ["cv2"]
