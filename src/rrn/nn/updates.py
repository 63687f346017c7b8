"""g, the node function (eq. 3): h_j ← g(h_j, x_j, m_j)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.nn.layers import MLP, Linear, Product, Resettable

Inputs = Literal["xm", "hxm"]
CLAMP = 6.0
"""Upper bound of the hidden units of `SharedLayerUpdate`."""


class State(NamedTuple):
    """The recurrent state: ``h`` (nodes, hidden) and the update's further tensors, such as an LSTM's cell state."""

    h: Tensor
    memory: tuple[Tensor, ...] = ()

    def parts(self) -> tuple[Tensor, ...]:
        """``h`` and the tensors of ``memory`` as one tuple."""
        return self.h, *self.memory

    @classmethod
    def of(cls, parts: Iterable[Tensor]) -> "State":
        """The inverse of `parts`."""
        h, *memory = parts
        return cls(h, tuple(memory))

    def map(self, function: Callable[[Tensor], Tensor]) -> "State":
        """Apply a function to every part."""
        return State.of(function(part) for part in self.parts())

    def detach(self) -> "State":
        return self.map(Tensor.detach)

    def select(self, rows: Tensor) -> "State":
        """Some of the rows, by their indices."""
        return self.map(lambda part: part.index_select(0, rows))

    def join(self, *others: "State") -> "State":
        """The rows, followed by those of others."""
        return State.of(map(torch.cat, zip(self.parts(), *(other.parts() for other in others), strict=True)))

    def where(self, rows: Tensor, other: "State") -> "State":
        """Take the rows of ``other`` where the mask ``rows`` (nodes,) is true, and these rows elsewhere."""
        return State.of(torch.where(rows[:, None], b, a) for a, b in zip(self.parts(), other.parts(), strict=True))


class Update(Resettable, ABC):
    """The node function g. Subclass it and implement `forward`; override the rest if the state is more than h."""

    def initial_state(self, x: Tensor) -> State:
        """The state before the first step: h⁰ = x (nodes, hidden)."""
        return State(x)

    @abstractmethod
    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        """Eq. 3: the next state, given the encoded features x and the aggregated messages m, (nodes, width) each."""

    def readout_state(self, state: State) -> Tensor:
        """The tensor that the readout reads: h by default."""
        return state.h

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        """Add normal noise of standard deviation ``noise`` (nodes, 1) to the part of the state that is carried over."""
        return State(state.h + noise * normal_like(state.h, generator), state.memory)


def normal_like(values: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard normal numbers of the shape of ``values``, drawn on the CPU: the same on every device."""
    return torch.randn(values.shape, generator=generator, dtype=values.dtype, device="cpu").to(values.device)


class _Reader(Resettable):
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

    The LSTM's hidden and cell states are zero at first although h⁰ = x. The LSTM has one bias vector, in which the
    forget gate's part is initialised to 1.
    """

    def __init__(self, hidden: int, layers: int = 1, inputs: Inputs = "xm") -> None:
        super().__init__()
        self.reader = _Reader(hidden, layers, inputs)
        self.hidden = hidden
        self.gates = Linear(self.reader.outputs + hidden, 4 * hidden)
        self._open_forget_gate()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self._open_forget_gate()

    @torch.no_grad()
    def _open_forget_gate(self) -> None:
        self.gates.bias[self.hidden : 2 * self.hidden] = 1

    def initial_state(self, x: Tensor) -> State:
        return State(x, (torch.zeros_like(x), torch.zeros_like(x)))

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        hidden, cell = state.memory
        gates = self.gates(torch.cat([self.reader(state.h, x, m), hidden], dim=-1))
        hidden, cell = lstm(gates, cell)
        return State(hidden, (hidden, cell))


def lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The next hidden and cell state; gates (nodes, 4 · hidden) before their activation: input, forget, output, new."""
    input_gate, forget_gate, output_gate, new = gates.chunk(4, dim=-1)
    cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * new.tanh()
    return output_gate.sigmoid() * cell.tanh(), cell


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
    """h ← m: the aggregated message is the state, as in the graph-centric relational network."""

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        return State(m)


class ResidualUpdate(Update):
    """h ← LayerNorm(h + W·z) with one hidden layer z on [h, x, m], of ReLU or of product units."""

    def __init__(self, hidden: int, width: int, kind: Literal["relu", "product"] = "relu") -> None:
        super().__init__()
        self.change = Product(3 * hidden, width, hidden) if kind == "product" else MLP(3 * hidden, width, hidden, 1)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        return State(self.norm(state.h + self.change(torch.cat([state.h, x, m], dim=-1))))


class SharedLayerUpdate(Update):
    """One hidden layer z on [s, m, x] gives both the next messages and the change of s::

        z ← a · clamp([s, m, x] W, 0, 6)        s ← normalise(s + z V)

    The first units of z are h, which the messages read; the readout reads s. normalise() scales to a mean square of 1.
    a is the last of the ``features`` of x: 1, or 0 for a node that sends nothing. The clamp bounds the feedback through
    group sums.
    """

    def __init__(self, hidden: int, messages: int, layer: int, features: int = 1) -> None:
        super().__init__()
        if layer < messages:
            raise InputError(f"layer: expected at least the {messages} units of all messages, got {layer}")
        self.hidden, self.messages = hidden, messages
        self.first = nn.Parameter(torch.empty(hidden + messages + features, layer))
        self.second = nn.Parameter(torch.empty(layer, hidden))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        inputs, layer = self.first.shape
        first = torch.randn(inputs, layer) * (2 * self.hidden + self.messages) ** -0.5
        first[self.hidden :] *= 0.3
        first[-1] = torch.randn(layer) * 0.3
        self.first.copy_(first)
        self.second.copy_(torch.randn(layer, self.hidden) * 0.5 * layer**-0.5)

    def initial_state(self, x: Tensor) -> State:
        nodes = x.shape[0]
        return State(x.new_zeros(nodes, self.messages), (x.new_zeros(nodes, self.hidden),))

    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        (s,) = state.memory
        z = (torch.cat([s, m, x], dim=-1) @ self.first).clamp(0.0, CLAMP) * x[:, -1:]
        s = s + z @ self.second
        return State(z[:, : self.messages], (s * torch.rsqrt(s.square().mean(-1, keepdim=True) + 1e-6),))

    def readout_state(self, state: State) -> Tensor:
        return state.memory[0]

    def add_noise(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        (s,) = state.memory
        return State(state.h, (s + noise * normal_like(s, generator),))
