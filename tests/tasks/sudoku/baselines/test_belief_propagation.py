from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rrn.tasks.sudoku.baselines import belief_propagation as bp
from rrn.tasks.sudoku.baselines.factor_graph import SUDOKU, FactorGraph
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.grid import neighbours
from rrn.tasks.sudoku.predict import solve

NEVER = float("-inf")


def enumerated(incoming: Tensor) -> Tensor:
    """Messages of units (n, cells, digits), logarithms of both, summed over one assignment after another."""
    chances = incoming.exp()
    cells, digits = incoming.shape[1:]
    outgoing = torch.zeros_like(chances)
    for assignment in permutations(range(digits), cells):
        for cell in range(cells):
            others = [chances[:, other, assignment[other]] for other in range(cells) if other != cell]
            outgoing[:, cell, assignment[cell]] += torch.stack(others).prod(0)
    return outgoing.log()


def random_messages(seed: int, *shape: int, spread: float = 3.0, impossible: float = 0.2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    messages = torch.randn(shape, generator=generator, dtype=torch.float64) * spread
    return messages.masked_fill(torch.rand(shape, generator=generator) < impossible, NEVER)


@given(seed=st.integers(0, 10**6), cells=st.integers(2, 5), more=st.integers(0, 1))
@settings(max_examples=25, deadline=None)
def test_messages_equal_an_enumeration_of_permutations(seed: int, cells: int, more: int) -> None:
    incoming = random_messages(seed, 3, cells, cells + more)
    torch.testing.assert_close(bp.all_different(incoming), enumerated(incoming), rtol=1e-9, atol=1e-9)


def test_nine_cells_and_nine_digits() -> None:
    uniform = bp.all_different(torch.zeros(1, 9, 9, dtype=torch.float64))
    torch.testing.assert_close(uniform.exp(), torch.full_like(uniform, 40320.0))


def test_numbers_beyond_floating_point_keep_their_odds() -> None:
    """Scaling the incoming messages of a digit by e^c scales the outgoing messages of all other digits by it."""
    incoming = random_messages(1, 5, 9, 9, impossible=0.0)
    scales = torch.linspace(-3000, 0, 9, dtype=torch.float64)
    expected = bp.all_different(incoming) + scales.sum() - scales
    torch.testing.assert_close(bp.all_different(incoming + scales), expected)
    assert bp.all_different(incoming + scales, underflow=-745.0).isneginf().any()


def brute_force(units: np.ndarray, evidence: Tensor) -> Tensor:
    cells, digits = evidence.shape
    marginals = torch.zeros_like(evidence)
    for assignment in product(range(digits), repeat=cells):
        if all(len({assignment[cell] for cell in unit}) == len(unit) for unit in units):
            weight = evidence[torch.arange(cells), torch.tensor(assignment)].sum().exp()
            marginals[torch.arange(cells), torch.tensor(assignment)] += weight
    return marginals / marginals.sum(-1, keepdim=True)


@pytest.mark.parametrize("schedule", ["parallel", "random"])
@pytest.mark.parametrize(
    ("units", "digits"),
    [
        ([[0, 1, 2]], 3),
        ([[0, 1, 2], [2, 3, 4]], 3),
        ([[0, 1], [1, 2], [1, 3], [3, 4], [4, 5]], 3),
        ([[0, 1, 2], [2, 3, 4], [2, 5, 6]], 4),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_marginals_are_exact_on_graphs_without_cycles(
    schedule: str, units: list[list[int]], digits: int, seed: int
) -> None:
    units_array = np.array(units)
    network = bp.BeliefPropagation(schedule, graph=FactorGraph(units_array))
    cells = int(units_array.max()) + 1
    evidence = random_messages(seed, 1, cells, digits, spread=1.5, impossible=0.0)
    messages = torch.zeros(1, units_array.size, digits, dtype=torch.float64)
    for age in range(2 * len(units)):
        messages = network.step(messages, evidence, torch.tensor([[age]]))
    found = network.beliefs(messages, evidence).softmax(-1)[0]
    assert (found - brute_force(units_array, evidence[0])).abs().max() < 1e-6


def test_the_graph_of_sudoku() -> None:
    assert (SUDOKU.units, SUDOKU.places) == (27, 243)
    for cell in (0, 40, 77):
        units = SUDOKU.places_of[cell] // 9
        together = torch.cat([SUDOKU.cell_of[9 * unit : 9 * unit + 9] for unit in units.tolist()]).unique().tolist()
        assert together == sorted([cell, *neighbours()[cell].tolist()])
    for place in (0, 100, 242):
        assert set(SUDOKU.cell_of[SUDOKU.elsewhere[place]].tolist()) == {int(SUDOKU.cell_of[place])}
        assert place not in SUDOKU.elsewhere[place]


def test_the_first_step_by_hand() -> None:
    """One given: its digit is impossible for its peers, all else is as likely as before."""
    puzzle = torch.zeros(1, 81, dtype=torch.long)
    puzzle[0, 0] = 5
    logits, _ = bp.BeliefPropagation()({"puzzle": puzzle}, steps=1)
    chances = logits.softmax(-1).view(81, 9)
    assert chances[0, 4] == 1
    others = [digit for digit in range(9) if digit != 4]
    for peer in neighbours()[0].tolist():
        assert chances[peer, 4] == 0
        torch.testing.assert_close(chances[peer, others], torch.full((8,), 1 / 8, dtype=torch.float64))


def test_steps_in_parts_are_the_same_steps() -> None:
    puzzles = torch.from_numpy(generate(3, np.random.default_rng(1), 3)[0]).long()
    for network in (bp.BeliefPropagation("random"), bp.ModifiedBeliefPropagation(fix_every=3)):
        whole, _ = network({"puzzle": puzzles}, steps=6)
        first, state = network({"puzzle": puzzles}, steps=2)
        rest, _ = network({"puzzle": puzzles}, steps=4, state=state)
        torch.testing.assert_close(torch.cat([first, rest]), whole)


def test_balancing_makes_cells_and_digits_sum_to_one() -> None:
    heard = random_messages(3, 2, 27, 9, 9, spread=0.3, impossible=0.0)
    before, after = heard.softmax(-1), bp.balanced(heard).softmax(-1)
    assert (after.sum(-2) - 1).abs().max() < 1e-2 < 0.1 < (before.sum(-2) - 1).abs().max()


@pytest.mark.parametrize(
    "network",
    [
        bp.BeliefPropagation(),
        bp.BeliefPropagation("random"),
        bp.BeliefPropagation(damping=0.3),
        bp.ModifiedBeliefPropagation(),
    ],
)
def test_easy_puzzles_are_solved_that_no_steps_would_not_solve(network: bp.BeliefPropagation) -> None:
    puzzles, solutions = generate(20, np.random.default_rng(2), 14)
    state = network.initial_state({"puzzle": torch.from_numpy(puzzles)})
    known = network.beliefs(state.h.view(20, 243, 9), bp.evidence_of(torch.from_numpy(puzzles).long()))
    assert not (known.argmax(-1).numpy() + 1 == solutions).all(1).any()
    found = solve(puzzles, network=network, max_steps=32, attempts=1)
    assert (found.answers == solutions).all(1).mean() >= 0.95


def test_a_contradiction_is_no_error() -> None:
    puzzle = torch.zeros(1, 81, dtype=torch.long)
    puzzle[0, 0] = puzzle[0, 1] = 5
    logits, _ = bp.BeliefPropagation()({"puzzle": puzzle}, steps=4)
    assert not logits.isnan().any()
