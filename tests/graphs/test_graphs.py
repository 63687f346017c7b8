"""Layouts of one graph must agree, with each other and with loops over edges. And the adapters of other libraries."""

import pytest
import torch
from torch import Tensor

from rrn import RRN, CompleteGraphs, EdgeList, InputError, NeighbourTable
from rrn.graphs import (
    Aggregate,
    Graph,
    Groups,
    PackedGraphs,
    complete_edges,
    from_networkx,
    from_pyg,
    neighbour_edges,
    union,
)

WIDTH = 5


def complete_in_all_layouts(graphs: int, size: int) -> list[tuple[Graph, Tensor]]:
    """The same complete graphs thrice, each with the place of its edges in the order (graph, sender, receiver)."""
    one = complete_edges(size)
    edges = torch.cat([one + size * g for g in range(graphs)], dim=1)
    table = torch.stack([torch.tensor([i for i in range(size) if i != j]) for j in range(size)])
    repeated = NeighbourTable.repeat(table, graphs)
    places = []
    for source, target in (edges, neighbour_edges(repeated.table)):
        places.append(source // size * size * size + source % size * size + target % size)
    everything = torch.arange(graphs * size * size).view(graphs, size, size)
    return [
        (EdgeList(edges, graphs * size), places[0]),
        (repeated, places[1].view(repeated.edge_shape)),
        (CompleteGraphs(graphs, size), everything),
    ]


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_layouts_agree(how: Aggregate) -> None:
    source, target = torch.randn(12, WIDTH).double(), torch.randn(12, WIDTH).double()
    values, weights = torch.randn(3 * 4 * 4, WIDTH).double(), torch.randn(3 * 4 * 4, 2).double()
    results = []
    for graph, places in complete_in_all_layouts(3, 4):
        arrived = graph.collect(graph.pair(source, target) * values[places], how)
        results.append((arrived, graph.weighted_sums(source, weights[places]), graph.in_degree().double()))
    for result in results[1:]:
        for ours, theirs in zip(result, results[0], strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_masked_complete_graphs_are_smaller_complete_graphs(how: Aggregate) -> None:
    mask = torch.tensor([[True, True, False, True], [False, True, False, False], [True] * 4])
    masked = CompleteGraphs(3, 4, mask)
    edges = torch.cat([complete_edges(4) + 4 * g for g in range(3)], dim=1)
    exists = mask.flatten()
    kept = EdgeList(edges[:, exists[edges[0]] & exists[edges[1]]], 12)
    source, target = torch.randn(12, WIDTH).double(), torch.randn(12, WIDTH).double()
    ours = masked.collect(masked.pair(source, target), how)
    theirs = kept.collect(kept.pair(source, target), how)
    torch.testing.assert_close(ours[exists], theirs[exists], atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(masked.in_degree()[exists], kept.in_degree()[exists])
    weights = torch.randn(3, 4, 4, 2).double()
    flat = weights.flatten(0, 2)[kept.source // 4 * 16 + kept.source % 4 * 4 + kept.target % 4]
    ours, theirs = masked.weighted_sums(source, weights), kept.weighted_sums(source, flat)
    torch.testing.assert_close(ours[exists], theirs[exists], atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(
        masked.sum_nodes(source, None),
        torch.stack([source[4 * g : 4 * g + 4][mask[g]].sum(0) for g in range(3)]),
    )


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_packed_graphs_are_graphs_side_by_side(how: Aggregate) -> None:
    sizes = [3, 1, 4]
    packed = PackedGraphs(torch.tensor(sizes))
    edges = torch.cat([complete_edges(n) + sum(sizes[:g]) for g, n in enumerate(sizes)], dim=1)
    plain = EdgeList(edges, 8)
    graph_of = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    within = torch.arange(8) - (torch.tensor(sizes).cumsum(0) - torch.tensor(sizes))[graph_of]
    place = (graph_of[edges[0]], within[edges[0]], within[edges[1]])
    source, target = torch.randn(8, WIDTH).double(), torch.randn(8, WIDTH).double()
    values, weights = torch.randn(3, 4, 4, WIDTH).double(), torch.randn(3, 4, 4, 2).double()
    ours = packed.collect(packed.pair(source, target) * values, how)
    torch.testing.assert_close(ours, plain.collect(plain.pair(source, target) * values[place], how))
    torch.testing.assert_close(packed.weighted_sums(source, weights), plain.weighted_sums(source, weights[place]))
    torch.testing.assert_close(packed.in_degree(), plain.in_degree())
    torch.testing.assert_close(packed.sum_nodes(source, None), plain.sum_nodes(source, graph_of))
    assert torch.equal(packed.pack(packed.pad(source)), source)
    with pytest.raises(InputError, match="sizes"):
        PackedGraphs(torch.tensor([2, 0]))


def test_what_a_masked_node_holds_changes_nothing() -> None:
    network = RRN(4, 6, 2, readout="graph", message_layers=2).double()
    graph = CompleteGraphs(2, 3, torch.tensor([[True, True, False], [True, True, True]]))
    x = torch.randn(6, 4).double()
    other = x.clone()
    other[2] += 100
    torch.testing.assert_close(network(x, graph, steps=3), network(other, graph, steps=3))
    small = network(x[:2], complete_edges(2), steps=3)
    torch.testing.assert_close(network(x, graph, steps=3)[:, :1], small)


@pytest.mark.parametrize("layout", ["edges", "complete", "complete of one"])
@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_nodes_without_senders_get_zeros(how: Aggregate, layout: str) -> None:
    if layout == "edges":
        graph: Graph = EdgeList(torch.tensor([[0, 1], [1, 0]]), 3)
        values, alone = torch.full((2, 1), -7.0, requires_grad=True), [2]
    elif layout == "complete":
        graph = CompleteGraphs(1, 3, torch.tensor([[False, False, True]]))
        values, alone = torch.full((1, 3, 3, 1), -7.0, requires_grad=True), [2]
    else:
        graph = CompleteGraphs(2, 1)
        values, alone = torch.full((2, 1, 1, 1), -7.0, requires_grad=True), [0, 1]
    arrived = graph.collect(values, how)
    assert all(arrived[node] == 0 for node in alone)
    arrived.sum().backward()
    assert values.grad is not None
    assert values.grad.isfinite().all()
    others = [node for node in range(graph.num_nodes) if node not in alone]
    assert all(arrived[node] == -7 for node in others)


def test_mean_and_max_by_hand() -> None:
    graph = EdgeList(torch.tensor([[0, 1, 2], [2, 2, 1]]), 3)
    values = torch.tensor([[1.0, -1.0], [3.0, -5.0], [4.0, 4.0]])
    assert graph.collect(values, "mean").tolist() == [[0, 0], [4, 4], [2, -3]]
    assert graph.collect(values, "max").tolist() == [[0, 0], [4, 4], [3, -1]]
    assert graph.in_degree().flatten().tolist() == [0, 1, 2]


def test_weighted_sums_are_sums_of_weighted_nodes() -> None:
    edges = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]])
    graph, source, weights = EdgeList(edges, 3), torch.randn(3, WIDTH).double(), torch.randn(4, 2).double()
    expected = torch.zeros(3, 2, WIDTH).double()
    for e, (i, j) in enumerate(edges.T.tolist()):
        for k in range(2):
            expected[j, k] += weights[e, k] * source[i]
    torch.testing.assert_close(graph.weighted_sums(source, weights), expected)
    shared = graph.weighted_sums(source, weights[:1])
    torch.testing.assert_close(shared, graph.weighted_sums(source, weights[:1].expand(4, -1)))


def batches() -> dict[str, tuple[Graph, list[int]]]:
    """Three graphs in every layout, and how many nodes each has."""
    one = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])
    edges = torch.cat([one, torch.tensor([[3, 4, 3], [4, 3, 3]]), one + 5], dim=1)
    mixed = edges[:, torch.tensor([4, 0, 8, 2, 1, 9, 5, 3, 7, 6, 10])]
    member_of = torch.tensor([[0, 1], [1, 1], [0, 0], [2, 0], [2, 0], [1, 0], [0, 1], [0, 1]])
    second = torch.tensor([1, -1, 2, -1, 1, -1, 2, -1])
    overlapping = torch.stack([member_of[:, 0], second, member_of[:, 1].where(member_of[:, 0] > 0, -1)], dim=1)
    mask = torch.tensor([[True, True, False], [True, True, True], [False, True, True]])
    return {
        "edges": (EdgeList(mixed, 8), [3, 2, 3]),
        "table": (NeighbourTable.repeat(torch.tensor([[1, 2], [0, 0], [1, 2]]), 3), [3, 3, 3]),
        "complete": (CompleteGraphs(3, 3), [3, 3, 3]),
        "masked": (CompleteGraphs(3, 3, mask), [3, 3, 3]),
        "packed": (PackedGraphs(torch.tensor([3, 1, 4])), [3, 1, 4]),
        "groups": (Groups(member_of, (3, 2), torch.tensor([3, 5, 8])), [3, 2, 3]),
        "overlapping": (Groups(overlapping, (3, 2), torch.tensor([3, 5, 8]), (0, 0, 1)), [3, 2, 3]),
    }


def batch_of(sizes: list[int]) -> Tensor:
    return torch.tensor([number for number, size in enumerate(sizes) for _ in range(size)])


def edge_features(graph: Graph, shared: bool) -> Tensor:
    """Two on each edge; or, where a layout has several dimensions of edges, the same along all but the first."""
    shape = graph.edge_shape
    return torch.randn(*((shape[0], *[1] * (len(shape) - 1)) if shared else shape), 2).double()


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
@pytest.mark.parametrize("layout", batches())
def test_every_layout_is_its_list_of_edges(layout: str, how: Aggregate) -> None:
    """`pair`, `collect`, `weighted_sums` and `in_degree` against loops over `ends`."""
    graph, _ = batches()[layout]
    senders, receivers, places = (part.tolist() for part in graph.ends())
    assert len(set(places)) == len(places)
    source, target = torch.randn(2, graph.num_nodes, WIDTH).double()
    values, weights = edge_features(graph, shared=False), edge_features(graph, shared=False)
    paired = graph.pair(source, target).flatten(0, -2)
    arriving: list[list[Tensor]] = [[] for _ in range(graph.num_nodes)]
    weighted = torch.zeros(graph.num_nodes, 2, WIDTH).double()
    for i, j, place in zip(senders, receivers, places, strict=True):
        torch.testing.assert_close(paired[place], source[i] + target[j])
        arriving[j].append(values.flatten(0, -2)[place])
        weighted[j] += weights.flatten(0, -2)[place][:, None] * source[i]
    exists = graph.exists.flatten().tolist() if isinstance(graph, CompleteGraphs) else [True] * graph.num_nodes
    collected, degree, sums = graph.collect(values, how), graph.in_degree(), graph.weighted_sums(source, weights)
    for j in filter(lambda j: exists[j], range(graph.num_nodes)):
        stacked = torch.stack(arriving[j]) if arriving[j] else torch.zeros(1, 2).double()
        expected = {"sum": stacked.sum(0), "mean": stacked.mean(0), "max": stacked.amax(0)}[how]
        torch.testing.assert_close(collected[j], expected)
        torch.testing.assert_close(sums[j], weighted[j])
        assert degree[j].item() == len(arriving[j])


@pytest.mark.parametrize("layout", batches())
def test_sorted_edges_are_the_edges(layout: str) -> None:
    graph, _ = batches()[layout]
    by_place = {place: (i, j) for i, j, place in zip(*(part.tolist() for part in graph.ends()), strict=True)}
    edges, found = graph.sorted_edges(), {}
    for j in range(graph.num_nodes):
        for e in range(int(edges.starts[j]), int(edges.starts[j + 1])):
            found[int(edges.positions[e])] = (int(edges.senders[e]), j)
    assert found == by_place


@pytest.mark.parametrize("shared", [False, True], ids=["own features", "shared features"])
@pytest.mark.parametrize("kept", [[0, 2], [1], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("layout", batches())
def test_selected_graphs_compute_what_they_did(layout: str, kept: list[int], shared: bool) -> None:
    graph, sizes = batches()[layout]
    network = RRN(4, 6, 2, edge_features=2).double()
    x, edge_attr = torch.randn(graph.num_nodes, 4).double(), edge_features(graph, shared)
    nodes = torch.isin(batch_of(sizes), torch.tensor(kept))
    selected, features = graph.select(nodes, edge_attr)
    assert type(selected) is type(graph)
    whole = network(x, graph, edge_attr, steps=2)
    torch.testing.assert_close(network(x[nodes], selected, features, steps=2), whole[:, nodes])
    left = selected.graph_of_node(batch_of([sizes[number] for number in kept]))
    assert left.tolist() == batch_of([sizes[number] for number in kept]).tolist()
    assert graph.select(nodes)[1] is None


@pytest.mark.parametrize("shared", [False, True], ids=["own features", "shared features"])
@pytest.mark.parametrize("layout", batches())
def test_joined_graphs_compute_what_they_did(layout: str, shared: bool) -> None:
    """In any order, and twice if need be."""
    graph, sizes = batches()[layout]
    network = RRN(4, 6, 2, edge_features=2, readout="graph").double()
    x, edge_attr, batch = torch.randn(graph.num_nodes, 4).double(), edge_features(graph, shared), batch_of(sizes)
    order = [2, 0, 2, 1]
    parts = [graph.select(batch == number, edge_attr) for number in order]
    joined, features = type(graph).join(parts)
    assert joined.num_nodes == sum(sizes[number] for number in order)
    again = torch.cat([x[batch == number] for number in order])
    now = batch_of([sizes[number] for number in order])
    assert joined.graph_of_node(now).tolist() == now.tolist()
    expected = network(x, graph, edge_attr, batch, steps=2)[:, order]
    torch.testing.assert_close(network(again, joined, features, now, steps=2), expected)
    assert type(graph).join([(part, None) for part, _ in parts])[1] is None


def test_shared_features_of_an_edge_list_stay_shared() -> None:
    graph, sizes = batches()["edges"]
    _, features = graph.select(batch_of(sizes) == 0, torch.ones(1, 2))
    assert features is not None
    assert features.shape == (1, 2)


def test_one_graph_has_number_zero() -> None:
    for graph in (EdgeList(torch.tensor([[0], [1]]), 3), NeighbourTable(torch.tensor([[1], [2], [0]]))):
        assert graph.graph_of_node(None).tolist() == [0, 0, 0]
    assert CompleteGraphs(2, 2).graph_of_node(None).tolist() == [0, 0, 1, 1]


def test_complete_graphs_with_and_without_a_mask_are_joined() -> None:
    mask = torch.tensor([[True, False]])
    joined, _ = CompleteGraphs.join([(CompleteGraphs(1, 2), None), (CompleteGraphs(1, 2, mask), None)])
    assert joined.mask is not None
    assert joined.mask.tolist() == [[True, True], [True, False]]
    with pytest.raises(InputError, match="graphs: expected one size, got 2 and 3; PackedGraphs holds"):
        CompleteGraphs.join([(CompleteGraphs(1, 2), None), (CompleteGraphs(4, 3), None)])


def test_groups_by_hand() -> None:
    """Kind 0: nodes 0 and 2 together, 1 alone; kind 1: all three together. The first column is of kind 0."""
    graph = Groups(torch.tensor([[0, 0], [1, 0], [0, 0]]), (2, 1))
    assert graph.group_types == 2
    sums = graph.sums(torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]))
    assert sums.tolist() == [[5, 70], [2, 70], [5, 70]]
    assert graph.in_degree().flatten().tolist() == [5, 4, 5]
    senders, receivers, places = (part.tolist() for part in graph.ends())
    assert list(zip(receivers, senders, strict=True)) == [
        *[(0, 0), (0, 2), (0, 0), (0, 1), (0, 2)],
        *[(1, 1), (1, 0), (1, 1), (1, 2)],
        *[(2, 0), (2, 2), (2, 0), (2, 1), (2, 2)],
    ]
    assert places == list(range(14))
    assert graph.edge_shape == (14,)
    assert graph.sum_nodes(torch.tensor([[1.0], [2.0], [4.0]]), None).tolist() == [[7]]


def test_sums_of_groups_by_brute_force() -> None:
    """Groups of the same number in two graphs are two groups."""
    generator = torch.Generator().manual_seed(3)
    member_of, counts = torch.randint(3, (11, 4), generator=generator), (3, 3, 5, 3)
    graph, graph_of = Groups(member_of, counts, torch.tensor([4, 4, 9, 11])), [0] * 4 + [2] * 5 + [3] * 2
    values = torch.randn(11, 4 * 2, generator=generator).double()
    found = graph.sums(values)
    for j in range(11):
        for k in range(4):
            mates = [i for i in range(11) if graph_of[i] == graph_of[j] and member_of[i, k] == member_of[j, k]]
            torch.testing.assert_close(found[j, 2 * k : 2 * k + 2], values[mates, 2 * k : 2 * k + 2].sum(0))
    assert graph.graph_of_node().tolist() == graph_of
    by_graph = graph.sum_nodes(values, None)
    assert by_graph.shape == (4, 8)
    torch.testing.assert_close(by_graph[2], values[4:9].sum(0))
    assert not by_graph[1].any()


def test_sums_of_overlapping_groups_by_brute_force() -> None:
    """A node is in any number of groups of a type, and receives from each of them."""
    generator = torch.Generator().manual_seed(4)
    columns = [
        torch.stack([torch.randperm(5, generator=generator)[:3] for _ in range(9)]),
        torch.arange(9)[:, None] % 2,
    ]
    member_of = torch.cat(columns, dim=1)
    member_of[torch.rand(member_of.shape, generator=generator) < 0.3] = -1
    graph = Groups(member_of, (5, 2), torch.tensor([4, 9]), (0, 0, 0, 1))
    values, expected = torch.randn(9, 2 * 3, generator=generator).double(), torch.zeros(9, 6).double()
    for j in range(9):
        for column, k in enumerate(graph.column_types):
            for i in range(9):
                shared = [
                    c for c, t in enumerate(graph.column_types) if t == k and member_of[i, c] == member_of[j, column]
                ]
                if member_of[j, column] >= 0 and shared and (i < 4) == (j < 4):
                    expected[j, 3 * k : 3 * k + 3] += values[i, 3 * k : 3 * k + 3]
    torch.testing.assert_close(graph.sums(values), expected)
    receivers = graph.ends()[1]
    degree = torch.zeros(9, 1).index_add(0, receivers, torch.ones(len(receivers), 1))
    assert torch.equal(graph.in_degree(), degree)
    narrow = Groups(torch.tensor([[0, 1]]), (1, 2))
    joined, _ = Groups.join([(graph, None), (narrow, None)])
    torch.testing.assert_close(joined.sums(torch.cat([values, values[:1]])), torch.cat([expected, values[:1]]))


def test_any_nodes_of_groups_may_be_selected() -> None:
    """Nodes that are not selected send no messages; a graph without a selected node is dropped."""
    graph, _ = batches()["groups"]
    kept = torch.tensor([True, False, True, False, False, False, True, True])
    selected, _ = graph.select(kept)
    values = torch.randn(8, 6).double()
    silent = values * kept[:, None]
    torch.testing.assert_close(selected.sums(values[kept]), graph.sums(silent)[kept])
    assert selected.stops.tolist() == [2, 4]
    empty, _ = graph.select(torch.zeros(8, dtype=torch.bool))
    assert empty.num_nodes == len(empty.stops) == 0


def test_joined_groups_have_the_largest_counts() -> None:
    small, large = Groups(torch.tensor([[0, 0]]), (1, 4)), Groups(torch.tensor([[2, 1], [0, 1]]), (3, 2))
    joined, _ = Groups.join([(small, None), (large, None)])
    assert joined.counts == (3, 4)
    assert joined.stops.tolist() == [1, 3]
    assert joined.sums(torch.tensor([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])).tolist() == [[1, 1], [2, 6], [4, 6]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (torch.zeros(3), (2,)),
            r"member_of: expected torch.int64 of shape \(nodes, 1 group types\), got torch.float32 \(3,",
        ),
        ((torch.zeros(3, 1), (2,)), r"member_of: expected torch.int64 .*got torch.float32 \(3, 1\)"),
        ((torch.zeros(3, 2).long(), (2,)), r"member_of: expected .*\(nodes, 1 group types\), got torch.int64 \(3, 2\)"),
        (
            (torch.tensor([[0], [2]]), (2,)),
            r"member_of: expected groups from 0, below the counts \(2,\) of their types",
        ),
        (
            (torch.tensor([[0], [-2]]), (2,)),
            r"member_of: expected groups from 0, below the counts \(2,\) of their types",
        ),
        ((torch.zeros(3, 2).long(), (2, 2), None, (1, 0)), "column_types: expected each of 2 types, ascending"),
        ((torch.zeros(3, 2).long(), (2, 2), None, (0, 0)), "column_types: expected each of 2 types, ascending"),
        ((torch.tensor([[0], [1]]), (2,), torch.tensor([1])), r"stops: expected .* end with 2, the nodes"),
        ((torch.tensor([[0], [1]]), (2,), torch.tensor([2, 1, 2])), r"stops: expected ascending numbers"),
        ((torch.tensor([[0], [1]]), (2,), torch.zeros(0).long()), r"stops: expected ascending numbers"),
        ((torch.tensor([[0], [1]]), (2,), torch.tensor([-5, 2])), r"stops: expected ascending numbers"),
        ((torch.tensor([[0], [1]]), (2,), torch.tensor([2.0])), r"stops: expected torch.int64 of shape \(graphs,\)"),
        (([[0], [1]], (2,)), r"member_of: expected torch.int64 .* got list"),
        ((torch.tensor([[0], [1]]), 2), r"counts: expected one integer for each group type, got 2"),
    ],
)
def test_bad_groups_are_named(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Groups(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("layers", [1, 2])
def test_a_graph_keeps_its_edges_when_the_argument_changes(layers: int) -> None:
    """Gradients too are those of the edges at the time of the forward pass."""
    torch.manual_seed(0)
    network, x = RRN(3, 8, 2, message_layers=layers), torch.randn(9, 3)
    edge_index = torch.randint(9, (2, 30))
    network(x, edge_index.clone(), steps=3).sum().backward()
    expected = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    loss = network(x, edge_index, steps=3).sum()
    edge_index.zero_()
    loss.backward()
    for parameter, gradient in zip(network.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_graph_whose_own_tensors_changed_is_refused(layers: int) -> None:
    network, x = RRN(3, 8, 2, message_layers=layers), torch.randn(9, 3)
    for graph in (EdgeList(torch.randint(9, (2, 30)), 9), NeighbourTable(torch.randint(9, (9, 3)))):
        loss = network(x, graph, steps=2).sum()
        own = graph.source if isinstance(graph, EdgeList) else graph.table
        own.fill_(10**6)
        with pytest.raises(InputError, match="graph: its tensors were changed in place; make a new graph"):
            network(x, graph, steps=2)
        with pytest.raises((InputError, RuntimeError), match=r"in place|inplace"):
            loss.backward()


def test_prepared_inputs_with_a_wrong_number_of_rows_are_refused() -> None:
    network = RRN(3, 8, 2)
    given = network.prepare(torch.randn(9, 3), torch.randint(9, (2, 30)))
    with pytest.raises(InputError, match=r"x: expected 9 encoded rows, got \(3, 8\)"):
        network(given._replace(x=given.x[:3]), steps=2)


def test_edge_features_may_be_shared_along_a_dimension() -> None:
    network = RRN(4, 6, 2, edge_features=3, message_layers=2).double()
    x, graph, shared = torch.randn(8, 4).double(), CompleteGraphs(2, 4), torch.randn(2, 1, 1, 3).double()
    full = shared.expand(2, 4, 4, 3)
    torch.testing.assert_close(network(x, graph, shared, steps=2), network(x, graph, full, steps=2))


def test_union_by_hand() -> None:
    a = torch.zeros(2, 1), torch.tensor([[0], [1]])
    b = torch.ones(3, 1), torch.tensor([[0, 2], [1, 0]])
    x, edge_index, batch = union([a, b])
    assert x.flatten().tolist() == [0, 0, 1, 1, 1]
    assert edge_index.tolist() == [[0, 2, 4], [1, 3, 2]]
    assert batch.tolist() == [0, 0, 1, 1, 1]


def test_union_takes_edge_features() -> None:
    a = torch.zeros(2, 1), torch.tensor([[0], [1]]), torch.tensor([[5.0, 6.0]])
    b = torch.ones(3, 1), torch.tensor([[0, 2], [1, 0]]), torch.tensor([[7.0, 8.0], [9.0, 0.0]])
    _, edge_index, edge_attr, batch = union([a, b])
    assert edge_index.tolist() == [[0, 2, 4], [1, 3, 2]]
    assert edge_attr.tolist() == [[5, 6], [7, 8], [9, 0]]
    network = RRN(1, 6, 2, edge_features=2, readout="graph")
    together = network(*union([a, b]), steps=2)
    torch.testing.assert_close(together, torch.cat([network(*a, steps=2), network(*b, steps=2)], dim=1))
    assert batch.tolist() == [0, 0, 1, 1, 1]


def test_union_keeps_devices_and_types() -> None:
    """Whatever the default device, and even where no numbers can be read (a meta tensor stands for a GPU's)."""
    graph = torch.zeros(2, 1).double(), torch.tensor([[0], [1]], dtype=torch.int32), torch.zeros(1, 2).half()
    with torch.device("meta"):
        parts = union([graph, graph])
    assert [part.dtype for part in parts] == [torch.float64, torch.int32, torch.float16, torch.int64]
    assert {part.device.type for part in parts} == {"cpu"}
    elsewhere = union([tuple(part.to("meta") for part in graph)] * 3)
    assert {part.device.type for part in elsewhere} == {"meta"}
    assert [tuple(part.shape) for part in elsewhere] == [(6, 1), (2, 3), (3, 2), (6,)]


ONE = (torch.zeros(2, 1), torch.tensor([[0], [1]]))


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (
            [ONE, (*ONE, torch.zeros(1, 2))],
            r"expected \(x, edge_index\) or .* the same for all, got 3 parts in graph 1",
        ),
        ([ONE, (ONE[0], ONE[1].T)], r"graph 1: expected edge_index of shape \(2, edges\), got \(1, 2\)"),
        ([(*ONE, torch.zeros(2, 1))], r"graph 0: expected edge_attr of shape \(1, edge features\), got \(2, 1\)"),
        ([ONE, (torch.zeros(2, 2), ONE[1])], r"graph 1: x has shape \(2, 2\), but graph 0 has \(2, 1\)"),
        ([ONE, (ONE[0].double(), ONE[1])], "graph 1: x has dtype torch.float64, but graph 0 has torch.float32"),
        ([ONE, (ONE[0].to("meta"), ONE[1])], "graph 1: x has device meta, but graph 0 has cpu"),
    ],
)
def test_graphs_that_do_not_match_are_named(graphs: list[tuple[Tensor, Tensor]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        union(graphs)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: union([]), r"graphs: expected at least one \(x, edge_index\), got none"),
        (
            lambda: NeighbourTable(torch.zeros(3, 2)),
            r"table: expected integers of shape \(nodes, k\), got torch.float32",
        ),
        (lambda: NeighbourTable(torch.tensor([[1], [2]])), r"table: names node 2, but has nodes 0 to 1"),
        (lambda: NeighbourTable(torch.tensor([[1], [-1]])), r"table: names node -1, but has nodes 0 to 1"),
        (lambda: NeighbourTable(torch.zeros(0, 2).long()), r"table: expected integers of shape \(nodes, k\)"),
        (lambda: CompleteGraphs(0, 3), r"graphs, size: expected at least one graph of one node, got 0 of 3"),
        (
            lambda: CompleteGraphs(2, 3, torch.ones(2, 3)),
            r"mask: expected booleans of shape \(2, 3\), got torch.float32",
        ),
        (lambda: CompleteGraphs(2, 3, torch.ones(3, 2).bool()), r"mask: expected booleans of shape \(2, 3\).*\(3, 2\)"),
        (lambda: EdgeList(torch.zeros(2, 0).long(), 0), r"x: the graph has no nodes"),
    ],
)
def test_bad_graphs_are_named(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


def test_from_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    for name, numbers in (("a", [1, 2]), ("b", [3, 4]), ("c", [5, 6])):
        graph.add_node(name, x=numbers)
    graph.add_edge("a", "b", weight=0.5)
    graph.add_edge("c", "c", weight=2.0)
    arguments = from_networkx(graph, edge_features="weight")
    assert arguments["x"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert sorted(zip(*arguments["edge_index"].tolist(), strict=True)) == [(0, 1), (1, 0), (2, 2)]
    assert arguments["edge_attr"].shape == (3, 1)
    assert RRN(2, 6, 1, edge_features=1)(**arguments, steps=2).shape == (2, 3, 1)
    directed = from_networkx(networkx.DiGraph(graph), edge_features="weight")
    assert directed["edge_index"].shape == (2, 3)
    one_way = networkx.DiGraph()
    one_way.add_nodes_from([(0, {"f": 1.0}), (1, {"f": 2.0})])
    one_way.add_edge(1, 0)
    arguments = from_networkx(one_way, "f")
    assert arguments["edge_index"].tolist() == [[1], [0]]
    assert arguments["x"].tolist() == [[1], [2]]
    assert arguments["edge_attr"] is None


def test_bad_networkx_graphs_are_named() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.path_graph(2)
    with pytest.raises(InputError, match="graph: node 0 has no attribute 'x'; name the attribute with features="):
        from_networkx(graph)
    networkx.set_node_attributes(graph, {0: [1.0], 1: [1.0]}, "x")
    with pytest.raises(InputError, match=r"graph: edge \(0, 1\) has no attribute 'w'"):
        from_networkx(graph, edge_features="w")
    with pytest.raises(InputError, match="graph: it has no nodes"):
        from_networkx(networkx.Graph())
    networkx.set_node_attributes(graph, {0: [1.0], 1: [1.0, 2.0]}, "x")
    with pytest.raises(InputError, match="graph: expected 'x' to hold equally many numbers"):
        from_networkx(graph)


def test_from_pyg() -> None:
    geometric = pytest.importorskip("torch_geometric.data")
    graphs = [
        geometric.Data(x=torch.randn(n, 2), edge_index=complete_edges(n), edge_attr=torch.randn(n * (n - 1)))
        for n in (2, 4)
    ]
    network = RRN(2, 6, 3, edge_features=1, readout="graph")
    batch = from_pyg(geometric.Batch.from_data_list(graphs))
    together = network(**batch, steps=2)
    assert together.shape == (2, 2, 3)
    apart = [network(**from_pyg(graph), steps=2) for graph in graphs]
    torch.testing.assert_close(together, torch.cat(apart, dim=1))
    with pytest.raises(InputError, match="data: expected a torch_geometric Data with x and edge_index"):
        from_pyg(geometric.Data(x=torch.randn(2, 2)))


def test_typed_nodes_and_edges_of_geometric() -> None:
    """Types in alphabetical order: the 2 authors (1 feature) before the 3 papers (2 features)."""
    geometric = pytest.importorskip("torch_geometric.data")
    data = geometric.HeteroData()
    data["paper"].x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    data["author"].x = torch.tensor([7.0, 8.0])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [2, 0]])
    data["author", "writes", "paper"].edge_index = torch.tensor([[1], [2]])
    data["author", "writes", "paper"].edge_attr = torch.tensor([0.5])
    arguments = from_pyg(data)
    assert arguments["x"].tolist() == [
        [7, 0, 0, 1, 0],
        [8, 0, 0, 1, 0],
        [0, 1, 2, 0, 1],
        [0, 3, 4, 0, 1],
        [0, 5, 6, 0, 1],
    ]
    assert arguments["edge_index"].tolist() == [[1, 2, 3], [4, 4, 2]]
    assert arguments["edge_attr"].tolist() == [[0.5, 1, 0], [0, 0, 1], [0, 0, 1]]
    assert RRN(5, 6, 2, edge_features=3)(**arguments, steps=2).shape == (2, 5, 2)
    with pytest.raises(InputError, match="a batch of HeteroData; read one graph at a time"):
        from_pyg(geometric.Batch.from_data_list([data, data]))
    del data["author"].x
    data["author"].num_nodes = 2
    with pytest.raises(InputError, match="nodes of type 'author' have no x"):
        from_pyg(data)
    with pytest.raises(InputError, match="expected a HeteroData with nodes and edges"):
        from_pyg(geometric.HeteroData())
