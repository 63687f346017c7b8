"""The networks: their sizes, their symmetry, and that the fast form says what the plain form says."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rrn import tasks
from rrn.errors import InputError
from rrn.tasks.sudoku import fast
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.graph import KINDS, CandidateGraph, cell_graph, cell_neighbours
from rrn.tasks.sudoku.grid import neighbours
from rrn.tasks.sudoku.model import CandidateSudoku, CellSudoku, build, what_givens_say
from rrn.tasks.sudoku.presets import SudokuPreset
from rrn.tasks.sudoku.symmetry import Symmetries, draw_symmetries

BOXES = [(2, 2), (2, 3), (3, 2), (3, 3)]
TINY = SudokuPreset(name="tiny", about="", hidden=8, message_width=4, layer_width=30)


def puzzles(count: int, extra: int = 5) -> Tensor:
    return torch.from_numpy(generate(count, np.random.default_rng(1), extra)[0]).long()


def lively(network: CandidateSudoku) -> CandidateSudoku:
    """With larger weights, so that a few steps move the outputs apart."""
    with torch.no_grad():
        for weight in network.parameters():
            weight *= 2
    return network


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "fits", lambda x, box: False)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("sudoku-paper", 201_194),
        ("sudoku-last-loss", 201_194),
        ("sudoku-rn-node", 201_194),
        ("sudoku-rn-graph", 944_874),
    ],
)
def test_the_papers_networks_have_the_papers_number_of_parameters(name: str, parameters: int) -> None:
    network = tasks.build_network(tasks.find_preset(name))
    assert sum(p.numel() for p in network.parameters()) == parameters


def test_the_default_network_is_two_layers_and_a_readout() -> None:
    preset = tasks.find_preset("sudoku")
    assert isinstance(preset, SudokuPreset)
    hidden, messages, layer = preset.hidden, 6 * preset.message_width, preset.layer_width
    expected = (hidden + messages + 1) * layer + layer * hidden + hidden
    assert sum(p.numel() for p in build(preset).parameters()) == expected < 201_194


@pytest.mark.parametrize("name", ["sudoku", "sudoku-paper", "sudoku-rn-graph"])
def test_outputs_of_every_step(name: str) -> None:
    network = tasks.build_network(tasks.find_preset(name))
    steps = 1 if name == "sudoku-rn-graph" else 3
    outputs, _ = network({"puzzle": puzzles(2)}, steps=steps)
    assert outputs.shape == (steps, 2 * 81, 10 - int(network.first_digit == 0))
    assert outputs.isfinite().all()


def test_a_cell_hears_from_the_20_others_of_its_row_column_and_box() -> None:
    np.testing.assert_array_equal(cell_neighbours().numpy(), neighbours())
    assert cell_graph(3).edge_shape == (3 * 81, 20)
    assert cell_graph(3) is cell_graph(3)


def brute_force_members(box: tuple[int, int], node: tuple[int, int, int]) -> list[set[tuple[int, int, int]]]:
    high, wide = box
    row, column, digit = node
    everywhere = itertools.product(range(high * wide), repeat=3)
    groups: list[set[tuple[int, int, int]]] = [set() for _ in range(KINDS)]
    for r, c, d in everywhere:
        if (r, c) == (row, column):
            groups[0].add((r, c, d))
        if d == digit and r == row:
            groups[1].add((r, c, d))
        if d == digit and c == column:
            groups[2].add((r, c, d))
        if d == digit and (r // high, c // wide) == (row // high, column // wide):
            groups[3].add((r, c, d))
            if r == row:
                groups[4].add((r, c, d))
            if c == column:
                groups[5].add((r, c, d))
    return groups


@pytest.mark.parametrize("box", BOXES)
def test_members_of_the_candidate_graph_by_brute_force(box: tuple[int, int]) -> None:
    n = box[0] * box[1]
    members = CandidateGraph(1, box).members()
    assert [kind.shape for kind in members] == [(n**3, size) for size in (n, n, n, n, box[1], box[0])]
    for node in itertools.product(range(0, n, 2), range(1, n, 2), range(n)):
        row, column, digit = node
        found = [kind[(row * n + column) * n + digit] for kind in members]
        groups = [set(zip(*np.unravel_index(group.numpy(), (n, n, n)), strict=True)) for group in found]
        assert groups == brute_force_members(box, node)


@pytest.mark.parametrize("box", BOXES)
def test_group_sums_are_sums_over_the_members(box: tuple[int, int]) -> None:
    graph = CandidateGraph(2, box)
    values = torch.randn(graph.num_nodes, KINDS * 3, dtype=torch.float64)
    parts = values.view(-1, KINDS, 3)
    listed = [parts[members, kind].sum(1) for kind, members in enumerate(graph.members())]
    torch.testing.assert_close(graph.group_sums(values), torch.cat(listed, dim=-1))


def test_the_candidate_graph_answers_as_every_graph_does() -> None:
    graph = CandidateGraph(2, (2, 2))
    values = torch.randn(graph.num_nodes, 3)
    hears = torch.cat(graph.members(), dim=1)
    assert graph.edge_shape == hears.shape
    received = graph.pair(values, torch.zeros_like(values))
    torch.testing.assert_close(received, values[hears])
    torch.testing.assert_close(graph.collect(received, "sum"), values[hears].sum(1))
    assert graph.in_degree().unique().tolist() == [20.0]
    with pytest.raises(InputError, match="puzzles: expected at least 1, got 0"):
        CandidateGraph(0)


def test_what_a_given_says_by_hand() -> None:
    """One given, a 3 (of 1-4) in row 1, column 2 of a Sudoku with boxes of two by two."""
    puzzle = torch.zeros(1, 16, dtype=torch.long)
    puzzle[0, 1] = 3
    given, still_open = (part.view(4, 4, 4) for part in what_givens_say(puzzle, (2, 2)))
    assert given.nonzero().tolist() == [[0, 1, 2]]
    expected = torch.ones(4, 4, 4, dtype=torch.bool)
    expected[0, 1] = False
    for row, column in [(0, 0), (0, 2), (0, 3), (1, 1), (2, 1), (3, 1), (1, 0)]:
        expected[row, column, 2] = False
    torch.testing.assert_close(still_open, expected)


def test_the_solution_is_open_where_it_is_not_given() -> None:
    some, solutions = (torch.from_numpy(part).long() for part in generate(5, np.random.default_rng(1), 5))
    given, still_open = (part.view(5, 81, 9) for part in what_givens_say(some))
    right = (solutions - 1)[..., None]
    torch.testing.assert_close(given.gather(2, right)[..., 0], some > 0)
    torch.testing.assert_close(still_open.gather(2, right)[..., 0], some == 0)
    assert not (given & still_open).any()


def test_what_givens_rule_out_is_neither_answered_nor_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    network, batch = lively(CandidateSudoku(TINY)), {"puzzle": puzzles(3)}
    given, still_open = what_givens_say(batch["puzzle"])
    for fits in (fast.fits, lambda x, box: False):
        monkeypatch.setattr(fast, "fits", fits)
        outputs, state = network(batch, steps=4)
        assert (outputs.view(4, -1)[:, given] == 20).all()
        assert (outputs.view(4, -1)[:, ~given & ~still_open] == -20).all()
        assert (state.h[~still_open] == 0).all()
        assert (state.memory[0][~still_open] == 0).all()


def test_the_layer_must_hold_all_messages() -> None:
    with pytest.raises(InputError, match="layer_width: expected at least the 24 units of all messages, got 23"):
        CandidateSudoku(replace(TINY, layer_width=23))


@pytest.mark.skipif(not fast.COMPILED, reason="numba is not installed")
@pytest.mark.parametrize("warm", [False, True])
def test_the_fast_form_is_the_plain_form(warm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    network, batch = lively(CandidateSudoku(TINY)), {"puzzle": puzzles(3)}
    state = None
    if warm:
        with torch.no_grad():
            state = network(batch, steps=3)[1]
    targets = torch.randint(9, (3 * 81,))
    found = []
    for fits in (fast.fits, lambda x, box: False):
        monkeypatch.setattr(fast, "fits", fits)
        network.zero_grad()
        outputs, after = network(batch, steps=6, state=state)
        nn.functional.cross_entropy(outputs.flatten(0, 1), targets.repeat(6)).backward()
        found.append((outputs.detach(), after.h.detach(), after.memory[0].detach(), *gradients(network)))
    assert found[0][0].std() > 0.1
    assert all(part.abs().max() > 1e-4 for part in found[0][3:])
    for ours, plainly in zip(*found, strict=True):
        torch.testing.assert_close(ours, plainly, rtol=1e-3, atol=1e-5 * float(plainly.abs().max() + 1))


def gradients(network: nn.Module) -> list[Tensor]:
    return [weight.grad.clone() for weight in network.parameters() if weight.grad is not None]


@pytest.mark.skipif(not fast.COMPILED, reason="numba is not installed")
def test_the_fast_form_says_the_same_with_and_without_gradients() -> None:
    network, batch = lively(CandidateSudoku(TINY)), {"puzzle": puzzles(2)}
    learning, state = network(batch, steps=5)
    with torch.inference_mode():
        using, state_of_using = network(batch, steps=5)
    assert learning.requires_grad
    torch.testing.assert_close(using, learning.detach())
    torch.testing.assert_close(state_of_using.memory[0], state.memory[0])
    assert not state.memory[0].requires_grad


def test_the_fast_form_is_for_nine_by_nine_in_single_precision_only() -> None:
    x = torch.zeros(729, 1)
    assert fast.fits(x, (3, 3)) == fast.COMPILED
    assert not fast.fits(x, (2, 2))
    assert not fast.fits(x.double(), (3, 3))


def step_by_step(network: nn.Module, batch: dict[str, Tensor], steps: int) -> Tensor:
    state, outputs = None, []
    for _ in range(steps):
        output, state = network(batch, steps=1, state=state)
        outputs.append(output)
    return torch.cat(outputs)


@pytest.mark.parametrize("name", ["sudoku", "sudoku-paper"])
def test_a_loop_of_steps_is_one_run(name: str) -> None:
    network, batch = tasks.build_network(tasks.find_preset(name)), {"puzzle": puzzles(2)}
    with torch.no_grad():
        torch.testing.assert_close(step_by_step(network, batch, 5), network(batch, steps=5)[0], rtol=1e-4, atol=1e-5)


def test_the_cores_own_step_is_one_step() -> None:
    network, some = CandidateSudoku(TINY), puzzles(2)
    still_open = what_givens_say(some)[1]
    x, graph = still_open.float()[:, None], CandidateGraph(2)
    with torch.no_grad():
        state, outputs = network.rrn.init_state(x), []
        for _ in range(4):
            state, output = network.rrn.step(state, x, graph)
            outputs.append(output)
        expected, _ = network({"puzzle": some}, steps=4)
    ours, theirs = torch.stack(outputs).view(4, -1)[:, still_open], expected.view(4, -1)[:, still_open]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def moved(outputs: Tensor, symmetries: Symmetries) -> Tensor:
    """Logits (steps, n, 81, 9) of puzzles as the logits of the puzzles under symmetries."""
    cells = torch.from_numpy(symmetries.cells)[None, :, :, None].expand_as(outputs)
    digits = torch.from_numpy(np.argsort(symmetries.digits[:, 1:], axis=1))[None, :, None, :].expand_as(outputs)
    return outputs.gather(2, cells).gather(3, digits)


def no_transposition(symmetries: Symmetries) -> Symmetries:
    """The same, with those that make columns of rows transposed once more."""
    cells = symmetries.cells.reshape(-1, 9, 9)
    crossed = cells[:, 0, 0] // 9 != cells[:, 0, 1] // 9
    assert crossed.any()
    assert not crossed.all()
    straight = np.where(crossed[:, None, None], cells.transpose(0, 2, 1), cells)
    return Symmetries(straight.reshape(-1, 81), symmetries.digits)


def assert_alike(network: nn.Module, some: Tensor, its_mirror: nn.Module, symmetries: Symmetries) -> None:
    other = torch.from_numpy(symmetries.apply(some.numpy())).long()
    assert not torch.equal(other, some)
    with torch.no_grad():
        before = network({"puzzle": some}, steps=5)[0].view(5, len(some), 81, 9)
        after = its_mirror({"puzzle": other}, steps=5)[0].view(5, len(some), 81, 9)
    assert not torch.allclose(before, after, atol=0.1)
    torch.testing.assert_close(after, moved(before, symmetries), rtol=1e-3, atol=1e-4)


def test_the_candidate_network_treats_all_digits_lines_bands_and_stacks_alike() -> None:
    network = lively(CandidateSudoku(TINY))
    assert_alike(network, puzzles(6), network, no_transposition(draw_symmetries(6, np.random.default_rng(3))))


def test_the_symmetry_is_the_plain_forms_too(plain: None) -> None:
    test_the_candidate_network_treats_all_digits_lines_bands_and_stacks_alike()


def test_transposition_swaps_the_weights_for_rows_and_columns() -> None:
    network, mirror = lively(CandidateSudoku(TINY)), CandidateSudoku(TINY)
    mirror.load_state_dict(network.state_dict())
    width, hidden = TINY.message_width, TINY.hidden
    units = torch.arange(TINY.layer_width)
    kinds = torch.arange(KINDS * width).view(KINDS, width)[[0, 2, 1, 3, 5, 4]].flatten()
    units[: KINDS * width] = kinds
    inputs = torch.arange(hidden + KINDS * width + 1)
    inputs[hidden:-1] = hidden + kinds
    with torch.no_grad():
        mirror.rrn.update.first.copy_(network.rrn.update.first[inputs][:, units])
        mirror.rrn.update.second.copy_(network.rrn.update.second[units])
    cells = np.arange(81).reshape(9, 9).T.reshape(1, 81).repeat(4, axis=0)
    transposed = Symmetries(cells, np.arange(10, dtype=np.uint8)[None].repeat(4, axis=0))
    assert_alike(network, puzzles(4), mirror, transposed)


def test_the_papers_network_knows_its_digits_apart() -> None:
    network, some = CellSudoku(SudokuPreset(name="tiny", about="", network="paper", hidden=8)), puzzles(2)
    symmetries = Symmetries(
        np.arange(81)[None].repeat(2, axis=0), np.array([[0, 2, 1, *range(3, 10)]] * 2, dtype=np.uint8)
    )
    other = torch.from_numpy(symmetries.apply(some.numpy())).long()
    with torch.no_grad():
        before = network({"puzzle": some}, steps=2)[0].view(2, 2, 81, 10)[..., 1:]
        after = network({"puzzle": other}, steps=2)[0].view(2, 2, 81, 10)[..., 1:]
    assert not torch.allclose(after, moved(before, symmetries), atol=1e-4)


@pytest.mark.parametrize("box", [(2, 2), (2, 3), (3, 4)])
def test_it_runs_on_sudokus_of_other_sizes(box: tuple[int, int]) -> None:
    n = box[0] * box[1]
    puzzle = torch.zeros(2, n * n, dtype=torch.long)
    puzzle[0, 0], puzzle[1, n + 1] = 1, n
    outputs, _ = CandidateSudoku(TINY)({"puzzle": puzzle}, steps=3, box=box)
    assert outputs.shape == (3, 2 * n * n, n)
    assert outputs[-1, 0].tolist() == [20, *[-20] * (n - 1)]
    assert outputs[-1, 1, 0] == -20
    torch.testing.assert_close(outputs[-1, 1, 1:], outputs[-1, 1, 1:2].expand(n - 1))


def test_noise_is_added_to_what_the_answer_is_read_from() -> None:
    network, some = CandidateSudoku(TINY), puzzles(4)
    state = network.start(some)
    shaken = network.shaken(state, 0.5, torch.Generator().manual_seed(1))
    assert torch.equal(shaken.h, state.h)
    assert float((shaken.memory[0] - state.memory[0]).std()) == pytest.approx(0.5, rel=0.05)
    again = network.shaken(state, 0.5, torch.Generator().manual_seed(1))
    assert torch.equal(again.memory[0], shaken.memory[0])
