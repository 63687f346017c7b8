"""Committing: what follows from a choice is decided, wrong choices are taken back, and the search is complete."""

import itertools

import numpy as np
import pytest
import torch

from rrn.constraints import Constraints
from rrn.inference.rules import propagate
from rrn.inference.search import SURE, CommitQueue, Visit
from rrn.nn.updates import State


def board(size: int) -> Constraints:
    return Constraints(
        itertools.product(range(size), repeat=2),
        exactly={"row": lambda c: c[0], "column": lambda c: c[1]},
        at_most={"down": lambda c: c[0] - c[1], "up": lambda c: sum(c)},
    )


def queue_of(constraints: Constraints, decides: bool = True, **named: object) -> CommitQueue:
    open_ = torch.ones(len(constraints.candidates), dtype=torch.bool)
    state = State(torch.arange(len(open_)).float()[:, None])
    return CommitQueue(constraints.layout, open_, ~open_, lambda: state, decides=decides, **named)  # type: ignore[arg-type]


def run(queue: CommitQueue, logits: torch.Tensor, choices: int = 200) -> tuple[np.ndarray, int]:
    """The true candidates when nothing is open, and how many choices that took."""
    visit, state = Visit(queue.root), State(torch.arange(len(logits)).float()[:, None])
    for done in range(1, choices + 1):
        visit, after = queue.next(visit, state, logits)
        assert after is not None
        state = after
        rows = visit.branch.open.nonzero()[:, 0].tolist()
        assert state.h[:, 0].long().tolist() == rows, "the state has the rows of the open candidates"
        if not bool(visit.branch.open.any()):
            return visit.branch.true.nonzero()[:, 0].numpy(), done
    raise AssertionError("not decided")


def test_what_follows_from_a_choice_is_decided() -> None:
    layout = board(4).layout
    open_, true = np.ones(16, bool), np.zeros(16, bool)
    open_[[1]], true[1] = False, True
    assert propagate(open_, true, *layout.arrays)
    assert np.flatnonzero(true).tolist() == [1, 7, 8, 14], "the only solution with a queen there"
    open_, true = np.ones(16, bool), np.zeros(16, bool)
    open_[0], true[0] = False, True
    assert not propagate(open_, true, *layout.arrays) or open_.any()
    counted = Constraints(4, exactly={"all": [[0, 1, 2]]}, at_most={"few": [[2, 3]]}, k={"all": 3})
    open_, true = np.ones(4, bool), np.zeros(4, bool)
    assert propagate(open_, true, *counted.layout.arrays)
    assert (open_.tolist(), true.tolist()) == ([False] * 4, [True, True, True, False])


@pytest.mark.parametrize("seed", range(5))
def test_wrong_choices_are_taken_back(seed: int) -> None:
    """Random logits that never change: only taking back leads to a solution."""
    constraints = board(8)
    logits = torch.randn(64, generator=torch.Generator().manual_seed(seed))
    found, _ = run(queue_of(constraints), logits)
    assert constraints.violations_of(found) == []


def test_a_problem_without_a_solution_ends_at_its_root() -> None:
    queue = queue_of(board(3))
    visit, state = Visit(queue.root), State(torch.zeros(9, 1))
    for _ in range(20):
        visit, after = queue.next(visit, state, torch.zeros(9))
        state = state if after is None else after
    assert visit.branch is queue.root
    assert not queue.waiting


def test_a_cell_with_few_options_is_decided_first() -> None:
    """With equal trust in the network; the candidate within the cell is the network's choice, as are preferences."""
    cells = Constraints(7, exactly={"cell": [[0, 1, 2, 3], [4, 5, 6]]})
    logits = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0])
    queue = queue_of(cells)
    visit, _ = queue.next(Visit(queue.root), State(torch.zeros(7, 1)), logits)
    assert visit.branch.true.nonzero()[:, 0].tolist() == [5], "0 has the larger probability, but more alternatives"
    queue = queue_of(cells, preferences=np.zeros(7))
    visit, _ = queue.next(Visit(queue.root), State(torch.zeros(7, 1)), logits)
    assert visit.branch.true.nonzero()[:, 0].tolist() == [0]


def test_sure_candidates_are_fixed_together() -> None:
    answer = [1, 3 + 8, 5 + 16, 7 + 24, 2 + 32, 0 + 40, 6 + 48, 4 + 56]
    assert board(8).violations_of(np.array(answer)) == []
    logits = torch.zeros(64)
    logits[answer] = 10.0
    found, choices = run(queue_of(board(8)), logits)
    assert (sorted(found.tolist()), choices) == (answer, 1)
    assert float(logits.view(8, 8).softmax(1).max()) > SURE


def test_candidates_that_no_group_needs_stay_false_unless_they_are_likely() -> None:
    loose = Constraints(4, at_least={"some": [[0, 1]]}, at_most={"few": [[2, 3]]})
    logits = torch.tensor([-1.0, -2.0, 0.5, -3.0])
    found, _ = run(queue_of(loose, decides=False), logits)
    assert found.tolist() == [0, 2]
    assert loose.violations_of(found) == []


def test_preferences_and_noise_change_the_choices() -> None:
    pair = Constraints(2, exactly={"one": [[0, 1]]})
    assert run(queue_of(pair), torch.tensor([1.0, 0.0]))[0].tolist() == [0]
    wishes = np.array([0.0, 2.0])
    assert run(queue_of(pair, preferences=wishes), torch.tensor([1.0, 0.0]))[0].tolist() == [1]
    found = {
        int(run(queue_of(pair, noise=1.0, rng=np.random.default_rng(seed)), torch.tensor([0.1, 0.0]))[0][0])
        for seed in range(20)
    }
    assert found == {0, 1}
