"""Every preset, stopped and continued, ends with the bits of an uninterrupted run."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.runs import train

from rrn import tasks
from rrn.tasks.ages import experiment as ages
from rrn.tasks.babi import experiment as babi
from rrn.tasks.photo import experiment as photo
from rrn.tasks.pretty_clevr import experiment as pretty_clevr
from rrn.tasks.sudoku import experiment as sudoku
from rrn.tasks.visual_sudoku import experiment as visual_sudoku
from rrn.training.checkpoints import load_checkpoint
from rrn.training.experiment import Experiment

UPDATES, CRASH, POOL_UPDATES = 8, 5, 3
SMALL = {
    "start_from": None,
    "filters": 4,
    "batch_size": 4,
    "steps": 4,
    "hidden": 12,
    "message_width": 4,
    "update_width": 8,
    "layer_width": 24,
    "word_width": 8,
    "scenes": 50,
    "few_givens_pool": 16,
    "updates": UPDATES,
    "minutes": None,
    "checkpoint_minutes": 0.0,
    "validate_every": 100,
}


class Crash(Exception):
    pass


@pytest.fixture(autouse=True)
def _little_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(babi, "POOL", 12)
    monkeypatch.setattr(babi, "POOL_UPDATES", POOL_UPDATES)
    for module in (ages, babi, pretty_clevr, sudoku, photo, visual_sudoku):
        monkeypatch.setattr(module, "VALIDATION", 200 if module in (ages, pretty_clevr) else 8)


def small(name: str) -> Experiment[Any]:
    preset = tasks.find_preset(name)
    known = {field.name for field in dataclasses.fields(preset)}
    changes = {key: value for key, value in SMALL.items() if key in known}
    changes["steps"] = min(4, preset.steps)
    if getattr(preset, "tied_digit_units", 0):
        changes["tied_digit_units"] = 1
    return tasks.make_experiment(dataclasses.replace(preset, **changes))


@pytest.mark.parametrize("name", tasks.presets())
def test_a_crash_between_two_pools_changes_no_bit(name: str, tmp_path: Path) -> None:
    """bAbI draws from a new pool every three updates here: the run stops in its second and ends in its third."""
    crashing = small(name)
    observe = crashing.observe

    def crash(measures: dict[str, float]) -> None:
        observe(measures)
        crash.updates += 1  # type: ignore[attr-defined]
        if crash.updates == CRASH:  # type: ignore[attr-defined]
            raise Crash

    crash.updates = 0  # type: ignore[attr-defined]
    crashing.observe = crash  # type: ignore[method-assign]
    with pytest.raises(Crash):
        train(crashing, tmp_path / "resumed", quiet=True)
    assert train(small(name), tmp_path / "resumed", quiet=True).update == UPDATES
    train(small(name), tmp_path / "whole", quiet=True)
    resumed, whole = load_checkpoint(tmp_path / "resumed"), load_checkpoint(tmp_path / "whole")
    assert resumed is not None
    assert whole is not None
    assert resumed[0].keys() == whole[0].keys()
    assert [key for key, tensor in whole[0].items() if not torch.equal(tensor, resumed[0][key])] == []
    assert resumed[1]["position"] == whole[1]["position"]
