"""Optimizer, learning-rate schedule and the running average of the weights."""

import copy
import math

import torch
from torch import Tensor, nn

from rrn._compat import torch_api
from rrn.training.presets import Preset

_lerp_all = torch_api().lerp_all


def make_optimizer(network: nn.Module, preset: Preset) -> torch.optim.Optimizer:
    """Adam or AdamW; weight decay and L2 act on weight matrices only."""
    matrices = [p for p in network.parameters() if p.dim() >= 2]
    others = [p for p in network.parameters() if p.dim() < 2]
    decay = preset.weight_decay if preset.optimizer == "adamw" else preset.l2
    kind = torch.optim.AdamW if preset.optimizer == "adamw" else torch.optim.Adam
    groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
    return kind([group for group in groups if group["params"]], lr=preset.lr, betas=(0.9, preset.beta2))


def learning_rate(preset: Preset, update: int, progress: float) -> float:
    """Of the given update, when ``progress`` (0 to 1) of the budget is spent."""
    rate = preset.lr
    if preset.schedule == "cosine":
        rate *= 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    return rate * min(1.0, (update + 1) / preset.warmup) if preset.warmup else rate


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"optimizer.{index}.{key}": value if isinstance(value, Tensor) else torch.tensor(value, device="cpu")
        for index, state in optimizer.state_dict()["state"].items()
        for key, value in state.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".")
            state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


class Average:
    """A running average of a network's weights, in a copy of the network."""

    def __init__(self, network: nn.Module, decay: float | None) -> None:
        self.decay = decay
        self.network = copy.deepcopy(network).eval()
        self.network.requires_grad_(False)

    @torch.no_grad()
    def follow(self, network: nn.Module, update: int) -> None:
        """After an update. Early on the average is short, so that the start is soon forgotten."""
        decay = min(self.decay or 0.0, (1 + update) / (10 + update))
        mine: list[Tensor] = list(self.network.parameters())
        theirs: list[Tensor] = list(network.parameters())
        _lerp_all(mine, theirs, 1 - decay)
        for a, b in zip(self.network.buffers(), network.buffers(), strict=True):
            a.copy_(b)
