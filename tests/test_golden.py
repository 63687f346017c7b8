"""Shipped weights say what they said when they were shipped."""

import shutil
from pathlib import Path

import pytest
import safetensors.torch

from rrn.io.files import write_json
from rrn.io.pretrained import WEIGHTS, shipped
from tests import golden


def test_all_shipped_weights_have_golden_outputs_and_nothing_else_has() -> None:
    written = sorted(path.stem for path in golden.FOLDER.glob("*.json"))
    assert written == shipped(), "run: python -m tests.golden"


@pytest.mark.parametrize("name", shipped())
def test_golden_outputs(name: str) -> None:
    differences = golden.differences(name, golden.FOLDER / f"{name}.json")
    assert differences
    assert all(value <= golden.TOLERANCE for value in differences.values()), differences


def test_a_small_change_of_one_weight_is_noticed(tiny_ages_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_ages_run / "best", tmp_path / "weights")
    expected = tmp_path / "golden.json"
    write_json(expected, golden.outputs(tmp_path / "weights"))
    assert max(golden.differences(tmp_path / "weights", expected).values()) == 0
    path = tmp_path / "weights" / WEIGHTS
    tensors = safetensors.torch.load(path.read_bytes())
    tensors["rrn.readout.scale"] *= 1.001
    path.write_bytes(safetensors.torch.save(tensors))
    assert max(golden.differences(tmp_path / "weights", expected).values()) > golden.TOLERANCE
