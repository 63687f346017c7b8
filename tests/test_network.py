"""Equations 1 to 4 by hand, under permutation, in batches and in pieces; and the errors for bad input."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from rrn import RRN, CompleteGraphs, InputError, RRNClassifier, State
from rrn.graphs import Graph, complete_edges, union
from rrn.network import UPDATES
from rrn.nn import (
    AttentionMessage,
    DotReadout,
    GatedMessage,
    GroupMessage,
    Message,
    Readout,
    ResidualUpdate,
    SharedLayerUpdate,
    Update,
)

TRIANGLE = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]])


def random_graph(nodes: int, edges: int, features: int = 4, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """x, edge_index and edge_attr (3 numbers an edge), in double precision."""
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(nodes, features, generator=generator, dtype=torch.float64),
        torch.randint(nodes, (2, edges), generator=generator),
        torch.randn(edges, 3, generator=generator, dtype=torch.float64),
    )


class Twice(Message):
    """m_j = Σ_i (2·h_i + 10·h_j + 100·e_ij)."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs = 1

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        return graph.collect(graph.pair(2 * h, 10 * h) + 100 * edge_term, "sum")


class Plus(Update):
    def forward(self, state: State, x: Tensor, m: Tensor) -> State:
        return State(state.h + 1000 * x + m)


class Show(Readout):
    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        return h


def test_three_nodes_by_hand() -> None:
    """Edges 0→1, 1→2, 2→0, 0→2 with features 1, 2, 3, 4; h = x = (1, 2, 3).

    m_0 = 2·3 + 10·1 + 100·3 = 316
    m_1 = 2·1 + 10·2 + 100·1 = 122
    m_2 = (2·2 + 10·3 + 100·2) + (2·1 + 10·3 + 100·4) = 234 + 432 = 666
    h   = h + 1000·x + m = (1317, 2124, 3669)
    """
    parts = {"message": Twice(), "update": Plus(), "readout": Show()}
    network = RRN(1, 1, edge_features=1, encoder_layers=None, **parts)
    x, edge_attr = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    outputs = network(x, TRIANGLE, edge_attr, steps=2)
    assert outputs[0].flatten().tolist() == [1317, 2124, 3669]
    second = 1317 + 1000 + (2 * 3669 + 10 * 1317 + 300)
    assert outputs[1, 0].item() == second


def test_three_nodes_by_hand_through_the_learned_parts() -> None:
    """relu and weights of 1: m_j = Σ_i relu(h_i + h_j); h_j = relu(h + x + m); o = 2·h + 1."""
    network = RRN(1, 1, 1, encoder_layers=None, update="mlp")
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(1.0 if parameter.dim() == 2 else 0.0)
        network.readout.mlp.linears[0].weight.fill_(2.0)
        network.readout.mlp.linears[0].bias.fill_(1.0)
    outputs = network(torch.tensor([[1.0], [-3.0], [5.0]]), TRIANGLE, steps=1)
    # m = (relu(5+1), relu(1-3), relu(-3+5) + relu(1+5)) = (6, 0, 8); h = (8, relu(-6), 18)
    assert outputs[0].flatten().tolist() == [17, 1, 37]


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(0, 20), st.sampled_from([*UPDATES, "none"]))
@settings(max_examples=25, deadline=None)
def test_nodes_and_edges_may_come_in_any_order(seed: int, nodes: int, edges: int, update: str) -> None:
    torch.manual_seed(seed)
    network = RRN(4, 6, 2, edge_features=3, message_layers=2, update=update).double()
    x, edge_index, edge_attr = random_graph(nodes, edges, seed=seed)
    order, edge_order = torch.randperm(nodes), torch.randperm(edges)
    index = torch.empty_like(order).scatter_(0, order, torch.arange(nodes))  # the new index of each node
    outputs = network(x, edge_index, edge_attr, steps=3)
    shuffled = network(x[order], index[edge_index[:, edge_order]], edge_attr[edge_order], steps=3)
    torch.testing.assert_close(shuffled, outputs[:, order], atol=1e-10, rtol=1e-10)


def test_graph_outputs_do_not_depend_on_the_order_of_nodes() -> None:
    network = RRN(4, 6, 2, readout="graph").double()
    x, edge_index, _ = random_graph(7, 15)
    order = torch.randperm(7)
    index = torch.empty_like(order).scatter_(0, order, torch.arange(7))
    outputs, shuffled = network(x, edge_index, steps=3), network(x[order], index[edge_index], steps=3)
    torch.testing.assert_close(shuffled, outputs, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("update", [*UPDATES, "none"])
@pytest.mark.parametrize("readout", ["node", "graph"])
def test_a_loop_of_steps_is_forward_and_two_halves_are_a_whole(update: str, readout: str) -> None:
    network = RRN(4, 6, 2, edge_features=3, update=update, readout=readout).double()
    x, edge_index, edge_attr = random_graph(5, 12)
    batch = torch.tensor([0, 0, 1, 1, 1])
    whole = network(x, edge_index, edge_attr, batch, steps=5)

    state, looped = network.initial_state(x), []
    for _ in range(5):
        output, state = network.step(state, x, edge_index, edge_attr, batch)
        looped.append(output)
    torch.testing.assert_close(torch.stack(looped), whole, atol=1e-12, rtol=1e-12)

    first, state = network.run(x, edge_index, edge_attr, batch, steps=2)
    second = network(x, edge_index, edge_attr, batch, steps=3, state=state)
    torch.testing.assert_close(torch.cat([first, second]), whole, atol=1e-12, rtol=1e-12)


def test_any_number_of_steps_at_test_time() -> None:
    network = RRN(4, 6, 2)
    x = torch.randn(5, 4)
    short, long = network(x, complete_edges(5), steps=8), network(x, complete_edges(5), steps=64)
    assert long.shape == (64, 5, 2)
    torch.testing.assert_close(long[:8], short)


@pytest.mark.parametrize("readout", ["node", "graph"])
def test_a_batch_of_mixed_graphs_is_one_graph_after_the_other(readout: str) -> None:
    network = RRN(4, 6, 2, update="gru", readout=readout).double()
    graphs = [random_graph(nodes, edges, seed=nodes)[:2] for nodes, edges in [(3, 5), (1, 0), (8, 30), (2, 1)]]
    together = network(*_with_batch(union(graphs)), steps=4)
    apart = torch.cat([network(x, edges, steps=4) for x, edges in graphs], dim=1)
    torch.testing.assert_close(together, apart, atol=1e-10, rtol=1e-10)


def _with_batch(joined: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, None, Tensor]:
    x, edge_index, batch = joined
    return x, edge_index, None, batch


def test_dropout_is_active_in_training_only() -> None:
    network = RRN(4, 16, 2, readout_layers=2, dropout=0.5, dropout_layers=2)
    x = torch.randn(5, 4)
    network.train()
    assert not torch.equal(network(x, complete_edges(5), steps=2), network(x, complete_edges(5), steps=2))
    network.eval()
    assert torch.equal(network(x, complete_edges(5), steps=2), network(x, complete_edges(5), steps=2))


def test_every_parameter_learns() -> None:
    for update in UPDATES:
        network = RRN(4, 6, 2, edge_features=3, message_layers=2, update=update).double()
        x, edge_index, edge_attr = random_graph(6, 14)
        network(x, edge_index, edge_attr, steps=3).square().sum().backward()
        still = [name for name, p in network.named_parameters() if p.grad is None or not p.grad.any()]
        assert not still, (update, still)


def test_a_graph_without_edges_runs() -> None:
    network = RRN(4, 6, 2, message_layers=2)
    x = torch.randn(3, 4, requires_grad=True)
    outputs = network(x, torch.empty(2, 0, dtype=torch.long), steps=2)
    outputs.sum().backward()
    assert outputs.shape == (2, 3, 2)
    assert x.grad is not None


X = torch.zeros(3, 4)
EDGES = torch.tensor([[0, 1], [1, 2]])
NAN = torch.tensor([[0.0] * 4, [0.0, float("nan"), 0.0, 0.0], [0.0] * 4])
BAD_CALLS = {
    "edges too high": (
        {"edge_index": torch.tensor([[0], [3]])},
        r"edge_index: names node 3, but x has nodes 0 to 2",
    ),
    "edges negative": ({"edge_index": torch.tensor([[0], [-1]])}, r"edge_index: names node -1, but x has nodes 0 to 2"),
    "edges as floats": ({"edge_index": EDGES.float()}, r"edge_index: expected integers .*got torch.float32"),
    "edges on their side": ({"edge_index": torch.zeros(5, 2).long()}, r"edge_index: expected .*\(2, edges\).*\(5, 2\)"),
    "edges as a list": ({"edge_index": [[0], [1]]}, r"edge_index: expected a tensor of shape \(2, edges\), got list"),
    "a graph of another size": ({"edge_index": CompleteGraphs(2, 3)}, r"edge_index: a graph of 6 nodes, but x has 3"),
    "x too wide": ({"x": torch.zeros(3, 5)}, r"x: expected a tensor of shape \(nodes, 4\), got \(3, 5\)"),
    "x with one dimension": ({"x": torch.zeros(4)}, r"x: expected a tensor of shape \(nodes, 4\), got \(4,\)"),
    "x as an array": ({"x": np.zeros((3, 4))}, r"x: expected a tensor of shape \(nodes, 4\), got ndarray"),
    "x of integers": ({"x": X.long()}, r"x: expected torch.float32.*got torch.int64"),
    "x of doubles": ({"x": X.double()}, r"x: expected torch.float32.*got torch.float64"),
    "no nodes": ({"x": torch.zeros(0, 4), "edge_index": torch.zeros(2, 0).long()}, r"x: the graph has no nodes"),
    "x with NaN": ({"x": NAN}, r"x: not finite .*row 1"),
    "x with infinity": ({"x": X + float("inf")}, r"x: not finite .*row 0"),
    "no steps": ({"steps": 0}, r"steps: expected at least 1, got 0"),
    "negative steps": ({"steps": -3}, r"steps: expected at least 1, got -3"),
    "edge features not expected": (
        {"edge_attr": torch.zeros(2, 3)},
        r"edge_attr: expected None for edge_features=0, got \(2, 3\)",
    ),
    "batch too short": (
        {"batch": torch.zeros(2).long()},
        r"batch: expected torch.int64 of shape \(3,\), got torch.int64 \(2,\)",
    ),
    "batch of floats": ({"batch": torch.zeros(3)}, r"batch: expected torch.int64 of shape \(3,\), got torch.float32"),
    "batch not ascending": ({"batch": torch.tensor([0, 1, 0])}, r"batch: expected .*ascending order from 0"),
    "batch from one": ({"batch": torch.tensor([1, 1, 1])}, r"batch: expected .*ascending order from 0"),
    "state of another graph": ({"state": State(torch.zeros(2, 6))}, r"state: h: expected shape \(3, 6\), got \(2, 6\)"),
    "state as a tensor": ({"state": torch.zeros(3, 6)}, r"state: expected a State, got Tensor"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_input_is_named(case: str) -> None:
    changes, message = BAD_CALLS[case]
    arguments = {"x": X, "edge_index": EDGES, "steps": 2} | changes
    with pytest.raises(InputError, match=message):
        RRN(4, 6, 2, update="gru")(**arguments)


H = torch.zeros(3, 6)
BAD_STATES = {
    "h alone": (State(H), r"state: expected h and 2 memory tensors.*got h and 0"),
    "one tensor too many": (State(H, (H, H, H)), r"state: expected h and 2 memory tensors.*got h and 3"),
    "rows of h": (State(H[:2], (H, H)), r"state: h: expected shape \(3, 6\), got \(2, 6\)"),
    "rows of the memory": (State(H, (H, H[:2])), r"state: memory\[1\]: expected shape \(3, 6\), got \(2, 6\)"),
    "width of the memory": (State(H, (H[:, :5], H)), r"state: memory\[0\]: expected shape \(3, 6\), got \(3, 5\)"),
    "no tensor": (State(H, (H, None)), r"state: memory\[1\]: expected shape \(3, 6\), got NoneType"),
    "dtype of h": (State(H.double(), (H, H)), r"state: h: expected torch.float32, got torch.float64"),
    "dtype of the memory": (State(H, (H.long(), H)), r"state: memory\[0\]: expected torch.float32, got torch.int64"),
    "device of the memory": (State(H, (H, H.to("meta"))), r"state: memory\[1\]: expected device cpu, got meta"),
}


@pytest.mark.parametrize("case", BAD_STATES)
def test_every_part_of_a_state_is_checked(case: str) -> None:
    state, message = BAD_STATES[case]
    network = RRN(4, 6, 2)
    with pytest.raises(InputError, match=message):
        network.run(X, EDGES, steps=1, state=state)
    with pytest.raises(InputError, match=message):
        network.step(state, X, EDGES)


@pytest.mark.parametrize("update", [*UPDATES, "none"])
def test_an_initial_state_passes_the_check(update: str) -> None:
    network = RRN(4, 6, 2, update=update)
    given = network.prepare(torch.randn(3, 4), EDGES)
    state = network.update.initial_state(given.x)
    assert torch.equal(network(given, steps=2, state=state), network(given, steps=2))


def test_run_and_step_return_outputs_first() -> None:
    network = RRN(4, 6, 2)
    x = torch.randn(3, 4)
    outputs, after_run = network.run(x, EDGES, steps=1)
    output, after_step = network.step(network.initial_state(x), x, EDGES)
    assert isinstance(after_run, State)
    assert isinstance(after_step, State)
    torch.testing.assert_close(outputs[0], output)
    torch.testing.assert_close(after_run, after_step)


@pytest.mark.parametrize(("update", "inputs"), [("mlp", "hxm"), ("lstm", "xm"), ("gru", "xm")])
def test_the_default_inputs_are_those_of_the_update(update: str, inputs: str) -> None:
    network = RRN(4, 6, 2, update=update)
    assert network.update.reader.inputs == network.settings["update_inputs"] == inputs
    assert RRN(4, 6, 2, update=update, update_inputs="xm").update.reader.inputs == "xm"


def test_an_mlp_update_reads_h() -> None:
    """Eq. 3 with the default inputs: on a graph without edges, m is 0 and another h gives another state."""
    network, none = RRN(4, 6, 2, update="mlp"), torch.zeros(2, 0).long()
    states = [network.step(State(h), X, none)[1].h for h in (torch.zeros(3, 6), torch.ones(3, 6))]
    assert not torch.equal(*states)


@pytest.mark.parametrize("update", [*UPDATES, "none"])
@pytest.mark.parametrize("readout", ["node", "edge"])
def test_reset_parameters_draws_what_the_constructor_draws(update: str, readout: str) -> None:
    torch.manual_seed(0)
    network = RRN(4, 6, 2, message_layers=2, update=update, readout=readout)
    initial = {name: value.clone() for name, value in network.state_dict().items()}
    network.reset_parameters()
    weights = [name for name in initial if name.endswith("weight")]
    assert not any(torch.equal(network.state_dict()[name], initial[name]) for name in weights)
    torch.manual_seed(0)
    network.reset_parameters()
    for name, value in network.state_dict().items():
        assert torch.equal(value, initial[name]), name


@pytest.mark.parametrize(
    ("parts", "groups"),
    [
        ({"message": GatedMessage(6, 1)}, False),
        ({"message": AttentionMessage(6, 1, 2, 3)}, False),
        ({"update": ResidualUpdate(6, 4, "product")}, False),
        ({"message": GroupMessage(2, 3), "update": SharedLayerUpdate(5, 6, 8), "readout": DotReadout(5)}, True),
    ],
)
def test_reset_parameters_resets_every_part(parts: dict[str, nn.Module], groups: bool) -> None:
    network = RRN(1, 6, None if groups else 2, edge_features=0 if groups else 1, **parts)
    for parameter in network.parameters():
        nn.init.constant_(parameter, 7.0)
    network.reset_parameters()
    assert not [name for name, parameter in network.named_parameters() if (parameter == 7).all()]


def test_reset_parameters_names_a_part_that_cannot_be_reset() -> None:
    class Scaled(Update):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, state: State, x: Tensor, m: Tensor) -> State:
            return State(self.scale * m)

    with pytest.raises(InputError, match=r"Scaled: it has parameters but no reset_parameters\(\); define one"):
        RRN(4, 6, 2, update=Scaled()).reset_parameters()


@pytest.mark.parametrize(
    ("edge_attr", "message"),
    [
        (None, r"edge_attr: expected shape \(2, 3\) for edge_features=3, got None"),
        (torch.zeros(2, 2), r"edge_attr: expected shape \(2, 3\), got \(2, 2\)"),
        (torch.zeros(4, 3), r"edge_attr: expected shape \(2, 3\), got \(4, 3\)"),
        (torch.zeros(3), r"edge_attr: expected shape \(2, 3\), got \(3,\)"),
        (torch.zeros(2, 3).long(), r"edge_attr: expected torch.float32.*got torch.int64"),
        (torch.tensor([[0.0, 0, 0], [0, 0, float("nan")]]), r"edge_attr: not finite .*row 1"),
    ],
)
def test_bad_edge_features_are_named(edge_attr: Tensor | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RRN(4, 6, 2, edge_features=3)(X, EDGES, edge_attr, steps=1)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"update": "rnn"}, r"update: expected one of \['lstm', 'gru', 'mlp', 'none'\] or an Update, got 'rnn'"),
        ({"readout": "pair"}, r"readout: expected one of \['node', 'graph', 'edge'\] or a Readout, got 'pair'"),
        ({"encoder_layers": None}, r"features: expected 6, the hidden width, without an encoder; got 4"),
        ({"message_layers": 0}, r"message_layers: expected at least 1, got 0"),
        ({"update_inputs": "mx"}, r"update_inputs: expected one of \['xm', 'hxm'\], got 'mx'"),
        ({"aggregate": ("median",)}, r"aggregate: expected a tuple .*got \('median',\)"),
        ({"aggregate": "sum"}, r"aggregate: expected a tuple .*got 'sum'"),
    ],
)
def test_bad_settings_are_named(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RRN(4, 6, 2, **settings_)


def test_the_example_of_the_docstring() -> None:
    network: nn.Module = RRN(features=5, hidden=32, outputs=3)
    x, edge_index = torch.randn(4, 5), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    assert network(x, edge_index, steps=8).shape == (8, 4, 3)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("checkpoint", [1, 3, 7, 20])
def test_checkpoints_change_memory_not_gradients(checkpoint: int, layers: int) -> None:
    network = RRN(4, 6, 2, message_layers=layers, dropout=0.5, readout_layers=1).double()
    x, edges = torch.randn(9, 4).double().requires_grad_(), torch.randint(9, (2, 20))
    found = []
    for k in (None, checkpoint):
        torch.manual_seed(3)
        outputs, state = network.run(x, edges, steps=7, checkpoint=k)
        loss = outputs.square().sum() + state.h.sum()
        found.append([outputs, state.h, *torch.autograd.grad(loss, [x, *network.parameters()])])
    for plain, checkpointed in zip(*found, strict=True):
        torch.testing.assert_close(checkpointed, plain)


def test_a_checkpoint_keeps_no_edge_for_the_backward_pass() -> None:
    network, x, edges = RRN(4, 6, 2, message_layers=2), torch.randn(9, 4), torch.randint(9, (2, 5_000))
    saved = []
    for checkpoint in (None, 2):
        count = 0

        def counting(tensor: Tensor) -> Tensor:
            nonlocal count
            count += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(counting, lambda tensor: tensor):
            network(x, edges, steps=8, checkpoint=checkpoint)
        saved.append(count)
    assert saved[0] > 8 * 5_000 * 6 > 10 * saved[1]


def test_the_mlp_update_of_an_estimator_reads_h() -> None:
    ring = torch.ones(3, 1), torch.tensor([[0, 1, 2], [1, 2, 0]])
    classifier = RRNClassifier(hidden=4, update="mlp", epochs=1, steps=2, validation_fraction=0)
    classifier.fit([ring, ring], [[0, 1, 0], [1, 0, 1]])
    assert classifier.network_.update.reader.inputs == "hxm"
