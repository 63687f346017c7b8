import pytest
import torch

from rrn import CompleteGraphs, EdgeList
from rrn.readouts import GraphReadout, GroupReadout, NodeReadout

EDGES = EdgeList(torch.tensor([[0], [1]]), 6)
BATCH = torch.tensor([0, 0, 0, 1, 2, 2])


def test_shapes_and_sums() -> None:
    h = torch.randn(6, 4)
    assert NodeReadout(4, 3, layers=2)(h, EDGES, BATCH).shape == (6, 3)
    assert GroupReadout(4, 2, layers=1)(h, EDGES, None).shape == (3, 2)
    readout = GraphReadout(4, 3, layers=1)
    together = readout(h, EDGES, BATCH)
    expected = torch.stack([h[:3].sum(0), h[3], h[4:].sum(0)])
    torch.testing.assert_close(together, readout.mlp(expected))
    torch.testing.assert_close(readout(h, EDGES, None), readout.mlp(h.sum(0, keepdim=True)))
    torch.testing.assert_close(readout(h, CompleteGraphs(2, 3), None), readout.mlp(h.view(2, 3, 4).sum(1)))


def test_a_group_is_of_nodes_next_to_each_other() -> None:
    readout = GroupReadout(1, 3)
    with torch.no_grad():
        readout.mlp.linears[0].weight.fill_(2.0)
        readout.mlp.linears[0].bias.fill_(1.0)
    h = torch.arange(6.0)[:, None]
    assert readout(h, EDGES, None).tolist() == [[1, 3, 5], [7, 9, 11]]


@pytest.mark.parametrize(("dropout_layers", "dropped"), [(1, [False, True]), (2, [True, True])])
def test_dropout_is_in_the_last_layers(dropout_layers: int, dropped: list[bool]) -> None:
    """A weight of 1 everywhere: a dropped unit shows as zero (or twice as much) behind its layer."""
    readout = NodeReadout(8, 1, layers=2, dropout=0.5, dropout_layers=dropout_layers)
    seen: list[torch.Tensor] = []
    for linear in readout.mlp.linears:
        linear.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach().clone()))
        torch.nn.init.constant_(linear.weight, 1.0)
        torch.nn.init.zeros_(linear.bias)
    readout.train()(torch.ones(50, 8), EDGES, None)
    assert [bool((layer == 0).any()) for layer in seen[1:]] == dropped
    seen.clear()
    readout.eval()(torch.ones(50, 8), EDGES, None)
    assert not any((layer == 0).any() for layer in seen)
