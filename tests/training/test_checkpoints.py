from pathlib import Path

import pytest
import torch

from rrn.training.checkpoints import KEPT, list_checkpoints, load_checkpoint, save_checkpoint


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
    assert len(list_checkpoints(tmp_path)) == KEPT
    assert ["000000030" in list_checkpoints(tmp_path)[0].name, "000000200" in list_checkpoints(tmp_path)[1].name]
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded[1]["update"] == 200


@pytest.mark.parametrize("damage", ["truncated", "empty", "one bit"])
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path: Path, damage: str) -> None:
    save(tmp_path, 1)
    newest = save(tmp_path, 2)
    whole = newest.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 4])
    newest.write_bytes({"truncated": whole[:-9], "empty": b"", "one bit": flipped}[damage])
    with pytest.warns(UserWarning, match=r"checkpoint-000000002-.* is damaged .*; trying the one before it"):
        loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded[1]["update"] == 1
    assert loaded[0]["w"].tolist() == [1, 1, 1]


@pytest.mark.filterwarnings("ignore:checkpoint-")
def test_nothing_whole_is_none(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) is None
    for update in (1, 2):
        save(tmp_path, update).write_bytes(b"broken")
    assert load_checkpoint(tmp_path) is None


def test_half_written_files_are_not_checkpoints(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    (tmp_path / f".{path.name}.abc").write_bytes(b"half")
    assert list_checkpoints(tmp_path) == [path]
