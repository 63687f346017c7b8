"""Best-first search: no branch that contains the answer is lost, and the most probable branch is evaluated first."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from rrn.inference.attempts import Slots
from rrn.inference.rules import CandidateLayout
from rrn.inference.search import (
    EVALUATION_STEPS,
    FIRST_SPLIT,
    FURTHER_SPLIT,
    NOISY_ATTEMPTS,
    BestFirstSearch,
    Branch,
    BranchQueue,
    Visit,
    choose_guess,
)
from rrn.nn.updates import State

SIZE = 4
"""Latin squares of this size: SIZE² cells with SIZE candidates each."""


def latin() -> CandidateLayout:
    row, column, digit = (part.flatten() for part in torch.meshgrid(*[torch.arange(SIZE)] * 3, indexing="ij"))
    types = [row * SIZE + column, row * SIZE + digit, column * SIZE + digit]
    groups = torch.stack([groups + SIZE**2 * number for number, groups in enumerate(types)], dim=1)
    return exactly_one(groups, [SIZE**2] * 3)


def exactly_one(groups: Tensor, counts: list[int]) -> CandidateLayout:
    one = np.ones(sum(counts), np.int64)
    return CandidateLayout(groups.numpy(), one, one, counts)


def square(shift: int = 0) -> Tensor:
    """The true candidates of a Latin square."""
    cells = torch.arange(SIZE**2)
    digits = (cells // SIZE + cells % SIZE + shift) % SIZE
    return torch.nn.functional.one_hot(digits, SIZE).flatten().bool()


def left(branch: Branch) -> Tensor:
    """The candidates that are not ruled out."""
    return branch.open | branch.true


def contains(branch: Branch, answer: Tensor) -> bool:
    return bool((answer <= left(branch)).all())


def state_of(branch: Branch) -> State:
    """A state whose rows are the numbers of their candidates."""
    return State(branch.open.nonzero().float())


def make_queue(answer: Tensor, given: int) -> BranchQueue:
    layout, true = latin(), torch.zeros(SIZE**3, dtype=torch.bool)
    true[answer.nonzero()[:given, 0]] = True
    return BranchQueue(layout, ~layout.excluded_by(true), true)


@pytest.mark.parametrize("attempts", [1, 3])
def test_one_branch_always_contains_the_answer(attempts: int) -> None:
    """However many attempts share the branches, and although one of them ends before the others."""
    torch.manual_seed(0)
    answer = square(1)
    queue = make_queue(answer, 3)
    visits = [Visit(queue.root) for _ in range(attempts)]
    states: list[State | None] = [state_of(queue.root) for _ in visits]
    for turn in range(60):
        for number, (visit, state) in enumerate(zip(visits, states, strict=True)):
            state = state_of(queue.root) if state is None else state
            assert torch.equal(state.h, state_of(visit.branch).h), "the state has one row per open candidate"
            visits[number], states[number] = queue.next(visit, state, torch.randn(SIZE**3))
            waiting = [branch for _, _, branch in queue.waiting]
            branches = [*waiting, *(visit.branch for visit in visits if visit.branch is not queue.root)]
            if queue.begun:
                assert sum(contains(branch, answer) for branch in branches) == 1, turn
            assert all(queue.layout.possible(left(branch)) for branch in branches)
        if turn == 8 and attempts > 1:
            queue.put_back(visits.pop())
            states.pop()
        if any(torch.equal(left(visit.branch), answer) for visit in visits):
            break
    assert queue.begun


def test_branches_that_the_network_finds_impossible_wait() -> None:
    """An oracle predicts "none" for every branch without the answer: no such branch is split."""
    answer = square(2)
    queue = make_queue(answer, 5)
    visit, state = Visit(queue.root), state_of(queue.root)
    for _ in range(80):
        log_odds = 20.0 if contains(visit.branch, answer) else -20.0
        wrong_preference = torch.where(answer, -1.0, 0.0)
        evaluated = left(visit.branch)
        visit, after = queue.next(visit, state, wrong_preference + log_odds)
        assert after is not None
        state = after
        if log_odds < 0:
            assert not bool((left(visit.branch) <= evaluated).all()), "an impossible branch was split"
        if torch.equal(left(visit.branch), answer):
            break
    assert torch.equal(left(visit.branch), answer)
    assert len(queue.waiting) > 2


def test_no_branch_is_left_of_a_problem_without_a_solution() -> None:
    queue = make_queue(square(), 0)
    queue.root = Branch(queue.root.open & (torch.arange(SIZE**3) % SIZE < 2), queue.root.true)
    visit, state = queue.next(Visit(queue.root), state_of(queue.root), torch.zeros(SIZE**3))
    assert visit.branch is queue.root, "the root is evaluated before it is split"
    assert state is not None
    visit, after = queue.next(visit, state, torch.zeros(SIZE**3))
    assert visit.branch is queue.root
    assert after is state
    assert not queue.waiting


def test_a_branch_is_not_split_before_it_is_stalled() -> None:
    queue = make_queue(square(), 0)
    visit, state, logits = Visit(queue.root), state_of(queue.root), torch.randn(SIZE**3)
    for factor in (1, 3):
        visit, after = queue.next(visit, state, factor * logits)
        assert (visit.branch, after) == (queue.root, state)
    visit, after = queue.next(visit, state, 3 * logits)
    assert visit.branch.log_probability < 0
    assert after is not state


def test_a_further_attempt_takes_a_waiting_branch() -> None:
    queue, logits = make_queue(square(), 0), torch.randn(SIZE**3)
    first, state = Visit(queue.root), state_of(queue.root)
    for _ in range(2):
        first, _ = queue.next(first, state, logits)
    (other,) = (branch for _, _, branch in queue.waiting)
    second, after = queue.next(Visit(queue.root), state, logits)
    assert second.branch is other
    assert after is not None
    assert torch.equal(after.h, state_of(other).h)
    third, after = queue.next(Visit(queue.root), state, logits)
    assert (third.branch, after) == (queue.root, state), "no branch waits, so it stays at the root"
    queue.put_back(second)
    assert queue.next(third, state, logits)[0].branch is other


def test_the_guess_is_in_the_least_uncertain_undecided_cell() -> None:
    logits = torch.tensor([9.0, 0.0, 1.0, 0.0, 0.1, 0.0, 5.0, 0.0])
    pairs = exactly_one(torch.arange(8)[:, None] // 2, [4])
    open_ = torch.ones(8, dtype=torch.bool)
    candidate, probability = choose_guess(pairs, pairs.predict(open_, logits)) or (-1, 0.0)
    assert candidate == 2
    assert probability == pytest.approx(1 / (1 + math.exp(-1)))
    open_[[1, 2, 4]] = False
    assert choose_guess(pairs, pairs.predict(open_, logits)) == (6, 0.95), "probabilities are clamped"
    open_[7] = False
    assert choose_guess(pairs, pairs.predict(open_, logits)) is None
    assert FURTHER_SPLIT > FIRST_SPLIT > 0


def test_predictions_for_cells_of_several_sizes() -> None:
    """Three candidates in a cell, of which one is closed; two in another; and a cell without an open candidate."""
    cells = exactly_one(torch.tensor([0, 0, 0, 1, 1, 2])[:, None], [3])
    open_ = torch.tensor([True, True, False, True, True, False])
    prediction = cells.predict(open_, torch.tensor([1.0, 1.0, 50.0, 0.0, math.log(3), 7.0]))
    assert torch.allclose(prediction.probability, torch.tensor([0.5, 0.5, 0.0, 0.25, 0.75, 0.0]))
    quarter = -0.25 * math.log(0.25) - 0.75 * math.log(0.75)
    assert torch.allclose(prediction.entropy, torch.tensor([math.log(2), quarter, 0.0]))
    assert prediction.options.tolist() == [2, 2, 0]
    assert torch.allclose(prediction.log_odds[:2], torch.tensor([1 + math.log(2), math.log(4)]))


def test_a_group_of_at_most_one_may_be_empty() -> None:
    lower, upper = np.array([1, 1, 0, 0, 0]), np.ones(5, np.int64)
    layout = CandidateLayout(np.array([[0, 2], [0, 3], [1, 2], [1, 4]]), lower, upper, [2, 3])
    assert layout.excluded_by(torch.tensor([True, False, False, False])).tolist() == [True, True, True, False]
    assert layout.possible(torch.tensor([False, True, False, True])), "group 2 is empty, which is allowed"
    assert not layout.possible(torch.tensor([True, True, False, False])), "cell 1 has no candidate left"


def test_attempts_share_a_queue_and_only_the_root_gets_noise() -> None:
    root = make_queue(square(), 0).root
    search = BestFirstSearch(lambda problem, attempt: make_queue(square(), 0), lambda problem: state_of(root))
    attempts = torch.tensor([1, 2, NOISY_ATTEMPTS + 1])
    age = torch.tensor([FIRST_SPLIT, FURTHER_SPLIT - 1, EVALUATION_STEPS])
    state = State(torch.cat([state_of(root).h] * 3))
    slots = Slots(torch.zeros(3, dtype=torch.long), attempts, torch.full((3,), SIZE**3), age, state)
    logits = torch.randn(SIZE**3)
    for _ in range(2):  # the first evaluation is never stalled
        assert all(torch.equal(branch.open, root.open) for branch in search.branches(slots))
        assert search.accepts_noise(slots).tolist() == [True] * 3
        search.observe([logits] * 3)
        slots = search.assign(slots)
    first, second, last = search.branches(slots)
    assert search.accepts_noise(slots).tolist() == [False, True, False]
    assert second is search.queues[0, 0].root, "it has not reached the step of its first split"
    assert not bool((first.true & last.open).any()), "one attempt guesses what the other rules out"
    assert slots.rows.tolist() == [int(branch.open.sum()) for branch in (first, second, last)]
    assert torch.equal(slots.state.h, torch.cat([state_of(branch).h for branch in (first, second, last)]))

    rest = search.assign(slots.release(attempts == 1)._replace(age=torch.zeros(2, dtype=torch.long)))
    assert [branch for _, _, branch in search.queues[0, 0].waiting] == [first], "the branch of an ended attempt is back"
    search.close(0)
    assert not search.queues
    search.branches(rest)
    assert not search.queues[0, 0].begun
