"""Weight folders: ``config.json``, ``model.safetensors`` and a model card ``README.md``. No pickle anywhere."""

import dataclasses
import json
import math
import os
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import rrn
from rrn.errors import InputError, as_input_error, needs_extra, quote
from rrn.io.files import read_bytes, write_atomically, write_json

if TYPE_CHECKING:
    from rrn.network import RRN
    from rrn.training.presets import Preset

Network = TypeVar("Network", bound="RRN")
Built = TypeVar("Built", bound=nn.Module)

CONFIG, WEIGHTS, CARD, CURVES = "config.json", "model.safetensors", "README.md", "metrics.jsonl"
CONFIG_BYTES = 1 << 20
MAX_LAYERS = 64
HUB = "hf://"
"""Prefix of a repository on the Hugging Face hub: ``hf://owner/name``. Without it, nothing is downloaded."""


def shipped() -> list[str]:
    """The names of the weights that come with the package."""
    weights = resources.files(rrn) / "weights"
    if not weights.is_dir():
        return []
    return sorted(entry.name for entry in weights.iterdir() if entry.is_dir() and (entry / CONFIG).is_file())


def find_weights(name: str | Path, revision: str | None = None) -> Path:
    """The folder of some weights: shipped weights of that name, else an existing folder, else ``hf://owner/name``.

    ``revision`` selects a commit of a hub repository.
    """
    text = _with_prefix(str(name))
    if isinstance(name, str) and text.startswith(HUB):
        return _download(text, revision)
    if revision is not None:
        raise InputError(f"revision: only for weights on the hub ({HUB}owner/name), got the name {quote(text)}")
    if isinstance(name, str) and text in shipped():
        return Path(os.fspath(resources.files(rrn) / "weights" / text))  # type: ignore[call-overload]
    if not os.path.isdir(text):
        names = ", ".join(shipped())
        hint = (
            f"; for the Hugging Face hub write {quote(HUB + text)}" if re.fullmatch(r"\w[\w.-]*/[\w.-]+", text) else ""
        )
        raise InputError(f"no weights {quote(text)}: no such folder{hint}; shipped weights: {names}")
    if not os.path.isfile(os.path.join(text, CONFIG)):
        raise InputError(f"{text}: no {CONFIG} in this folder, so it does not hold saved weights")
    return Path(text)


def _with_prefix(text: str) -> str:
    """The text of a path; ``hf:/owner/name``, which `Path` makes of a hub name, becomes ``hf://owner/name`` again."""
    return re.sub(r"^hf:/+", HUB, text)


def _download(name: str, revision: str | None) -> Path:
    repository = name.removeprefix(HUB)
    if not re.fullmatch(r"[\w.-]{1,96}/[\w.-]{1,96}", repository):
        raise InputError(f"weights: expected {HUB}owner/name, got {quote(name)}")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise needs_extra(f"{quote(name)}: downloading from the hub", "hub") from error
    with as_input_error(f"{quote(name)}: hub download failed"):
        folder = Path(snapshot_download(repository, revision=revision, allow_patterns=[CONFIG, WEIGHTS, CARD]))
    if not (folder / CONFIG).is_file():
        raise InputError(f"{quote(name)}: no {CONFIG} in this repository, so it does not hold saved weights")
    return folder


def read_json_config(folder: Path) -> dict[str, Any]:
    """The content of ``config.json``, a JSON object."""
    path = folder / CONFIG
    with as_input_error(f"{path}: not the configuration of saved weights"):
        config = json.loads(read_bytes(path, CONFIG_BYTES), parse_constant=lambda _: None)
    if not isinstance(config, dict):
        raise InputError(f"{path}: not the configuration of saved weights (expected a JSON object)")
    return config


def build_with_weights(build: Callable[[], Built], folder: Path) -> Built:
    """The network that ``build`` makes, with the weights of a folder, in evaluation mode.

    A network larger than the weight file is built on the meta device, without memory, to name the tensors that differ.
    So a configuration that does not match the weights allocates little. The meta device is slow to import.
    """
    path = folder / WEIGHTS
    with (
        as_input_error(f"{folder / CONFIG}: not the settings of a network"),
        torch.random.fork_rng(devices=[]),  # initial weights are drawn, then replaced
    ):
        try:
            with _AllocationLimit(path.stat().st_size if path.is_file() else 0):
                network = build()
        except _AllocationLimitExceeded:
            with torch.device("meta"):
                network = build()
    _compare_shapes(network, path)
    with as_input_error(f"{folder / WEIGHTS}: not the weights of this network"):
        network.load_state_dict(read_weights(folder))
    return network.eval()


class _AllocationLimitExceeded(Exception):
    """A network has more numbers than its weight file has bytes."""


class _AllocationLimit(TorchFunctionMode):
    """Refuses to allocate more than some numbers for the parameters of layers."""

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.numbers = numbers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.empty:
            self.numbers -= math.prod(args[0] if isinstance(args[0], (tuple, list)) else args)
            if self.numbers < 0:
                raise _AllocationLimitExceeded
        return func(*args, **(kwargs or {}))


def _compare_shapes(network: nn.Module, path: Path) -> None:
    """Compare the shapes in the header of a weight file with those of a network."""
    expected = {name: list(tensor.shape) for name, tensor in network.state_dict().items()}
    with as_input_error(f"{path}: not a file of weights"), safetensors.safe_open(path, "pt") as file:
        found = {_current(name): file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        raise InputError(
            f"{path}: not the weights of this network: {quote(wrong[0])} is {found.get(wrong[0], 'missing')}, expected "
            f"{expected.get(wrong[0], 'no such name')}; {len(wrong)} of {len(expected)} tensors differ"
        )


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder by name; all of their numbers are finite."""
    with as_input_error(f"{folder / WEIGHTS}: not a file of weights"):
        tensors = {_current(name): tensor for name, tensor in safetensors.torch.load_file(folder / WEIGHTS).items()}
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise InputError(f"{folder / WEIGHTS}: {quote(name)} holds numbers that are not finite; train it again")
    return tensors


def _current(name: str) -> str:
    """The name of a tensor in this version, given its name in any version."""
    return name.removesuffix("nobody") + "no_sender" if name.endswith(".nobody") else name


def _write_weights(network: nn.Module, folder: Path) -> None:
    tensors = {name: tensor.detach().contiguous() for name, tensor in network.state_dict().items()}
    write_atomically(folder / WEIGHTS, safetensors.torch.save(tensors, metadata={"format": "pt"}))


def save_network(network: "RRN", folder: str | Path) -> None:
    """Write an `RRN` without a preset: see `RRN.save_pretrained`."""
    _write_weights(network, Path(folder))
    write_json(Path(folder) / CONFIG, network.settings)


def load_network(cls: type[Network], folder: Path, parts: dict[str, nn.Module]) -> Network:
    """Read the result of `save_network`: see `RRN.from_pretrained`."""
    config = read_json_config(folder)
    if "task" in config:
        raise InputError(f"{folder}: the weights of a preset; load them with rrn.from_pretrained({folder.name!r})")
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config.items()
    }
    _check_parts(cls, folder, settings, parts)
    layers = [value for name, value in settings.items() if name.endswith("_layers") and isinstance(value, int)]
    if max(layers, default=0) > MAX_LAYERS:
        raise InputError(f"{folder / CONFIG}: {max(layers):,} layers exceed the limit of {MAX_LAYERS}")
    return build_with_weights(lambda: cls(**settings | parts), folder)


def _check_parts(cls: type["RRN"], folder: Path, settings: dict[str, Any], parts: dict[str, nn.Module]) -> None:
    custom = {
        part: value.get("custom", value.get("own"))  # "own" in folders of earlier versions
        for part, value in settings.items()
        if isinstance(value, dict) and value.keys() & {"custom", "own"}
    }
    for part, class_name in custom.items():
        if part not in parts:
            call = f"{cls.__name__}.from_pretrained({str(folder)!r}, {part}={class_name}(…))"
            raise InputError(f"{folder}: it has a custom {part}; pass it: {call}")
    for part, module in parts.items():
        expected = custom.get(part, "no custom part")
        if type(module).__name__ != expected:
            raise InputError(f"{part}: the network was saved with {expected}, got {type(module).__name__}")


def save_pretrained(
    network: nn.Module, folder: str | Path, preset: "Preset", trained: dict[str, Any], named: "Preset | None" = None
) -> None:
    """Write a network of a preset, with a model card, for `rrn.from_pretrained`.

    ``trained`` are the figures of its validation. ``named`` is the preset of that name with its default settings; the
    card lists the flags in which ``preset`` differs from it.
    """
    _write_weights(network, Path(folder))
    write_description(network, Path(folder), preset, trained, named)


def write_description(
    network: nn.Module, folder: Path, preset: "Preset", trained: dict[str, Any], named: "Preset | None" = None
) -> None:
    """Write ``config.json`` and the model card beside the weights of a network: see `save_pretrained`."""
    parameters = sum(p.numel() for p in network.parameters())
    config = {
        "rrn": rrn.__version__,
        "task": preset.task,
        "parameters": parameters,
        "trained": trained,
        "preset": settings(preset),
    }
    write_json(folder / CONFIG, config)
    card = _card(preset, parameters, trained, named or preset, (folder / CURVES).exists())
    write_atomically(folder / CARD, card)


def settings(preset: "Preset") -> dict[str, Any]:
    """A preset as JSON. Of paths only the file name is written, not the folder; names on the hub are whole."""
    return {name: _without_folders(value) for name, value in dataclasses.asdict(preset).items()}


def _without_folders(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_folders(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_without_folders, value))
    if not isinstance(value, Path):
        return value
    text = _with_prefix(str(value))
    return text if text.startswith(HUB) else value.name


def _card(preset: "Preset", parameters: int, trained: dict[str, Any], named: "Preset", curves: bool) -> str:
    command = _command(preset, named)
    if "mean_of" in trained:
        origin = f"the mean of several weights (`rrn average`), the first trained by\n`{command}`."
    else:
        stages = f" in {len(preset.stages)} stages" if len(preset.stages) > 1 else ""
        seed = next(iter(preset.stages), {}).get("seed", preset.seed)
        origin = f"trained with seed {seed}{stages} by\n`{command}`."
    every = f"All validations: `{CURVES}`. " if curves else ""
    score = f"Validation score {trained['score']:.4g}. " if isinstance(trained.get("score"), float) else ""
    spent = f" {trained['minutes']:.1f} minutes on {trained['machine']}." if "machine" in trained else ""
    return f"""---
library_name: rrn
tags: [recurrent-relational-network, {preset.task}]
license: mit
---
# {preset.name}

{preset.about}

A network of {parameters:,} parameters, {origin}{spent}

{score}{every}Accuracy on test data: `rrn evaluate {preset.name} --weights FOLDER`;
of the shipped weights, with n and intervals: `docs/results.md`.

```python
import rrn

network = rrn.from_pretrained("FOLDER")
```
"""


def _command(preset: "Preset", named: "Preset") -> str:
    """The training command, with a flag for every setting in which ``preset`` differs from ``named``."""
    words = ["rrn train", preset.name]
    in_stages, left = ({name for stage in each.stages for name in stage} for each in (named, preset))
    for field in dataclasses.fields(preset):
        value = getattr(preset, field.name)
        same = value == getattr(named, field.name, value) and field.name not in in_stages - left
        if field.name in ("about", "stages") or same:
            continue
        flag = field.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{flag}", *(str(_without_folders(part)) for part in values)]
    return " ".join(words)
