"""One hidden layer in f, on any graph: Σ_i relu(a_i + b_j + c_ij) in one compiled pass over edges sorted by receiver.

With one hidden layer no matrix product is left on the edges, so no edge tensor is written: the pass reads two rows and
adds to a third. The backward pass repeats it and saves only its inputs.

The loop over steps is shared with `rrn.engines.chunked`. An `LSTMUpdate` has few matrix products: see `MultipliedOut`.
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
Sums = Callable[[Tensor], Tensor]
"""[source, target] of f's first layer, (nodes, 2 · hidden) → Σ_i of its hidden layers, (nodes, hidden)."""


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
        if can_multiply_out(update, given.x):
            cell = MultipliedOut(last, update, given.x, graph)  # type: ignore[arg-type]
        reads_h = type(update).readout_state is Update.readout_state
        arguments = (graph, given.batch, given.edge_attr) if readout.reads_edges else (graph, given.batch)
        at_once = _can_read_at_once(readout, given.x)
        outputs: Any = []
        for _ in range(steps):
            total = sums(torch.addmm(bias, state.h, weight))
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
        return lambda both: _SummedLayer.apply(both, edge_term, graph, edges)


class _SummedLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor, edge_term: Tensor | None, graph: Graph, edges: list[Array]) -> Tensor:
        unchanged = (tensor for tensor in graph.tensors if not tensor.is_inference())  # checked by torch
        ctx.save_for_backward(both, edge_term, *unchanged)
        ctx.graph, ctx.edges = graph, edges
        total = both.new_empty(len(both), both.shape[1] // 2)
        _forward(*_arrays(both, edge_term), *edges, total.numpy())
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        both, edge_term, *_ = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *differentiable_gradients(_plain_sums, (both, edge_term), ctx.graph, gradient=gradient), None, None
        arrays = _arrays(both, edge_term)
        to_both, to_terms = (np.zeros_like(array) for array in arrays)
        _backward(*arrays, *ctx.edges, gradient.contiguous().numpy(), to_both, to_terms)
        to_edges = None if edge_term is None else torch.from_numpy(to_terms).view_as(edge_term)
        return torch.from_numpy(to_both), to_edges, None, None


def _plain_sums(both: Tensor, edge_term: Tensor | None, graph: Graph) -> Tensor:
    source, target = both.chunk(2, dim=1)
    return hidden_sums(source, target, edge_term, graph, [])


def _arrays(both: Tensor, edge_term: Tensor | None) -> list[Array]:
    width = both.shape[1] // 2
    terms = both.new_empty(0, width) if edge_term is None else edge_term.reshape(-1, width)
    return [part.detach().contiguous().numpy() for part in (both, terms)]


@compiled(fastmath=True)
def _forward(both: Array, terms: Array, senders: Array, starts: Array, order: Array, total: Array) -> None:
    """A row of ``both`` is a node's part as the sender, then its part as the receiver."""
    width, zero = np.uint64(total.shape[1]), both.dtype.type(0)
    target, summed = np.empty(total.shape[1], both.dtype), np.empty(total.shape[1], both.dtype)
    for j in range(len(starts) - 1):
        for k in range(width):
            target[k] = both[j, width + k]
        for k in range(width):
            summed[k] = zero
        for e in range(starts[j], starts[j + 1]):
            i = senders[e]
            if len(terms):
                term = order[e]
                for k in range(width):
                    summed[k] += max(both[i, k] + target[k] + terms[term, k], zero)
            else:
                for k in range(width):
                    summed[k] += max(both[i, k] + target[k], zero)
        for k in range(width):
            total[j, k] = summed[k]


@compiled(fastmath=True)
def _backward(
    both: Array,
    terms: Array,
    senders: Array,
    starts: Array,
    order: Array,
    flow: Array,
    to_both: Array,
    to_terms: Array,
) -> None:
    """The gradients must be zeros at the start."""
    width, zero = np.uint64(flow.shape[1]), both.dtype.type(0)
    to_target = np.empty(flow.shape[1], both.dtype)
    for j in range(len(starts) - 1):
        to_target[:] = zero
        for e in range(starts[j], starts[j + 1]):
            i = senders[e]
            if len(terms):
                term = order[e]
                for k in range(width):
                    z = both[i, k] + both[j, width + k] + terms[term, k]
                    through = flow[j, k] if z > 0 else zero
                    to_both[i, k] += through
                    to_target[k] += through
                    to_terms[term, k] = through
            else:
                for k in range(width):
                    through = flow[j, k] if both[i, k] + both[j, width + k] > 0 else zero
                    to_both[i, k] += through
                    to_target[k] += through
        for k in range(width):
            to_both[j, width + k] = to_target[k]


def _can_read_at_once(readout: Readout, x: Tensor) -> bool:
    """Whether a graph readout reads all steps in one call: if it is not random, and copies of the states are small."""
    if not isinstance(readout, GraphReadout) or x.numel() > SMALL or not is_unmodified(readout, GraphReadout):
        return False
    return not (readout.training and readout.mlp.dropout.p)


def can_multiply_out(update: Update, x: Tensor) -> bool:
    """Whether `MultipliedOut` applies: an unmodified `LSTMUpdate` with an MLP, all of the usual widths."""
    if not COMPILED or not is_unmodified(update, LSTMUpdate):
        return False
    assert isinstance(update, LSTMUpdate)
    reader, hidden = update.reader, update.hidden
    if reader.mlp is None or x.shape[1] != hidden or update.gates.bias.shape != (4 * hidden,):
        return False
    widths = len(reader.inputs) * hidden, *[hidden] * len(reader.mlp.linears)
    return reader.mlp.has_widths(*widths) and update.gates.weight.shape == (4 * hidden, 2 * hidden)


class MultipliedOut:
    """f's last layer and `LSTMUpdate` with few matrix products between compiled passes.

    Consecutive linear layers are multiplied once for all steps: f's last layer with the first of g's MLP, the MLP's
    last layer with the gates. The contribution of x is computed once too, and a hidden state of zeros, as before the
    first step, is not multiplied. This is exact, and saves a quarter of the multiplications.
    """

    def __init__(self, last_layer: tuple[Tensor, Tensor], update: LSTMUpdate, x: Tensor, graph: Graph) -> None:
        assert update.reader.mlp is not None
        last, last_bias = last_layer
        (first, first_bias), *self.middle, (final, final_bias) = update.reader.mlp.weights()
        hidden = x.shape[1]
        *to_h, to_x, to_m = first.split(hidden, dim=1)
        self.to_h = to_h[0] if to_h else None
        self.to_total = to_m @ last
        self.constant = torch.addmm(first_bias, x, to_x.T) + graph.in_degree().to(x) * (to_m @ last_bias)
        gates, self.from_hidden = update.gates.weight.split([update.reader.outputs, hidden], dim=1)
        self.from_z = gates @ final
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
        before = None if _is_zero(hidden) and self.from_hidden.isfinite().all() else hidden
        hidden, cell = _Cell.apply(z, before, cell, self.from_z, self.from_hidden, self.bias, self.one_thread)
        return State(hidden, (hidden, cell))


def _is_zero(hidden: Tensor) -> bool:
    """Whether a hidden state is a constant zero, as before the first step."""
    return not hidden.requires_grad and not hidden[:1].any() and not hidden.any()


def _plain_cell(
    z: Tensor, hidden: Tensor | None, cell: Tensor, from_z: Tensor, from_hidden: Tensor, bias: Tensor
) -> Any:
    gates = F.linear(z, from_z, bias)
    return lstm(gates if hidden is None else gates + hidden @ from_hidden.T, cell)


class _Cell(torch.autograd.Function):
    """A step of an LSTM. Both passes are one loop between matrix products; the activated gates are saved."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        hidden: Tensor | None,
        cell: Tensor,
        from_z: Tensor,
        from_hidden: Tensor,
        bias: Tensor,
        one_thread: bool,
    ) -> tuple[Tensor, Tensor]:
        gates = z @ from_z.T
        if hidden is not None:
            gates.addmm_(hidden, from_hidden.T)
        if gates.dtype == torch.float32:
            cell = cell.contiguous()
            following, after, squashed = (torch.empty_like(cell) for _ in range(3))
            rows = [part.detach().numpy() for part in (gates, cell, following, after, squashed)]
            bias_row = bias.detach().contiguous().numpy()
            if one_thread:
                _through_gates(bias_row, *rows)
            else:
                threads.run_by_rows(lambda _, *some: _through_gates(bias_row, *some), threads.shares(), *rows)
        else:  # `_tanh` has the precision of 32 bits
            sums = gates.add_(bias).view(len(gates), 4, -1)
            sums[:, :3].sigmoid_()
            sums[:, 3].tanh_()
            input_gate, forget_gate, output_gate, new = sums.unbind(1)
            after = torch.mul(forget_gate, cell).addcmul_(input_gate, new)
            squashed = after.tanh()
            following = output_gate * squashed
        ctx.one_thread = one_thread
        ctx.save_for_backward(z, hidden, cell, from_z, from_hidden, bias, gates, squashed)
        return following, after

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, gates, squashed = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *differentiable_gradients(_plain_cell, tuple(inputs), gradient=gradients), None
        z, hidden, cell, from_z, from_hidden, _ = inputs
        to_gate_sums, to_cell = torch.empty_like(gates), torch.empty_like(squashed)
        arriving = (gradient.contiguous() for gradient in gradients)
        rows = gates, squashed, cell.detach().contiguous(), *arriving, to_gate_sums, to_cell
        count = 1 if ctx.one_thread else threads.shares()
        to_bias = np.zeros((count, gates.shape[1]))  # 64 bits: sums over all nodes, one for each share

        def work(share: int, *some: Array) -> None:
            _back_through_gates(*some, to_bias[share])

        arrays = [part.numpy() for part in rows]
        if ctx.one_thread:
            work(0, *arrays)
        else:
            threads.run_by_rows(work, count, *arrays)
        to_z, to_from_z = to_gate_sums @ from_z, to_gate_sums.T @ z
        to_hidden = to_from_hidden = None
        if hidden is not None:
            to_hidden, to_from_hidden = to_gate_sums @ from_hidden, to_gate_sums.T @ hidden
        return to_z, to_hidden, to_cell, to_from_z, to_from_hidden, torch.from_numpy(to_bias.sum(0)).to(z), None


@compiled(fastmath=True)
def _back_through_gates(
    gates: Array,
    squashed: Array,
    cell: Array,
    from_hidden: Array,
    from_cell: Array,
    to_gate_sums: Array,
    to_cell: Array,
    to_bias: Array,
) -> None:
    """``to_bias`` is increased."""
    width, one = np.uint64(cell.shape[1]), np.float32(1)
    second, third, fourth = width, width + width, width + width + width
    through = np.empty(cell.shape[1], cell.dtype)
    for n in range(np.uint64(cell.shape[0])):  # loops that write to one place each, as only these become vectors
        for k in range(width):
            output_gate = gates[n, third + k]
            through[k] = from_cell[n, k] + from_hidden[n, k] * output_gate * (one - squashed[n, k] * squashed[n, k])
            to_cell[n, k] = through[k] * gates[n, second + k]
        for k in range(width):
            to_gate_sums[n, k] = through[k] * gates[n, fourth + k] * gates[n, k] * (one - gates[n, k])
        for k in range(width):
            gate = gates[n, second + k]
            to_gate_sums[n, second + k] = through[k] * cell[n, k] * gate * (one - gate)
        for k in range(width):
            gate = gates[n, third + k]
            to_gate_sums[n, third + k] = from_hidden[n, k] * squashed[n, k] * gate * (one - gate)
        for k in range(width):
            new = gates[n, fourth + k]
            to_gate_sums[n, fourth + k] = through[k] * gates[n, k] * (one - new * new)
        for k in range(fourth + width):
            to_bias[k] += to_gate_sums[n, k]


@compiled(fastmath=True)
def _tanh(x: Any) -> Any:
    """tanh as a quotient of polynomials, which compiles to vector instructions; absolute error below 4e-7.

    The coefficients are a least-squares fit on [-8, 8] whose largest error is 6e-9. NaN stays NaN.
    """
    x = _LARGEST if x > _LARGEST else -_LARGEST if x < -_LARGEST else x
    square = x * x
    above = (((_P4 * square + _P3) * square + _P2) * square + _P1) * square + _P0
    below = (((_Q4 * square + _Q3) * square + _Q2) * square + _Q1) * square + _Q0
    return x * above / below


_LARGEST = np.float32(8)
_P0, _P1, _P2 = np.float32(0.9999999702), np.float32(0.13438274), np.float32(0.00356425425)
_P3, _P4 = np.float32(2.177485695e-05), np.float32(1.506405525e-08)
_Q0, _Q1, _Q2 = np.float32(1), np.float32(0.4677159483), np.float32(0.02613638964)
_Q3, _Q4 = np.float32(0.0003399339598), np.float32(8.454576894e-07)


@compiled(fastmath=True)
def _through_gates(bias: Array, gates: Array, cell: Array, hidden: Array, after: Array, squashed: Array) -> None:
    """The LSTM after its matrix product: activates the gates in place, and writes the next hidden and cell state."""
    width, half = np.uint64(cell.shape[1]), np.float32(0.5)
    second, third, fourth = width, width + width, width + width + width
    for n in range(np.uint64(cell.shape[0])):  # loops that write to one place each, as only these become vectors
        for k in range(fourth):
            gates[n, k] = half + half * _tanh(half * (gates[n, k] + bias[k]))
        for k in range(fourth, fourth + width):
            gates[n, k] = _tanh(gates[n, k] + bias[k])
        for k in range(width):
            after[n, k] = gates[n, second + k] * cell[n, k] + gates[n, k] * gates[n, fourth + k]
        for k in range(width):
            squashed[n, k] = _tanh(after[n, k])
            hidden[n, k] = gates[n, third + k] * squashed[n, k]
