"""Weights: a folder with ``config.json``, ``model.safetensors`` and a model card. No pickle anywhere."""

import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
import torch
from torch import Tensor, nn

import rrn
from rrn.errors import InputError, blaming, needs_extra, quote, shorten
from rrn.io.files import read_bytes, write_atomically, write_json
from rrn.network import RRN
from rrn.training.presets import Preset, checked, widest, with_new_names

Network = TypeVar("Network", bound=RRN)
Built = TypeVar("Built", bound=nn.Module)

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
CONFIG_BYTES = 1 << 20
WIDE, MOST_LAYERS = 1024, 1000


def save_pretrained(network: nn.Module, folder: str | Path, preset: Preset, trained: dict[str, Any]) -> None:
    """Write a network of a preset so that `from_pretrained` can read it. ``trained`` says how it came about."""
    folder = Path(folder)
    parameters = sum(p.numel() for p in network.parameters())
    tensors = {name: tensor.detach().contiguous() for name, tensor in network.state_dict().items()}
    config = {
        "rrn": rrn.__version__,
        "task": preset.task,
        "parameters": parameters,
        "trained": trained,
        "preset": settings(preset),
    }
    write_atomically(folder / WEIGHTS, safetensors.torch.save(tensors))
    write_json(folder / CONFIG, config)
    write_atomically(folder / CARD, _card(preset, parameters, trained))


def settings(preset: Preset) -> dict[str, Any]:
    """A preset as JSON. Of files only the name is kept: where they lay is nobody's business."""
    return {name: _named(value) for name, value in dataclasses.asdict(preset).items()}


def _named(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_named, value))
    return value.name if isinstance(value, Path) else value


def from_pretrained(
    name: str | Path, *, task: str | None = None, revision: str | None = None
) -> tuple[nn.Module, Preset]:
    """The network, ready to use, and the preset it was trained with.

    ``name`` is the name of weights that ship with the package (`shipped`); a folder, as a path or as text with a
    separator in it (``./mine``); or the id of a repository on the Hugging Face hub (``owner/name``; needs the extra
    ``hub``), of which ``revision`` fixes the commit. Weights of another task than ``task`` are refused.
    """
    from rrn.tasks import build_network

    folder = find_weights(name, revision)
    preset, _ = read_config(folder)
    if task is not None and preset.task != task:
        raise InputError(f"weights {str(name)!r}: for the task {preset.task!r}, not for {task!r}")
    return _with_weights(lambda: build_network(preset), folder, widest(preset)), preset


def average(names: Sequence[str | Path]) -> tuple[nn.Module, Preset]:
    """A network with the mean of several weights of its kind, and the preset of the first.

    Trainings that began with the same weights end in one valley, and the mean lies deeper in it than each of them.
    """
    if len(names) < 2:
        raise InputError(f"weights: expected two or more to take the mean of, got {len(names)}")
    network, preset = from_pretrained(names[0])
    each = [network.state_dict()]
    for name in names[1:]:
        other = from_pretrained(name, task=preset.task)[0].state_dict()
        if {key: tensor.shape for key, tensor in other.items()} != {key: t.shape for key, t in each[0].items()}:
            raise InputError(f"weights {str(name)!r}: of another network than {str(names[0])!r}, so there is no mean")
        each.append(other)
    mean = {key: torch.stack([tensors[key] for tensors in each]).mean(0) for key in each[0]}
    network.load_state_dict(mean)
    return network, preset


def _with_weights(build: Callable[[], Built], folder: Path, width: int) -> Built:
    """The network that ``build`` makes, with the weights of a folder.

    One whose settings ask for layers of more than `WIDE` units is built without memory first, to see that the weights
    are its own before anything of their size is asked for.
    """
    first = torch.device("meta") if width > WIDE else nullcontext()
    with blaming(f"{folder / CONFIG}: not the settings of a network"), first:
        network = build()
    _compare_shapes(network, folder / WEIGHTS)
    if width > WIDE:
        network = build()
    load_weights(network, folder)
    return network.eval()


def _compare_shapes(network: nn.Module, path: Path) -> None:
    """What the header of a file of weights says of them, with what the network has room for."""
    expected = {name: list(tensor.shape) for name, tensor in network.state_dict().items()}
    with blaming(f"{path}: not a file of weights"), safetensors.safe_open(path, "pt") as file:
        found = {_current(name): file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        raise InputError(
            f"{path}: not the weights of this network: {quote(wrong[0])} is {found.get(wrong[0], 'missing')}, expected "
            f"{expected.get(wrong[0], 'no such name')}; of {len(expected)} tensors {len(wrong)} differ"
        )


def load_weights(network: nn.Module, folder: Path) -> None:
    """Put the weights of a folder into a network of the same shape."""
    with blaming(f"{folder / WEIGHTS}: not the weights of this network"):
        network.load_state_dict(read_weights(folder))


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The weights of a folder by name, all of them finite numbers."""
    with blaming(f"{folder / WEIGHTS}: not a file of weights"):
        tensors = {_current(name): tensor for name, tensor in safetensors.torch.load_file(folder / WEIGHTS).items()}
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise InputError(f"{folder / WEIGHTS}: {quote(name)} holds numbers that are not finite; train it again")
    return tensors


def _current(name: str) -> str:
    """The name of a tensor in this version, given its name in any version."""
    return name.removesuffix("nobody") + "no_sender" if name.endswith(".nobody") else name


def save_network(network: RRN, folder: str | Path) -> None:
    """Write an `RRN` of any settings: see `RRN.save_pretrained`."""
    tensors = {name: tensor.detach().contiguous() for name, tensor in network.state_dict().items()}
    write_atomically(Path(folder) / WEIGHTS, safetensors.torch.save(tensors, metadata={"format": "pt"}))
    write_json(Path(folder) / CONFIG, network.settings)


def load_network(
    kind: type[Network], name: str | Path, parts: dict[str, nn.Module], revision: str | None = None
) -> Network:
    """Read what `save_network` wrote: see `RRN.from_pretrained`."""
    folder = find_weights(name, revision)
    config = _read_json(folder / CONFIG, "the settings of a network")
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config.items()
    }
    if "task" in settings:
        raise InputError(f"{name}: the weights of a preset; load them with rrn.io.pretrained.from_pretrained")
    _check_parts(kind, name, settings, parts)
    layers = [value for name, value in settings.items() if name.endswith("_layers") and isinstance(value, int)]
    if max(layers, default=0) > MOST_LAYERS:
        raise InputError(f"{folder / CONFIG}: {max(layers):,} layers; at most {MOST_LAYERS:,} can be meant")
    numbers = [value for value in settings.values() if isinstance(value, int)]
    kinds = [len(value) for value in settings.values() if isinstance(value, tuple)]
    return _with_weights(lambda: kind(**settings | parts), folder, max([1, *numbers]) * max([1, *kinds]))


def _check_parts(kind: type[RRN], name: str | Path, settings: dict[str, Any], parts: dict[str, nn.Module]) -> None:
    custom = {
        part: value.get("custom", value.get("own"))  # "own" in folders of earlier versions
        for part, value in settings.items()
        if isinstance(value, dict) and value.keys() & {"custom", "own"}
    }
    for part, class_name in custom.items():
        if part not in parts:
            raise InputError(
                f"{name}: it has a custom {part}; pass it: "
                f"{kind.__name__}.from_pretrained({str(name)!r}, {part}={class_name}(…))"
            )
    for part, module in parts.items():
        expected = custom.get(part, "no custom part")
        if type(module).__name__ != expected:
            raise InputError(f"{part}: the network was saved with {expected}, got {type(module).__name__}")


def read_config(name: str | Path) -> tuple[Preset, dict[str, Any]]:
    """The preset of saved weights and all of their ``config.json``."""
    from rrn.tasks import TASKS
    from rrn.tasks import folder as task_folder

    path = find_weights(name) / CONFIG
    config = _read_json(path, "the configuration of saved weights")
    with blaming(f"{path}: not the configuration of saved weights"):
        task, values = str(config["task"]), with_new_names(config["preset"])
        config |= {"parameters": int(config["parameters"]), "trained": dict(config["trained"])}
    if task not in TASKS:
        raise InputError(f"{path}: for the task {quote(task)}, which this version does not know ({', '.join(TASKS)})")
    room = task_folder(task, "presets")
    kinds: tuple[type[Preset], ...] = getattr(room, "KINDS", (type(room.PRESETS[0]),))
    kind = next((kind for kind in kinds if len(kinds) == 1 or kind.__dict__["network"] == values.get("network")), None)
    if kind is None:
        named = shorten(values.get("network"))
        raise InputError(f"{path}: of a network {named!r}, which this version does not know")
    foreign = {field.name for other in kinds for field in dataclasses.fields(other)}  # of before each had its own
    fields = {field.name for field in dataclasses.fields(kind)}
    unknown = sorted(set(values) - fields - foreign)
    if unknown:
        listed = shorten(", ".join(unknown))
        raise InputError(f"{path}: unknown settings {listed}; the weights are of another version of rrn")
    return kind(**checked(kind, values, lambda name: f"{path}: {name}")), config


def _read_json(path: Path, what: str) -> dict[str, Any]:
    with blaming(f"{path}: not {what}"):
        value = json.loads(read_bytes(path, CONFIG_BYTES), parse_constant=lambda _: None)
    if not isinstance(value, dict):
        raise InputError(f"{path}: not {what} (a JSON object is expected)")
    return value


def shipped() -> list[str]:
    """The names of the weights that come with the package."""
    home = resources.files(rrn) / "weights"
    if not home.is_dir():
        return []
    return sorted(entry.name for entry in home.iterdir() if entry.is_dir() and (entry / CONFIG).is_file())


def find_weights(name: str | Path, revision: str | None = None) -> Path:
    """Shipped weights before all else, so that no folder that happens to lie here takes their place."""
    text = str(name)
    if isinstance(name, str) and text in shipped():
        found = os.fspath(resources.files(rrn) / "weights" / text)  # type: ignore[call-overload]
    elif os.path.isdir(text) and (isinstance(name, Path) or "/" in text or os.sep in text or text in (".", "..")):
        found = text
    elif isinstance(name, str) and text.count("/") == 1 and not text.startswith((".", "/")):
        return _from_hub(text, revision)
    else:
        there = f", though there is the folder {os.curdir}{os.sep}{text}" if os.path.isdir(text) else ""
        raise InputError(f"no weights {quote(text)}: no such folder{there}, and shipped are {', '.join(shipped())}")
    if revision is not None:
        raise InputError(f"revision: weights from the hub have one, but {quote(text)} is a folder here")
    if not os.path.isfile(os.path.join(found, CONFIG)):
        raise InputError(f"{name}: no {CONFIG} in it, so not a folder of saved weights")
    return Path(found)


def _from_hub(name: str, revision: str | None) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise needs_extra(f"{quote(name)}: no such folder, and a hub id", "hub") from error
    with blaming(f"{quote(name)}: neither a folder nor to be had from the hub"):
        return Path(snapshot_download(name, revision=revision, allow_patterns=[CONFIG, WEIGHTS, CARD]))


def _card(preset: Preset, parameters: int, trained: dict[str, Any]) -> str:
    rows = "\n".join(f"| {name} | {value} |" for name, value in trained.items())
    made = f"trained with seed {preset.seed} by\n`{_command(preset)}`. Figures of its validation when it was kept"
    if "mean_of" in trained:
        made = f"the mean of several weights (`rrn average`), of which the first were {made.partition('. Figures')[0]}"
    return f"""---
library_name: rrn
tags: [recurrent-relational-network, {preset.task}]
license: mit
---
# {preset.name}

{preset.about}

A network of {parameters:,} parameters, {made}:

| | |
|---|---|
{rows}

```python
from rrn.io.pretrained import from_pretrained

network, preset = from_pretrained("{preset.name}")
```
"""


def _command(preset: Preset) -> str:
    """The command that trains it, with every setting that is not the preset's own."""
    from rrn.tasks import presets

    usual, words = presets().get(preset.name), ["rrn train", preset.name]
    for field in dataclasses.fields(preset):
        value = getattr(preset, field.name)
        if usual is None or field.name == "about" or value == getattr(usual, field.name):
            continue
        flag = field.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{flag}", *(part.name if isinstance(part, Path) else str(part) for part in values)]
    return " ".join(words)
