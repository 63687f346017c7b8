"""g, the node function (eq. 3): h_j ← g(h_j, x_j, m_j)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.nn.layers import MLP, Product, linear

Inputs = Literal["xm", "hxm"]
LARGEST = 6.0
"""Where `SharedLayerUpdate` cuts off its units."""


class State(NamedTuple):
    """What a network remembers between steps: ``h`` (nodes, hidden), and what the node function keeps besides."""

    h: Tensor
    memory: tuple[Tensor, ...] = ()

    def parts(self) -> tuple[Tensor, ...]:
        return self.h, *self.memory

    @classmethod
    def of(cls, parts: Iterable[Tensor]) -> "State":
        """What `parts` gave."""
        h, *memory = parts
        return cls(h, tuple(memory))

    def map(self, function: Callable[[Tensor], Tensor]) -> "State":
        return State.of(function(part) for part in self.parts())

    def detach(self) -> "State":
        return self.map(Tensor.detach)

    def where(self, rows: Tensor, other: "State") -> "State":
        """The other state in some rows (nodes,), this one elsewhere."""
        return State.of(torch.where(rows[:, None], b, a) for a, b in zip(self.parts(), other.parts(), strict=True))


class Update(nn.Module, ABC):
    def start(self, x: Tensor) -> State:
        """The state before the first step: h⁰ = x."""
        return State(x)

    @abstractmethod
    def forward(self, state: State, x: Tensor, m: Tensor) -> State: ...

    def shown(self, state: State) -> Tensor:
        """What of the state the readout sees: h, unless an update keeps something better for it."""
        return state.h

    def noisy(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        """The state with noise of a standard deviation (nodes, 1) added to what carries it on."""
        return State(state.h + noise * normal_like(state.h, generator), state.memory)


def normal_like(values: Tensor, generator: torch.Generator | None) -> Tensor:
    """Normal numbers, the same on every device."""
    return torch.randn(values.shape, generator=generator, dtype=values.dtype, device="cpu").to(values.device)


class _Reader(nn.Module):
    """The MLP before the recurrent unit, on [x, m] or [h, x, m]. Without layers it only concatenates."""

    def __init__(self, hidden: int, layers: int, inputs: Inputs) -> None:
        super().__init__()
        self.inputs: Inputs = inputs
        width = len(inputs) * hidden
        self.mlp = MLP(width, hidden, hidden, layers) if layers else None
        self.outputs = hidden if layers else width

    def forward(self, h: Tensor, x: Tensor, m: Tensor) -> Tensor:
        joined = torch.cat([h, x, m] if self.inputs == "hxm" else [x, m], dim=-1)
        return joined if self.mlp is None else self.mlp(joined)


class LSTMUpdate(Update):
    """h, s ← LSTM(MLP([x, m]), s): the node function of the paper's bAbI and Sudoku networks.

    The LSTM's own hidden and cell state start at zero although h⁰ = x. It has one bias vector, the forget gate's
    part of it 1 at the start.
    """

    def __init__(self, hidden: int, layers: int = 1, inputs: Inputs = "xm") -> None:
        super().__init__()
        self.reader = _Reader(hidden, layers, inputs)
        self.gates = linear(self.reader.outputs + hidden, 4 * hidden)
        with torch.no_grad():
            self.gates.bias.zero_()
            self.gates.bias[hidden : 2 * hidden] = 1

    def start(self, x: Tensor) -> State:
        return State(x, (torch.zeros_like(x), torch.zeros_like(x)))

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        hidden, cell = state.memory
        gates = self.gates(torch.cat([self.reader(state.h, x, m), hidden], dim=-1))
        hidden, cell = lstm(gates, cell)
        return State(hidden, (hidden, cell))


def lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The hidden and the cell state that follow: gates (nodes, 4 · hidden) before their activation."""
    enter, keep, show, new = gates.chunk(4, dim=-1)
    cell = keep.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return show.sigmoid() * cell.tanh(), cell


class GRUUpdate(Update):
    """h ← GRU(MLP([x, m]), h)."""

    def __init__(self, hidden: int, layers: int = 1, inputs: Inputs = "xm") -> None:
        super().__init__()
        self.reader = _Reader(hidden, layers, inputs)
        self.cell = nn.GRUCell(self.reader.outputs, hidden)

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        return State(self.cell(self.reader(state.h, x, m), state.h))


class MLPUpdate(Update):
    """h ← MLP([h, x, m]): the node function of the paper's Pretty-CLEVR network."""

    def __init__(self, hidden: int, layers: int = 1, inputs: Inputs = "hxm") -> None:
        super().__init__()
        self.reader = _Reader(hidden, max(layers, 1), inputs)

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        return State(self.reader(state.h, x, m))


class NoUpdate(Update):
    """h ← m: what arrived is the state, as in the graph-centric relational network."""

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        return State(m)


class ResidualUpdate(Update):
    """h ← LayerNorm(h + W·z) with one hidden layer z on [h, x, m], of ReLU units or of products."""

    def __init__(self, hidden: int, width: int, kind: Literal["relu", "product"] = "relu") -> None:
        super().__init__()
        self.change = Product(3 * hidden, width, hidden) if kind == "product" else MLP(3 * hidden, width, hidden, 1)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        return State(self.norm(state.h + self.change(torch.cat([state.h, x, m], dim=-1))))


class SharedLayerUpdate(Update):
    """One layer z on [s, m, x], from which both the messages of the next step and the change of s are read::

        z ← x · clamp([s, m, x] W, 0, 6)        s ← unit(s + z V)

    The first units of z are what other nodes hear of (h), s is what the answer is read from; unit() scales to a mean
    square of 1. x is one number per node: 1, or 0 for a node that is to stay silent. Sums over groups feed back into
    the layer, so its units are cut off, lest they run away.
    """

    def __init__(self, hidden: int, messages: int, layer: int) -> None:
        super().__init__()
        if layer < messages:
            raise InputError(f"layer: expected at least the {messages} units of all messages, got {layer}")
        self.hidden, self.messages = hidden, messages
        first = torch.randn(hidden + messages + 1, layer) * (2 * hidden + messages) ** -0.5
        first[hidden:] *= 0.3
        first[-1] = torch.randn(layer) * 0.3
        self.first = nn.Parameter(first)
        self.second = nn.Parameter(torch.randn(layer, hidden) * 0.5 * layer**-0.5)

    def start(self, x: Tensor) -> State:
        nodes = x.shape[0]
        return State(x.new_zeros(nodes, self.messages), (x.new_zeros(nodes, self.hidden),))

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        (s,) = state.memory
        z = (torch.cat([s, m, x], dim=-1) @ self.first).clamp(0.0, LARGEST) * x
        s = s + z @ self.second
        return State(z[:, : self.messages], (s * torch.rsqrt(s.square().mean(-1, keepdim=True) + 1e-6),))

    def shown(self, state: State) -> Tensor:
        return state.memory[0]

    def noisy(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        (s,) = state.memory
        return State(state.h, (s + noise * normal_like(s, generator),))
