"""The top level of the package: what it exports, and that it imports lazily."""

import subprocess
import sys

import pytest

import rrn

EXPECTED = {
    "RRN",
    "State",
    "Message",
    "Update",
    "Readout",
    "MLPMessage",
    "GatedMessage",
    "AttentionMessage",
    "GroupMessage",
    "LSTMUpdate",
    "GRUUpdate",
    "MLPUpdate",
    "NodeReadout",
    "GraphReadout",
    "EdgeReadout",
    "EdgeList",
    "NeighbourTable",
    "CompleteGraphs",
    "PackedGraphs",
    "Groups",
    "union",
    "from_networkx",
    "from_pyg",
    "every_step",
    "last_step",
    "RRNClassifier",
    "RRNRegressor",
    "Constraints",
    "Result",
    "Status",
    "InputError",
}


def test_dir_lists_the_exports() -> None:
    assert dir(rrn) == sorted(rrn.__all__)
    assert set(dir(rrn)) >= EXPECTED


@pytest.mark.parametrize("name", rrn.__all__)
def test_every_export_resolves(name: str) -> None:
    found = getattr(rrn, name)
    assert name.startswith("__") or found.__name__.rpartition(".")[2] == name


def test_unknown_names_raise_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rrn' has no attribute 'RNN'"):
        _ = rrn.RNN


@pytest.mark.parametrize("statement", ["import rrn; dir(rrn)", "from rrn import cli", "from rrn import InputError"])
def test_torch_is_imported_on_first_use_only(statement: str) -> None:
    check = f"{statement}\nimport sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
