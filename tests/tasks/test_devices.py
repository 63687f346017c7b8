"""Every preset is trained and validated on whatever device it is on, and the default device does not matter."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.elsewhere import ProcessElsewhere, elsewhere
from torch.utils._pytree import tree_leaves

from rrn import tasks
from rrn.inference.devices import move, place
from rrn.nn.readouts import Outputs, answer_of
from rrn.nn.updates import State
from rrn.tasks.ages import experiment as ages
from rrn.tasks.babi import evaluate as babi_evaluate
from rrn.tasks.babi import experiment as babi
from rrn.tasks.photo import experiment as photo
from rrn.tasks.pretty_clevr import experiment as pretty_clevr
from rrn.tasks.sudoku import experiment as sudoku
from rrn.tasks.visual_sudoku import experiment as visual_sudoku
from rrn.training.experiment import Experiment
from rrn.training.processes import Processes
from rrn.training.trainer import make_loop

NAMES = list(tasks.presets())
NETWORKS = list(
    {type(tasks.build_network(preset)): name for name, preset in reversed(tasks.presets().items())}.values()
)
"""A preset of each network: the first."""
SMALL = {
    "start_from": None,
    "filters": 4,
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
    "few_givens_pool": 0,
}


@pytest.fixture(autouse=True)
def _little_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(babi, "POOL", 5)
    monkeypatch.setattr(babi, "VALIDATION", 2)
    monkeypatch.setattr(babi_evaluate, "QUESTIONS", 2)
    monkeypatch.setattr(ages, "VALIDATION", 20)
    monkeypatch.setattr(pretty_clevr, "VALIDATION", 20)
    for module in (photo, sudoku, visual_sudoku):
        monkeypatch.setattr(module, "VALIDATION", 4)


def small(name: str) -> Experiment[Any]:
    """With little to compute; a place in a batch is left after every update, and noise comes on the way."""
    preset = tasks.find_preset(name)
    known = {field.name for field in dataclasses.fields(preset)}
    changes: dict[str, Any] = {key: value for key, value in SMALL.items() if key in known}
    if getattr(preset, "tied_digit_units", 0):
        changes["tied_digit_units"] = 1
    if getattr(preset, "slot_steps", None):
        changes |= {"slot_steps": (3, 3), "segment": 3, "noise": 0.1, "stay": 0.3}
    return tasks.make_experiment(dataclasses.replace(preset, steps=min(3, preset.steps), **changes))


def numbers(name: str, processes: Processes | None = None) -> list[float]:
    """The losses of two updates, and what a validation and an evaluation find after them."""
    experiment = small(name)
    with torch.device("cpu"):  # where every network begins
        run = make_loop(experiment, Path("never written"), processes or Processes())
    losses = [run.one_update() for _ in range(2)]
    if experiment.preset.task == "photo":  # its evaluation measures seconds, too
        return [*losses, *experiment.validate(run.network.eval()).values()]
    network, module = run.network.eval(), tasks.folder(experiment.preset.task, "evaluate")
    evaluated = module.evaluate(
        place(network, processes.device) if processes else network,
        experiment.preset,
        module.Options(limit=8, steps="1,3"),
        lambda done, of: None,
    )
    return [*losses, *experiment.validate(network).values(), *(x for x in tree_leaves(evaluated) if type(x) is float)]


@pytest.mark.parametrize("name", NAMES)
def test_the_default_device_does_not_matter(name: str) -> None:
    """Code that forgets ``device=`` gets a tensor without numbers, and the first operation that mixes it fails."""
    with torch.device("meta"):
        poisoned = numbers(name)
    np.testing.assert_array_equal(poisoned, numbers(name))


@pytest.mark.parametrize("name", NETWORKS)
def test_training_and_validating_elsewhere(name: str) -> None:
    with elsewhere():
        there = numbers(name, ProcessElsewhere())
    here = numbers(name)
    np.testing.assert_allclose(there[:2], here[:2], rtol=1e-4)  # the losses
    # The rest are shares: a network that has hardly begun to tell digits apart decides a few cells by a rounding.
    np.testing.assert_allclose(
        there[2:], here[2:], rtol=1e-4, atol=0.05 if name in ("visual-sudoku", "sudoku-paper-shallow") else 0.01
    )


BY_NUMBERS = ("sudoku", "sudoku-rn-graph", "visual-sudoku")
FROM_SHAPES = [name for name in NETWORKS if tasks.find_preset(name).task != "babi" and name not in BY_NUMBERS]
"""All but those whose graph or input is in the numbers: open candidates, sentences, cells with ink; or that count the
graphs of a batch."""


@pytest.mark.parametrize("name", FROM_SHAPES)
def test_a_network_on_the_meta_device_gives_shapes(name: str) -> None:
    experiment = small(name)
    network, batch = tasks.build_network(experiment.preset), experiment.sample(np.random.default_rng(0))
    with torch.no_grad():
        here = network(batch, steps=2)
        there = network.to("meta")(move(batch, torch.device("meta")), steps=2)
    shapes = [[part.shape for part in flat(found)] for found in (here, there)]
    assert shapes[0] == shapes[1]
    assert {part.device.type for part in flat(there)} == {"meta"}


def flat(found: tuple[Any, State]) -> list[torch.Tensor]:
    outputs, state = found
    extras = list(outputs.extras.values()) if isinstance(outputs, Outputs) else []
    return [answer_of(outputs), *extras, *state.parts()]
