"""The interface of an engine, the plain engine, the choice between engines, and what the others share."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rrn._compat import COMPILED, MODULE_HOOKS, torch_api
from rrn.errors import InputError
from rrn.nn.layers import MLP, Linear, Product
from rrn.nn.readouts import Outputs, answer_of, stack
from rrn.nn.updates import State, _Reader

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

_TORCH = torch_api()
_PLAIN_TENSORS = (Tensor, nn.Parameter)
_DTYPES = {torch.float32, torch.float64}
"""Compiled code supports neither bfloat16 nor, everywhere, float16."""
SMALL = 1 << 17
"""Numbers in the hidden states below which a step is small work: threads would wait longer than they compute."""
_LAYERS = (MLP, Linear, Product, _Reader, nn.Linear, nn.ModuleList, nn.Dropout, nn.GRUCell, nn.LayerNorm)


class Engine:
    """Computes steps. Outputs, states and gradients of every engine are those of `Plain`, up to rounding."""

    name: str
    message: type | None = None
    """The type of message function that compiled code replaces; None: the engine has no compiled code."""
    update: type | None = None
    readout: type | None = None
    """The types of the other parts that compiled code replaces; None: it calls the network's own."""

    def fits(self, network: "RRN", given: "Prepared", state: State) -> bool:
        """Whether this engine can run the network on this input."""
        return fits_compiled(self, network, given, state) and self.supports(network, given)

    def supports(self, network: "RRN", given: "Prepared") -> bool:
        """Whether it supports the sizes, the graph and the features, if its types and the state fit."""
        return True

    def run(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Tensor | Outputs, State]:
        """The outputs of every step, stacked, and the state after the last."""
        raise NotImplementedError


class Plain(Engine):
    """Eq. 1 to 4, one step after another: on any device, differentiable any number of times."""

    name = "plain"

    def run(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Tensor | Outputs, State]:
        outputs, options = [], network.compile_options
        next_: Callable[[RRN, Prepared, State], State] = next_state
        if options is not None and not torch.compiler.is_compiling():
            next_, state = _compiled(tuple(options.items())), _uniform(network, given, state)
        for _ in range(steps):
            state = next_(network, given, state)
            outputs.append(network.read(given, state))  # eq. 4
        return stack(outputs), state


def next_state(network: "RRN", given: "Prepared", state: State) -> State:
    """Eq. 1 to 3."""
    m = network.message(state.h, given.graph, given.edge_term)  # eq. 1, 2
    return network.update(state, given.x, m)  # eq. 3


@cache
def _compiled(options: tuple[tuple[str, Any], ...]) -> Callable[["RRN", "Prepared", State], State]:
    """`next_state`, compiled for any size of the graph. The state must be `_uniform`, and the next one is."""

    def next_uniform_state(network: "RRN", given: "Prepared", state: State) -> State:
        return _without_repeats(next_state(network, given, state))

    return torch.compile(next_uniform_state, **{"dynamic": True, "fullgraph": True} | dict(options))


def _uniform(network: "RRN", given: "Prepared", state: State) -> State:
    """The same state in the form that it has after a compiled step, so that the first step needs no program of its own.

    The compiler distinguishes tensors that require gradients from others, and repeated tensors from different ones. At
    first h is x, and an LSTM's memory is zero; later its hidden state is both h and a part of the memory.
    """
    state = _without_repeats(state, given.x)
    if torch.is_grad_enabled() and any(weight.requires_grad for weight in network.parameters()):
        state = state.map(lambda part: part if part.requires_grad else part.detach().requires_grad_())
    return state


def _without_repeats(state: State, *others: Tensor) -> State:
    """The state with copies of tensors that it has twice, or that are among the ``others``."""
    parts = state.parts()
    earlier = [(*others, *parts[:index]) for index in range(len(parts))]
    return State.of(
        part.clone() if any(part is other for other in before) else part
        for part, before in zip(parts, earlier, strict=True)
    )


ENGINES: dict[str, Engine] = {}
"""By name, faster engines first."""

_only: ContextVar[str | None] = ContextVar("_only", default=None)


def choose(network: "RRN", given: "Prepared", state: State) -> Engine:
    """The fastest engine that fits, or the one that `only` selects."""
    if torch.compiler.is_compiling() or (network.compile_options is not None and _only.get() is None):
        return ENGINES["plain"]
    name, message = _only.get(), type(network.message)
    if name is None:
        engines = [engine for engine in ENGINES.values() if engine.message is message]
        if engines and fits_compiled(engines[0], network, given, state):  # the same for all of them
            for engine in engines:
                if engine.supports(network, given):
                    return engine
        return ENGINES["plain"]
    if not ENGINES[name].fits(network, given, state):
        raise InputError(f"engines.only({name!r}): this engine does not fit this network, graph and device")
    return ENGINES[name]


@contextmanager
def only(name: str) -> Iterator[None]:
    """In this context every network runs on the named engine; one that does not fit raises an `InputError`."""
    if name not in ENGINES:
        raise InputError(f"no engine {name!r}; there are {', '.join(ENGINES)}")
    before = _only.set(name)
    try:
        yield
    finally:
        _only.reset(before)


@contextmanager
def threads_for(floats: int) -> Iterator[None]:
    """In this context torch computes on one thread if the hidden states have few numbers, else on as many as before.

    Where other programs use the cores, two threads that wait for each other take many times as long as one.
    """
    before = torch.get_num_threads()
    if before == 1 or floats > SMALL:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_on_one_thread(
    engine: Engine, network: "RRN", given: "Prepared", state: State, steps: int, inputs: tuple[Any, ...]
) -> tuple[Tensor | Outputs, State]:
    """`Engine.run` on one thread, and its backward pass too, however that is called.

    Torch has as many threads as before where the gradient reaches one of the ``inputs``, at the end of the backward
    pass, and if it fails.
    """
    with threads_for(0):
        outputs, state = engine.run(network, given, state, steps)
    if _TORCH.after_backward is not None and torch.is_grad_enabled() and not _TORCH.needs_plain():
        limit, extras = _BackwardLimit(_TORCH.after_backward), outputs.extras if isinstance(outputs, Outputs) else {}
        results = answer_of(outputs), *extras.values(), *state.parts()
        for tensors, hook in ((results, limit.begin), (inputs, limit.end)):
            for tensor in tensors:
                if type(tensor) is Tensor and tensor.is_cpu and tensor.grad_fn is not None:
                    tensor.grad_fn.register_prehook(hook)
    return outputs, state


class _BackwardLimit:
    """Hooks of a backward pass: torch computes on one thread from `begin` to `end`, or to the end of the pass."""

    def __init__(self, after_backward: Callable[[Callable[[], None]], None]) -> None:
        self.after_backward = after_backward
        self.restore: Callable[[], Callable[[], None] | None] = lambda: None

    def begin(self, _: Any = None) -> None:
        threads = torch.get_num_threads()
        if threads > 1:
            torch.set_num_threads(1)
            restore = _Restore(threads)
            self.restore = weakref.WeakMethod(restore.now)
            self.after_backward(restore.now)

    def end(self, _: Any = None) -> None:
        restore = self.restore()
        if restore is not None:
            restore()


class _Restore:
    """Sets torch's threads once: when called, or when a failed backward pass drops it."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def now(self) -> None:
        if self.threads:
            torch.set_num_threads(self.threads)
            self.threads = 0

    __del__ = now


def is_unmodified(module: nn.Module, *types: type) -> bool:
    """Whether a module has exactly one of these types, with this type's layers and methods, and without hooks.

    An engine that replaces the module's ``forward`` by its own code would ignore any modification.
    """
    if type(module) not in types:
        return False
    for part in module.modules():
        if part is not module and type(part) not in _LAYERS:
            return False
        if "forward" in vars(part) or any(getattr(part, name, True) for name in MODULE_HOOKS):
            return False
        if isinstance(part, nn.Linear) and part.bias is None:
            return False
    return True


def fits_compiled(engine: Engine, network: "RRN", given: "Prepared", state: State) -> bool:
    """Whether the parts that compiled code replaces are unmodified and of the engine's types, and the input fits."""
    if engine.message is None:
        return True
    if not COMPILED:
        return False
    from rrn.network import RRN

    parts = (network.message, engine.message), (network.update, engine.update), (network.readout, engine.readout)
    if type(network).read is not RRN.read or not all(k is None or is_unmodified(part, k) for part, k in parts):
        return False
    tensors = given.x, state.h, *state.memory
    if any(part.shape[0] != given.graph.num_nodes for part in tensors):
        return False
    return supports_compiled(*tensors, given.edge_term, *network.parameters())


def detach_without_grad(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors, detached if gradients are disabled.

    An autograd function knows which inputs require gradients, but not that gradients are disabled. Without this it
    would save every step during inference.
    """
    return tensors if torch.is_grad_enabled() else tuple(tensor.detach() for tensor in tensors)


def supports_compiled(*tensors: Tensor | None) -> bool:
    """Whether compiled code and hand-written derivatives apply: all float32 or all float64, on a CPU, and neither
    traced, hooked for all modules, transformed by torch.func nor derived in forward mode."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.is_autocast_enabled("cpu"):
        return False
    if _TORCH.needs_plain():
        return False
    dtypes = set()
    for tensor in tensors:
        if tensor is None:
            continue
        if type(tensor) not in _PLAIN_TENSORS or not tensor.is_cpu or tensor.is_neg():
            return False
        dtypes.add(tensor.dtype)
    return len(dtypes) == 1 and dtypes <= _DTYPES


def differentiable_gradients(
    plain: Callable[..., Any], inputs: tuple[Tensor | None, ...], *more: Any, gradient: Any, **named: Any
) -> list[Tensor | None]:
    """Gradients of ``plain(*inputs, *more)`` that can be differentiated again, computed by autograd.

    For the backward pass of a hand-written function if gradients are enabled there (``create_graph=True``).
    """
    with torch.enable_grad():
        # one view each, so that a path from one input to another is no path to the outputs
        views = [value.view_as(value) if value is not None and value.requires_grad else value for value in inputs]
        wanted = [value for value in views if value is not None and value.requires_grad]
        outputs = plain(*views, *more, **named)
        if isinstance(gradient, tuple):  # None for an output that the loss does not depend on
            outputs = [output for output, flow in zip(outputs, gradient, strict=True) if flow is not None]
            gradient = [flow for flow in gradient if flow is not None]
        found = iter(torch.autograd.grad(outputs, wanted, gradient, create_graph=True, allow_unused=True))
    return [next(found) if value is not None and value.requires_grad else None for value in inputs]
