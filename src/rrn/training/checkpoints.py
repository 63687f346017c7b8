"""Checkpoints: all a run needs to go on, in one safetensors file whose name carries its checksum.

No pickle. A file is written whole or not at all; one that does not match its checksum is passed over, with a
warning, for the one before it.
"""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensor_bytes
from torch import Tensor

from rrn.storage import write_atomically

KEPT = 2
"""Checkpoints kept in a run folder."""


def save_checkpoint(folder: Path, update: int, tensors: dict[str, Tensor], facts: dict[str, Any]) -> Path:
    """Write ``checkpoint-<update>-<checksum>.safetensors`` and remove all but the newest few."""
    content = tensor_bytes(
        {name: tensor.detach().contiguous() for name, tensor in tensors.items()}, {"facts": json.dumps(facts)}
    )
    checksum = hashlib.sha256(content).hexdigest()[:16]
    path = folder / f"checkpoint-{update:09d}-{checksum}.safetensors"
    write_atomically(path, content)
    for old in list_checkpoints(folder)[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """The oldest first."""
    return sorted(folder.glob("checkpoint-*.safetensors"))


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and facts of the newest checkpoint that is whole; None where there is none."""
    for path in reversed(list_checkpoints(folder)):
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest()[:16] != path.stem.rsplit("-", 1)[1]:
            warnings.warn(f"{path.name} is damaged (its checksum differs); trying the one before it", stacklevel=2)
            continue
        length = int.from_bytes(content[:8], "little")
        facts = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["facts"])
        return read_tensors(content), facts
    return None
