"""Private APIs of other libraries and of the operating system. No other module of the package uses any.

Each has a fallback for a version or a system without it. The results are then the same; only speed, or a nicety that
the docstring names, is lost. `tests/test_compat.py` hides each in turn.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, overload

# --- numba: inner loops in compiled code, with the extra ``fast`` ---

numba: Any
try:
    import numba
except ImportError:
    numba = None

_FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
"""LLVM's flags for fast arithmetic, without those that assume finite numbers."""

COMPILED: bool = numba is not None and not numba.config.DISABLE_JIT
"""Whether `compiled` compiles. Without numba, or with ``NUMBA_DISABLE_JIT=1``, functions stay plain Python."""


@overload
def compiled(function: Callable[..., Any], /) -> Any: ...
@overload
def compiled(*, fastmath: bool) -> Callable[[Callable[..., Any]], Any]: ...


def compiled(function: Callable[..., Any] | None = None, /, *, fastmath: bool = False) -> Any:
    """Compile a function of numbers and arrays. ``fastmath`` allows reordered sums; NaN stays NaN.

    Machine code is cached between runs in a folder that only this user can write to (see `_cache_folder`), because
    numba reads it with pickle. ``NUMBA_CACHE_DIR`` selects another folder. A damaged cache file is compiled again.
    """
    if function is None:
        return partial(compiled, fastmath=fastmath)
    if not COMPILED:
        return function
    options: dict[str, Any] = {"nogil": True, "fastmath": _FAST if fastmath else False}
    if fastmath:
        options["error_model"] = "numpy"  # a division by zero gives infinity instead of an exception
    dispatcher = numba.njit(**options)(function)
    try:
        if _FunctionCache is None:
            dispatcher.enable_caching()
        else:
            dispatcher._cache = _FunctionCache(function)
    except RuntimeError:  # no writable folder: compiled again in every process
        pass
    return dispatcher


def _cache_folder() -> Path | None:
    """The cache folder of this user, or None if it cannot be made or other users can write to it."""
    try:
        if sys.platform == "win32":
            home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            home = Path.home() / "Library" / "Caches"
        else:
            home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = home / "rrn" / "numba"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if hasattr(os, "getuid"):
            status = folder.stat()
            if status.st_uid != os.getuid() or status.st_mode & 0o022:
                return None
    except (OSError, RuntimeError):
        return None
    return folder


def _make_function_cache() -> Any:
    """A class of caches for our functions alone, so that ``numba.config`` keeps its values. None: numba's own cache."""
    try:
        from numba.core import caching

        class Locator(caching.UserProvidedCacheLocator):
            def __init__(self, function: Any, path: str) -> None:
                self._py_file, self._lineno = path, function.__code__.co_firstlineno
                self._cache_path = str(Path(str(_FOLDER)) / self.get_suitable_cache_subpath(path))

            @classmethod
            def from_function(cls, function: Any, path: str) -> Any:
                if _FOLDER is None:
                    return None
                return super(caching.UserProvidedCacheLocator, cls).from_function(function, path)

        class Implementation(caching.CompileResultCacheImpl):
            _locator_classes = [caching.UserProvidedCacheLocator, Locator, *caching.CacheImpl._locator_classes]  # noqa: RUF012

        class FunctionCache(caching.FunctionCache):
            _impl_class = Implementation

            def load_overload(self, signature: Any, target: Any) -> Any:
                try:
                    return super().load_overload(signature, target)
                except Exception:  # pickle may raise anything on a damaged file
                    self.discard()
                    return None

            def save_overload(self, signature: Any, data: Any) -> None:
                try:
                    super().save_overload(signature, data)
                except Exception:
                    self.discard()

            def discard(self) -> None:
                try:
                    self.flush()
                except OSError:
                    return

    except (ImportError, AttributeError):
        return None
    return FunctionCache


_FOLDER = _cache_folder() if COMPILED else None
_FunctionCache: Any = _make_function_cache() if COMPILED else None


# --- torch ---

MODULE_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""Attributes of a torch module that hold its hooks. A module without one of them counts as hooked and runs plain."""
VERSION = "_version"
"""Attribute of a torch tensor that counts its in-place changes."""


class TorchAPI(NamedTuple):
    """Private functions of torch, or their substitutes. A missing probe answers True: the caller then takes the plain
    path, which is exact."""

    needs_plain: Callable[[], bool]
    """Whether compiled code must not run. Hand-written derivatives support neither a transform of torch.func nor
    forward mode; compiled code would bypass a ``TorchDispatchMode`` and hooks for all modules."""
    saved_tensor_hooks: Callable[[bool], Any]
    """The active saved-tensor hooks, such as those of ``torch.utils.checkpoint``. Argument: False. Since torch 2.8."""
    lerp_all: Callable[[Any, Any, float], Any]
    """Move each tensor of a list towards its target by a share of the difference, in place."""
    openmp_parallel: Any
    """``GOMP_parallel`` of the OpenMP library that torch computes with on Linux, or None."""
    after_backward: Callable[[Callable[[], None]], None] | None
    """Called during a backward pass: torch calls the argument at its end, or drops it if the pass fails. Or None."""


@cache
def torch_api() -> TorchAPI:
    import torch

    autograd = getattr(torch._C, "_autograd", None)
    try:
        parallel = ctypes.CDLL("libgomp.so.1", mode=os.RTLD_NOLOAD).GOMP_parallel  # the one that torch has loaded
    except (OSError, AttributeError):
        parallel = None
    transforms_active = getattr(torch._C, "_are_functorch_transforms_active", _unknown)
    dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", _unknown)

    def needs_plain() -> bool:
        forward_mode = getattr(torch.autograd.forward_ad, "_current_level", 0) >= 0
        return forward_mode or transforms_active() or dispatch_modes() > 0 or _any_global_hooks()

    return TorchAPI(
        needs_plain,
        getattr(autograd, "_top_saved_tensors_default_hooks", _unknown),
        getattr(torch, "_foreach_lerp_", _lerp_each),
        parallel,
        getattr(getattr(torch.autograd.Variable, "_execution_engine", None), "queue_callback", None),
    )


def _unknown(*_: Any) -> bool:
    return True


def _any_global_hooks() -> bool:
    from torch.nn.modules import module

    return any(getattr(module, f"_global{name}", True) for name in MODULE_HOOKS)


def has_hooks(tensor: Any) -> bool:
    """Whether a tensor has gradient hooks; True where torch does not tell."""
    return bool(getattr(tensor, "_backward_hooks", True))


def _lerp_each(tensors: Any, targets: Any, weight: float) -> None:
    for tensor, target in zip(tensors, targets, strict=True):
        tensor.lerp_(target, weight)


def run_on_openmp_threads(work: Callable[[], None], count: int) -> None:
    """Call ``work`` once on each of ``count`` threads of torch, and wait. ``work`` must not raise.

    Other threads would compete with torch's, which stay awake for a while after each operation. The calling thread is
    one of them. ctypes drops an exception that a signal raises in it just before ``work``; it is raised again here.
    """
    ended: set[int] = set()

    def call(_: Any) -> None:
        work()
        ended.add(threading.get_ident())

    torch_api().openmp_parallel(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(call), None, count, 0)
    if threading.get_ident() not in ended:
        raise KeyboardInterrupt


# --- the C library ---

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in glibc's malloc.h
_LARGE, _LARGEST_OLD = 1 << 30, 32 << 20
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of renameat2 on Linux; RENAME_SWAP of macOS is 2 as well


def keep_freed_memory() -> None:
    """Let glibc reuse large blocks of memory, for the whole process: for commands, never for the library.

    By default the system zeroes the memory of each large tensor page by page, which costs more than the arithmetic.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    if not set_option(_MMAP_THRESHOLD, _LARGE):
        set_option(_MMAP_THRESHOLD, _LARGEST_OLD)
    set_option(_TRIM_THRESHOLD, _LARGE)


def exchange_names(one: Path, other: Path) -> bool:
    """Exchange the names of two files or folders in one move. False if the system cannot."""
    names = os.fsencode(one), os.fsencode(other)
    try:
        system = ctypes.CDLL(None)
        if sys.platform == "darwin":
            return bool(system.renamex_np(*names, _RENAME_EXCHANGE) == 0)
        return bool(system.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)
    except (AttributeError, OSError, TypeError):
        return False


# --- lightning and uvicorn ---


def stop_lightning_observer() -> None:
    """Stop lightning's thread that kills this process, without a message, when a process that it started has ended.

    Our own heartbeat reports the lost process. Without this API, lightning's thread may end the run first.
    """
    for thread in threading.enumerate():
        if thread.name == "child-process-observer" and hasattr(thread, "_run"):
            thread._run = lambda: True


def uvicorn_protocol() -> Any:
    """uvicorn's HTTP protocol class, for subclasses. None: connections have uvicorn's own limits only."""
    try:
        from uvicorn.protocols.http.h11_impl import H11Protocol
    except ImportError:
        return None
    return H11Protocol
