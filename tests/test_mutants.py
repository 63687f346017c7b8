"""Damaged files of every kind: refused in a line, or read, and nothing else. Many more in benchmarks.faults."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.mutants import LOADERS, attack, bomb

from rrn.errors import InputError
from rrn.io import files as storage
from rrn.io.datasets import read_dataset, write_dataset
from rrn.tasks.babi.reader import MEMBER_BYTES, read_babi
from rrn.tasks.sudoku.files import read_puzzles

MUTANTS = 60


@pytest.mark.parametrize("name", LOADERS)
def test_no_mutant_raises_anything_but_our_own_error(name: str, tmp_path: Path) -> None:
    assert attack(name, tmp_path, MUTANTS) == []


def test_a_small_gzip_of_much_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bomb.csv.gz").write_bytes(bomb(16 << 20, b"\0"))
    with pytest.raises(InputError, match=r"line 1 exceeds the size limit"):
        read_puzzles(tmp_path / "bomb.csv.gz")
    monkeypatch.setattr(storage, "SMALL_FILE", 1 << 20)
    (tmp_path / "bomb.csv.gz").write_bytes(bomb(16 << 20, b"#\n"))
    with pytest.raises(InputError, match=r"line [\d,]* exceeds the size limit"):
        read_puzzles(tmp_path / "bomb.csv.gz")


class Zeros(io.RawIOBase):
    """Many, without the memory."""

    def __init__(self, size: int) -> None:
        self.left = size

    def read(self, size: int = -1) -> bytes:
        taken = min(self.left, size if size >= 0 else self.left)
        self.left -= taken
        return bytes(taken)


def archive(path: Path, add: Callable[[tarfile.TarFile], None], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as file:
        add(file)
    return path


def member(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    return info


def test_an_archive_with_a_member_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    size = MEMBER_BYTES + 1
    path = archive(tmp_path / "large.tar.gz", lambda file: file.addfile(member("en/qa1_test.txt", size), Zeros(size)))
    with pytest.raises(InputError, match=r"'en/qa1_test\.txt' exceeds the size limits of a bAbI archive"):
        read_babi(path, "test")


def test_an_archive_that_is_too_large_as_a_whole_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrn.tasks.babi.reader.ARCHIVE_BYTES", 1 << 20)
    path = archive(
        tmp_path / "many.tar.gz",
        lambda file: [file.addfile(member(f"{number}", 300_000), Zeros(300_000)) for number in range(9)] and None,
    )
    with pytest.raises(InputError, match="exceeds the size limits of a bAbI archive"):
        read_babi(path, "test")


ARRAYS = {"a": np.arange(6).reshape(2, 3)}


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about["arrays"]["a"].pop("sha256"),
        lambda about: about["arrays"]["a"].pop("shape"),
        lambda about: about["arrays"].update({"../outside": about["arrays"]["a"]}),
        lambda about: about["arrays"].update({"/etc/passwd": about["arrays"]["a"]}),
        lambda about: about["arrays"].update({"": about["arrays"]["a"]}),
        lambda about: about["arrays"].update({"x" * 5000: about["arrays"]["a"]}),
        lambda about: about["arrays"]["a"].update(shape=[10**12, 10**12]),
        lambda about: about["arrays"]["a"].update(shape="many"),
        lambda about: about["arrays"]["a"].update(dtype="object"),
        lambda about: about.update(arrays=[1]),
    ],
)
def test_a_sidecar_is_not_believed(change: Callable[[dict], object], tmp_path: Path) -> None:
    write_dataset(tmp_path / "set", ARRAYS, {})
    np.save(tmp_path / "outside.npy", ARRAYS["a"])
    sidecar = tmp_path / "set" / "dataset.json"
    about = json.loads(sidecar.read_text())
    change(about)
    sidecar.write_text(json.dumps(about))
    with pytest.raises(InputError) as refused:
        read_dataset(tmp_path / "set")
    assert "write the data set again" in str(refused.value)
    assert len(str(refused.value)) < 600


def npy(shape: tuple[int, ...], numbers: bytes, dtype: str = "<i8") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue() + numbers


@pytest.mark.parametrize("kind", ["npz", "zip", "huge", "objects", "short", "long", "gzip", "columns"])
def test_what_is_no_array_is_refused_before_it_is_read(kind: str, tmp_path: Path) -> None:
    write_dataset(tmp_path, ARRAYS, {})
    path, buffer = tmp_path / "a.npy", io.BytesIO()
    np.savez(buffer, a=ARRAYS["a"])
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("a", "b")
    path.write_bytes(
        {
            "npz": buffer.getvalue(),
            "zip": zipped.getvalue(),
            "huge": npy((10**12, 10**6), b""),
            "objects": npy((2, 3), b"\x00" * 48, "|O"),
            "short": npy((2, 3), b"\x00" * 47),
            "long": npy((2, 3), b"\x00" * 49),
            "gzip": gzip.compress(path.read_bytes()),
            "columns": path.read_bytes().replace(b"'fortran_order': False", b"'fortran_order': True "),
        }[kind]
    )
    with pytest.raises(InputError, match=r"a\.npy: cannot be read; write the data set again"):
        read_dataset(tmp_path)


@pytest.mark.parametrize("line", ["1 " + "x" * 10**6 + "?", "9" * 10**5 + " Mary left.", "y" * 10**6])
def test_quotes_are_short(line: str, tmp_path: Path) -> None:
    (tmp_path / "qa1_test.txt").write_text(line + "\n")
    with pytest.raises(InputError) as refused:
        read_babi(tmp_path, "test")
    assert len(str(refused.value)) < 500
    (tmp_path / "puzzles").write_text(line)
    with pytest.raises(InputError) as refused:
        read_puzzles(tmp_path / "puzzles")
    assert len(str(refused.value)) < 500
