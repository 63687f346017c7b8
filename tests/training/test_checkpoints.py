import os
from pathlib import Path

import pytest
import torch

from rrn.errors import InputError
from rrn.training.checkpoints import MOST, list_checkpoints, load_checkpoint, save_checkpoint


def save(folder: Path, update: int) -> Path:
    return save_checkpoint(folder, update, {"w": torch.full((3,), float(update))}, {"update": update})


def test_round_trip_keeps_bits_types_and_facts(tmp_path: Path) -> None:
    tensors = {
        "w": torch.randn(3, 4),
        "d": torch.randn(2, dtype=torch.float64),
        "random": torch.get_rng_state(),
        "step": torch.tensor(7.0),
        "turned": torch.randn(3, 4).T,
    }
    facts = {"update": 7, "best": {"score": 0.1 + 0.2}, "name": "ä", "nothing": None}
    save_checkpoint(tmp_path, 7, tensors, facts)
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded[1] == facts
    assert set(loaded[0]) == set(tensors)
    assert all(torch.equal(loaded[0][name], tensor) for name, tensor in tensors.items())
    assert all(loaded[0][name].dtype == tensor.dtype for name, tensor in tensors.items())


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for update in (1, 2, 30, 200):
        save(tmp_path, update)
    assert len(list_checkpoints(tmp_path)) == MOST
    assert ["000000030" in list_checkpoints(tmp_path)[0].name, "000000200" in list_checkpoints(tmp_path)[1].name]
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded[1]["update"] == 200


def spoil(path: Path, damage: str) -> None:
    whole = path.read_bytes()
    path.unlink()
    if damage == "a folder":
        path.mkdir()
    elif damage == "a dangling link":
        path.symlink_to("nowhere")
    elif damage == "not readable":
        path.write_bytes(whole)
        path.chmod(0)
    else:
        flipped = whole[:-1] + bytes([whole[-1] ^ 4])
        path.write_bytes({"truncated": whole[:-9], "empty": b"", "one bit": flipped}[damage])


DAMAGES = ["truncated", "empty", "one bit", "a folder", "a dangling link", "not readable"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_set_aside_for_the_one_before_it(tmp_path: Path, damage: str) -> None:
    if damage == "not readable" and os.geteuid() == 0:
        pytest.skip("root reads everything")
    save(tmp_path, 1)
    newest = save(tmp_path, 2)
    spoil(newest, damage)
    with pytest.warns(UserWarning, match=r"checkpoint-000000002-.* is damaged .*; trying the one before it"):
        loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded[1]["update"] == 1
    assert loaded[0]["w"].tolist() == [1, 1, 1]
    assert os.path.lexists(f"{newest}.damaged")
    again = save(tmp_path, 2)
    assert list_checkpoints(tmp_path)[-1] == again


@pytest.mark.filterwarnings("ignore:checkpoint-")
def test_where_none_is_whole_nothing_is_touched_and_the_run_is_refused(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) is None
    for update in (1, 2):
        save(tmp_path, update).write_bytes(b"broken")
    before = sorted(tmp_path.iterdir())
    for _ in range(2):
        with pytest.raises(InputError, match=r"all its checkpoints are damaged \(checkpoint-000000002-.*another fold"):
            load_checkpoint(tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_what_was_just_written_is_never_removed(tmp_path: Path) -> None:
    """Nor does a file of a later update, which cannot be of this run's past, cost one of its own."""
    for update in (8, 9):
        save(tmp_path, update)
    for update in (1, 2, 3):
        newest = save(tmp_path, update)
        assert newest.exists()
    assert [int(path.name.split("-")[1]) for path in list_checkpoints(tmp_path)] == [2, 3, 8, 9]


def test_a_second_checkpoint_of_an_update_replaces_the_first(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    path = save_checkpoint(tmp_path, 2, {"w": torch.zeros(1)}, {"update": 2})
    assert [checkpoint.name[:20] for checkpoint in list_checkpoints(tmp_path)] == [
        "checkpoint-000000001",
        "checkpoint-000000002",
    ]
    assert path.exists()


def test_names_are_sorted_by_number(tmp_path: Path) -> None:
    for update in (10**9, 999_999_999):
        save(tmp_path, update)
    assert "1000000000" in list_checkpoints(tmp_path)[-1].name


def test_what_is_not_ours_is_no_checkpoint(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    for name in (f".{path.name}.abc", "checkpoint-x.safetensors", f"{path.name}.damaged"):
        (tmp_path / name).write_bytes(b"half")
    assert list_checkpoints(tmp_path) == [path]
