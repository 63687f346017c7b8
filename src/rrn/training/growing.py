"""Deepen or widen a trained network without changing its outputs, for ``rrn train --start-from``.

A ReLU layer behind another is the identity if its weights are the identity matrix and its biases are 0. So a network
with one ReLU layer per MLP, which is cheap and learns fast, can be trained first and then deepened.
"""

import math
from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.network import RRN
from rrn.nn.layers import MLP
from rrn.nn.messages import GroupMessage
from rrn.nn.readouts import DotReadout
from rrn.nn.updates import SharedLayerUpdate


def grow_into(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load the weights of a shallower network into a deeper one of the same kind; the outputs stay the same."""
    grown = dict(weights)
    for name, module in network.named_modules():
        if isinstance(module, MLP):
            _deepen(grown, f"{name}.linears." if name else "linears.", module)
    try:
        network.load_state_dict(grown)
    except RuntimeError as error:
        raise InputError(f"weights: not of a shallower network of this kind: {error}") from error


def widen(network: RRN, weights: Mapping[str, Tensor], prefix: str) -> Mapping[str, Tensor]:
    """Weights of a narrower network of group messages, a shared layer and a dot readout, extended to a wider one.

    Messages keep their group type, other units their third (see `rrn.training.tying.ties_of_group_types`). New units
    keep the weights of ``network`` on their inputs; their outputs have weight 0, so the outputs of the network stay the
    same. A state has norm √hidden: weights that read it are divided by its growth, weights that add to it are
    multiplied.
    """
    update, readout, kinds = network.update, network.readout, cast(GroupMessage, network.message).group_types
    assert isinstance(update, SharedLayerUpdate)
    assert isinstance(readout, DotReadout)
    names = [f"{prefix}update.first", f"{prefix}update.second", f"{prefix}readout.weight"]
    if names[1] not in weights or weights[names[1]].shape == update.second.shape:
        return weights
    first, second, weight = (weights[name] for name in names)
    messages = len(first) - 1 - second.shape[1]
    state = _indices_in_thirds(second.shape[1], update.hidden)
    layer = _indices_in_thirds(len(second) - messages, len(update.second) - update.messages)
    width, had = update.messages // kinds, messages // kinds
    if any(new < old for new, old in zip((width, *update.second.shape), (had, *second.shape), strict=True)):
        raise InputError("weights: the network is wider in part than the new one; it can only grow")
    sending = (torch.arange(kinds, device="cpu")[:, None] * width + torch.arange(had, device="cpu")).flatten()
    units = torch.cat([sending, update.messages + layer])
    inputs = torch.cat([state, update.hidden + sending, torch.tensor([len(update.first) - 1], device="cpu")])
    growth = math.sqrt(update.hidden / second.shape[1])
    scale = torch.ones(len(first), device="cpu")
    scale[: len(state)] /= growth
    new_first = update.first.detach().clone()
    new_second, new_weight = (torch.zeros_like(part) for part in (update.second, readout.weight))
    messages_in = torch.arange(update.hidden, len(update.first) - 1, device="cpu")
    new_first[messages_in[:, None], units] = 0
    new_first[inputs[:, None], units] = first * scale[:, None]
    new_second[units[:, None], state] = second * growth
    new_weight[state] = weight / growth
    return dict(weights) | dict(zip(names, (new_first, new_second, new_weight), strict=True))


def _indices_in_thirds(few: int, many: int) -> Tensor:
    """Indices of the old units in the new layer, each within its third."""
    each, third = few // 3, many // 3
    shares = (0, each), (third, each), (2 * third, few - 2 * each)
    return torch.cat([torch.arange(first, first + count, device="cpu") for first, count in shares])


def _deepen(weights: dict[str, Tensor], prefix: str, mlp: MLP) -> None:
    """Rename and add the entries of one MLP."""
    first = weights.get(f"{prefix}0.weight")
    had = sum(1 for name in weights if name.startswith(prefix) and name.endswith(".weight"))
    missing = len(mlp.linears) - had
    inputs = mlp.weights()[0][0].shape[1]
    if first is None or missing < 0:
        return
    if first.shape[1] < inputs:  # new features come last
        weights[f"{prefix}0.weight"] = torch.cat([first, first.new_zeros(len(first), inputs - first.shape[1])], dim=1)
    if missing and had < 2:
        raise InputError(f"{prefix.removesuffix('.linears.')}: an MLP without a ReLU layer cannot be deepened")
    for kind in ("weight", "bias") if missing else ():
        weights[f"{prefix}{had - 1 + missing}.{kind}"] = weights[f"{prefix}{had - 1}.{kind}"]
    for index in range(had - 1, had - 1 + missing):
        weights[f"{prefix}{index}.weight"] = torch.eye(len(first), dtype=first.dtype, device=first.device)
        weights[f"{prefix}{index}.bias"] = first.new_zeros(len(first))
