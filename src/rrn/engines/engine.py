"""What an engine is, and the plain one."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rrn._compat import torch_api
from rrn.nn.readouts import Outputs, stack
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

_TORCH = torch_api()


class Engine:
    """Computes steps. Whatever the engine, outputs, states and gradients are those of `Plain`, to rounding."""

    name: str
    message: type[nn.Module] = nn.Module
    """The class of messages that the engine computes; `fits` is called for these only."""

    def fits(self, network: "RRN", given: "Prepared", state: State) -> bool:
        """Whether this engine can run the network on this input."""
        raise NotImplementedError

    def run(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Tensor | Outputs, State]:
        """The outputs of every step, stacked, and the state after the last."""
        raise NotImplementedError


class Plain(Engine):
    """Eq. 1 to 4 as they stand, one step after another: on any device, and differentiable as often as one likes."""

    name = "plain"

    def fits(self, network: "RRN", given: "Prepared", state: State) -> bool:
        return True

    def run(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Tensor | Outputs, State]:
        outputs = []
        for _ in range(steps):
            m = network.message(state.h, given.graph, given.edge_term)  # eq. 1, 2
            state = network.update(state, given.x, m)  # eq. 3
            outputs.append(network.read(given, state))  # eq. 4
        return stack(outputs), state


def if_recorded(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors, detached where no gradients are recorded.

    A function is told which of its inputs need a gradient, but not that nobody will ask for one: without this it would
    keep every step of a network that is only asked.
    """
    return tensors if torch.is_grad_enabled() else tuple(tensor.detach() for tensor in tensors)


def on_a_cpu(*tensors: Tensor | None) -> bool:
    """Whether hand-written derivatives apply: float32 or float64 on a CPU, not traced nor transformed by torch.func."""
    present = [tensor for tensor in tensors if tensor is not None]
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.is_autocast_enabled("cpu"):
        return False
    if _TORCH.transforms_active() or _TORCH.dispatch_modes() > 0:
        return False
    ordinary = all(tensor.device.type == "cpu" and type(tensor) in _ORDINARY for tensor in present)
    return ordinary and all(tensor.dtype in _IN_NUMPY for tensor in present)


_ORDINARY = (Tensor, torch.nn.Parameter)
_IN_NUMPY = (torch.float32, torch.float64)
"""Compiled code knows neither bfloat16 nor, everywhere, float16."""


def differentiable_gradients(
    plain: Callable[..., Any], inputs: tuple[Tensor | None, ...], *more: Any, gradient: Any, **named: Any
) -> list[Tensor | None]:
    """Gradients of ``plain(*inputs, *more)`` that can be differentiated again: by autograd, on the plain form.

    For the backward pass of a hand-written function when it is run with gradients enabled (``create_graph=True``).
    """
    with torch.enable_grad():
        # a view each, so that the way from one input to another is not taken for a way to the outputs
        own = [value.view_as(value) if value is not None and value.requires_grad else value for value in inputs]
        wanted = [value for value in own if value is not None and value.requires_grad]
        outputs = plain(*own, *more, **named)
        found = iter(torch.autograd.grad(outputs, wanted, gradient, create_graph=True, allow_unused=True))
    return [next(found) if value is not None and value.requires_grad else None for value in inputs]
