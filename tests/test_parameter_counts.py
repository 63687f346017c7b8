"""The paper's networks, built from the core's parts, have exactly the paper's numbers of parameters."""

import pytest
from torch import nn

from rrn import RRN
from rrn.nn.layers import MLP


def count(*parts: nn.Module) -> int:
    return sum(p.numel() for part in parts for p in part.parameters())


def embeddings() -> list[nn.Module]:
    """Of a cell's digit (0 for none), its row and its column."""
    return [nn.Embedding(10, 16), nn.Embedding(9, 16), nn.Embedding(9, 16)]


def sudoku(outputs: int, edge_features: int) -> RRN:
    layers = {"encoder_layers": 3, "message_layers": 3, "update_layers": 3}
    return RRN(48, 96, outputs, edge_features=edge_features, update="lstm", **layers)


def pretty_clevr(update_inputs: str) -> RRN:
    parts = {"update": "mlp", "update_inputs": update_inputs, "readout": "graph", "readout_layers": 1}
    return RRN(42, 128, 16, edge_features=1, **parts)


def test_sudoku() -> None:
    assert count(*embeddings(), sudoku(outputs=10, edge_features=1)) == 201_194


def test_sudoku_as_the_text_has_it() -> None:
    assert count(*embeddings(), sudoku(outputs=9, edge_features=0)) == 201_001


def test_sudoku_relation_network_of_the_graph() -> None:
    layers = {"encoder_layers": 3, "message_layers": 3, "readout_layers": 3}
    network = RRN(48, 256, 81 * 10, edge_features=1, update="none", readout="graph", **layers)
    assert count(*embeddings(), network) == 944_874


@pytest.mark.parametrize(("update_inputs", "expected"), [("xm", 139_536), ("hxm", 155_920)])
def test_pretty_clevr(update_inputs: str, expected: int) -> None:
    assert count(pretty_clevr(update_inputs)) == expected


def test_pretty_clevr_perceptron() -> None:
    assert count(MLP(8 * 18 + 64 + 24, 256, 16, 4)) == 261_136
