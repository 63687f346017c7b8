"""The networks: their sizes, their graphs, their symmetry."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rrn import engines, tasks
from rrn._compat import COMPILED
from rrn.errors import InputError
from rrn.inference.candidates import open_graph
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.export import _AllCandidates
from rrn.tasks.sudoku.grid import USUAL, candidates_of
from rrn.tasks.sudoku.model import (
    GROUP_TYPES,
    CandidateSudoku,
    CellSudoku,
    build,
    cell_graph,
    group_table,
)
from rrn.tasks.sudoku.settings import CandidatesPreset, PaperPreset, SudokuPreset
from rrn.tasks.sudoku.symmetry import Symmetries, draw_symmetries

needs_numba = pytest.mark.skipif(not COMPILED, reason="numba is not installed")
TINY = CandidatesPreset(name="tiny", about="", hidden=8, message_width=4, layer_width=30)


def puzzles(count: int, extra: int = 5) -> Tensor:
    return torch.from_numpy(generate(count, np.random.default_rng(1), extra)[0]).long()


def with_larger_weights(network: CandidateSudoku) -> CandidateSudoku:
    """So that the outputs differ after a few steps."""
    with torch.no_grad():
        for weight in network.parameters():
            weight *= 2
    return network


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("sudoku-paper", 201_194),
        ("sudoku-paper-original", 201_194),
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
    assert outputs.shape == (steps, 2 * 81, 10 - int(network.first_class == 0))
    assert outputs.isfinite().all()


def test_the_papers_graph_is_made_once_for_each_number_of_puzzles() -> None:
    device = torch.device("cpu")
    assert cell_graph(3, device).edge_shape == (3 * 81, 20)
    assert cell_graph(3, device) is cell_graph(3, device)


def test_the_nodes_of_the_graph_are_the_open_candidates() -> None:
    """Its sums are those over all candidates with zeros for closed ones."""
    open_ = candidates_of(puzzles(2))[1]
    graph, nodes = open_graph(open_, *group_table(USUAL, open_.device)[:2])
    assert len(nodes) == graph.num_nodes == int(open_.sum())
    assert graph.stops.tolist() == open_.sum(1).cumsum(0).tolist()
    values = torch.randn(graph.num_nodes, GROUP_TYPES * 3).double()
    every = torch.zeros(2 * 729, GROUP_TYPES * 3).double().index_copy(0, nodes, values)
    torch.testing.assert_close(graph.sums(values), _AllCandidates(2).sums(every)[nodes])


def test_a_given_closes_the_candidates_of_its_groups() -> None:
    """One given, a 3 (of 1-4) in row 1, column 2 of a Sudoku with boxes of two by two."""
    puzzle = torch.zeros(1, 16, dtype=torch.long)
    puzzle[0, 1] = 3
    given, open_ = (part.view(4, 4, 4) for part in candidates_of(puzzle, (2, 2)))
    assert given.nonzero().tolist() == [[0, 1, 2]]
    expected = torch.ones(4, 4, 4, dtype=torch.bool)
    expected[0, 1] = False
    for row, column in [(0, 0), (0, 2), (0, 3), (1, 1), (2, 1), (3, 1), (1, 0)]:
        expected[row, column, 2] = False
    torch.testing.assert_close(open_, expected)


def test_the_solution_is_open_where_it_is_not_given() -> None:
    some, solutions = (torch.from_numpy(part).long() for part in generate(5, np.random.default_rng(1), 5))
    given, open_ = (part.view(5, 81, 9) for part in candidates_of(some))
    right = (solutions - 1)[..., None]
    torch.testing.assert_close(given.gather(2, right)[..., 0], some > 0)
    torch.testing.assert_close(open_.gather(2, right)[..., 0], some == 0)
    assert not (given & open_).any()


@pytest.mark.parametrize("engine", ["plain", pytest.param("groups", marks=needs_numba)])
def test_closed_candidates_have_fixed_logits_and_no_state(engine: str) -> None:
    network, batch = with_larger_weights(CandidateSudoku(TINY)), {"puzzle": puzzles(3)}
    given, open_ = (part.flatten() for part in candidates_of(batch["puzzle"]))
    with engines.only(engine):
        outputs, state = network(batch, steps=4)
    assert (outputs.view(4, -1)[:, given] == 20).all()
    assert (outputs.view(4, -1)[:, ~given & ~open_] == -20).all()
    assert len(state.h) == int(open_.sum()), "only open candidates have a state"
    assert network.rows(batch).sum() == len(state.h)


def test_a_full_grid_needs_no_graph() -> None:
    _, solutions = generate(2, np.random.default_rng(0))
    network, batch = CandidateSudoku(TINY), {"puzzle": torch.from_numpy(solutions).long()}
    outputs, state = network(batch, steps=2)
    assert (outputs.view(2, 2, 81, 9).argmax(-1) + 1 == batch["puzzle"]).all()
    assert len(state.h) == 0


def test_the_layer_must_be_as_wide_as_all_messages() -> None:
    with pytest.raises(InputError, match="layer: expected at least the 24 units of all messages, got 23"):
        CandidateSudoku(replace(TINY, layer_width=23))


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


def test_closed_candidates_may_be_nodes_without_messages() -> None:
    """Nodes with x = 0, as in the exported program, change nothing."""
    network, some = CandidateSudoku(TINY), puzzles(2)
    open_ = candidates_of(some)[1].flatten()
    with torch.no_grad():
        given = network.rrn.prepare(open_.float()[:, None], _AllCandidates(2))
        state, outputs = network.rrn.initial_state(given), []
        for _ in range(4):
            output, state = network.rrn.step(state, given)
            outputs.append(output)
        expected, _ = network({"puzzle": some}, steps=4)
    actual, expected = torch.stack(outputs).view(4, -1)[:, open_], expected.view(4, -1)[:, open_]
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def moved(outputs: Tensor, symmetries: Symmetries) -> Tensor:
    """Logits (steps, n, 81, 9) of puzzles as the logits of the puzzles under symmetries."""
    cells = torch.from_numpy(symmetries.cells)[None, :, :, None].expand_as(outputs)
    digits = torch.from_numpy(np.argsort(symmetries.digits[:, 1:], axis=1))[None, :, None, :].expand_as(outputs)
    return outputs.gather(2, cells).gather(3, digits)


def no_transposition(symmetries: Symmetries) -> Symmetries:
    """The same, with those that exchange rows and columns transposed once more."""
    cells = symmetries.cells.reshape(-1, 9, 9)
    crossed = cells[:, 0, 0] // 9 != cells[:, 0, 1] // 9
    assert crossed.any()
    assert not crossed.all()
    straight = np.where(crossed[:, None, None], cells.transpose(0, 2, 1), cells)
    return Symmetries(straight.reshape(-1, 81), symmetries.digits)


def assert_equivariant(network: nn.Module, some: Tensor, mirror: nn.Module, symmetries: Symmetries) -> None:
    other = torch.from_numpy(symmetries.apply(some.numpy())).long()
    assert not torch.equal(other, some)
    with torch.no_grad():
        before = network({"puzzle": some}, steps=5)[0].view(5, len(some), 81, 9)
        after = mirror({"puzzle": other}, steps=5)[0].view(5, len(some), 81, 9)
    assert not torch.allclose(before, after, atol=0.1)
    torch.testing.assert_close(after, moved(before, symmetries), rtol=1e-3, atol=1e-4)


def test_the_candidate_network_is_equivariant_to_digits_lines_bands_and_stacks() -> None:
    network = with_larger_weights(CandidateSudoku(TINY))
    assert_equivariant(network, puzzles(6), network, no_transposition(draw_symmetries(6, np.random.default_rng(3))))


def test_the_plain_engine_is_equivariant_too() -> None:
    with engines.only("plain"):
        test_the_candidate_network_is_equivariant_to_digits_lines_bands_and_stacks()


def test_transposition_swaps_the_weights_for_rows_and_columns() -> None:
    network, mirror = with_larger_weights(CandidateSudoku(TINY)), CandidateSudoku(TINY)
    mirror.load_state_dict(network.state_dict())
    width, hidden = TINY.message_width, TINY.hidden
    units = torch.arange(TINY.layer_width)
    types = torch.arange(GROUP_TYPES * width).view(GROUP_TYPES, width)[[0, 2, 1, 3, 5, 4]].flatten()
    units[: GROUP_TYPES * width] = types
    inputs = torch.arange(hidden + GROUP_TYPES * width + 1)
    inputs[hidden:-1] = hidden + types
    with torch.no_grad():
        mirror.rrn.update.first.copy_(network.rrn.update.first[inputs][:, units])
        mirror.rrn.update.second.copy_(network.rrn.update.second[units])
    cells = np.arange(81).reshape(9, 9).T.reshape(1, 81).repeat(4, axis=0)
    transposed = Symmetries(cells, np.arange(10, dtype=np.uint8)[None].repeat(4, axis=0))
    assert_equivariant(network, puzzles(4), mirror, transposed)


def test_the_papers_network_is_not_equivariant_to_digits() -> None:
    network, some = CellSudoku(PaperPreset(name="tiny", about="", hidden=8)), puzzles(2)
    symmetries = Symmetries(
        np.arange(81)[None].repeat(2, axis=0), np.array([[0, 2, 1, *range(3, 10)]] * 2, dtype=np.uint8)
    )
    other = torch.from_numpy(symmetries.apply(some.numpy())).long()
    with torch.no_grad():
        before = network({"puzzle": some}, steps=2)[0].view(2, 2, 81, 10)[..., 1:]
        after = network({"puzzle": other}, steps=2)[0].view(2, 2, 81, 10)[..., 1:]
    assert not torch.allclose(after, moved(before, symmetries), atol=1e-4)


@pytest.mark.parametrize("box", [(2, 2), (2, 3), (3, 4)])
def test_the_network_runs_on_sudokus_of_other_sizes(box: tuple[int, int]) -> None:
    n = box[0] * box[1]
    puzzle = torch.zeros(2, n * n, dtype=torch.long)
    puzzle[0, 0], puzzle[1, n + 1] = 1, n
    network = CandidateSudoku(TINY)
    batch = network.prepare({"puzzle": puzzle}, box)
    given = network.open_candidates(batch, group_table(box, puzzle.device))
    outputs, _ = network(batch, steps=3, candidates=given)
    assert outputs.shape == (3, 2 * n * n, n)
    assert outputs[-1, 0].tolist() == [20, *[-20] * (n - 1)]
    assert outputs[-1, 1, 0] == -20
    torch.testing.assert_close(outputs[-1, 1, 1:], outputs[-1, 1, 1:2].expand(n - 1))


def test_noise_is_added_to_the_state_that_the_readout_reads() -> None:
    network, batch = CandidateSudoku(TINY), {"puzzle": puzzles(4)}
    state = network.initial_state(batch)
    noise = torch.full((len(state.h), 1), 0.5)
    noisy = network.add_noise(state, noise, torch.Generator().manual_seed(1))
    assert torch.equal(noisy.h, state.h)
    assert float((noisy.memory[0] - state.memory[0]).std()) == pytest.approx(0.5, rel=0.05)
    again = network.add_noise(state, noise, torch.Generator().manual_seed(1))
    assert torch.equal(again.memory[0], noisy.memory[0])
