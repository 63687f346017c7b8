"""Constraints: which graph they are, what givens close, and which rules an answer breaks."""

import itertools
import re

import numpy as np
import pytest
import torch

from rrn.constraints import UNKNOWN, Constraints, Problem
from rrn.constraints.solving import open_graph
from rrn.errors import InputError
from rrn.tasks.sudoku.data import add_givens
from rrn.tasks.sudoku.declared import sudoku
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.model import groups_on, what_givens_say


def squares(size: int) -> Constraints:
    return Constraints(
        itertools.product(range(size), repeat=3),
        exactly={"cell": lambda c: c[:2], "row": lambda c: (c[0], c[2]), "column": lambda c: c[1:]},
    )


def queens(size: int) -> Constraints:
    return Constraints(
        itertools.product(range(size), repeat=2),
        exactly={"row": lambda c: c[0], "column": lambda c: c[1]},
        at_most={"down": lambda c: c[0] - c[1], "up": lambda c: sum(c)},
    )


def test_groups_by_hand() -> None:
    constraints = Constraints("abcd", exactly={"pair": ["ab", "cd"]}, at_most={"middle": ["bc"]})
    assert constraints.kinds == ("pair", "middle")
    assert constraints.member_of.tolist() == [[0, 1], [0, 0], [1, 0], [1, 2]]  # a and d stand alone in "middle"
    assert constraints.counts == (2, 3)
    assert constraints.needed.tolist() == [True, True, False, False, False]
    assert repr(constraints) == "Constraints(4 candidates; exactly one: pair (2); at most one: middle (3))"


def test_overlapping_groups_become_further_kinds_and_stay_rules() -> None:
    triangle = Constraints(3, exactly={"edge": [[0, 1], [1, 2], [2, 0]]})
    assert triangle.kinds == ("edge", "edge 2", "edge 3")
    assert not triangle.decides
    assert len(triangle.broken([0])) == 1
    assert len(triangle.broken([0, 1])) == 1
    path = Constraints(3, exactly={"edge": [[0, 1], [1, 2]]})
    assert path.kinds == ("edge", "edge 2")
    member_of, counts, groups = path.as_kinds(triangle.kinds)
    assert member_of[:, 2].tolist() == [0, 1, 2]
    assert counts[2] == 3
    assert not len(groups[2])
    with pytest.raises(InputError, match="the network knows edge, edge 2; the problem has edge, edge 2, edge 3"):
        triangle.as_kinds(path.kinds)


def test_what_is_given_closes_its_groups() -> None:
    board = queens(4).problem(given=[(0, 1)], excluded=[(3, 2)])
    still_open = [name for name, is_open in zip(board.constraints.names, board.still_open, strict=True) if is_open]
    assert still_open == [(1, 3), (2, 0), (2, 2), (3, 0), (3, 3)]
    assert board.count_solutions() == 0
    assert queens(4).problem(given=[(0, 1)]).count_solutions() == 1


@pytest.mark.parametrize(
    ("true", "said"),
    [
        ([(0, 1), (1, 3), (2, 0), (3, 2)], []),
        ([(0, 1), (1, 3), (2, 0)], ["row: 0 true instead of exactly one", "column: 0 true instead of exactly one"]),
        ([(0, 0), (1, 1), (2, 3), (3, 2)], ["down: 2 true instead of at most one", "up: 2 true"]),
    ],
)
def test_broken_rules_are_named(true: list[tuple[int, int]], said: list[str]) -> None:
    found = queens(4).broken(true)
    assert len(found) == len(said)
    for message, expected in zip(found, said, strict=True):
        assert message.startswith(expected)


def test_answers_that_lose_a_given_are_wrong() -> None:
    constraints = Constraints("ab", exactly={"one": ["ab"]})
    problem = constraints.problem(given="a", excluded="b")
    assert problem.broken(np.array([0])) == []
    assert problem.broken(np.array([1])) == ["'a' is given, but not true", "'b' is excluded, but true"]


@pytest.mark.parametrize("box", [(2, 2), (2, 3), (3, 3)])
def test_sudoku_is_one_instance(box: tuple[int, int]) -> None:
    """The same open candidates, and the same sums over all kinds of groups, as the network for Sudoku sees."""
    rng = np.random.default_rng(0)
    puzzles, solutions = generate(3, rng, box=box)
    puzzles = add_givens(puzzles, solutions, np.array([0, 2, 5]), rng) if box == (3, 3) else puzzles
    constraints, n = sudoku(box), box[0] * box[1]
    for puzzle, solution in zip(puzzles, solutions, strict=True):
        cells = np.flatnonzero(puzzle)
        problem = constraints.problem((int(cell) // n, int(cell) % n, int(puzzle[cell]) - 1) for cell in cells)
        _, still_open = what_givens_say(torch.from_numpy(puzzle[None]).long(), box)
        assert problem.still_open.tolist() == still_open[0].tolist()
        theirs, _ = open_graph(still_open, *groups_on(box, still_open.device))
        values = torch.randn(theirs.num_nodes, 6 * 2)
        assert torch.allclose(constraints.graph(problem.still_open).sums(values), theirs.sums(values), atol=1e-5)
        answer = np.arange(n * n) * n + solution - 1
        assert problem.broken(answer) == []
        assert problem.count_solutions() == 1


def solutions_one_by_one(constraints: Constraints) -> int:
    sizes = range(len(constraints.names) + 1)
    choices = (choice for size in sizes for choice in itertools.combinations(constraints.names, size))
    return sum(not constraints.broken(choice) for choice in choices)


def test_the_search_counts_what_trying_everything_counts() -> None:
    rng = np.random.default_rng(1)
    counts = []
    for _ in range(12):
        kinds = {kind: [group.tolist() for group in np.array_split(rng.permutation(9), 3)] for kind in ("a", "b", "c")}
        constraints = Constraints(9, {"a": kinds["a"], "b": kinds["b"]}, {"c": kinds["c"]})
        counts.append(constraints.problem().count_solutions(limit=1000))
        assert counts[-1] == solutions_one_by_one(constraints)
    assert len(set(counts)) > 2


def test_known_numbers_of_solutions() -> None:
    assert [queens(size).problem().count_solutions(limit=1000) for size in (3, 4, 5, 6, 7)] == [0, 2, 10, 4, 40]
    assert [squares(size).problem().count_solutions(limit=1000) for size in (2, 3, 4)] == [2, 12, 576]
    assert queens(7).problem().count_solutions(limit=1000, most_placements=20) == UNKNOWN


@pytest.mark.parametrize("constraints", [squares(5), queens(6)], ids=["square", "queens"])
def test_dug_problems_have_one_solution_and_nothing_too_much(constraints: Constraints) -> None:
    rng = np.random.default_rng(2)
    problems = [constraints.dig(rng) for _ in range(5)]
    for problem in problems:
        assert problem.answer is not None
        assert problem.broken(np.flatnonzero(problem.answer)) == []
        assert problem.count_solutions() == 1
        for number in problem.given:
            fewer = Problem(constraints, problem.given[problem.given != number], problem.excluded)
            assert fewer.count_solutions() == 2
    assert len({tuple(np.flatnonzero(problem.answer)) for problem in problems}) > 1


def test_easier_problems_keep_what_is_given() -> None:
    rng = np.random.default_rng(3)
    problem = squares(5).dig(rng)
    left = 25 - len(problem.given)
    easier = problem.with_more(0.5, rng)
    assert len(easier.given) == len(problem.given) + round(0.5 * left)
    assert set(problem.given) <= set(easier.given)
    assert easier.still_open.sum() < problem.still_open.sum()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constraints([], {"a": []}), "candidates: there are none"),
        (lambda: Constraints("aba", {"a": ["ab"]}), "candidates: 'a' stands in the list twice"),
        (lambda: Constraints("ab"), "there is no kind of group"),
        (lambda: Constraints("ab", {"a": ["ab"]}, {"a": ["ab"]}), "'a' is in both"),
        (lambda: Constraints("ab", {"a": ["ab", "bc"]}), "a, group 2: 'c' is no candidate"),
        (lambda: Constraints("ab", {"a": ["aa"]}), "a, group 1: a candidate stands in it twice"),
        (lambda: Constraints("ab", {"a": ["ab", ""]}), "a, group 2: it has no candidate"),
        (lambda: queens(4).problem([(0, 0), (2, 2)]), "given: '(0, 0)' and '(2, 2)' stand in the same group (down)"),
        (lambda: queens(4).problem([(0, 0)], [(0, 0)]), "given, excluded: '(0, 0)' is in both"),
        (lambda: queens(4).problem(answer=[(0, 0)]), "answer: breaks a rule: row: 0 true instead of exactly one"),
        (lambda: queens(3).dig(np.random.default_rng(0)), "no answer keeps all of these constraints"),
    ],
)
def test_what_is_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        make()  # type: ignore[operator]
