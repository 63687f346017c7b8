"""docs/relatives.md: each system against its equation, worked out node by node and edge by edge."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rrn import RRN, State
from tests.test_docs import blocks

PAGE = Path(__file__).parent.parent / "docs" / "relatives.md"
Vector = np.ndarray


@pytest.fixture
def page() -> dict[str, Any]:
    """The names that the page's code leaves behind."""
    names: dict[str, Any] = {"__name__": "__docs__"}
    for line, code in blocks(PAGE, "python"):
        exec(compile("\n" * line + code, str(PAGE), "exec"), names)
    return names


def drawn(network: RRN) -> RRN:
    """In double precision, with biases that are not zero."""
    generator = torch.Generator().manual_seed(1)
    network = network.double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(0.4 * torch.randn(weight.shape, generator=generator, dtype=torch.float64))
    return network


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def by_hand(mlp: nn.Module) -> Callable[[Vector], Vector]:
    """Weights times input plus biases, a ReLU between two layers."""
    layers = [(linear.weight.detach().numpy(), linear.bias.detach().numpy()) for linear in mlp.linears]

    def apply(vector: Vector) -> Vector:
        for index, (weight, bias) in enumerate(layers):
            vector = weight @ (vector if index == 0 else np.maximum(vector, 0)) + bias
        return vector

    return apply


def close(found: Tensor, expected: Any) -> None:
    expected = torch.as_tensor(np.array(expected))
    assert expected.abs().max() > 1e-3, "nothing was computed"
    torch.testing.assert_close(found.detach(), expected, atol=1e-9, rtol=1e-9)


def test_relational_network(page: dict[str, Any]) -> None:
    network = drawn(page["relational_network"])
    objects, question = normal(4, 16), normal(1, 8)
    pairs = [(i, j) for i in range(4) for j in range(4)]
    found = network(objects, torch.tensor(pairs).T, question, steps=1)[-1]
    g, f = by_hand(network.message.mlp), by_hand(network.readout.mlp)
    o, q = objects.numpy(), question.numpy()[0]
    assert len(network.message.mlp.linears) == 5
    total = sum(g(np.concatenate([o[i], o[j], q])) for i, j in pairs)
    close(found, [f(total)])


def test_interaction_network(page: dict[str, Any]) -> None:
    network = drawn(page["interaction_network"])
    objects, effects = normal(3, 16), normal(3, 16)
    edges, relations = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]]), normal(4, 3)
    energies, state = network.run(effects, edges, relations, steps=2, state=State(objects))
    relate, act = by_hand(network.message.mlp), by_hand(network.update.reader.mlp)
    total = by_hand(network.readout.mlp)
    o, x, r = objects.numpy(), effects.numpy(), relations.numpy()
    for energy in energies:
        arrived = np.zeros((3, 16))
        for k, (i, j) in enumerate(edges.T.tolist()):
            arrived[j] += relate(np.concatenate([o[i], o[j], r[k]]))
        o = np.stack([act(np.concatenate([o[j], x[j], arrived[j]])) for j in range(3)])
        close(energy, [total(o.sum(0))])
    close(state.h, o)


def test_comm_net(page: dict[str, Any]) -> None:
    network = drawn(page["comm_net"])
    seen = normal(4, 7)
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    found = network(seen, torch.tensor(pairs).T, steps=3)
    encode, think, act = by_hand(network.encoder), by_hand(network.update.reader.mlp), by_hand(network.readout.mlp)
    first = h = [encode(row) for row in seen.numpy()]
    for step in found:
        heard = [sum(h[i] for i in range(4) if i != j) / 3 for j in range(4)]
        h = [think(np.concatenate([h[j], first[j], heard[j]])) for j in range(4)]
        close(step, [act(row) for row in h])


def test_graph_neural_network(page: dict[str, Any]) -> None:
    network = drawn(page["graph_neural_network"])
    labels, edges, edge_labels = normal(4, 8), torch.tensor([[0, 1, 2, 0, 3], [1, 2, 0, 2, 0]]), normal(5, 2)
    on_edges = torch.cat([labels[edges[0]], labels[edges[1]], edge_labels], dim=1)
    found = network(labels, edges, on_edges, steps=3)
    transition, output = by_hand(network.message.mlp), by_hand(network.readout.mlp)
    label, of_edge = labels.numpy(), edge_labels.numpy()
    x = np.zeros((4, 8))
    for step in found:
        after = np.zeros((4, 8))
        for k, (u, n) in enumerate(edges.T.tolist()):
            after[n] += transition(np.concatenate([x[u], label[u], label[n], of_edge[k]]))
        x = after
        close(step, [output(np.concatenate([x[n], label[n]])) for n in range(4)])


def test_the_graph_neural_network_stops_at_its_fixed_point(page: dict[str, Any]) -> None:
    result = page["result"]
    assert result.solved.tolist() == [True]
    assert 2 < int(result.steps[0]) < 100
    network = page["graph_neural_network"].double()
    arguments = (page["labels"].double(), page["edges"], page["on_edges"].double())
    found = network.think(*arguments, until=page["Converged"](1e-12), max_steps=300)
    assert found.solved.all()
    torch.testing.assert_close(found.answers, network(*arguments, steps=300)[-1], atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(result.answers.double(), found.answers, atol=1e-4, rtol=1e-4)


def sigmoid(values: Vector) -> Vector:
    return 1 / (1 + np.exp(-values))


def test_mpnn(page: dict[str, Any]) -> None:
    network = drawn(page["mpnn"])
    atoms, bonds, kinds = normal(5, 5), torch.tensor([[0, 1, 1, 2, 4], [1, 0, 2, 1, 3]]), normal(5, 4)
    molecule_of = torch.tensor([0, 0, 0, 1, 1])
    found = network(atoms, bonds, kinds, molecule_of, steps=3)
    encode, matrix, read = (by_hand(mlp) for mlp in (network.encoder, network.message.matrix, network.readout.mlp))
    cell = network.update.cell
    from_m, from_h, bias_m, bias_h = (
        part.detach().numpy() for part in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    )
    h = np.stack([encode(row) for row in atoms.numpy()])
    width = math.isqrt(len(matrix(kinds.numpy()[0])))
    for step in found:
        m = np.zeros_like(h)
        for k, (w, v) in enumerate(bonds.T.tolist()):
            m[v] += matrix(kinds.numpy()[k]).reshape(width, width) @ h[w]
        after = np.empty_like(h)
        for v in range(5):
            to_r, to_z, to_n = np.split(from_m @ m[v] + bias_m, 3)
            of_r, of_z, of_n = np.split(from_h @ h[v] + bias_h, 3)
            r, z = sigmoid(to_r + of_r), sigmoid(to_z + of_z)
            after[v] = (1 - z) * np.tanh(to_n + r * of_n) + z * h[v]
        h = after
        close(step, [read(h[:3].sum(0)), read(h[3:].sum(0))])
