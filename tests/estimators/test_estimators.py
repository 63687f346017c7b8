"""RRNClassifier and RRNRegressor: they learn, stop, are saved, and cannot be misused without a word."""

import json
import math
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from rrn import RRN, InputError
from rrn.estimators import RRNClassifier, RRNRegressor
from rrn.training.loop import Diverged, Loop

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
    assert classifier.readout_ == "node"
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
    assert first.readout_ == "graph"
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
    held_out = np.random.default_rng(0).permutation(len(graphs))[: len(graphs) // 4]
    right = [classifier.predict([graphs[row]])[0] == noise[row] for row in held_out]
    best = classifier.history_[int(np.argmin(losses))]
    assert np.concatenate(right).mean() == pytest.approx(best["validation_accuracy"])


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("update", [3, 8])
def test_an_interrupted_fit_resumes_with_the_same_result(
    update: int, rings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An epoch has four updates; dropout and the order of graphs depend on random generators."""
    graphs, labels, _ = rings
    settings = QUICK | {"epochs": 3, "readout_layers": 1, "dropout": 0.3}
    whole = RRNClassifier(**settings).fit(graphs, labels)
    one_update = Loop.one_update

    def interrupt(loop: Loop) -> float:
        loop.checkpoint_minutes = 0
        if loop.update == update:
            raise Interrupted
        return one_update(loop)

    monkeypatch.setattr(Loop, "one_update", interrupt)
    with pytest.raises(Interrupted):
        RRNClassifier(**settings).fit(graphs, labels, checkpoint=tmp_path)
    monkeypatch.undo()
    resumed = RRNClassifier(**settings).fit(graphs, labels, checkpoint=tmp_path)
    assert resumed.history_ == whole.history_
    np.testing.assert_array_equal(
        np.concatenate(resumed.predict_proba(graphs)), np.concatenate(whole.predict_proba(graphs))
    )
    with pytest.raises(InputError, match=r"other settings \(hidden was 16 and is 8\); give another checkpoint folder"):
        RRNClassifier(**settings | {"hidden": 8}).fit(graphs, labels, checkpoint=tmp_path)
    with pytest.raises(InputError, match=r"other settings \(data was"):
        RRNClassifier(**settings).fit(graphs[::-1], labels[::-1], checkpoint=tmp_path)
    with pytest.raises(InputError, match="checkpoint: expected an integer random_state"):
        RRNClassifier(random_state=None).fit(graphs, labels, checkpoint=tmp_path)


def test_minutes_end_training(rings: Any) -> None:
    graphs, labels, _ = rings
    classifier = RRNClassifier(**QUICK | {"epochs": 10**6}, minutes=0.005, validation_fraction=0).fit(graphs, labels)
    assert 1 <= len(classifier.history_) < 10**4
    with pytest.raises(InputError, match="minutes: expected more than 0, got -1"):
        RRNClassifier(minutes=-1).fit(graphs, labels)


def test_diverging_training_is_named(rings: Any) -> None:
    graphs, labels, _ = rings
    with pytest.raises(Diverged, match=r"at update \d+\. Use a lower lr \(now 1e\+30\)"):
        RRNClassifier(**QUICK | {"lr": 1e30}).fit(graphs, labels)


def test_random_state_decides_the_weights_and_none_is_random(rings: Any) -> None:
    graphs, labels, _ = rings
    first, same, other, *random = (
        RRNClassifier(**QUICK | {"epochs": 1}, random_state=state).fit(graphs, labels).history_[0]["loss"]
        for state in (3, 3, 4, None, None)
    )
    assert first == same
    assert len({first, other, *random}) == 4


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


@pytest.fixture(scope="module")
def pairs() -> tuple[list[Graph], list[np.ndarray], list[np.ndarray]]:
    """Chains both ways whose nodes hold 0 or 1. Labels of edges: whether the ends differ; or their difference."""
    rng = np.random.default_rng(1)
    graphs, differ, difference = [], [], []
    for _ in range(60):
        x = rng.integers(2, size=rng.integers(4, 8))
        one_way = np.stack([np.arange(len(x) - 1), np.arange(1, len(x))])
        edges = np.concatenate([one_way, one_way[::-1]], axis=1)
        graphs.append((x[:, None].astype(np.float32), edges))
        differ.append(x[edges[0]] != x[edges[1]])
        difference.append((x[edges[0]] - x[edges[1]]).astype(float))
    return graphs, differ, difference


def test_it_learns_labels_of_edges(pairs: Any) -> None:
    graphs, labels, _ = pairs
    classifier = RRNClassifier(**QUICK, readout="edge").fit(graphs[:50], labels[:50])
    assert classifier.readout_ == "edge"
    predicted = classifier.predict(graphs[50:])
    assert [len(each) for each in predicted] == [len(label) for label in labels[50:]]
    assert classifier.score(graphs[50:], labels[50:]) > 0.95
    unknown = [np.where(np.arange(len(label)) % 2, label, -1) for label in labels[50:]]
    assert classifier.score(graphs[50:], unknown) > 0.95


def test_an_undirected_edge_of_networkx_has_one_label_whichever_way_it_is_written(pairs: Any) -> None:
    graphs, labels = [], []
    for (x, edges), label in zip(*pairs[:2], strict=True):
        graph = networkx.Graph()
        graph.add_nodes_from((node, {"value": row}) for node, row in enumerate(x))
        half = edges.shape[1] // 2
        graph.add_edges_from(edges[:, :half].T.tolist())
        graphs.append(graph)
        labels.append(label[:half])
    settings = QUICK | {"readout": "edge", "node_attribute": "value"}
    classifier = RRNClassifier(**settings).fit(graphs[:50], labels[:50])
    assert classifier.score(graphs[50:], labels[50:]) > 0.95
    turned = networkx.Graph()
    turned.add_nodes_from(graphs[0].nodes(data=True))
    turned.add_edges_from((b, a) for a, b in graphs[0].edges)
    turned.add_edge(0, 0)
    listed = [tuple(sorted(edge)) for edge in turned.edges]
    found = dict(zip(listed, classifier.predict_proba([turned])[0], strict=True))
    assert len(found) == len(labels[0]) + 1
    turned.remove_edge(0, 0)
    listed = [tuple(sorted(edge)) for edge in turned.edges]
    found = dict(zip(listed, classifier.predict_proba([turned])[0], strict=True))
    expected = dict(zip(graphs[0].edges, classifier.predict_proba([graphs[0]])[0], strict=True))
    for edge, chances in expected.items():
        np.testing.assert_allclose(found[tuple(sorted(edge))], chances, atol=1e-5)


def test_labels_of_geometric_graphs_may_have_the_shape_of_one(rings: Any) -> None:
    graphs, _, labels = rings
    datas = [Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(e)) for x, e in graphs]
    wrapped = [torch.tensor([int(label)]) for label in labels]
    settings = QUICK | {"epochs": 2}
    classifier = RRNClassifier(**settings).fit(datas, wrapped)
    assert classifier.readout_ == "graph"
    plain = RRNClassifier(**settings).fit(graphs, labels.astype(int))
    np.testing.assert_array_equal(classifier.predict(datas), plain.predict(graphs))
    assert classifier.score(datas, wrapped) == plain.score(graphs, labels.astype(int))


def test_typed_graphs_of_geometric_are_read() -> None:
    """A person's label is whether the one who follows it is a robot; a robot's is 0."""
    rng = np.random.default_rng(0)
    graphs, labels = [], []
    for _ in range(40):
        data, robots = HeteroData(), rng.integers(2, size=4)
        data["robot"].x = torch.ones(4, 1)
        data["person"].x = torch.ones(4, 1)
        followed = torch.arange(4)[torch.from_numpy(robots) == 1]
        data["robot", "follows", "person"].edge_index = torch.stack([followed, followed])
        data["person", "follows", "person"].edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        graphs.append(data)
        labels.append(np.concatenate([robots, np.zeros(4, int)]))
    classifier = RRNClassifier(**QUICK).fit(graphs, labels)
    assert classifier.score(graphs, labels) > 0.95
    assert classifier.types_ == ("person", "robot", *[(who, "follows", "person") for who in ("person", "robot")])
    other = HeteroData()
    other["robot"].x, other["dog"].x = torch.ones(4, 1), torch.ones(4, 1)
    for kind in (("robot", "follows", "dog"), ("dog", "follows", "dog")):
        other[kind].edge_index = torch.tensor([[0], [1]])
    with pytest.raises(InputError, match=r"graph 0: expected types .*'person'.*, as in training, got .*'dog'"):
        classifier.predict([other])
    with pytest.raises(InputError, match=r"graph 1: has types .*'dog'.*, but graph 0 has"):
        classifier.fit([graphs[0], other], labels[:2])


@pytest.mark.parametrize("of", ["node", "graph", "edge"])
def test_a_regressor_learns_numbers(of: str, rings: Any, pairs: Any) -> None:
    if of == "edge":
        graphs, numbers = pairs[0], [5000 + 300 * label for label in pairs[2]]
    else:
        graphs = rings[0]
        before = [np.roll(x[:, 0], 1) for x, _ in graphs]
        numbers = [5000 + 300 * each if of == "node" else 5000 + 300 * each.sum() for each in before]
    readout = "edge" if of == "edge" else "auto"
    settings = QUICK | {"epochs": 25, "batch_size": 8, "lr": 0.02, "readout_layers": 1}
    regressor = RRNRegressor(**settings, readout=readout).fit(graphs[:50], numbers[:50])
    assert regressor.readout_ == of
    assert regressor.score(graphs[50:], numbers[50:]) > 0.8
    assert regressor.history_[-1].keys() == {"loss", "validation_loss", "validation_r2"}
    predicted = regressor.predict(graphs[50:])
    assert np.shape(predicted[0]) == np.shape(numbers[50])
    flat = [np.concatenate([np.atleast_1d(each) for each in values]) for values in (predicted, numbers[50:])]
    r2_score = pytest.importorskip("sklearn.metrics").r2_score
    assert regressor.score(graphs[50:], numbers[50:]) == pytest.approx(r2_score(flat[1], flat[0]), abs=1e-6)


def test_several_numbers_and_unknown_ones(rings: Any) -> None:
    graphs = rings[0]
    numbers = [np.stack([x[:, 0], 10 - np.roll(x[:, 0], 1)], axis=1) for x, _ in graphs]
    holes = [np.where(np.arange(each.size).reshape(each.shape) % 3 == 0, np.nan, each) for each in numbers]
    regressor = RRNRegressor(**QUICK | {"epochs": 40}).fit(graphs[:60], holes[:60])
    assert regressor.predict(graphs[:1])[0].shape == numbers[0].shape
    assert regressor.score(graphs[60:], holes[60:]) > 0.9
    assert regressor.score(graphs[60:], numbers[60:]) > 0.9
    sums = np.array([each.sum(0) for each in numbers])
    of_graphs = RRNRegressor(**QUICK | {"epochs": 1}).fit(graphs, sums)
    assert of_graphs.readout_ == "graph"
    assert of_graphs.predict(graphs).shape == (80, 2)
    np.testing.assert_allclose(of_graphs.mean_, sums.mean(0))


def test_graphs_without_weight_are_not_learned(rings: Any) -> None:
    """Every graph twice, once with all labels wrong and no weight; weights count even one graph at a time."""
    graphs, labels, _ = rings
    graphs, labels = graphs[:12], labels[:12]
    both, wrong = [*graphs, *graphs], [*labels, *[1 - label for label in labels]]
    by_graph = [1.0] * 12 + [0.0] * 12
    by_node = [np.full(len(label), weight) for label, weight in zip(wrong, by_graph, strict=True)]
    for batch_size, weights in ((1, by_graph), (4, by_node)):
        classifier = RRNClassifier(**QUICK | {"validation_fraction": 0, "epochs": 12, "batch_size": batch_size})
        classifier.fit(both, wrong, weights)
        assert classifier.score(graphs, labels) > 0.95
        assert classifier.score(both, wrong) == 0.5
        assert classifier.score(both, wrong, sample_weight=[1 - weight for weight in by_graph]) < 0.05


def test_class_weights_move_what_is_predicted() -> None:
    """Three of four nodes are 0, and nothing tells which: the chance of 1 is a quarter, or half if both count alike."""
    graph = np.zeros((4, 1), np.float32), np.zeros((2, 0), int)
    labels = [np.array([0, 0, 0, 1])] * 20
    settings = QUICK | {"validation_fraction": 0, "lr": 0.05, "steps": 1, "epochs": 15}
    chances = {}
    for name, weight in {"none": None, "balanced": "balanced", "by hand": {1: 9.0}}.items():
        classifier = RRNClassifier(**settings, class_weight=weight).fit([graph] * 20, labels)
        chances[name] = classifier.predict_proba([graph])[0][0, 1]
    assert chances == pytest.approx({"none": 0.25, "balanced": 0.5, "by hand": 0.75}, abs=0.03)


def test_a_warm_start_goes_on(rings: Any) -> None:
    graphs, labels, _ = rings
    settings = QUICK | {"validation_fraction": 0, "epochs": 8}
    classifier = RRNClassifier(**settings, warm_start=True).fit(graphs, labels)
    first, network = classifier.history_[-1]["loss"], classifier.network_
    classifier.fit(graphs, [np.where(label, 1, -1) for label in labels])  # one class alone is enough now
    assert classifier.network_ is network
    assert classifier.classes_.tolist() == [0, 1]
    assert len(classifier.history_) == 16
    assert classifier.history_[8]["loss"] < first * 2
    with pytest.raises(InputError, match=r"warm_start: the network was not made for classes \[2\]; fit a new one"):
        classifier.fit(graphs, [2 * label for label in labels])
    with pytest.raises(InputError, match="warm_start: the network was not made for hidden=8; fit a new one"):
        classifier.set_params(hidden=8).fit(graphs, labels)
    assert classifier.set_params(warm_start=False).fit(graphs, labels).network_ is not network
    assert len(classifier.history_) == 8
    numbers = [label.astype(float) for label in labels]
    regressor = RRNRegressor(**settings, warm_start=True).fit(graphs, numbers)
    scale = regressor.mean_.copy()
    assert regressor.fit(graphs, [7 + each for each in numbers]).mean_ == scale


def test_labels_of_graphs_have_defaults_of_their_own(rings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, of_nodes, of_graphs = rings
    rates: list[float] = []
    optimizer = torch.optim.AdamW
    monkeypatch.setattr(torch.optim, "AdamW", lambda *a, lr, **k: rates.append(lr) or optimizer(*a, lr=lr, **k))
    quick: dict[str, Any] = {"hidden": 4, "steps": 1, "epochs": 1, "progress": False}
    network = RRNClassifier(**quick).fit(graphs, of_graphs).network_
    assert (network.settings["readout_layers"], network.settings["pool"]) == (1, ("sum", "mean", "max"))
    assert network.settings["update"] == "gru"
    network = RRNClassifier(**quick).fit(graphs, of_nodes).network_
    assert (network.settings["readout_layers"], network.settings["update"]) == (0, "lstm")
    RRNClassifier(**quick, lr=0.5).fit(graphs, of_graphs)
    assert rates == [1e-3, 3e-3, 0.5]


def test_arguments_reach_the_network(rings: Any) -> None:
    graphs, labels, _ = rings
    settings = {"aggregate": ("max", "sum"), "dropout": 0.25, "readout_layers": 2, "update": "gru", "message_layers": 2}
    network = RRNClassifier(**QUICK | {"epochs": 1}, **settings).fit(graphs, labels).network_
    assert {name: network.settings[name] for name in settings} == settings


@pytest.mark.parametrize("classes", [[0, 1], [False, True], ["no", "yes"]])
def test_a_saved_classifier_is_the_same(classes: list[Any], rings: Any, tmp_path: Path) -> None:
    graphs, labels, _ = rings
    named = [np.array(classes)[label] for label in labels]
    settings = QUICK | {"epochs": 2, "aggregate": ("sum", "max"), "class_weight": {classes[0]: 2.0}}
    classifier = RRNClassifier(**settings, predict_steps=5).fit(graphs, named)
    classifier.save(tmp_path / "mine")
    again = RRNClassifier.load(tmp_path / "mine")
    assert repr(again) == repr(classifier)
    assert again.history_ == classifier.history_
    assert again.classes_.dtype == classifier.classes_.dtype
    for mine, theirs in zip(classifier.predict_proba(graphs), again.predict_proba(graphs), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.predict(graphs[:1])[0].tolist() == classifier.predict(graphs[:1])[0].tolist()
    assert RRNClassifier.load(tmp_path / "mine", predict_steps=9).predict_steps == 9
    assert RRN.from_pretrained(tmp_path / "mine").settings == classifier.network_.settings
    files = sorted(path.name for path in (tmp_path / "mine").iterdir())
    assert files == ["config.json", "estimator.json", "model.safetensors"]


def test_a_saved_regressor_is_the_same(pairs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, _, numbers = pairs
    regressor = RRNRegressor(**QUICK | {"epochs": 2}, readout="edge").fit(graphs, numbers)
    regressor.save(tmp_path / "sudoku")
    monkeypatch.chdir(tmp_path)
    again = RRNRegressor.load("sudoku")  # a folder, though weights of that name are shipped
    np.testing.assert_array_equal(again.predict(graphs)[3], regressor.predict(graphs)[3])
    with pytest.raises(InputError, match=r"holds RRNRegressor, not RRNClassifier; load it with RRNRegressor\.load"):
        RRNClassifier.load("sudoku")


def test_what_cannot_be_saved_or_loaded_is_named(rings: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this RRNClassifier is not fitted"):
        RRNClassifier().save(tmp_path)
    with pytest.raises(InputError, match=r"estimator\.json: not an estimator that was saved"):
        RRNClassifier.load(tmp_path)
    graphs, _, labels = rings
    RRNClassifier(**QUICK | {"epochs": 1}).fit(graphs, labels).save(tmp_path)
    file = tmp_path / "estimator.json"
    about = json.loads(file.read_text())
    file.write_text(json.dumps(about | {"parameters": {"depth": 3}}))
    with pytest.raises(InputError, match=r"estimator\.json: not an estimator that was saved .*depth"):
        RRNClassifier.load(tmp_path)
    for damage in (
        json.dumps(about | {"estimator": "x" * 9999}),
        json.dumps(about | {"parameters": about["parameters"] | {"loss": "x" * 9999}}),
        json.dumps(about | {"parameters": about["parameters"] | {"device": "x" * 9999}}),
        json.dumps(about | {"fitted": {"classes": [math.inf], "dtype": "int64"}}),
        json.dumps(about | {"fitted": {"classes": ["a"], "dtype": "V500000000"}}),
        json.dumps(about | {"fitted": {"classes": ["a"] * 99_999 + ["x" * 9999], "dtype": "<U1"}}),
        "[" * 9999,
    ):
        file.write_text(damage)
        with pytest.raises(InputError) as refused:
            RRNClassifier.load(tmp_path)
        assert len(str(refused.value)) < 600
    file.write_text(json.dumps(about | {"fitted": {"classes": ["a", "b"], "dtype": "<U500000000"}}))
    assert RRNClassifier.load(tmp_path).classes_.dtype == np.dtype("<U1")
    tuples = np.empty(len(graphs), object)
    tuples[:] = [(int(label), 0) for label in labels]
    with pytest.raises(InputError, match=r"labels of graph 0: expected shape"):
        RRNClassifier(**QUICK | {"epochs": 1}).fit(graphs, tuples)


X, EDGES = np.zeros((3, 2), np.float32), np.array([[0, 1], [1, 2]])
GOOD = (X, EDGES)
BAD_FITS = {
    "no graphs": ({}, [], [], "graphs: expected at least one, got none"),
    "labels missing": ({}, [GOOD, GOOD], [0], "labels: expected one entry per graph, so 2, got 1"),
    "one class": ({"validation_fraction": 0}, [GOOD, GOOD], [1, 1], r"at least two classes, got 1 class: \[1\]"),
    "labels of another graph": ({}, [GOOD], [[0, 1]], r"labels of graph 0: expected shape \(3,\), got \(2,\)"),
    "no graph at all": ({}, [GOOD, "graph"], [0, 1], "graph 1: expected .*got str"),
    "an edge too high": ({}, [(X, EDGES + 1)], [0], "graph 0: edge_index names a node that x does not have"),
    "edge features missing": ({}, [(X, EDGES, X)], [0], "graph 0: 2 edges, but edge_attr has 3 rows"),
    "other features": ({}, [GOOD, (X[:, :1], EDGES)], [0, 1], "graph 1: has other numbers of node or edge features"),
    "x of one dimension": ({}, [(X[:, 0], EDGES)], [0], r"graph 0: expected x of shape \(nodes, features\)"),
    "too few to validate": ({}, [GOOD, GOOD], [0, 1], "validation_fraction: 0.1 of 2 graphs leaves none to validate"),
    "no steps": ({"steps": 0}, [GOOD], [0], "steps: expected at least 1, got 0"),
    "a share of two": ({"validation_fraction": 2}, [GOOD], [0], "validation_fraction: expected from 0 to below 1"),
    "edges in rows": (
        {},
        [GOOD, (X, np.array([[0, 1], [1, 2], [2, 0]]))],
        [0, 1],
        r"graph 1: expected edge_index of shape \(2, edges\), .* got \(3, 2\); transpose it",
    ),
    "edges of one dimension": ({}, [(X, [0, 1, 2])], [0], r"graph 0: expected edge_index of shape .* got \(3,\)"),
    "edges that are no integers": ({}, [(X, EDGES * 0.5)], [0], "graph 0: expected edge_index of integers, got"),
    "x that is not finite": ({}, [GOOD, (X + np.inf, EDGES)], [0, 1], "graph 1: x: not finite .* in row 0"),
    "float labels": ({}, [GOOD], [[0.0, 1.0, 0.5]], "labels of graph 0: expected classes .*float64; .*RRNRegressor"),
    "labels that do not sort": ({}, [GOOD], [np.array([0, "a", 1], object)], "labels: expected classes that sort"),
    "labels of edges unasked": (
        {},
        [GOOD],
        [[0, 1]],
        r"labels of graph 0: expected shape \(3,\), got \(2,\); for labels of edges: readout='edge'",
    ),
    "labels of nodes for edges": ({"readout": "edge"}, [GOOD], [[0, 1, 1]], r"expected shape \(2,\), got \(3,\)"),
    "nothing known": ({"validation_fraction": 0}, [GOOD], [[-1, -100, -1]], r"at least two classes, got 0 class: \[\]"),
    "nothing known to validate on": (
        {"validation_fraction": 0.5},
        [GOOD, GOOD],
        [[0, 1, 0], [-1, -1, -1]],
        "labels: none is known of the 1 graphs to (validate|train) on",
    ),
    "dropout of no layer": ({"dropout": 0.5}, [GOOD], [[0, 1, 0]], "dropout: .*readout_layers=1"),
    "all dropped": ({"dropout": 1.0}, [GOOD], [0], "dropout: expected from 0 to below 1, got 1.0"),
    "an unknown readout": (
        {"readout": "pair"},
        [GOOD],
        [0],
        "readout: expected 'auto', 'node', 'graph' or 'edge'",
    ),
    "a weight of no class": ({"class_weight": {7: 2.0}}, [GOOD] * 9, [0, 1, 1] * 3, "class_weight: 7 is none of the"),
    "an unknown class weight": ({"class_weight": "equal"}, [GOOD] * 9, [0, 1, 1] * 3, "class_weight: expected a dict"),
    "networkx without features": (
        {},
        [networkx.path_graph(2)],
        [0],
        r"graph 0: node 0 has no attribute 'x'; name the attribute .*: RRNClassifier\(node_attribute=…\)",
    ),
    "networkx without edge features": (
        {"edge_attribute": "w", "node_attribute": "y"},
        [networkx.from_edgelist([(0, 1)])],
        [0],
        "graph 0: node 0 has no attribute 'y'",
    ),
    "an unknown loss": ({"loss": "first"}, [GOOD], [0], "loss: expected 'every' or 'last', got 'first'"),
}


@pytest.mark.parametrize("case", BAD_FITS)
def test_unusable_input_is_named(case: str) -> None:
    settings, graphs, labels, message = BAD_FITS[case]
    with pytest.raises(InputError, match=message):
        RRNClassifier(**settings).fit(graphs, labels)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "sample_weight: expected one entry per graph, so 2, got 1"),
        ([1.0, -1.0], "sample_weight of graph 1: expected numbers of at least 0"),
        ([[1.0, 1.0], 1.0], r"sample_weight of graph 0: expected a number or shape \(3,\), got \(2,\)"),
        ([0.0, 0.0], "sample_weight: expected some above 0, but all weights are zero"),
    ],
)
def test_unusable_weights_are_named(weights: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RRNClassifier(validation_fraction=0).fit([GOOD, GOOD], [[0, 1, 1], [1, 0, 0]], weights)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b"], "labels of graph 0: expected numbers, got <U1"),
        ([1.0, np.inf], "labels of graph 1: expected finite numbers, or NaN"),
        ([np.nan, np.nan], "labels: expected some numbers, got none that is known"),
        ([[0.5, 1.0], [1.0, 0.0]], r"labels of graph 0: expected shape \(3,\), got \(2,\); for labels of edges"),
        ([np.zeros((3, 2)), np.zeros(3)], r"labels of graph 1: expected shape \(3, 2\), got \(3,\)"),
    ],
)
def test_unusable_numbers_are_named(labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RRNRegressor(validation_fraction=0).fit([GOOD, GOOD], labels)


def test_mistakes_after_fitting_are_named(rings: Any) -> None:
    with pytest.raises(InputError, match="not fitted"):
        RRNClassifier().predict([GOOD])
    with pytest.raises(InputError, match="depth: no such parameter; there are aggregate, batch_size"):
        RRNClassifier().set_params(depth=3)
    graphs, labels, _ = rings
    classifier = RRNClassifier(**QUICK | {"epochs": 1}).fit(graphs, labels)
    with pytest.raises(InputError, match="graph 0: expected 1 features per node and 0 per edge"):
        classifier.predict([GOOD])
