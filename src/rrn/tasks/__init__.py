"""The experiments. Each is one package with the same modules:

data.py  presets.py  model.py  experiment.py  predict.py  evaluate.py  baselines/
"""

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rrn.errors import InputError
from rrn.training.presets import Preset

if TYPE_CHECKING:
    from torch import nn

    from rrn.training.experiment import Experiment

TASKS = ("sudoku", "babi", "pretty-clevr", "ages", "visual-sudoku", "photo")


def folder(task: str, module: str) -> Any:
    """A module of a task, imported on demand."""
    if task not in TASKS:
        raise InputError(f"no task {task!r}; there are {', '.join(TASKS)}")
    return import_module(f"rrn.tasks.{task.replace('-', '_')}.{module}")


def presets() -> dict[str, Preset]:
    """All presets by name."""
    return {preset.name: preset for task in TASKS for preset in folder(task, "presets").PRESETS}


def find_preset(name: str) -> Preset:
    known = presets()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise InputError(f"no preset {name!r}; {hint}")
    return known[name]


def build_network(preset: Preset) -> "nn.Module":
    return folder(preset.task, "model").build(preset)


def make_experiment(preset: Preset, whole: Preset | None = None) -> "Experiment[Any]":
    """The experiment of a preset, or of a stage of the preset ``whole``."""
    experiment: Experiment[Any] = folder(preset.task, "experiment").make(preset, whole)
    experiment.named_preset = presets().get(preset.name)
    return experiment
