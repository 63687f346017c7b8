"""Checkpoints: everything that a run needs to resume, in one safetensors file with its checksum in the name.

No pickle. Files are written atomically. A damaged file is renamed, and the one before it is used. If all are damaged,
nothing changes and the run is refused.
"""

import hashlib
import json
import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensor_bytes
from torch import Tensor

from rrn.errors import InputError, as_input_error
from rrn.io.files import write_atomically

MOST = 2
"""Checkpoints in a run folder; older ones are removed."""
NAME = re.compile(r"checkpoint-(\d{9,18})-([0-9a-f]{16})\.safetensors")
DAMAGED = ".damaged"

Loaded = tuple[dict[str, Tensor], dict[str, Any]]


def save_checkpoint(folder: Path, update: int, tensors: dict[str, Tensor], facts: dict[str, Any]) -> Path:
    """Write ``checkpoint-<update>-<checksum>.safetensors`` and remove all but the newest few before it."""
    content = tensor_bytes(
        {name: tensor.detach().cpu().contiguous() for name, tensor in _unshared(tensors).items()},
        {"facts": json.dumps(facts)},
    )
    path = folder / f"checkpoint-{update:09d}-{_checksum(content)}.safetensors"
    write_atomically(path, content)
    before = [old for old in list_checkpoints(folder) if old != path and _update_of(old) <= update]
    replaced = [old for old in before if _update_of(old) == update]
    for old in replaced + [old for old in before if old not in replaced][: 1 - MOST]:
        with suppress(OSError):
            old.unlink()
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a folder, the oldest first."""
    return sorted((path for path in folder.glob("checkpoint-*") if NAME.fullmatch(path.name)), key=_update_of)


def find_checkpoint(folder: Path) -> Path | None:
    """The newest undamaged checkpoint, or None. Damaged ones after it are renamed."""
    damaged: list[Path] = []
    for path in reversed(list_checkpoints(folder)):
        try:
            read_checkpoint(path)
        except InputError as error:
            warnings.warn(f"{error}; trying the one before it", stacklevel=2)
            damaged.append(path)
            continue
        for bad in damaged:
            bad.rename(bad.with_name(bad.name + DAMAGED))
        return path
    if damaged:
        raise InputError(
            f"{folder}: all its checkpoints are damaged ({', '.join(path.name for path in damaged)}), so the run "
            "cannot resume. Restore one of them, or start again in another folder; best/ is unchanged"
        )
    return None


def read_checkpoint(path: Path) -> Loaded:
    """Tensors and facts."""
    with as_input_error(f"{path.name} is damaged"):
        content = path.read_bytes()
        if _checksum(content) != path.stem.rsplit("-", 1)[1]:
            raise InputError(f"{path.name} is damaged (its checksum differs)")
        length = int.from_bytes(content[:8], "little")
        return read_tensors(content), json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["facts"])


def load_checkpoint(folder: Path) -> Loaded | None:
    """Tensors and facts of the newest undamaged checkpoint, or None."""
    path = find_checkpoint(folder)
    return None if path is None else read_checkpoint(path)


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies where two names share memory (an LSTM's hidden state is also h): safetensors refuses those."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        result[name] = tensor.clone() if tensor.data_ptr() in seen else tensor
        seen.add(tensor.data_ptr())
    return result


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _update_of(path: Path) -> int:
    return int(path.name.split("-")[1])
