import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import rrn._compat
import rrn.tasks.sudoku.exact.integers
from rrn.tasks.sudoku.exact import bitboards, generate, walks


def _load(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def plain_bitboards() -> ModuleType:
    """The modules bitboards and walks (an attribute) as loaded without numba."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numba", None)
        patch.setitem(sys.modules, "rrn._compat", _load("plain_compiled", rrn._compat.__file__))
        patch.setitem(
            sys.modules,
            "rrn.tasks.sudoku.exact.integers",
            _load("plain_integers", rrn.tasks.sudoku.exact.integers.__file__),
        )
        module = _load("plain_bitboards", bitboards.__file__)
        patch.setitem(sys.modules, "rrn.tasks.sudoku.exact.bitboards", module)
        module.walks = _load("plain_walks", walks.__file__)
    assert isinstance(module.integers(1), list)
    return module


@pytest.fixture(scope="session")
def some() -> tuple[np.ndarray, np.ndarray]:
    """60 minimal puzzles and their solutions."""
    return generate(60, np.random.default_rng(5))


@pytest.fixture(scope="session")
def shared_puzzles() -> Path:
    """Where public puzzles lie beside the checkout, on machines that have them."""
    return Path(__file__).parents[4] / "shared" / "data" / "sudoku"
