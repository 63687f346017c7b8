"""No part of a task makes a tensor on the default device: training and evaluation keep the device of their input."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rrn import tasks
from rrn.tasks.ages import experiment as ages
from rrn.tasks.babi import experiment as babi
from rrn.tasks.pretty_clevr import experiment as pretty_clevr
from rrn.training.experiment import Experiment
from rrn.training.processes import Processes
from rrn.training.trainer import _Run

NAMES = [name for name, preset in tasks.presets().items() if preset.task in ("ages", "babi", "pretty-clevr")]
SMALL = {
    "batch_size": 4,
    "hidden": 12,
    "message_width": 4,
    "update_width": 8,
    "word_width": 8,
    "heads": 2,
    "head_width": 4,
    "roles": 3,
    "slots": 3,
    "scenes": 20,
}


@pytest.fixture(autouse=True)
def _little_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(babi, "POOL", 5)
    monkeypatch.setattr(babi, "VALIDATION", 2)
    monkeypatch.setattr(ages, "VALIDATION", 20)
    monkeypatch.setattr(pretty_clevr, "VALIDATION", 20)


@contextmanager
def poisoned() -> Iterator[None]:
    """Whoever forgets ``device=`` gets a tensor without numbers, and the first operation that mixes it fails."""
    with torch.device("meta"):
        yield


def small(name: str) -> Experiment[Any]:
    preset = tasks.find_preset(name)
    known = {field.name for field in dataclasses.fields(preset)}
    changes = {key: value for key, value in SMALL.items() if key in known}
    return tasks.make_experiment(dataclasses.replace(preset, steps=min(3, preset.steps), **changes))


def numbers(name: str, poison: bool) -> list[float]:
    """The losses of two updates, and what a validation finds after them."""
    experiment = small(name)
    run = _Run(experiment, Path("never written"), Processes(), quiet=True, tensorboard=False)
    with poisoned() if poison else nullcontext():
        losses = [run._one_update()[0] for _ in range(2)]
        figures = experiment.validate(run.network.eval())
    return [*losses, *figures.values()]


@pytest.mark.parametrize("name", NAMES)
def test_training_and_evaluating_keep_the_device_of_their_input(name: str) -> None:
    np.testing.assert_array_equal(numbers(name, poison=True), numbers(name, poison=False))
