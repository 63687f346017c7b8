"""The presets of the paper's networks have the numbers of parameters that the paper states, or that follow from it."""

import pytest

from rrn import tasks

COUNTS = {
    "sudoku-paper": 201_194,
    "sudoku-rn-node": 201_194,
    "sudoku-rn-graph": 944_874,
    "babi-paper": 447_665,
    "ages-paper": 425_828,
    "pretty-clevr-paper": 155_920,
    "pretty-clevr-paper-count": 139_536,
    "pretty-clevr-rn": 155_920,
    "pretty-clevr-mlp": 261_136,
}


@pytest.mark.parametrize(("name", "expected"), COUNTS.items())
def test_parameters_of_a_preset(name: str, expected: int) -> None:
    network = tasks.build_network(tasks.find_preset(name))
    assert sum(parameter.numel() for parameter in network.parameters()) == expected
