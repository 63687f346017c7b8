"""The step on all candidates is the network's own step, and silence changes what was listened to."""

import numpy as np
import pytest
import torch

from rrn.errors import InputError
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.export import Step
from rrn.tasks.sudoku.files import parse_puzzle
from rrn.tasks.sudoku.heard import GROUPS, heard, silences
from rrn.tasks.sudoku.model import KINDS
from rrn.tasks.weights import from_pretrained

PUZZLES = np.stack([parse_puzzle(text) for text in EXAMPLES[:2]])


@pytest.fixture(scope="module")
def network() -> torch.nn.Module:
    return from_pretrained("sudoku")


def test_it_is_the_networks_own_step(network: torch.nn.Module) -> None:
    puzzles = torch.from_numpy(PUZZLES).long()
    listen = Step(network)
    state = listen.start(2)
    with torch.inference_mode():
        outputs, _ = network({"puzzle": puzzles}, steps=6)
        for step in range(6):
            logits, *parts = listen(puzzles, state, torch.ones(2, KINDS))
            state = tuple(parts)
            torch.testing.assert_close(logits.flatten(0, 1), outputs[step], atol=2e-4, rtol=1e-4)


def test_who_was_heard_is_the_change_without_them(network: torch.nn.Module) -> None:
    """Of rows, computed here by hand: the messages of rows, and of their parts in boxes, set to nothing."""
    puzzle, step = PUZZLES[0], 4
    found = heard(network, puzzle, step)
    assert found.shape == (81, len(GROUPS))
    assert (found >= 0).all()
    assert (found <= 1 + 1e-6).all()
    assert (found[puzzle > 0] == 0).all(), "a given hears nobody"
    assert (found[puzzle == 0].max(1) > 0.01).mean() > 0.5, "most cells listen"
    cells, listen = torch.from_numpy(puzzle).long()[None], Step(network)
    state, deaf = listen.start(1), torch.tensor([[1.0, 0, 1, 1, 0, 1]])
    with torch.inference_mode():
        for _ in range(step - 1):
            state = tuple(listen(cells, state, torch.ones(1, KINDS))[1:])
        all_heard = listen(cells, state, torch.ones(1, KINDS))[0].softmax(-1)
        without = listen(cells, state, deaf)[0].softmax(-1)
    change = (all_heard - without).abs().sum(-1)[0] / 2
    np.testing.assert_allclose(found[:, GROUPS.index("row")], change.numpy(), atol=1e-5)


def test_every_kind_of_group_is_silenced_once() -> None:
    assert (silences()[0] == 1).all()
    assert ((silences()[1:] == 0).sum(0) == 1).all()


def test_an_empty_grid_listens_too(network: torch.nn.Module) -> None:
    assert np.isfinite(heard(network, np.zeros(81, np.uint8), 2)).all()


def test_what_cannot_be_asked_is_refused(network: torch.nn.Module) -> None:
    with pytest.raises(InputError, match="step: expected at least 1, got 0"):
        heard(network, PUZZLES[0], 0)
    with pytest.raises(InputError, match="only the network on the candidate graph"):
        Step(torch.nn.Linear(2, 2))
