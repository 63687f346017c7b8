"""Pointers: a softmax over the edges that leave a node."""

import math

import pytest
import torch

from rrn import RRN, InputError
from rrn.nn.pointers import pointer_losses, pointers

EDGES = torch.tensor([[0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 2]])
SCORES = torch.tensor([[[0.0], [2.0], [1.0], [3.0], [-1.0], [5.0]]])


def test_a_node_points_along_its_edge_with_the_highest_score() -> None:
    assert pointers(SCORES, EDGES, 3).tolist() == [[1, 0, 2]]
    assert pointers(-SCORES, EDGES, 4).tolist() == [[0, 1, 2, -1]]
    assert pointers(torch.zeros(2, 6, 1), EDGES, 3).tolist() == [[2, 1, 2]] * 2


def test_the_loss_by_hand() -> None:
    losses = pointer_losses(SCORES, EDGES, torch.tensor([2, -100, 2]))
    expected = math.log(math.exp(0) + math.exp(2) + math.exp(1)) - 1
    assert losses[0].tolist() == pytest.approx([expected, 0, 0])


def test_large_scores_neither_overflow_nor_lose_gradients() -> None:
    scores = (1000 * SCORES).requires_grad_()
    losses = pointer_losses(scores, EDGES, torch.tensor([2, 1, 2]))
    assert losses[0].tolist() == pytest.approx([1000, 4000, 0])
    losses.sum().backward()
    assert scores.grad is not None
    assert scores.grad.flatten().tolist() == pytest.approx([0, 1, -1, 1, -1, 0])


def test_a_target_without_an_edge_and_scores_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match="exactly one edge"):
        pointer_losses(SCORES, EDGES, torch.tensor([0, 2, 2]))
    with pytest.raises(InputError, match=r"expected shape \(steps, 6, 1\)"):
        pointers(SCORES[0], EDGES, 3)


def test_an_edge_readout_learns_to_point_to_the_largest_neighbour() -> None:
    torch.manual_seed(0)
    edge_index = torch.tensor([(a, b) for a in range(6) for b in range(6) if (a + b) % 3]).T
    network = RRN(1, 16, 1, readout="edge", aggregate=("max",))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(60):
        x = torch.rand(6, 1)
        senders, receivers = edge_index
        best = torch.zeros(6).scatter_reduce(0, senders, x[receivers, 0], "amax")
        targets = torch.tensor([int(receivers[(senders == j) & (x[receivers, 0] == best[j])][0]) for j in range(6)])
        outputs = network(x, edge_index, steps=2)
        loss = pointer_losses(outputs, edge_index, targets).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (pointers(outputs.detach(), edge_index, 6)[-1] == targets).float().mean() > 0.7


def test_a_target_for_each_step() -> None:
    scores = torch.cat([SCORES, 2 * SCORES, SCORES])
    targets = torch.tensor([[2, 1, 2], [1, 0, 2], [-100, 0, 2]])
    losses = pointer_losses(scores, EDGES, targets)
    for step in range(3):
        torch.testing.assert_close(
            losses[step : step + 1], pointer_losses(scores[step : step + 1], EDGES, targets[step])
        )
    with pytest.raises(InputError, match=r"expected shape \(nodes,\) or \(3, nodes\), got \(2, 3\)"):
        pointer_losses(scores, EDGES, targets[:2])
    with pytest.raises(InputError, match="exactly one edge"):
        pointer_losses(scores, EDGES, torch.tensor([[2, 1, 2], [1, 2, 2], [2, 1, 2]]))
