"""Weights tied by a symmetry stay equal, and the network stays indifferent to names."""

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from rrn.errors import InputError
from rrn.tasks import find_preset
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.experiment import SudokuExperiment
from rrn.training.growing import grow_into
from rrn.training.tying import Axis, Ties, tie


def test_an_axis_names_owners_and_roles() -> None:
    axis = Axis.of(2, 2, 1) + Axis.of(2, 1, 0)
    assert axis.owner.tolist() == [0, 0, 1, 1, -1, 0, 1]
    assert axis.role.tolist() == [0, 1, 0, 1, 2, 3, 3]


def test_a_tied_layer_stays_indifferent_to_names() -> None:
    torch.manual_seed(0)
    axis = Axis.of(3, 2, 2)
    layer = nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    tie(optimizer, [Ties(layer.weight, axis, axis), Ties(layer.bias, axis)])
    renamed = torch.tensor([2, 3, 4, 5, 0, 1, 6, 7])
    x = torch.randn(5, 8)
    for _ in range(4):
        optimizer.zero_grad()
        (layer(x) * torch.randn(5, 8)).sum().backward()
        optimizer.step()
        torch.testing.assert_close(layer(x[:, renamed]), layer(x)[:, renamed])
    assert (
        len(layer.weight.unique()) == 2 * (2 * 2) + 2 * (2 * 2) + 2 * 2
    )  # own and others', to and from shared, shared


def test_what_adds_up_over_owners_moves_less() -> None:
    axis = Axis.of(4, 1, 1)
    weight = nn.Parameter(torch.zeros(5, 5))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    tie(optimizer, [Ties(weight, axis, axis)])
    weight.sum().backward()
    optimizer.step()
    own, other, from_shared, to_shared = weight[0, 0], weight[0, 1], weight[0, 4], weight[4, 0]
    torch.testing.assert_close(
        torch.stack([own, other, from_shared, to_shared]).detach(), -torch.tensor([1.0, 1 / 3, 1.0, 1 / 4])
    )


def test_the_papers_network_treats_digits_alike() -> None:
    """Renaming the digits of a puzzle renames the answers: before training, after, and once it is grown."""
    torch.manual_seed(0)
    experiment = SudokuExperiment(replace(find_preset("sudoku-paper-shallow"), tied_digit_units=8, batch_size=4))
    network = experiment.network()
    optimizer = experiment.optimizer(network)
    rng = np.random.default_rng(0)
    puzzles = torch.from_numpy(generate(2, rng)[0]).long()
    digits = torch.cat([torch.zeros(1, dtype=torch.long), 1 + torch.from_numpy(rng.permutation(9))])

    def answers_of(network: nn.Module) -> torch.Tensor:
        precise = copy.deepcopy(network).double()
        with torch.no_grad():
            plain, renamed = (precise({"puzzle": p}, steps=3)[0] for p in (puzzles, digits[puzzles]))
        torch.testing.assert_close(renamed[..., digits], plain, atol=1e-9, rtol=1e-9)
        assert float(plain[..., 1:].std(-1).max()) > 1e-4  # it does tell digits apart
        return plain

    before = answers_of(network)
    for _ in range(3):
        batch = experiment.sample(rng)
        optimizer.zero_grad()
        experiment.loss(network(batch, steps=3)[0], batch).backward()
        optimizer.step()
    after = answers_of(network)
    assert float((after - before).abs().max()) > 0.01

    deep = SudokuExperiment(replace(find_preset("sudoku-paper"), tied_digit_units=8))
    grown = deep.network()
    grow_into(grown, network.state_dict())
    deep.optimizer(grown)  # averages what is tied: nothing may change
    torch.testing.assert_close(answers_of(grown), after, atol=1e-5, rtol=1e-5)


def test_ties_are_refused_where_there_are_no_digits_to_tie() -> None:
    with pytest.raises(InputError, match="--tied-digit-units"):
        SudokuExperiment(replace(find_preset("sudoku-paper-shallow"), tied_digit_units=11))


def stays_alike(experiment: SudokuExperiment, steps: int, answers_of: Callable[[nn.Module], torch.Tensor]) -> None:
    """``answers_of`` checks the symmetry; it holds for new weights and after some updates, which change the answers."""
    network = experiment.network()
    optimizer = experiment.optimizer(network)
    before = answers_of(copy.deepcopy(network).double())
    for _ in range(3):
        batch = experiment.sample(np.random.default_rng(0))
        optimizer.zero_grad()
        experiment.loss(network(batch, steps=steps)[0], batch).backward()
        optimizer.step()
    assert (answers_of(copy.deepcopy(network).double()) - before).abs().max() > 1e-3


def test_the_network_on_candidates_treats_rows_and_columns_alike() -> None:
    torch.manual_seed(0)
    puzzles = torch.from_numpy(generate(2, np.random.default_rng(0))[0]).long()

    def answers_of(network: nn.Module) -> torch.Tensor:
        """The transposed puzzle has the transposed answers."""
        turned = puzzles.view(2, 9, 9).mT.flatten(1)
        with torch.no_grad():
            plain, other = (network({"puzzle": p}, steps=3)[0].view(3, 2, 9, 9, 9) for p in (puzzles, turned))
        torch.testing.assert_close(other.transpose(2, 3), plain, atol=1e-9, rtol=1e-9)
        return plain

    stays_alike(SudokuExperiment(replace(find_preset("sudoku"), few_givens_pool=0, batch_size=4)), 3, answers_of)


def test_the_convolutional_network_treats_digits_alike() -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    puzzles = torch.from_numpy(generate(8, rng, 30)[0]).long()
    digits = torch.cat([torch.zeros(1, dtype=torch.long), 1 + torch.from_numpy(rng.permutation(9))])

    def answers_of(network: nn.Module) -> torch.Tensor:
        """Renaming the digits of a puzzle renames the answers; but for running statistics, so in training mode."""
        with torch.no_grad():
            plain, renamed = (network({"puzzle": p}, steps=1)[0] for p in (puzzles, digits[puzzles]))
        torch.testing.assert_close(renamed[..., digits[1:] - 1], plain, atol=1e-7, rtol=1e-7)
        return plain

    small = replace(find_preset("sudoku-convolutional"), hidden=20, tied_digit_units=2, batch_size=4)
    stays_alike(SudokuExperiment(small), 1, answers_of)
