"""A deepened network computes what the shallow one did."""

import pytest
import torch

from rrn import RRN, InputError
from rrn.growing import deepen, grow_into
from rrn.tasks import build_network, find_preset


@pytest.mark.parametrize("update", ["lstm", "gru", "mlp"])
def test_outputs_are_equal_before_and_after(update: str) -> None:
    shallow = RRN(4, 8, 3, update=update).double()
    for parameter in shallow.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    deep = deepen(shallow, 3, edge_features=2)
    x, edges = torch.randn(6, 4).double(), torch.randint(6, (2, 14))
    attributes = torch.randn(14, 2).double()
    expected = shallow(x, edges, steps=5)
    torch.testing.assert_close(deep(x, edges, attributes, steps=5), expected)
    assert expected.std() > 0.01
    assert deep.settings["message_layers"] == 3
    assert sum(p.numel() for p in deep.parameters()) > sum(p.numel() for p in shallow.parameters())


def test_every_new_layer_learns() -> None:
    deep = deepen(RRN(4, 8, 3), 3)
    deep(torch.randn(6, 4), torch.randint(6, (2, 14)), steps=2).square().sum().backward()
    assert all(bool((parameter.grad != 0).any()) for parameter in deep.parameters())


def test_the_papers_sudoku_network_from_its_first_stage() -> None:
    torch.manual_seed(0)
    shallow, deep = (build_network(find_preset(f"sudoku-paper{stage}")).eval() for stage in ("-shallow", ""))
    names = grow_into(deep, shallow.state_dict())
    assert sorted(names) == ["rrn.encoder", "rrn.message.mlp", "rrn.update.reader.mlp"]
    assert sum(p.numel() for p in deep.parameters()) == 201_194
    puzzles = torch.randint(10, (2, 81))
    with torch.inference_mode():
        torch.testing.assert_close(deep({"puzzle": puzzles}, steps=8)[0], shallow({"puzzle": puzzles}, steps=8)[0])


def test_a_network_of_the_same_depth_is_just_loaded() -> None:
    one, other = RRN(4, 8, 3), RRN(4, 8, 3)
    assert grow_into(other, one.state_dict()) == []
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_what_cannot_be_deepened_is_named() -> None:
    with pytest.raises(InputError, match=r"readout\.mlp: an MLP without a ReLU layer cannot be deepened"):
        grow_into(RRN(4, 8, 3, readout_layers=2), RRN(4, 8, 3).state_dict())
    with pytest.raises(InputError, match="weights: not of a shallower network"):
        grow_into(RRN(4, 8, 3), RRN(4, 9, 3).state_dict())
