"""RRNClassifier: learns, stops, and has the manners of scikit-learn."""

from typing import Any

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from rrn import InputError
from rrn.estimator import RRNClassifier

QUICK: dict[str, Any] = {"hidden": 16, "steps": 2, "epochs": 25, "batch_size": 16, "lr": 0.01}
Graph = tuple[np.ndarray, np.ndarray]


def ring(values: np.ndarray) -> Graph:
    """Nodes in a circle, each hearing from the one before it."""
    nodes = np.arange(len(values))
    return values[:, None].astype(np.float32), np.stack([nodes, np.roll(nodes, -1)])


@pytest.fixture(scope="module")
def rings() -> tuple[list[Graph], list[np.ndarray], np.ndarray]:
    """Labels of nodes: what the node before it has. Labels of graphs: whether most have a 1."""
    rng = np.random.default_rng(0)
    values = [rng.integers(2, size=rng.choice([5, 7])) for _ in range(80)]
    return [ring(v) for v in values], [np.roll(v, 1) for v in values], np.array([v.mean() > 0.5 for v in values])


def test_it_learns_labels_of_nodes(rings: Any) -> None:
    graphs, labels, _ = rings
    words = [np.array(["no", "yes"])[label] for label in labels]
    classifier = RRNClassifier(**QUICK)
    assert classifier.fit(graphs[:60], words[:60]) is classifier
    assert classifier.per_node_
    assert classifier.classes_.tolist() == ["no", "yes"]
    assert classifier.score(graphs[60:], words[60:]) > 0.95
    predicted, chances = classifier.predict(graphs[60:]), classifier.predict_proba(graphs[60:])
    for graph, mine, each in zip(graphs[60:], predicted, chances, strict=True):
        assert mine.shape == (len(graph[0]),)
        assert each.shape == (len(graph[0]), 2)
        np.testing.assert_allclose(each.sum(1), 1, rtol=1e-5)
        assert (classifier.classes_[each.argmax(1)] == mine).all()


def test_it_learns_labels_of_graphs_and_the_seed_decides_all(rings: Any) -> None:
    graphs, _, labels = rings
    first, second = (RRNClassifier(**QUICK).fit(graphs[:60], labels[:60]) for _ in range(2))
    assert not first.per_node_
    assert first.predict(graphs[60:]).shape == (20,)
    assert first.predict_proba(graphs[60:]).shape == (20, 2)
    assert first.score(graphs[60:], labels[60:]) > 0.8
    np.testing.assert_array_equal(first.predict_proba(graphs), second.predict_proba(graphs))


def test_it_stops_when_validation_gets_no_better_and_keeps_the_best(rings: Any) -> None:
    graphs, labels, _ = rings
    noise = [np.random.default_rng(i).integers(2, size=len(label)) for i, label in enumerate(labels)]
    classifier = RRNClassifier(**QUICK | {"epochs": 60}, patience=3, validation_fraction=0.25).fit(graphs, noise)
    losses = [epoch["validation_loss"] for epoch in classifier.history_]
    assert len(losses) < 60
    assert len(losses) - 1 - int(np.argmin(losses)) == 3
    again = classifier._validate(*_split(classifier, graphs, noise))
    assert again["validation_loss"] == pytest.approx(min(losses), rel=1e-5)


def _split(classifier: RRNClassifier, graphs: Any, labels: Any) -> Any:
    from rrn.estimator import _as_graph

    samples = [_as_graph(graph, 0) for graph in graphs]
    order = np.random.default_rng(classifier.seed).permutation(len(graphs))
    rows = order[: round(classifier.validation_fraction * len(graphs))].tolist()
    return samples, [torch.from_numpy(label) for label in labels], rows


def test_unknown_nodes_are_not_learned_from_nor_scored(rings: Any) -> None:
    graphs, labels, _ = rings
    half = [np.where(np.arange(len(label)) % 2 == 0, label, -1) for label in labels]
    classifier = RRNClassifier(**QUICK).fit(graphs[:60], half[:60])
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.score(graphs[60:], half[60:]) > 0.9


def test_graphs_of_networkx_and_geometric_are_the_same_graphs(rings: Any) -> None:
    graphs, labels, _ = rings
    classifier = RRNClassifier(**QUICK | {"epochs": 1}).fit(graphs, labels)
    x, edge_index = graphs[0]
    of_networkx = networkx.DiGraph()
    for node, row in enumerate(x):
        of_networkx.add_node(node, x=row)
    of_networkx.add_edges_from(edge_index.T.tolist())
    of_geometric = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edge_index))
    expected = classifier.predict_proba([graphs[0]])[0]
    for other in (of_networkx, of_geometric):
        np.testing.assert_allclose(classifier.predict_proba([other])[0], expected, rtol=1e-5)


def test_edge_features_are_used(rings: Any) -> None:
    """A node's label is what stands on the edge to it; nodes themselves are all alike."""
    graphs, labels, _ = rings
    on_edges = [(np.zeros_like(x), edges, x) for x, edges in graphs]
    classifier = RRNClassifier(**QUICK).fit(on_edges[:60], labels[:60])
    assert classifier.score(on_edges[60:], labels[60:]) > 0.95


def test_manners_of_scikit_learn(rings: Any) -> None:
    base, selection = pytest.importorskip("sklearn.base"), pytest.importorskip("sklearn.model_selection")
    graphs, _, labels = rings
    classifier = RRNClassifier(**QUICK | {"epochs": 2})
    copy = base.clone(classifier)
    assert copy is not classifier
    assert copy.get_params() == classifier.get_params()
    assert base.is_classifier(classifier)
    assert selection.cross_val_score(classifier, graphs, labels, cv=2).shape == (2,)
    assert classifier.set_params(hidden=8) is classifier
    assert classifier.get_params()["hidden"] == 8
    assert repr(RRNClassifier(hidden=8)) == "RRNClassifier(hidden=8)"


X, EDGES = np.zeros((3, 2), np.float32), np.array([[0, 1], [1, 2]])
GOOD = (X, EDGES)
BAD_FITS = {
    "no graphs": ({}, [], [], "graphs: expected at least one, got none"),
    "labels missing": ({}, [GOOD, GOOD], [0], "labels: expected one entry a graph, so 2, got 1"),
    "one class": ({"validation_fraction": 0}, [GOOD, GOOD], [1, 1], r"at least two classes, got \[1\]"),
    "labels of another graph": ({}, [GOOD], [[0, 1]], r"labels of graph 0: expected shape \(3,\), got \(2,\)"),
    "no graph at all": ({}, [GOOD, "graph"], [0, 1], "graph 1: expected .*got str"),
    "an edge too high": ({}, [(X, EDGES + 1)], [0], "graph 0: edge_index names a node that x does not have"),
    "edge features missing": ({}, [(X, EDGES, X)], [0], "graph 0: 2 edges, but edge_attr has 3 rows"),
    "other features": ({}, [GOOD, (X[:, :1], EDGES)], [0, 1], "graph 1: has other numbers of node or edge features"),
    "x of one dimension": ({}, [(X[:, 0], EDGES)], [0], r"graph 0: expected x of shape \(nodes, features\)"),
    "too few to validate": ({}, [GOOD, GOOD], [0, 1], "validation_fraction: 0.1 of 2 graphs leaves none to validate"),
    "no steps": ({"steps": 0}, [GOOD], [0], "steps: expected at least 1, got 0"),
    "a share of two": ({"validation_fraction": 2}, [GOOD], [0], "validation_fraction: expected from 0 to below 1"),
    "an unknown loss": ({"loss": "first"}, [GOOD], [0], "loss: expected 'every' or 'last', got 'first'"),
}


@pytest.mark.parametrize("case", BAD_FITS)
def test_unusable_input_is_named(case: str) -> None:
    settings, graphs, labels, message = BAD_FITS[case]
    with pytest.raises(InputError, match=message):
        RRNClassifier(**settings).fit(graphs, labels)


def test_mistakes_after_fitting_are_named(rings: Any) -> None:
    with pytest.raises(InputError, match="not fitted"):
        RRNClassifier().predict([GOOD])
    with pytest.raises(InputError, match="depth: no such parameter; there are batch_size"):
        RRNClassifier().set_params(depth=3)
    graphs, labels, _ = rings
    classifier = RRNClassifier(**QUICK | {"epochs": 1}).fit(graphs, labels)
    with pytest.raises(InputError, match="graph 0: expected 1 features a node and 0 an edge"):
        classifier.predict([GOOD])
