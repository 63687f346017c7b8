"""Search by guesses: no branch that holds the answer is ever lost, and the likeliest one is looked at first."""

import math

import pytest
import torch
from torch import Tensor

from rrn.inference.places import Places
from rrn.inference.search import (
    FIRST_GUESS,
    FURTHER_GUESS,
    LOOK,
    NOISY_STARTS,
    Branch,
    Candidates,
    Look,
    Search,
    Searches,
    choose,
)
from rrn.nn.updates import State

SIZE = 4
"""Latin squares of this size: SIZE² cells with SIZE options each."""


def latin() -> Candidates:
    row, column, digit = (part.flatten() for part in torch.meshgrid(*[torch.arange(SIZE)] * 3, indexing="ij"))
    kinds = [row * SIZE + column, row * SIZE + digit, column * SIZE + digit]
    groups = torch.stack([kind + SIZE**2 * number for number, kind in enumerate(kinds)], dim=1)
    return Candidates(groups, torch.ones(3 * SIZE**2, dtype=torch.bool), SIZE**2)


def square(shift: int = 0) -> Tensor:
    """The candidates of a Latin square that are true."""
    cells = torch.arange(SIZE**2)
    digits = (cells // SIZE + cells % SIZE + shift) % SIZE
    return torch.nn.functional.one_hot(digits, SIZE).flatten().bool()


def holds(branch: Branch, answer: Tensor) -> bool:
    return bool((answer <= (branch.still_open | branch.true)).all())


def state_of(branch: Branch) -> State:
    """One that knows of each of its rows which candidate it is."""
    return State(branch.still_open.nonzero().float())


def search_of(answer: Tensor, given: int) -> Search:
    candidates, true = latin(), torch.zeros(SIZE**3, dtype=torch.bool)
    excluded = true.clone()
    for candidate in answer.nonzero()[:given, 0].tolist():
        true[candidate] = True
        excluded |= candidates.rivals(candidate)
    return Search(candidates, ~excluded, true)


def is_solved(branch: Branch) -> bool:
    return int((branch.still_open | branch.true).sum()) == SIZE**2


@pytest.mark.parametrize("starts", [1, 3])
def test_one_branch_always_holds_the_answer(starts: int) -> None:
    """However many starts share the branches, and although one of them leaves in the midst."""
    torch.manual_seed(0)
    answer = square(1)
    search = search_of(answer, 3)
    looks = [Look(search.whole) for _ in range(starts)]
    states: list[State | None] = [state_of(search.whole) for _ in looks]
    for turn in range(60):
        for place, (look, state) in enumerate(zip(looks, states, strict=True)):
            if state is None:
                state = state_of(search.whole)
            assert torch.equal(state.h, state_of(look.branch).h), "the state is that of the candidates still open"
            looks[place], states[place] = search.go_on(look, state, torch.randn(SIZE**3))
            waiting = [branch for _, _, branch in search.waiting]
            here = [*waiting, *(look.branch for look in looks if look.branch is not search.whole)]
            if search.begun:
                assert sum(holds(branch, answer) for branch in here) == 1, turn
            assert all(search.candidates.possible(branch.still_open | branch.true) for branch in here)
        if turn == 8 and starts > 1:
            search.give_back(looks.pop())
            states.pop()
        if any(is_solved(look.branch) and holds(look.branch, answer) for look in looks):
            break
    assert search.begun


def test_what_the_network_calls_impossible_waits() -> None:
    """An oracle that says "none" of every branch without the answer: none of them is split."""
    answer = square(2)
    search = search_of(answer, 5)
    look, state = Look(search.whole), state_of(search.whole)
    for _ in range(80):
        level = 20.0 if holds(look.branch, answer) else -20.0
        wrong_way_round = torch.where(answer, -1.0, 0.0)  # it prefers what is wrong
        looked_at = look.branch.still_open | look.branch.true
        look, after = search.go_on(look, state, wrong_way_round + level)
        assert after is not None
        state = after
        if level < 0:
            within = ((look.branch.still_open | look.branch.true) <= looked_at).all()
            assert not bool(within), "a branch called impossible was split"
        if torch.equal(look.branch.still_open | look.branch.true, answer):
            break
    assert torch.equal(look.branch.still_open | look.branch.true, answer)
    assert len(search.waiting) > 2


def test_of_a_problem_without_an_answer_no_branch_is_left() -> None:
    search = search_of(square(), 0)
    search.whole = Branch(search.whole.still_open & (torch.arange(SIZE**3) % SIZE < 2), search.whole.true)
    look, state = search.go_on(Look(search.whole), state_of(search.whole), torch.zeros(SIZE**3))
    assert look.branch is search.whole, "first it makes up its mind"
    assert state is not None
    look, state = search.go_on(look, state, torch.zeros(SIZE**3))
    assert (look.branch, state) == (search.whole, state)
    assert not search.waiting


def test_no_guess_while_it_still_makes_up_its_mind() -> None:
    search = search_of(square(), 0)
    look, state, logits = Look(search.whole), state_of(search.whole), torch.randn(SIZE**3)
    for factor in (1, 3):
        look, after = search.go_on(look, state, factor * logits)
        assert (look.branch, after) == (search.whole, state)
    look, after = search.go_on(look, state, 3 * logits)
    assert look.branch.belief < 0
    assert after is not state


def test_a_further_start_takes_what_waits() -> None:
    search, logits = search_of(square(), 0), torch.randn(SIZE**3)
    first, state = Look(search.whole), state_of(search.whole)
    for _ in range(2):
        first, _ = search.go_on(first, state, logits)
    (other,) = (branch for _, _, branch in search.waiting)
    second, after = search.go_on(Look(search.whole), state, logits)
    assert second.branch is other
    assert after is not None
    assert torch.equal(after.h, state_of(other).h)
    third, after = search.go_on(Look(search.whole), state, logits)
    assert (third.branch, after) == (search.whole, state), "nothing waits, so it goes on by itself"
    search.give_back(second)
    assert search.go_on(third, state, logits)[0].branch is other


def test_the_least_uncertain_cell_that_is_not_decided_is_chosen() -> None:
    logits = torch.tensor([9.0, 0.0, 1.0, 0.0, 0.1, 0.0, 5.0, 0.0])
    pairs = Candidates(torch.arange(8)[:, None] // 2, torch.ones(4, dtype=torch.bool), 4)
    every = torch.ones(8, dtype=torch.bool)
    candidate, chance = choose(pairs, pairs.beliefs(every, logits)) or (-1, 0.0)
    assert candidate == 2
    assert chance == pytest.approx(1 / (1 + math.exp(-1)))
    only_last = every.clone()
    only_last[[1, 2, 4]] = False
    assert choose(pairs, pairs.beliefs(only_last, logits)) == (6, 0.95)
    only_last[7] = False
    assert choose(pairs, pairs.beliefs(only_last, logits)) is None
    assert FURTHER_GUESS > FIRST_GUESS > 0


def test_beliefs_of_cells_of_several_sizes() -> None:
    """Three candidates in a cell, of which one is closed, two in another, and one cell with none open."""
    cells = Candidates(torch.tensor([0, 0, 0, 1, 1, 2])[:, None], torch.ones(3, dtype=torch.bool), 3)
    still_open = torch.tensor([True, True, False, True, True, False])
    said = cells.beliefs(still_open, torch.tensor([1.0, 1.0, 50.0, 0.0, math.log(3), 7.0]))
    assert torch.allclose(said.chances, torch.tensor([0.5, 0.5, 0.0, 0.25, 0.75, 0.0]))
    quarter = -0.25 * math.log(0.25) - 0.75 * math.log(0.75)
    assert torch.allclose(said.entropy, torch.tensor([math.log(2), quarter, 0.0]))
    assert said.options.tolist() == [2, 2, 0]
    assert torch.allclose(said.odds[:2], torch.tensor([1 + math.log(2), math.log(4)]))


def test_a_group_that_may_stay_empty_rules_nothing_out() -> None:
    candidates = Candidates(
        torch.tensor([[0, 2], [0, 3], [1, 2], [1, 4]]), torch.tensor([True, True, False, False, False]), 2
    )
    assert candidates.rivals(0).tolist() == [True, True, True, False]
    assert candidates.possible(torch.tensor([False, True, False, True])), "nobody stands in group 2, and nobody has to"
    assert not candidates.possible(torch.tensor([True, True, False, False])), "cell 1 has lost all"


def test_starts_share_a_search_and_noise_is_for_the_whole_problem() -> None:
    whole = search_of(square(), 0).whole
    searches = Searches(lambda number: search_of(square(), 0), lambda number: state_of(whole))
    starts = torch.tensor([1, 2, NOISY_STARTS + 1])
    age = torch.tensor([FIRST_GUESS, FURTHER_GUESS - 1, LOOK])
    state = State(torch.cat([state_of(whole).h] * 3))
    places = Places(torch.zeros(3, dtype=torch.long), starts, torch.full((3,), SIZE**3), age, state)
    logits = torch.randn(SIZE**3)
    for _ in range(2):  # first it makes up its mind
        assert all(torch.equal(branch.still_open, whole.still_open) for branch in searches.branches(places))
        assert searches.noisy(places).tolist() == [True] * 3
        searches.hear(places, [logits] * 3)
        places = searches.decide(places)
    first, second, last = searches.branches(places)
    assert searches.noisy(places).tolist() == [False, True, False]
    assert second is searches.searches[0].whole, "it is not yet time for its first guess"
    assert not bool((first.true & last.still_open).any()), "one guesses what the other rules out"
    assert places.sizes.tolist() == [int(branch.still_open.sum()) for branch in (first, second, last)]
    assert torch.equal(places.state.h, torch.cat([state_of(branch).h for branch in (first, second, last)]))

    left = searches.decide(places.leave(starts == 1)._replace(age=torch.zeros(2, dtype=torch.long)))
    assert [branch for _, _, branch in searches.searches[0].waiting] == [first], "a start that is over gives back"
    searches.over(0)
    assert not searches.searches
    searches.branches(left)
    assert not searches.searches[0].begun
