import math

import pytest
import torch

from rrn import RRN, State
from rrn.graphs import complete_edges
from rrn.nn.updates import GRUUpdate, LSTMUpdate, MLPUpdate, NoUpdate, ResidualUpdate, Update


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@pytest.mark.parametrize(
    "update",
    [
        LSTMUpdate(6),
        LSTMUpdate(6, layers=3, inputs="hxm"),
        LSTMUpdate(6, layers=0),
        GRUUpdate(6),
        GRUUpdate(6, layers=0, inputs="hxm"),
        MLPUpdate(6, layers=2),
        MLPUpdate(6, inputs="xm"),
        NoUpdate(),
        ResidualUpdate(6, 9),
        ResidualUpdate(6, 9, kind="product"),
    ],
    ids=lambda update: type(update).__name__,
)
def test_shapes(update: Update) -> None:
    x, m = torch.randn(5, 6), torch.randn(5, 6)
    state = update.initial_state(x)
    assert torch.equal(state.h, x)
    for _ in range(2):
        state = update(state, x, m)
        assert state.h.shape == (5, 6)
        assert all(part.shape == (5, 6) for part in state.memory)
    assert not torch.equal(state.h, x)


def test_an_lstm_by_hand() -> None:
    """One unit, no MLP before it: gates = w·[x, m, hidden] + b, hidden and cell zero at first, h⁰ = x."""
    update = LSTMUpdate(1, layers=0)
    weights = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [-0.3, 0.2, 0.9], [0.7, -0.6, 0.5]]  # input, forget, output, new
    biases = [0.01, 1.0, -0.02, 0.03]
    with torch.no_grad():
        update.gates.weight.copy_(torch.tensor(weights))
        update.gates.bias.copy_(torch.tensor(biases))
    x, hidden, cell = 2.0, 0.0, 0.0
    state = update.initial_state(torch.tensor([[x]]))
    assert [part.item() for part in (state.h, *state.memory)] == [2.0, 0.0, 0.0]
    for m in (-1.0, 3.0):
        state = update(state, torch.tensor([[x]]), torch.tensor([[m]]))
        input_gate, forget, output, new = (
            a * x + b * m + c * hidden + d for (a, b, c), d in zip(weights, biases, strict=True)
        )
        cell = sigmoid(forget) * cell + sigmoid(input_gate) * math.tanh(new)
        hidden = sigmoid(output) * math.tanh(cell)
        assert state.h.item() == pytest.approx(hidden, abs=1e-6)
        assert [part.item() for part in state.memory] == pytest.approx([hidden, cell], abs=1e-6)


def test_the_lstm_is_torchs_with_one_bias() -> None:
    update, theirs = LSTMUpdate(4, layers=0).double(), torch.nn.LSTMCell(8, 4).double()
    with torch.no_grad():
        order = [0, 1, 3, 2]  # torch: input, forget, new, output
        for index, other in enumerate(order):
            rows, to = slice(4 * index, 4 * index + 4), slice(4 * other, 4 * other + 4)
            theirs.weight_ih[to] = update.gates.weight[rows, :8]
            theirs.weight_hh[to] = update.gates.weight[rows, 8:]
            theirs.bias_ih[to] = update.gates.bias[rows]
            theirs.bias_hh[to] = 0
    x, m = torch.randn(3, 4).double(), torch.randn(3, 4).double()
    state = update(update(update.initial_state(x), x, m), x, m)
    joined = torch.cat([x, m], dim=-1)
    hidden, cell = theirs(joined, theirs(joined))
    torch.testing.assert_close((state.h, state.memory[1]), (hidden, cell))


def test_the_first_message_comes_from_x_although_the_lstm_starts_at_zero() -> None:
    network = RRN(4, 6, 2)
    x = torch.randn(5, 4)
    state = network.initial_state(x)
    assert torch.equal(state.h, network.encoder(x))
    assert not any(part.any() for part in state.memory)


def test_the_forget_gate_starts_open() -> None:
    assert LSTMUpdate(3).gates.bias.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_the_inputs_of_g() -> None:
    """The inputs "xm" leave h out; "hxm" include it."""
    x, m = torch.randn(2, 6), torch.randn(2, 6)
    without_h, with_h = MLPUpdate(6, inputs="xm"), MLPUpdate(6, inputs="hxm")
    states = State(torch.zeros(2, 6)), State(torch.ones(2, 6))
    assert torch.equal(*(without_h(state, x, m).h for state in states))
    assert not torch.equal(*(with_h(state, x, m).h for state in states))


def test_the_residual_update_by_hand() -> None:
    update = ResidualUpdate(6, 9, kind="product").double()
    h, x, m = (torch.randn(2, 6).double() for _ in range(3))
    factors = update.change.factors(torch.cat([h, x, m], dim=-1))
    expected = update.norm(h + update.change.out(factors[:, :9] * factors[:, 9:]))
    torch.testing.assert_close(update(State(h), x, m).h, expected)


def test_detached_states_carry_no_gradient() -> None:
    network = RRN(4, 6, 2)
    _, state = network.run(torch.randn(5, 4), complete_edges(5), steps=2)
    assert state.h.requires_grad
    assert not any(part.requires_grad for part in (state.detach().h, *state.detach().memory))
