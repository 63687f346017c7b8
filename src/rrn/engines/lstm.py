"""The paper's node function with neighbouring matrices multiplied out.

Between the sum over edges and the LSTM's gates lie linear layers that follow one another: f's last layer and the first
of g's MLP; the MLP's last layer and the gates. Each pair is one matrix, computed once for all steps. What g's MLP
makes of x is the same at every step, and computed once too. Exact, and a fifth fewer multiplications.
"""

from typing import Any, TypeGuard

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rrn._compat import COMPILED, compiled
from rrn.engines import threads
from rrn.engines.engine import differentiable_gradients
from rrn.graphs import Graph
from rrn.nn.messages import MLPMessage
from rrn.nn.updates import LSTMUpdate, State, Update, lstm


def fits(update: Update) -> TypeGuard[LSTMUpdate]:
    return COMPILED and isinstance(update, LSTMUpdate) and update.reader.mlp is not None


class MultipliedOut:
    """f's last layer and `LSTMUpdate` in one."""

    def __init__(self, message: MLPMessage, update: LSTMUpdate, x: Tensor, graph: Graph) -> None:
        assert update.reader.mlp is not None
        last, last_bias = message.mlp.weights()[-1]
        (first, first_bias), *self.middle, (final, final_bias) = update.reader.mlp.weights()
        hidden = x.shape[1]
        *to_h, to_x, to_m = first.split(hidden, dim=1)
        self.to_h = to_h[0] if to_h else None
        self.to_total = to_m @ last
        self.constant = torch.addmm(first_bias, x, to_x.T) + graph.in_degree().to(x) * (to_m @ last_bias)
        gates, to_hidden = update.gates.weight.split([update.reader.outputs, hidden], dim=1)
        self.to_gates = torch.cat([gates @ final, to_hidden], dim=1)
        self.bias = update.gates.bias + gates @ final_bias

    def step(self, state: State, total: Tensor) -> State:
        """``total`` is the sum over edges of f's hidden layers."""
        z = torch.addmm(self.constant, total, self.to_total.T)
        if self.to_h is not None:
            z = torch.addmm(z, state.h, self.to_h.T)
        z = z.relu_()
        for weight, bias in self.middle:
            z = F.linear(z, weight, bias).relu_()
        hidden, cell = state.memory
        hidden, cell = _Cell.apply(z, hidden, cell, self.to_gates, self.bias)
        return State(hidden, (hidden, cell))


def _plain(z: Tensor, hidden: Tensor, cell: Tensor, to_gates: Tensor, bias: Tensor) -> Any:
    return lstm(F.linear(torch.cat([z, hidden], dim=1), to_gates, bias), cell)


class _Cell(torch.autograd.Function):
    """An LSTM's step: activated gates are kept, and the backward pass between its matrix products is one loop."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, hidden: Tensor, cell: Tensor, to_gates: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        width = cell.shape[1]
        gates = torch.addmm(bias, torch.cat([z, hidden], dim=1), to_gates.T)
        gates[:, : 3 * width].sigmoid_()
        gates[:, 3 * width :].tanh_()
        enter, keep, show, new = gates.chunk(4, dim=-1)
        after = torch.mul(keep, cell).addcmul_(enter, new)
        bent = after.tanh()
        ctx.save_for_backward(z, hidden, cell, to_gates, bias, gates, bent)
        return show * bent, after

    @staticmethod
    def backward(ctx: Any, *arriving: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, gates, bent = ctx.saved_tensors
        if torch.is_grad_enabled():
            return tuple(differentiable_gradients(_plain, tuple(inputs), gradient=arriving))
        z, hidden, cell, to_gates, _ = inputs
        flow, before = torch.empty_like(gates), torch.empty_like(bent)
        rows = gates, bent, cell.detach().contiguous(), *(part.contiguous() for part in arriving), flow, before
        threads.at_once_by_rows(_back_through_gates, *(part.numpy() for part in rows))
        to_z, to_hidden = (flow @ to_gates).split([z.shape[1], hidden.shape[1]], dim=1)
        return to_z, to_hidden, before, flow.T @ torch.cat([z, hidden], dim=1), flow.sum(0)


@compiled(fastmath=True)
def _back_through_gates(
    gates: np.ndarray,
    bent: np.ndarray,
    cell: np.ndarray,
    from_hidden: np.ndarray,
    from_cell: np.ndarray,
    flow: np.ndarray,
    before: np.ndarray,
) -> None:
    nodes, width = cell.shape
    one = np.float32(1)
    for n in range(nodes):
        for k in range(width):
            enter, keep = gates[n, k], gates[n, width + k]
            show, new = gates[n, 2 * width + k], gates[n, 3 * width + k]
            through = from_cell[n, k] + from_hidden[n, k] * show * (one - bent[n, k] * bent[n, k])
            flow[n, k] = through * new * enter * (one - enter)
            flow[n, width + k] = through * cell[n, k] * keep * (one - keep)
            flow[n, 2 * width + k] = from_hidden[n, k] * bent[n, k] * show * (one - show)
            flow[n, 3 * width + k] = through * enter * (one - new * new)
            before[n, k] = through * keep
