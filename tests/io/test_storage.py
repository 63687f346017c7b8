import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rrn._compat import exchange_names
from rrn.errors import InputError
from rrn.io import files as storage
from rrn.io.datasets import check_table, read_dataset, split_dataset, write_dataset, write_table
from rrn.io.files import locked, replacing_folder, write_atomically, write_json

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

    monkeypatch.setattr(np, "save", fail_at_the_second)
    with pytest.raises(OSError, match="disk full"):
        write_dataset(tmp_path, ARRAYS, {})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npy", "b.npy"]
    with pytest.raises(
        InputError, match=r"no dataset.json in this folder, so it is not a finished data set; write one with 'rrn data'"
    ):
        read_dataset(tmp_path)


def test_renames_are_on_the_disk_before_a_write_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, real = [], os.fsync

    def note(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(storage.os, "fsync", note)
    write_atomically(tmp_path / "file", "x")
    assert synced[-1] == str(tmp_path)
    assert len(synced) == 2


@pytest.mark.parametrize("at_once", [True, False])
def test_a_folder_is_replaced_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    if not at_once:
        monkeypatch.setattr("rrn._compat.exchange_names", lambda *_: False)
    best = tmp_path / "best"
    for content in ("old", "new"):
        with replacing_folder(best) as folder:
            (folder / content).write_text(content)
            assert best.exists() == (content == "new")
        assert [path.name for path in best.iterdir()] == [content]
        assert [path.name for path in tmp_path.iterdir()] == ["best"]
    with pytest.raises(FileNotFoundError), replacing_folder(best) as folder:
        (folder / "not there" / "half").write_text("")
    assert [path.name for path in best.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


def test_the_system_swaps_two_folders_in_one_move(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("renameat2 is Linux's")
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchange_names(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this file system has no exchange")
    assert (tmp_path / "one" / "other").exists()


def test_what_a_kill_left_is_swept_under_the_lock(tmp_path: Path) -> None:
    for name in (".rrn-abc.part", "kept.part"):
        (tmp_path / name).write_text("half")
    (tmp_path / ".rrn-def.part" / "deep").mkdir(parents=True)
    (tmp_path / "best.before").mkdir()
    (tmp_path / "best.before" / "weights").touch()
    with locked(tmp_path):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["best", "kept.part", "lock"]
        assert (tmp_path / "best" / "weights").exists()
    (tmp_path / "best.before").mkdir()
    with locked(tmp_path):
        assert not (tmp_path / "best.before").exists()
        assert (tmp_path / "best" / "weights").exists()


def test_a_folder_is_for_one_process_at_a_time(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from rrn.io.files import locked\n"
        "with locked(Path(sys.argv[1])): print('mine', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mine\n"
        with pytest.raises(InputError, match=f"in use by process {holder.pid} on .*; wait for it to end"):
            locked(tmp_path).__enter__()
        holder.kill()  # the lock ends with it
        holder.wait()
    with locked(tmp_path):
        pass


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


def test_parts_are_the_first_rows_the_next_and_the_rest() -> None:
    rows, relatives = split_dataset(np.arange(60), "60 things", test=10, valid=5)
    assert rows["test"].tolist() == list(range(10))
    assert rows["valid"].tolist() == list(range(10, 15))
    assert rows["train"].tolist() == list(range(15, 60))
    assert len(relatives) == 0


def test_a_seed_shuffles_before_the_split() -> None:
    rows, again, other = (split_dataset(np.arange(60), "", test=10, valid=5, seed=seed)[0] for seed in (1, 1, 2))
    assert rows["test"].tolist() == again["test"].tolist() != other["test"].tolist()
    assert sorted(np.concatenate(list(rows.values()))) == list(range(60))


def test_too_few_are_refused() -> None:
    with pytest.raises(
        InputError, match="3 things without related ones are too few for 1 for testing, 1 for validation"
    ):
        split_dataset(np.zeros(3), "3 things", test=1, valid=1)


def test_a_table_and_what_made_it(tmp_path: Path) -> None:
    about = write_table(tmp_path / "some.csv", {"a": [1, 2], "b": "xy"}, {"seed": 3})
    assert (tmp_path / "some.csv").read_text() == "a,b\n1,x\n2,y\n"
    assert about["seed"] == 3
    assert (tmp_path / "some.json").exists()
    with pytest.raises(InputError, match="ends in"):
        check_table(tmp_path / "some.txt")


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "file").write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "file", "half")
    with pytest.raises(OSError, match="No space left"), replacing_folder(tmp_path / "folder") as folder:
        write_atomically(folder / "half", "half")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "before"
