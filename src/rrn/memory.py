"""Freed memory is kept for the next tensor instead of going back to the system."""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in glibc's malloc.h
_LARGE, _LARGEST_OLD = 1 << 30, 32 << 20


def keep_freed_memory() -> None:
    """Tell glibc to reuse large blocks. By default each tensor of more than a few megabytes is fresh memory, zeroed
    by the system page by page, which costs more than the arithmetic on it. Elsewhere this does nothing."""
    if not sys.platform.startswith("linux"):
        return
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    if not set_option(_MMAP_THRESHOLD, _LARGE):
        set_option(_MMAP_THRESHOLD, _LARGEST_OLD)
    set_option(_TRIM_THRESHOLD, _LARGE)
