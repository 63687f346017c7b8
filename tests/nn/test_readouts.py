import pytest
import torch

from rrn import RRN, CompleteGraphs, EdgeList, InputError, NeighbourTable
from rrn.graphs import Aggregate, Graph, Groups, PackedGraphs, neighbour_edges
from rrn.nn.readouts import EdgeReadout, GraphReadout, NodeReadout

EDGES = EdgeList(torch.tensor([[0], [1]]), 6)
BATCH = torch.tensor([0, 0, 0, 1, 2, 2])


def test_shapes_and_sums() -> None:
    h = torch.randn(6, 4)
    assert NodeReadout(4, 3, layers=2)(h, EDGES, BATCH).shape == (6, 3)
    readout = GraphReadout(4, 3, layers=1)
    together = readout(h, EDGES, BATCH)
    expected = torch.stack([h[:3].sum(0), h[3], h[4:].sum(0)])
    torch.testing.assert_close(together, readout.mlp(expected))
    torch.testing.assert_close(readout(h, EDGES, None), readout.mlp(h.sum(0, keepdim=True)))
    torch.testing.assert_close(readout(h, CompleteGraphs(2, 3), None), readout.mlp(h.view(2, 3, 4).sum(1)))


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_an_edge_is_read_from_its_ends_and_its_features(layers: int) -> None:
    """The whole MLP on [sender, receiver, edge features], edge by edge."""
    readout = EdgeReadout(4, 3, layers, edge_features=2).double()
    assert len(readout.mlp.linears) == max(layers, 1) + 1
    h, edge_attr, edges = torch.randn(6, 4).double(), torch.randn(5, 2).double(), torch.randint(6, (2, 5))
    expected = [readout.mlp(torch.cat([h[i], h[j], e])) for (i, j), e in zip(edges.T, edge_attr, strict=True)]
    torch.testing.assert_close(readout(h, EdgeList(edges, 6), None, edge_attr), torch.stack(expected))


def test_edge_readouts_agree_on_all_layouts() -> None:
    readout, h = EdgeReadout(4, 3).double(), torch.randn(6, 4).double()
    table = NeighbourTable(torch.randint(6, (6, 2)))
    by_table = readout(h, table, None)
    assert by_table.shape == (6, 2, 3)
    torch.testing.assert_close(by_table.flatten(0, 1), readout(h, EdgeList(neighbour_edges(table.table), 6), None))
    complete = readout(h, CompleteGraphs(2, 3), None)
    assert complete.shape == (2, 3, 3, 3)
    torch.testing.assert_close(complete[1, 0, 2], readout(h, EdgeList(torch.tensor([[3], [5]]), 6), None)[0])


def test_a_network_answers_about_edges_at_every_step() -> None:
    network = RRN(2, 8, 3, edge_features=1, readout="edge", dropout=0.5).double()
    x, edge_attr, edges = torch.randn(5, 2).double(), torch.randn(7, 1).double(), torch.randint(5, (2, 7))
    network.train()
    assert not torch.equal(network(x, edges, edge_attr, steps=1), network(x, edges, edge_attr, steps=1))
    network.eval()
    outputs = network(x, edges, edge_attr, steps=4)
    assert outputs.shape == (4, 7, 3)
    state = network.initial_state(x)
    for step in range(4):
        answer, state = network.step(state, x, edges, edge_attr)
        torch.testing.assert_close(answer, outputs[step])
    order = torch.randperm(7)
    torch.testing.assert_close(network(x, edges[:, order], edge_attr[order], steps=4), outputs[:, order])


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


@pytest.mark.parametrize("layout", ["edges", "table", "complete", "padded", "packed", "groups"])
@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_a_graph_readout_pools_the_nodes_of_each_graph(layout: str, how: Aggregate) -> None:
    sizes = [3, 2, 4] if layout in ("edges", "packed", "groups", "padded") else [3, 3, 3]
    h = torch.randn(sum(sizes), 5)
    batch = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    reduced = [getattr(part, {"max": "amax"}.get(how, how))(0) for part in h.split(sizes)]
    given: torch.Tensor | None = None
    if layout == "edges":
        graph: Graph = EdgeList(torch.zeros(2, 0, dtype=torch.long), len(h))
        given = batch
    elif layout == "table":
        graph, given = NeighbourTable.repeat(torch.tensor([[1], [2], [0]]), 3), batch
    elif layout == "complete":
        graph = CompleteGraphs(3, 3)
    elif layout == "padded":
        mask = torch.arange(4) < torch.tensor(sizes)[:, None]
        graph = CompleteGraphs(3, 4, mask)
        h = torch.full((12, 5), 9.0).index_copy(0, mask.flatten().nonzero()[:, 0], h)
    elif layout == "packed":
        graph = PackedGraphs(torch.tensor(sizes))
    else:
        graph = Groups(torch.zeros(len(h), 1, dtype=torch.long), [1], torch.tensor(sizes).cumsum(0))
    torch.testing.assert_close(graph.pool_nodes(h, given, how), torch.stack(reduced))


def test_several_ways_of_pooling_are_concatenated() -> None:
    readout = GraphReadout(4, 2, pool=("max", "sum"))
    h, graph = torch.randn(6, 4), EdgeList(torch.zeros(2, 0, dtype=torch.long), 6)
    expected = readout.mlp(torch.cat([h.amax(0), h.sum(0)])[None])
    torch.testing.assert_close(readout(h, graph, None), expected)
    for pool in ((), "sum", ("median",), ("sum",) * 4):
        with pytest.raises(InputError, match="pool: expected a tuple"):
            GraphReadout(4, 2, pool=pool)  # type: ignore[arg-type]


@pytest.mark.parametrize("join", ["repeat", "join tables", "join edges"])
def test_a_graph_readout_on_several_graphs_needs_their_numbers(join: str) -> None:
    table = torch.tensor([[1], [0]])
    if join == "repeat":
        graph: Graph = NeighbourTable.repeat(table, 2)
    elif join == "join tables":
        graph, _ = NeighbourTable.join([(NeighbourTable(table), None)] * 2)
    else:
        graph, _ = EdgeList.join([(EdgeList(torch.tensor([[0, 1], [1, 0]]), 2), None)] * 2)
    network, x = RRN(3, 4, 2, readout="graph"), torch.randn(4, 3)
    with pytest.raises(InputError, match="batch: expected the graph of each node, as there are 2 graphs"):
        network(x, graph, steps=1)
    assert network(x, graph, batch=torch.tensor([0, 0, 1, 1]), steps=1).shape == (1, 2, 2)


@pytest.mark.parametrize("pool", [("sum",), ("sum", "mean", "max")])
def test_all_steps_in_one_call_are_those_of_single_calls(pool: tuple[Aggregate, ...]) -> None:
    readout = GraphReadout(4, 2, layers=1, pool=pool)
    graph, batch = EdgeList(torch.tensor([[0, 3], [1, 4]]), 5), torch.tensor([0, 0, 1, 2, 2])
    states = [torch.randn(5, 4) for _ in range(3)]
    for given in (batch, None):
        expected = torch.stack([readout(h, graph, given) for h in states])
        torch.testing.assert_close(readout.read_steps(states, graph, given), expected)
