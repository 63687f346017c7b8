"""Compiled code survives a place that keeps no cache, a damaged cache, and having no numba at all."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import rrn._compat


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "counting.py"
    path.write_text(
        "from rrn._compat import compiled\n\n\n@compiled\ndef count_bits(bits):\n    count = 0\n    while bits:\n"
        "        bits &= bits - 1\n        count += 1\n    return count\n"
    )
    return path


def test_a_place_that_cannot_keep_the_cache_does_not_matter(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caching = pytest.importorskip("numba.core.caching")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert load("uncached", source).count_bits(0b1011) == 3


def test_damaged_cache_files_are_made_again(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    assert load("kept", source).count_bits(0b1011) == 3
    files = [path for path in (tmp_path / "cache").rglob("*.nb*") if path.is_file()]
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    for damaged in files:
        damaged.write_bytes(b"not what it was")
    assert load("kept", source).count_bits(0b10111) == 4
    again = load("kept", source)
    assert again.count_bits(0b1) == 1
    assert sum(again.count_bits.stats.cache_hits.values()) == 1


def test_without_numba_the_function_is_itself(source: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numba", None)
        plain = load("plain_compiled", Path(rrn._compat.__file__))
        patch.setitem(sys.modules, "rrn._compat", plain)
        module = load("plain_counting", source)
    assert not plain.COMPILED
    assert type(module.count_bits) is type(load)
    assert module.count_bits(0b1011) == 3
