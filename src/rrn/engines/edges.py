"""One hidden layer in f, on any graph: Σ_i relu(a_i + b_j + c_ij) in one compiled pass over edges sorted by receiver.

With one hidden layer no matrix product is left on the edges, so no edge tensor is written: the pass reads two rows and
adds to a third. The backward pass repeats it and saves only its inputs.

The loop over steps is shared with `rrn.engines.chunked`. With the paper's LSTM update, consecutive linear layers are
multiplied once for all steps: f's last layer with the first of g's MLP, the MLP's last layer with the gates. The
contribution of x is computed once too. This is exact, and saves a fifth of the multiplications.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rrn._compat import COMPILED, compiled
from rrn.engines import threads
from rrn.engines.plain import SMALL, Engine, differentiable_gradients, is_unmodified
from rrn.graphs import CompleteGraphs, EdgeList, Graph, Groups, NeighbourTable, PackedGraphs
from rrn.nn.messages import Layers, MLPMessage, hidden_sums
from rrn.nn.readouts import GraphReadout, Outputs, Readout, stack
from rrn.nn.updates import LSTMUpdate, State, Update, lstm

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

Array = np.ndarray
Sums = Callable[[Tensor, Tensor], Tensor]
"""(source, target) → Σ_i of f's hidden layers: (nodes, hidden) each."""


class MessageEngine(Engine):
    """The plain loop with a faster sum of f's hidden layers over the edges."""

    message = MLPMessage
    layouts: tuple[type, ...]
    """The graphs that it runs on."""

    def supports(self, network: "RRN", given: "Prepared") -> bool:
        """Whether f is of the usual widths and has the paper's sum."""
        if type(given.graph) not in self.layouts:
            return False
        message, term = network.message, given.edge_term
        assert isinstance(message, MLPMessage)
        hidden, inputs = message.hidden, 2 * message.hidden + message.edge_features
        if message.aggregate != ("sum",) or not message.mlp.has_widths(inputs, *[hidden] * (message.layers + 1)):
            return False
        shape = (*given.graph.edge_shape, hidden)
        return term is None or term.shape == shape or term.numel() == term.shape[-1] == hidden

    @abstractmethod
    def sums(self, edge_term: Tensor | None, graph: Graph, layers: Layers) -> Sums:
        """A function equivalent to `rrn.nn.messages.hidden_sums`, for all steps of a run."""

    def run(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Tensor | Outputs, State]:
        """On several threads if the batch can be split."""
        at_most = math.prod(given.graph.edge_shape) * network.hidden // threads.CHUNK_FLOATS
        graphs = threads.split_graphs(network, given, at_most) if at_most > 1 else []
        if graphs:
            outputs, state = threads.run_graphs(graphs, self.steps, network, given, state, steps)
        else:
            outputs, state = self.steps(network, given, state, steps)
        return (outputs if isinstance(outputs, Tensor) else stack(outputs)), state

    def steps(self, network: "RRN", given: "Prepared", state: State, steps: int) -> tuple[Sequence[Any], State]:
        message, update, readout, graph = network.message, network.update, network.readout, given.graph
        assert isinstance(message, MLPMessage)
        weight, bias, term, middle, last = message.split_layers(given.edge_term)
        sums = self.sums(term, graph, middle)
        cell = None
        if _can_multiply_out(update, given.x):
            cell = _MultipliedOut(last, update, given.x, graph)  # type: ignore[arg-type]
        reads_h = type(update).readout_state is Update.readout_state
        arguments = (graph, given.batch, given.edge_attr) if readout.reads_edges else (graph, given.batch)
        at_once = _can_read_at_once(readout, given.x)
        outputs: Any = []
        for _ in range(steps):
            source, target = torch.addmm(bias, state.h, weight).split(message.hidden, dim=1)
            total = sums(source, target)
            if cell is None:
                state = update(state, given.x, message.last_layer(total, graph))
            else:
                state = cell.step(state, total)
            read = state.h if reads_h else update.readout_state(state)
            outputs.append(read if at_once else readout(read, *arguments))
        return (readout.read_steps(outputs, graph, given.batch) if at_once else outputs), state  # type: ignore[operator]


class Edges(MessageEngine):
    """f with one hidden layer and the paper's sum."""

    name = "edges"
    layouts = EdgeList, NeighbourTable, CompleteGraphs, PackedGraphs, Groups

    def supports(self, network: "RRN", given: "Prepared") -> bool:
        return getattr(network.message, "layers", 0) == 1 and super().supports(network, given)

    def sums(self, edge_term: Tensor | None, graph: Graph, layers: Layers) -> Sums:
        edges = [part.numpy() for part in graph.sorted_edges()]
        return lambda source, target: _SummedLayer.apply(source, target, edge_term, graph, edges)


class _SummedLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, source: Tensor, target: Tensor, edge_term: Tensor | None, graph: Graph, edges: list[Array]
    ) -> Tensor:
        unchanged = (tensor for tensor in graph.tensors if not tensor.is_inference())  # checked by torch
        ctx.save_for_backward(source, target, edge_term, *unchanged)
        ctx.graph, ctx.edges = graph, edges
        total = torch.empty_like(source, memory_format=torch.contiguous_format)
        _forward(*_arrays(source, target, edge_term), *edges, total.numpy())
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        source, target, edge_term, *_ = ctx.saved_tensors
        if torch.is_grad_enabled():
            inputs = source, target, edge_term
            return *differentiable_gradients(hidden_sums, inputs, ctx.graph, [], gradient=gradient), None, None
        arrays = _arrays(source, target, edge_term)
        to_source, to_target, to_terms = (np.zeros_like(array) for array in arrays)
        _backward(*arrays, *ctx.edges, gradient.contiguous().numpy(), to_source, to_target, to_terms)
        to_edges = None if edge_term is None else torch.from_numpy(to_terms).view_as(edge_term)
        return torch.from_numpy(to_source), torch.from_numpy(to_target), to_edges, None, None


def _arrays(source: Tensor, target: Tensor, edge_term: Tensor | None) -> list[Array]:
    width = source.shape[1]
    terms = source.new_empty(0, width) if edge_term is None else edge_term.reshape(-1, width)
    return [part.detach().contiguous().numpy() for part in (source, target, terms)]


@compiled(fastmath=True)
def _forward(
    source: Array, target: Array, terms: Array, senders: Array, starts: Array, order: Array, total: Array
) -> None:
    width = source.shape[1]
    for j in range(len(starts) - 1):
        for k in range(width):
            total[j, k] = 0
        for e in range(starts[j], starts[j + 1]):
            i = senders[e]
            if len(terms):
                term = order[e]
                for k in range(width):
                    total[j, k] += max(source[i, k] + target[j, k] + terms[term, k], source.dtype.type(0))
            else:
                for k in range(width):
                    total[j, k] += max(source[i, k] + target[j, k], source.dtype.type(0))


@compiled(fastmath=True)
def _backward(
    source: Array,
    target: Array,
    terms: Array,
    senders: Array,
    starts: Array,
    order: Array,
    flow: Array,
    to_source: Array,
    to_target: Array,
    to_terms: Array,
) -> None:
    """The gradients must be zeros at the start."""
    width = source.shape[1]
    for j in range(len(starts) - 1):
        for e in range(starts[j], starts[j + 1]):
            i = senders[e]
            if len(terms):
                term = order[e]
                for k in range(width):
                    z = source[i, k] + target[j, k] + terms[term, k]
                    through = flow[j, k] if z > 0 else source.dtype.type(0)
                    to_source[i, k] += through
                    to_target[j, k] += through
                    to_terms[term, k] = through
            else:
                for k in range(width):
                    through = flow[j, k] if source[i, k] + target[j, k] > 0 else source.dtype.type(0)
                    to_source[i, k] += through
                    to_target[j, k] += through


def _can_read_at_once(readout: Readout, x: Tensor) -> bool:
    """Whether a graph readout reads all steps in one call: if it is not random, and copies of the states are small."""
    if not isinstance(readout, GraphReadout) or x.numel() > SMALL or not is_unmodified(readout, GraphReadout):
        return False
    return not (readout.training and readout.mlp.dropout.p)


def _can_multiply_out(update: Update, x: Tensor) -> bool:
    """Whether `_MultipliedOut` applies: an unmodified `LSTMUpdate` with an MLP, all of the usual widths."""
    if not COMPILED or not is_unmodified(update, LSTMUpdate):
        return False
    assert isinstance(update, LSTMUpdate)
    reader, hidden = update.reader, update.hidden
    if reader.mlp is None or x.shape[1] != hidden or update.gates.bias.shape != (4 * hidden,):
        return False
    widths = len(reader.inputs) * hidden, *[hidden] * len(reader.mlp.linears)
    return reader.mlp.has_widths(*widths) and update.gates.weight.shape == (4 * hidden, 2 * hidden)


class _MultipliedOut:
    """f's last layer and `LSTMUpdate` with consecutive matrices multiplied."""

    def __init__(self, last_layer: tuple[Tensor, Tensor], update: LSTMUpdate, x: Tensor, graph: Graph) -> None:
        assert update.reader.mlp is not None
        last, last_bias = last_layer
        (first, first_bias), *self.middle, (final, final_bias) = update.reader.mlp.weights()
        hidden = x.shape[1]
        *to_h, to_x, to_m = first.split(hidden, dim=1)
        self.to_h = to_h[0] if to_h else None
        self.to_total = to_m @ last
        self.constant = torch.addmm(first_bias, x, to_x.T) + graph.in_degree().to(x) * (to_m @ last_bias)
        gates, to_hidden = update.gates.weight.split([update.reader.outputs, hidden], dim=1)
        self.to_gates = torch.cat([gates @ final, to_hidden], dim=1)
        self.bias = update.gates.bias + gates @ final_bias
        self.one_thread = torch.get_num_threads() == 1 or threads.shares() == 1

    def step(self, state: State, total: Tensor) -> State:
        """``total`` is the sum over edges of f's hidden layers."""
        z = torch.addmm(self.constant, total, self.to_total.T)
        if self.to_h is not None:
            z = torch.addmm(z, state.h, self.to_h.T)
        z = z.relu_()
        for weight, bias in self.middle:
            z = F.linear(z, weight, bias).relu_()
        hidden, cell = state.memory
        hidden, cell = _Cell.apply(z, hidden, cell, self.to_gates, self.bias, self.one_thread)
        return State(hidden, (hidden, cell))


def _plain_cell(z: Tensor, hidden: Tensor, cell: Tensor, to_gates: Tensor, bias: Tensor) -> Any:
    return lstm(F.linear(torch.cat([z, hidden], dim=1), to_gates, bias), cell)


class _Cell(torch.autograd.Function):
    """A step of an LSTM. The backward pass saves the activated gates, and is one loop between its matrix products."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, hidden: Tensor, cell: Tensor, to_gates: Tensor, bias: Tensor, one_thread: bool
    ) -> tuple[Tensor, Tensor]:
        width = cell.shape[1]
        gates = torch.addmm(bias, torch.cat([z, hidden], dim=1), to_gates.T)
        gates[:, : 3 * width].sigmoid_()
        gates[:, 3 * width :].tanh_()
        input_gate, forget_gate, output_gate, new = gates.chunk(4, dim=-1)
        after = torch.mul(forget_gate, cell).addcmul_(input_gate, new)
        squashed = after.tanh()
        ctx.one_thread = one_thread
        ctx.save_for_backward(z, hidden, cell, to_gates, bias, gates, squashed)
        return output_gate * squashed, after

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, gates, squashed = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *differentiable_gradients(_plain_cell, tuple(inputs), gradient=gradients), None
        z, hidden, cell, to_gates, _ = inputs
        to_gate_sums, to_cell = torch.empty_like(gates), torch.empty_like(squashed)
        arriving = (gradient.contiguous() for gradient in gradients)
        rows = gates, squashed, cell.detach().contiguous(), *arriving, to_gate_sums, to_cell
        arrays = [part.numpy() for part in rows]
        if ctx.one_thread:
            _back_through_gates(*arrays)
        else:
            threads.run_by_rows(_back_through_gates, *arrays)
        to_z, to_hidden = (to_gate_sums @ to_gates).split([z.shape[1], hidden.shape[1]], dim=1)
        to_weight = to_gate_sums.T @ torch.cat([z, hidden], dim=1)
        return to_z, to_hidden, to_cell, to_weight, to_gate_sums.sum(0), None


@compiled(fastmath=True)
def _back_through_gates(
    gates: Array,
    squashed: Array,
    cell: Array,
    from_hidden: Array,
    from_cell: Array,
    to_gate_sums: Array,
    to_cell: Array,
) -> None:
    nodes, width = cell.shape
    one = np.float32(1)
    for n in range(nodes):
        for k in range(width):
            input_gate, forget_gate = gates[n, k], gates[n, width + k]
            output_gate, new = gates[n, 2 * width + k], gates[n, 3 * width + k]
            through = from_cell[n, k] + from_hidden[n, k] * output_gate * (one - squashed[n, k] * squashed[n, k])
            to_gate_sums[n, k] = through * new * input_gate * (one - input_gate)
            to_gate_sums[n, width + k] = through * cell[n, k] * forget_gate * (one - forget_gate)
            to_gate_sums[n, 2 * width + k] = from_hidden[n, k] * squashed[n, k] * output_gate * (one - output_gate)
            to_gate_sums[n, 3 * width + k] = through * input_gate * (one - new * new)
            to_cell[n, k] = through * forget_gate
