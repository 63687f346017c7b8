"""Inner loops in compiled code where numba is installed (the extra ``fast``); in plain Python where it is not.

What is compiled is kept in the user's own cache folder (``NUMBA_CACHE_DIR`` moves it). numba reads those files with
pickle, so nobody else should be able to write there. A damaged file is thrown away and the function compiled again.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

numba: Any
try:
    import numba
except ImportError:
    numba = None

COMPILED = numba is not None


@overload
def compiled(function: Callable[..., Any], /) -> Any: ...
@overload
def compiled(*, fastmath: bool) -> Callable[[Callable[..., Any]], Any]: ...


def compiled(function: Callable[..., Any] | None = None, /, *, fastmath: bool = False) -> Any:
    """Decorate a function of numbers and arrays. ``fastmath`` lets sums be reordered and takes no care of NaN."""
    if function is None:
        return lambda of: _compile(of, fastmath)
    return _compile(function, fastmath)


def _compile(function: Callable[..., Any], fastmath: bool) -> Any:
    if numba is None:
        return function
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath}
    if fastmath:
        options["error_model"] = "numpy"  # a division by zero is infinity, not an exception, so loops stay simple
    try:
        return _survive_damage(numba.njit(cache=True, **options)(function))
    except RuntimeError:  # nowhere to keep the cache: a read-only installation without a home directory
        return numba.njit(**options)(function)


def _survive_damage(dispatcher: Any) -> Any:
    cache = dispatcher._cache
    load, save = cache.load_overload, cache.save_overload

    def load_if_whole(signature: Any, target: Any) -> Any:
        try:
            return load(signature, target)
        except Exception:  # whatever pickle makes of a damaged file
            _forget(cache)
            return None

    def save_if_possible(signature: Any, data: Any) -> None:
        try:
            save(signature, data)
        except Exception:
            _forget(cache)

    cache.load_overload, cache.save_overload = load_if_whole, save_if_possible
    return dispatcher


def _forget(cache: Any) -> None:
    try:
        cache.flush()
    except OSError:
        return


def _cache_folder() -> Path:
    """Where this user's programs keep what they can make again."""
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "rrn" / "numba"


if numba is not None and not os.environ.get("NUMBA_CACHE_DIR"):
    try:
        _folder = _cache_folder()
        _folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):
        pass  # numba finds a place of its own, or does without
    else:
        numba.config.CACHE_DIR = str(_folder)


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
