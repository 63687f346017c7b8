import json
from pathlib import Path

import numpy as np
import pytest

from rrn import storage
from rrn.errors import InputError
from rrn.storage import read_dataset, write_atomically, write_dataset, write_json

ARRAYS = {"a": np.arange(6).reshape(2, 3), "b": np.array([True, False])}


def test_round_trip(tmp_path: Path) -> None:
    write_dataset(tmp_path / "set", ARRAYS, {"seed": 3})
    arrays, about = read_dataset(tmp_path / "set")
    assert about["seed"] == 3
    assert about["arrays"]["a"]["shape"] == [2, 3]
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "file"
    write_atomically(path, "old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(storage.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["file"]


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"old": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "x.json", {"new": object()})
    assert json.loads((tmp_path / "x.json").read_text()) == {"old": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_an_unfinished_data_set_is_refused_and_leaves_no_scraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(tmp_path, ARRAYS, {})
    real = np.save

    def fail_at_the_second(file: object, array: np.ndarray, **options: bool) -> None:
        if array.dtype == bool:
            file.write(b"half")  # type: ignore[attr-defined]
            raise OSError("disk full")
        real(file, array, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(storage.np, "save", fail_at_the_second)
    with pytest.raises(OSError, match="disk full"):
        write_dataset(tmp_path, ARRAYS, {})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npy", "b.npy"]
    with pytest.raises(
        InputError, match=r"no dataset.json in it, so not a finished data set; write one with 'rrn data'"
    ):
        read_dataset(tmp_path)


def test_changed_truncated_and_missing_arrays_are_noticed(tmp_path: Path) -> None:
    write_dataset(tmp_path, ARRAYS, {})
    path = tmp_path / "a.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match=r"a\.npy: does not match its hash in dataset\.json"):
        read_dataset(tmp_path)
    path.write_bytes(whole[:-5])
    with pytest.raises(InputError, match=r"a\.npy: cannot be read"):
        read_dataset(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=r"a\.npy: cannot be read"):
        read_dataset(tmp_path)
    (tmp_path / "dataset.json").write_text('{"arrays"')
    with pytest.raises(InputError, match=r"dataset\.json: damaged"):
        read_dataset(tmp_path)
