"""The device of a network in inference: ``--device`` of evaluate, solve, ask and serve.

Tasks make their batches on the CPU and read answers there. `place` moves inputs and outputs of a network on another
device. Training moves its batches itself (`rrn.training.processes`).
"""

from typing import Any

import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.nn.readouts import Outputs
from rrn.nn.updates import State


def find_device(name: str) -> torch.device:
    """The device of a name, if it is available; "auto": a GPU if there is one, else the CPU."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"--device {name}: not available on this machine ({reason}); try --device auto") from error
    return device


def place(network: nn.Module, device: torch.device) -> nn.Module:
    """Move a network to a device; its inputs and outputs stay on the CPU.

    If its caller moves the batches (``keeps_device``), only the network is moved.
    """
    network.to(device)
    if device.type != "cpu" and not getattr(network, "keeps_device", False):
        network.register_forward_pre_hook(
            lambda _, inputs, named: (move(inputs, device), move(named, device)), with_kwargs=True
        )
        network.register_forward_hook(lambda _, inputs, outputs: move(outputs, torch.device("cpu")))
    return network


def move(value: Any, device: torch.device) -> Any:
    """All tensors within a value on a device."""
    match value:
        case Tensor():
            return value.to(device)
        case State():
            return value.map(lambda part: part.to(device))
        case Outputs():
            return Outputs(value.answer.to(device), move(value.extras, device))
        case dict():
            return {name: move(part, device) for name, part in value.items()}
        case list() | tuple():
            return type(value)(move(part, device) for part in value)
    return value
