"""Export networks as ``torch.export`` programs and as ONNX files, for graphs of any size.

Three programs run a network without this library: `start_program` (x → initial state), `step_program` (state → outputs
and next state) and `run_program` (a fixed number of steps → outputs). Inputs and outputs have these names in ONNX:

* ``x``, ``edge_index``, ``edge_attr``, ``batch`` as in `RRN.forward`, if the network takes them;
* ``state_0``, ``state_1``, …: the parts of the state; the next state is ``next_state_0``, …;
* ``outputs``: (nodes, outputs) of a step, (steps, nodes, outputs) of a run; graphs or edges instead of nodes
  with a graph or edge readout.

Writing ONNX needs the extra ``export``: ``pip install 'torch-rrn[export]'``.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from rrn.errors import InputError, needs_extra
from rrn.io.files import write_atomically
from rrn.network import RRN
from rrn.nn.updates import State

N = TypeVar("N", bound=nn.Module)
Dimensions = dict[int, str]
"""The dynamic dimensions of an input, by name."""


class Program(nn.Module, Generic[N]):
    """A module to export: a number of steps of a network."""

    def __init__(self, network: N, steps: int = 1) -> None:
        super().__init__()
        if steps < 1:
            raise InputError(f"steps: expected at least 1, got {steps}")
        self.network, self.steps = network, steps


class _Start(Program[RRN]):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(part.clone() for part in self.network.initial_state(x).parts())


class _Step(Program[RRN]):
    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        state: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        outputs, after = self.network.step(State.of(state), x, edge_index, edge_attr, batch)
        return outputs, *(part.clone() for part in after.parts())


class _Run(Program[RRN]):
    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        return self.network(x, edge_index, edge_attr, batch, steps=self.steps)


def start_program(network: RRN, x: Tensor) -> ExportedProgram:
    """The program of the initial state: x → state. ``x`` is an example."""
    return export_program(_Start(network), {"x": x}, {"x": {0: "nodes"}})


def step_program(
    network: RRN, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None, batch: Tensor | None = None
) -> ExportedProgram:
    """The program of one step. The arguments are an example; the numbers of nodes, edges and graphs are dynamic.

    Called as ``program.module()(x=…, edge_index=…, state=(h, …))`` it returns ``(outputs, h, …)``.
    """
    inputs, dynamic = _graph_inputs(x, edge_index, edge_attr, batch)
    with torch.no_grad():
        parts = network.initial_state(x).parts()
    return export_program(
        _Step(network), {**inputs, "state": parts}, {**dynamic, "state": ({0: "nodes"},) * len(parts)}
    )


def run_program(
    network: RRN,
    x: Tensor,
    edge_index: Tensor,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
    *,
    steps: int,
) -> ExportedProgram:
    """The program of ``steps`` steps: the outputs of every step. Arguments as in `step_program`."""
    return export_program(_Run(network, steps), *_graph_inputs(x, edge_index, edge_attr, batch))


def _graph_inputs(
    x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, batch: Tensor | None
) -> tuple[dict[str, Tensor], dict[str, Dimensions]]:
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.shape[1] < 2 or x.shape[0] < 2:
        raise InputError("edge_index: expected shape (2, edges) of an example graph with at least 2 nodes and 2 edges")
    inputs, dynamic = {"x": x, "edge_index": edge_index}, {"x": {0: "nodes"}, "edge_index": {1: "edges"}}
    if edge_attr is not None:
        inputs["edge_attr"], dynamic["edge_attr"] = edge_attr, {0: "edges"}
    if batch is not None:
        inputs["batch"], dynamic["batch"] = batch, {0: "nodes"}
    return inputs, dynamic


def export_program(
    module: nn.Module,
    inputs: Mapping[str, Tensor | tuple[Tensor, ...]],
    dynamic: Mapping[str, Dimensions | tuple[Dimensions, ...]],
) -> ExportedProgram:
    """Trace a module with keyword arguments. ``dynamic`` names the dynamic dimensions of each input."""
    sizes: dict[str, torch.export.Dim] = {}

    def named(dimensions: Dimensions) -> dict[int, torch.export.Dim]:
        return {d: sizes.setdefault(name, torch.export.Dim(name, min=2)) for d, name in dimensions.items()}

    shapes = {k: tuple(named(each) for each in d) if isinstance(d, tuple) else named(d) for k, d in dynamic.items()}
    with torch.no_grad():
        return torch.export.export(module.eval(), (), dict(inputs), dynamic_shapes=shapes, strict=False)


def write_onnx(program: ExportedProgram, path: str | Path, outputs: list[str] | None = None) -> None:
    """Write a program to an ``.onnx`` file, weights included.

    ``outputs`` are the names of its outputs; by default those in the documentation of this module.
    """
    check_onnx(path)
    with _quiet():
        written = torch.onnx.export(program, dynamo=True, verbose=False, output_names=outputs or _output_names(program))
    assert written is not None
    write_atomically(path, written.model_proto.SerializeToString())


def check_onnx(path: str | Path) -> None:
    """Raise an `InputError` if the packages for writing ONNX are missing."""
    if any(find_spec(package) is None for package in ("onnx", "onnxscript")):
        raise needs_extra(f"{path}: writing ONNX", "export")


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the exporter's log messages and warnings."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _output_names(program: ExportedProgram) -> list[str]:
    count, inputs = len(program.graph_signature.user_outputs), program.graph_signature.user_inputs
    if len(inputs) == 1:
        return [f"state_{i}" for i in range(count)]
    return ["outputs", *(f"next_state_{i}" for i in range(count - 1))]
