"""The module and the estimators take the graphs, batches and loaders of PyTorch Geometric."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from rrn import RRN, InputError, RRNClassifier, RRNRegressor

QUICK: dict[str, Any] = {"hidden": 8, "steps": 2, "epochs": 2, "progress": False, "validation_fraction": 0}


def make_graphs(count: int = 12, labels_of_nodes: bool = False) -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for number in range(count):
        nodes = 3 + number % 3
        edges = torch.stack([torch.arange(nodes), torch.arange(nodes).roll(1)])
        y = torch.arange(nodes) % 2 if labels_of_nodes else torch.tensor([number % 2])
        graphs.append(Data(x=torch.randn(nodes, 4, generator=generator), edge_index=edges, y=y))
    return graphs


def test_the_module_takes_a_data_or_a_batch() -> None:
    graphs = make_graphs()
    network = RRN(4, 8, 2, readout="graph")
    batch = Batch.from_data_list(graphs)
    torch.testing.assert_close(
        network(batch, steps=3), network(batch.x, batch.edge_index, batch=batch.batch, steps=3), rtol=0, atol=0
    )
    one = graphs[0]
    torch.testing.assert_close(network(one, steps=3), network(one.x, one.edge_index, steps=3), rtol=0, atol=0)
    assert network.think(batch, max_steps=4).answers.shape == (len(graphs), 2)
    with pytest.raises(InputError, match="x: a Data includes edge_index"):
        network(one, one.edge_index, steps=1)


@pytest.mark.parametrize("labels_of_nodes", [False, True])
def test_labels_are_taken_from_the_graphs(labels_of_nodes: bool) -> None:
    graphs = make_graphs(labels_of_nodes=labels_of_nodes)
    labels = [graph.y.numpy() for graph in graphs]
    expected = RRNClassifier(**QUICK).fit(graphs, labels)
    for source in (graphs, Batch.from_data_list(graphs), DataLoader(graphs, batch_size=5)):
        found = RRNClassifier(**QUICK).fit(source)
        assert found.readout_ == ("node" if labels_of_nodes else "graph")
        for mine, theirs in zip(found.predict_proba(source), expected.predict_proba(graphs), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert found.score(source) == expected.score(graphs, labels)


def test_a_shuffling_loader_is_scored_with_its_own_labels() -> None:
    graphs = make_graphs(40)
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([float(number % 7)])
        graph.x[:, 0] = number % 7
    regressor = RRNRegressor(**QUICK | {"epochs": 40, "lr": 1e-2}).fit(graphs)
    loader = DataLoader(graphs, batch_size=4, shuffle=True)
    expected = regressor.score(graphs)
    assert regressor.score(loader) == pytest.approx(expected, abs=1e-5)
    assert expected > 0.5


def test_graphs_without_labels_are_refused() -> None:
    graphs = make_graphs()
    graphs[3].y = None
    with pytest.raises(InputError, match="labels: graph 3 has no y"):
        RRNClassifier(**QUICK).fit(graphs)
