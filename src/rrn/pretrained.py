"""Weights: a folder with ``config.json``, ``model.safetensors`` and a model card. No pickle anywhere."""

import dataclasses
import json
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
from torch import Tensor, nn

import rrn
from rrn.errors import InputError
from rrn.hints import needs_extra
from rrn.network import RRN
from rrn.presets import Preset
from rrn.storage import write_atomically, write_json

Network = TypeVar("Network", bound=RRN)

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"


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
    values = dataclasses.asdict(preset)
    return {name: value.name if isinstance(value, Path) else value for name, value in values.items()}


def from_pretrained(name: str | Path) -> tuple[nn.Module, Preset]:
    """The network, ready to use, and the preset it was trained with.

    ``name`` is a folder, the name of weights that ship with the package (`shipped`), or the id of a repository on
    the Hugging Face hub (``owner/name``; needs the extra ``hub``).
    """
    from rrn.tasks import build_network

    folder = _find(name)
    preset, _ = read_config(folder)
    network = build_network(preset)
    load_weights(network, folder)
    return network.eval(), preset


def load_weights(network: nn.Module, folder: Path) -> None:
    """Put the weights of a folder into a network of the same shape."""
    try:
        network.load_state_dict(read_weights(folder))
    except RuntimeError as error:
        raise InputError(f"{folder / WEIGHTS}: not the weights of this network: {error}") from error


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The weights of a folder by name."""
    try:
        return safetensors.torch.load_file(folder / WEIGHTS)
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(f"{folder / WEIGHTS}: not the weights of this network: {error}") from error


def save_network(network: RRN, folder: str | Path) -> None:
    """Write an `RRN` of any settings: see `RRN.save_pretrained`."""
    tensors = {name: tensor.detach().contiguous() for name, tensor in network.state_dict().items()}
    write_atomically(Path(folder) / WEIGHTS, safetensors.torch.save(tensors, metadata={"format": "pt"}))
    write_json(Path(folder) / CONFIG, network.settings)


def load_network(kind: type[Network], name: str | Path, parts: dict[str, nn.Module]) -> Network:
    """Read what `save_network` wrote: see `RRN.from_pretrained`."""
    folder = _find(name)
    try:
        config = json.loads((folder / CONFIG).read_text())
        settings = {name: _typed(value) for name, value in config.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{folder / CONFIG}: not the settings of a network ({error})") from error
    if "task" in settings:
        raise InputError(f"{name}: the weights of a preset; load them with rrn.pretrained.from_pretrained")
    _check_parts(kind, name, settings, parts)
    try:
        network = kind(**settings | parts)
    except TypeError as error:
        raise InputError(f"{folder / CONFIG}: not the settings of a {kind.__name__} ({error})") from error
    load_weights(network, folder)
    return network.eval()


def _check_parts(kind: type[RRN], name: str | Path, settings: dict[str, Any], parts: dict[str, nn.Module]) -> None:
    own = {part: value["own"] for part, value in settings.items() if isinstance(value, dict) and "own" in value}
    for part, made_by in own.items():
        if part not in parts:
            raise InputError(
                f"{name}: its {part} is of your own; hand it over: "
                f"{kind.__name__}.from_pretrained({str(name)!r}, {part}={made_by}(…))"
            )
    for part, module in parts.items():
        expected = own.get(part, "none of your own")
        if type(module).__name__ != expected:
            raise InputError(f"{part}: the network was saved with {expected}, got {type(module).__name__}")


def read_config(name: str | Path) -> tuple[Preset, dict[str, Any]]:
    """The preset of saved weights and all of their ``config.json``."""
    from rrn.tasks import TASKS
    from rrn.tasks import folder as task_folder

    path = _find(name) / CONFIG
    try:
        config = json.loads(path.read_text())
        task, values = config["task"], dict(config["preset"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not the configuration of saved weights ({error})") from error
    if task not in TASKS:
        raise InputError(f"{path}: for the task {task!r}, which this version does not know ({', '.join(TASKS)})")
    room = task_folder(task, "presets")
    kinds: tuple[type[Preset], ...] = getattr(room, "KINDS", (type(room.PRESETS[0]),))
    kind = next((kind for kind in kinds if len(kinds) == 1 or kind.__dict__["network"] == values.get("network")), None)
    if kind is None:
        raise InputError(f"{path}: of a network {values.get('network')!r}, which this version does not know")
    foreign = {field.name for other in kinds for field in dataclasses.fields(other)}  # of before each had its own
    fields = {field.name for field in dataclasses.fields(kind)}
    unknown = sorted(set(values) - fields - foreign)
    if unknown:
        raise InputError(f"{path}: unknown settings {', '.join(unknown)}; the weights are of another version of rrn")
    return kind(**{name: _typed(value) for name, value in values.items() if name in fields}), config


def shipped() -> list[str]:
    """The names of the weights that come with the package."""
    home = resources.files(rrn) / "weights"
    if not home.is_dir():
        return []
    return sorted(entry.name for entry in home.iterdir() if entry.is_dir() and (entry / CONFIG).is_file())


def _find(name: str | Path) -> Path:
    if (Path(name) / CONFIG).is_file():
        return Path(name)
    if str(name) in shipped():
        return Path(str(resources.files(rrn) / "weights" / str(name)))
    if Path(name).is_dir():
        raise InputError(f"{name}: no {CONFIG} in it, so not a folder of saved weights")
    if str(name).count("/") == 1 and not str(name).startswith((".", "/")):
        try:
            from huggingface_hub import snapshot_download
        except ImportError as error:
            raise needs_extra(f"{name}: no such folder, and a hub id", "hub") from error
        try:
            return Path(snapshot_download(str(name), allow_patterns=[CONFIG, WEIGHTS, CARD]))
        except Exception as error:
            raise InputError(f"{name}: neither a folder nor to be had from the hub ({error})") from error
    raise InputError(f"no weights {str(name)!r}: no such folder, and shipped are {', '.join(shipped()) or 'none'}")


def _typed(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(value) if isinstance(value, list) else value


def _card(preset: Preset, parameters: int, trained: dict[str, Any]) -> str:
    rows = "\n".join(f"| {name} | {value} |" for name, value in trained.items())
    return f"""---
library_name: rrn
tags: [recurrent-relational-network, {preset.task}]
license: mit
---
# {preset.name}

{preset.about}

A network of {parameters:,} parameters, trained with seed {preset.seed} by
`{_command(preset)}`. Figures of its validation when it was kept:

| | |
|---|---|
{rows}

```python
from rrn.pretrained import from_pretrained

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
