import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest

from rrn.tasks.sudoku import kernels
from rrn.tasks.sudoku.generator import generate


@pytest.fixture(scope="session")
def plain_kernels() -> ModuleType:
    """The kernels as they load where numba is not installed."""
    present = sys.modules.get("numba")
    sys.modules["numba"] = None  # type: ignore[assignment]
    try:
        spec = importlib.util.spec_from_file_location("plain_kernels", kernels.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        if present is None:
            del sys.modules["numba"]
        else:
            sys.modules["numba"] = present
    assert not module.COMPILED
    return module


@pytest.fixture(scope="session")
def some() -> tuple[np.ndarray, np.ndarray]:
    """60 minimal puzzles and their solutions."""
    return generate(60, np.random.default_rng(5))
