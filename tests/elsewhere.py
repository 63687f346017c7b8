"""A device that is not the CPU, on a machine that has no other.

Within `elsewhere()` the meta device has numbers: a tensor that is made there, or moved there, reports ``device="meta"``
and holds its numbers in an ordinary tensor within. What a GPU refuses is refused: an operation on tensors of both
devices, and ``numpy()``. What a GPU allows is allowed: copies between devices, numbers of no dimension, and indices
from the CPU.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from rrn.tasks.sudoku import model
from rrn.training.processes import Processes

THERE = torch.device("meta")
COPIES = ("copy_", "_to_copy")
INDEXED = ("index", "index_put", "index_put_", "_index_put_impl_")


class Elsewhere(Tensor):
    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Elsewhere":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=THERE,
            requires_grad=inner.requires_grad,
        )
        made.inner = inner
        return made

    def new_tensor(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.inner.new_tensor(*args, **kwargs).to(THERE)

    def tolist(self) -> Any:
        return self.inner.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("numpy: the tensor is elsewhere; copy it to the CPU first")

    def __repr__(self) -> str:
        return f"Elsewhere({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


class _Made(TorchFunctionMode):
    """Tensors made of Python's numbers."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in (torch.tensor, torch.as_tensor) and kwargs.get("device") == THERE:
            return function(*args, **{**kwargs, "device": "cpu"}).to(THERE)
        return function(*args, **kwargs)


class _Computed(TorchDispatchMode):
    """All others, also those that are made of nothing."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


def _run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = function.overloadpacket.__name__
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = {id(tensor.inner): tensor for tensor in tensors if isinstance(tensor, Elsewhere)}
    here = [tensor for tensor in tensors if not isinstance(tensor, Elsewhere) and tensor.dim()]
    if there and here and name not in COPIES and not (name in INDEXED and isinstance(args[0], Elsewhere)):
        raise RuntimeError(f"{name}: expected all tensors on one device, found some on the CPU and some elsewhere")
    asked = kwargs.get("device")
    goes_there = bool(there) if asked is None else torch.device(asked) == THERE
    if asked is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}

    if name == "_pack_padded_sequence":
        data, sizes = function(*(value.inner if isinstance(value, Elsewhere) else value for value in args))
        return Elsewhere(data), sizes

    def inside(value: Any) -> Any:
        return value.inner if isinstance(value, Elsewhere) else value

    def outside(value: Any) -> Any:
        if id(value) in there:
            return there[id(value)]
        return Elsewhere(value) if goes_there and isinstance(value, Tensor) else value

    return tree_map(outside, function(*tree_map(inside, args), **tree_map(inside, kwargs)))


@contextmanager
def elsewhere() -> Iterator[torch.device]:
    """The device; networks are moved to it with ``.to`` as to any other. There is no inference mode, but no_grad."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    _forget_graphs()
    try:
        with mock.patch("torch.inference_mode", torch.no_grad), _Made(), _Computed():
            yield THERE
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)
        _forget_graphs()


def _forget_graphs() -> None:
    """Those that are kept by device: the meta device without numbers is another one."""
    for kept in (model.cell_graph, model.group_table):
        kept.cache_clear()


class ProcessElsewhere(Processes):
    """A training process that works there."""

    def __init__(self) -> None:
        super().__init__()
        self.device = THERE

    def setup(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[Callable[..., Any], Any]:
        return network.to(THERE), optimizer
