"""The influence of groups: the change of a prediction without their messages."""

import numpy as np
import pytest
import torch

from rrn.errors import InputError
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.export import Step
from rrn.tasks.sudoku.files import parse_puzzle
from rrn.tasks.sudoku.influence import GROUPS, group_masks, influence
from rrn.tasks.sudoku.model import GROUP_TYPES
from rrn.tasks.weights import from_pretrained

PUZZLES = np.stack([parse_puzzle(text) for text in EXAMPLES[:2]])


@pytest.fixture(scope="module")
def network() -> torch.nn.Module:
    return from_pretrained("sudoku")


def test_the_step_on_all_candidates_equals_a_step_of_the_network(network: torch.nn.Module) -> None:
    puzzles = torch.from_numpy(PUZZLES).long()
    one_step = Step(network)
    state = one_step.start(2)
    with torch.inference_mode():
        outputs, _ = network({"puzzle": puzzles}, steps=6)
        for step in range(6):
            logits, *parts = one_step(puzzles, state, torch.ones(2, GROUP_TYPES))
            state = tuple(parts)
            torch.testing.assert_close(logits.flatten(0, 1), outputs[step], atol=2e-4, rtol=1e-4)


def test_the_influence_is_the_change_without_the_messages(network: torch.nn.Module) -> None:
    """For rows: the messages of rows, and of rows within boxes, are zero."""
    puzzle, step = PUZZLES[0], 4
    found = influence(network, puzzle, step)
    assert found.shape == (81, len(GROUPS))
    assert (found >= 0).all()
    assert (found <= 1 + 1e-6).all()
    assert (found[puzzle > 0] == 0).all(), "nothing influences a given"
    assert (found[puzzle == 0].max(1) > 0.01).mean() > 0.5, "most cells are influenced"
    cells, one_step = torch.from_numpy(puzzle).long()[None], Step(network)
    state, without_rows = one_step.start(1), torch.tensor([[1.0, 0, 1, 1, 0, 1]])
    with torch.inference_mode():
        for _ in range(step - 1):
            state = tuple(one_step(cells, state, torch.ones(1, GROUP_TYPES))[1:])
        with_all = one_step(cells, state, torch.ones(1, GROUP_TYPES))[0].softmax(-1)
        without = one_step(cells, state, without_rows)[0].softmax(-1)
    change = (with_all - without).abs().sum(-1)[0] / 2
    np.testing.assert_allclose(found[:, GROUPS.index("row")], change.numpy(), atol=1e-5)


def test_every_group_type_is_masked_once() -> None:
    assert (group_masks()[0] == 1).all()
    assert ((group_masks()[1:] == 0).sum(0) == 1).all()


def test_an_empty_grid_has_finite_influence(network: torch.nn.Module) -> None:
    assert np.isfinite(influence(network, np.zeros(81, np.uint8), 2)).all()


def test_invalid_arguments_are_refused(network: torch.nn.Module) -> None:
    with pytest.raises(InputError, match="step: expected at least 1, got 0"):
        influence(network, PUZZLES[0], 0)
    with pytest.raises(InputError, match="only the network on the candidate graph"):
        Step(torch.nn.Linear(2, 2))
