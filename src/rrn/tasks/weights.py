"""Loading weights: shipped ones by name, those in a folder, and those on the Hugging Face hub."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from rrn.errors import InputError, as_input_error, quote, shorten
from rrn.io.pretrained import CONFIG, build_with_weights, find_weights, load_network, read_json_config
from rrn.network import RRN
from rrn.tasks import TASKS, build_network, folder
from rrn.training.presets import Preset, checked, stage_presets, with_new_names

if TYPE_CHECKING:

    class PretrainedNetwork(nn.Module):
        """The attributes that `from_pretrained` sets on a network."""

        preset: Any
        config: dict[str, Any]


def from_pretrained(
    name: str | Path, *, task: str | None = None, revision: str | None = None, **parts: nn.Module
) -> "PretrainedNetwork":
    """Load a network with its weights, in evaluation mode.

    Args:
        name: the name of shipped weights, such as "sudoku"; else a folder; or ``hf://owner/name``, a repository on the
            Hugging Face hub (needs the extra ``hub``).
        task: refuse weights of another task.
        revision: a commit of the hub repository.
        parts: the custom parts of an `RRN`, as passed to its constructor; the file holds their weights.

    Returns:
        The network. Its attribute ``config`` is the content of config.json; ``preset`` holds the settings it was
        trained with, or None for a network saved by `RRN.save_pretrained`.
    """
    source = find_weights(name, revision)
    config, preset = read_json_config(source), None
    if "task" in config:
        preset, config = read_config(source)
    if task is not None and (preset is None or preset.task != task):
        found = "without a preset" if preset is None else f"for the task {preset.task!r}"
        raise InputError(f"weights {quote(str(name))}: {found}, not for {task!r}")
    network: Any
    if preset is None:
        network = load_network(RRN, source, parts)
    elif parts:
        raise InputError(f"{next(iter(parts))}: only for an RRN with custom parts; {quote(str(name))} has a preset")
    else:
        network = build_with_weights(lambda: build_network(preset), source)
    network.preset, network.config = preset, config
    return network


def read_config(name: str | Path) -> tuple[Preset, dict[str, Any]]:
    """The preset of saved weights and the content of their ``config.json``."""
    source = find_weights(name)
    path, config = source / CONFIG, read_json_config(source)
    with as_input_error(f"{path}: not the configuration of saved weights"):
        task, values = str(config["task"]), with_new_names(dict(config["preset"]))
        config |= {"parameters": int(config["parameters"]), "trained": dict(config["trained"])}
    if task not in TASKS:
        raise InputError(f"{path}: for the task {quote(task)}, which this version does not have ({', '.join(TASKS)})")
    classes: tuple[type[Preset], ...] = folder(task, "presets").KINDS
    matching = (cls for cls in classes if len(classes) == 1 or cls.__dict__["network"] == values.get("network"))
    cls = next(matching, None)
    if cls is None:
        network = shorten(values.get("network"))
        raise InputError(f"{path}: of a network {network!r}, which this version does not have")
    known = {field.name for other in classes for field in dataclasses.fields(other)}  # once one class for a task
    unknown = sorted(set(values) - known)
    if unknown:
        listed = shorten(", ".join(unknown))
        raise InputError(f"{path}: unknown settings {listed}; the weights are of another version of rrn")
    preset = cls(**checked(cls, values, lambda name: f"{path}: {name}"))
    with as_input_error(str(path)):
        stage_presets(preset)  # checks the settings of stages
    return preset, config


def average(names: Sequence[str | Path]) -> "PretrainedNetwork":
    """A network with the mean of several weights of the same shapes; preset and config are those of the first.

    If the trainings began with the same weights, the mean is often better than each of them.
    """
    if len(names) < 2:
        raise InputError(f"weights: expected two or more to average, got {len(names)}")
    network = from_pretrained(names[0])
    if network.preset is None:
        raise InputError(f"weights {str(names[0])!r}: expected those of a preset, got an RRN without one")
    weights = [network.state_dict()]
    shapes = {key: tensor.shape for key, tensor in weights[0].items()}
    for name in names[1:]:
        other = from_pretrained(name, task=network.preset.task).state_dict()
        if {key: tensor.shape for key, tensor in other.items()} != shapes:
            raise InputError(f"weights {str(name)!r}: not the shapes of {str(names[0])!r}, so there is no mean")
        weights.append(other)
    floats = [key for key, tensor in weights[0].items() if tensor.is_floating_point()]  # counters stay the first's
    means = {key: torch.stack([tensors[key] for tensors in weights]).mean(0) for key in floats}
    network.load_state_dict(weights[0] | means)
    return network
