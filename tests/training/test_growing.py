"""A deepened network computes what the shallow one did."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rrn import RRN, InputError
from rrn.tasks import build_network, find_preset
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.model import CandidateSudoku
from rrn.tasks.sudoku.settings import CandidatesPreset
from rrn.training.growing import grow_into


def deepened(shallow: RRN, **settings: int) -> RRN:
    """The network with three ReLU layers in encoder, f and g."""
    three = {f"{part}_layers": 3 for part in ("encoder", "message", "update")}
    deep = RRN(**shallow.settings | three | settings).to(next(shallow.parameters()))
    grow_into(deep, shallow.state_dict())
    return deep


@pytest.mark.parametrize("update", ["lstm", "gru", "mlp"])
def test_outputs_are_equal_before_and_after(update: str) -> None:
    shallow = RRN(4, 8, 3, update=update).double()
    for parameter in shallow.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    deep = deepened(shallow, edge_features=2)
    x, edges = torch.randn(6, 4).double(), torch.randint(6, (2, 14))
    attributes = torch.randn(14, 2).double()
    expected = shallow(x, edges, steps=5)
    torch.testing.assert_close(deep(x, edges, attributes, steps=5), expected)
    assert expected.std() > 0.01
    assert sum(p.numel() for p in deep.parameters()) > sum(p.numel() for p in shallow.parameters())


def test_every_new_layer_learns() -> None:
    deep = deepened(RRN(4, 8, 3))
    deep(torch.randn(6, 4), torch.randint(6, (2, 14)), steps=2).square().sum().backward()
    assert all(bool((parameter.grad != 0).any()) for parameter in deep.parameters())


def test_the_papers_sudoku_network_from_its_first_stage() -> None:
    torch.manual_seed(0)
    shallow, deep = (build_network(find_preset(f"sudoku-paper{stage}")).eval() for stage in ("-shallow", ""))
    grow_into(deep, shallow.state_dict())
    assert sum(p.numel() for p in deep.parameters()) == 201_194
    puzzles = torch.randint(10, (2, 81))
    with torch.inference_mode():
        torch.testing.assert_close(deep({"puzzle": puzzles}, steps=8)[0], shallow({"puzzle": puzzles}, steps=8)[0])


def test_a_network_of_the_same_depth_is_just_loaded() -> None:
    one, other = RRN(4, 8, 3), RRN(4, 8, 3)
    grow_into(other, one.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_what_cannot_be_deepened_is_named() -> None:
    with pytest.raises(InputError, match=r"readout\.mlp: an MLP without a ReLU layer cannot be deepened"):
        grow_into(RRN(4, 8, 3, readout_layers=2), RRN(4, 8, 3).state_dict())
    with pytest.raises(InputError, match="weights: not of a shallower network"):
        grow_into(RRN(4, 8, 3), RRN(4, 9, 3).state_dict())


def candidate_networks(*widths: tuple[int, int, int]) -> list[CandidateSudoku]:
    torch.manual_seed(0)
    preset = find_preset("sudoku")
    assert isinstance(preset, CandidatesPreset)
    settings = [replace(preset, hidden=h, message_width=m, layer_width=w) for h, m, w in widths]
    networks = [CandidateSudoku(setting) for setting in settings]
    for network in networks:
        network.tie_weights()
    return networks


def test_a_wider_network_of_candidates_computes_the_same_and_stays_tied() -> None:
    narrow, wide = candidate_networks((12, 2, 20), (24, 3, 34))
    wide.load_state_dict(wide.widened(narrow.state_dict()))
    assert not any(tied.broken() for tied in wide.ties())
    puzzles = torch.from_numpy(generate(3, np.random.default_rng(0))[0]).long()
    expected = narrow({"puzzle": puzzles}, steps=12)[0]
    outputs = wide({"puzzle": puzzles}, steps=12)[0]
    torch.testing.assert_close(outputs, expected, atol=1e-4, rtol=1e-4)
    assert expected.std() > 0.1
    outputs.square().sum().backward()
    gradient = wide.rrn.update.second.grad
    assert bool((gradient != 0).any(0).all()), "every new unit of the state learns"
    assert float((gradient != 0).any(1).float().mean()) > 0.6, "and of the layer all whose ReLU is not shut by chance"


def test_a_network_cannot_become_narrower() -> None:
    narrow, wide = candidate_networks((12, 3, 34), (24, 2, 34))
    with pytest.raises(InputError, match="wider in part than the new one; it can only grow"):
        wide.widened(narrow.state_dict())
    weights = narrow.state_dict()
    assert narrow.widened(weights) is weights
