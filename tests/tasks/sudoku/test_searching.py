"""Training with copies: only the best copy of a puzzle learns; and problems that end at their limit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rrn.errors import InputError
from rrn.nn.losses import winners
from rrn.tasks import find_preset
from rrn.tasks.sudoku.experiment import SudokuExperiment
from rrn.training.experiment import RunningBatch, Shard
from rrn.training.slots import OTHERS, SHORTEST_LIFE


def experiment(**changes: Any) -> SudokuExperiment:
    return SudokuExperiment(replace(find_preset("sudoku"), few_givens_pool=0, **changes))


def answers(batch: dict[str, torch.Tensor], right: list[bool], steps: int = 8) -> torch.Tensor:
    """Logits that are certain of the solution in some slots, and of the next digit in the others."""
    digits = batch["solution"] - 1
    digits_chosen = torch.where(torch.tensor(right)[:, None], digits, (digits + 1) % 9)
    return (10.0 * F.one_hot(digits_chosen, 9).float()).view(1, -1, 9).repeat(steps, 1, 1)


def state_of(task: SudokuExperiment, batch: dict[str, torch.Tensor]) -> RunningBatch:
    return RunningBatch(batch, task.built.initial_state(batch))


def test_the_smallest_loss_of_each_problem_wins() -> None:
    losses = torch.tensor([3.0, 1.0, 2.0, 5.0, 6.0, 4.0])
    torch.testing.assert_close(winners(losses, 3, others=0.1), torch.tensor([0.1, 1.0, 0.1, 0.1, 0.1, 1.0]))
    torch.testing.assert_close(winners(losses, 1), torch.ones(6))


def test_the_best_copy_has_weight_one_and_the_others_little() -> None:
    task = experiment(copies=2, batch_size=4)
    batch = task.sample(np.random.default_rng(0))
    assert torch.equal(batch["puzzle"][0], batch["puzzle"][1])
    assert not torch.equal(batch["puzzle"][1], batch["puzzle"][2])
    outputs = answers(batch, [True, False, False, True]).requires_grad_()
    loss = task.loss(outputs, batch)
    loss.backward()
    empty = (batch["puzzle"] == 0).sum(1).float()
    good, bad = (float(F.cross_entropy(10.0 * torch.eye(9)[:1], torch.tensor([right]))) for right in (0, 1))
    weights = torch.tensor([1, OTHERS, OTHERS, 1]) * empty
    expected = float((weights * torch.tensor([good, bad, bad, good])).sum() / weights.sum())
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)


def test_a_solution_of_one_copy_frees_the_slots_of_all() -> None:
    task = experiment(copies=2, batch_size=6, stay=0.0)
    batch = task.sample(np.random.default_rng(1))
    outputs = answers(batch, [True, False, False, False, False, True])
    carry = task.proceed(state_of(task, batch), outputs, np.random.default_rng(2), Shard())
    assert carry is not None
    assert carry.state is not None
    assert torch.equal(carry.batch["puzzle"][:2], batch["puzzle"][2:4])  # the unsolved puzzle stays, the others are new
    assert carry.batch["age"].tolist() == [8, 8, 0, 0, 0, 0]
    assert torch.equal(carry.batch["puzzle"][2], carry.batch["puzzle"][3])
    assert len(carry.state.h) == int(task.rows_of(carry.batch).sum())


def test_lives_end_at_their_limit_solved_or_not() -> None:
    task = experiment(lives=True, slot_steps=(64, 64), batch_size=256)
    batch = task.sample(np.random.default_rng(3))
    assert SHORTEST_LIFE <= int(batch["limit"].min()) < 12
    assert 50 < int(batch["limit"].max()) <= 64
    carry = task.proceed(state_of(task, batch), answers(batch, [True] * 256), np.random.default_rng(4), Shard())
    assert carry is not None
    over = int((batch["limit"] <= 8).sum())
    assert int((carry.batch["age"] == 0).sum()) == over < 100


def test_start_noise_separates_copies() -> None:
    task = experiment(copies=2, batch_size=2, start_noise=1.0, stay=0.0)
    batch = task.sample(np.random.default_rng(5))
    carry = task.proceed(state_of(task, batch), answers(batch, [True, True]), np.random.default_rng(6), Shard())
    assert carry is not None
    assert carry.state is not None
    rows = int(task.rows_of(carry.batch)[0])
    (state,) = carry.state.memory
    assert not torch.allclose(state[:rows], state[rows:])
    assert 0.9 < float(state.std()) < 1.1


def test_the_batch_size_must_be_a_multiple_of_the_copies() -> None:
    with pytest.raises(InputError, match="--batch-size"):
        experiment(copies=3, batch_size=8).begin(np.random.default_rng(0), Shard())
