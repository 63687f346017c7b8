"""Declared constraints: their graph, the candidates that givens close, and the rules that an answer breaks."""

import itertools
import re

import numpy as np
import pytest
import torch

from rrn.constraints import UNKNOWN, Constraints, Problem
from rrn.errors import InputError
from rrn.inference.candidates import open_graph
from rrn.inference.result import Status
from rrn.tasks.sudoku.data import add_givens
from rrn.tasks.sudoku.declared import sudoku
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.grid import candidates_of
from rrn.tasks.sudoku.model import group_table


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
    assert constraints.group_types == ("pair", "middle")
    assert constraints.member_of.tolist() == [[0, -1], [0, 0], [1, 0], [1, -1]]  # a and d are in no group of "middle"
    assert constraints.counts == (2, 1)
    assert constraints.layout.lower.tolist() == [1, 1, 0]
    assert constraints.layout.upper.tolist() == [1, 1, 1]
    assert repr(constraints) == "Constraints(4 candidates; exactly one: pair (2); at most one: middle (1))"


def test_overlapping_groups_share_a_type_and_are_checked() -> None:
    triangle = Constraints(3, exactly={"edge": [[0, 1], [1, 2], [2, 0]]})
    assert triangle.group_types == ("edge",)
    assert triangle.member_of.tolist() == [[0, 2], [0, 1], [1, 2]]
    assert not triangle.decides
    assert len(triangle.violations([0])) == 1
    assert len(triangle.violations([0, 1])) == 1
    path = Constraints(3, exactly={"edge": [[0, 1], [1, 2]]})
    assert path.member_of.tolist() == [[0, -1], [0, 1], [1, -1]]
    assert path.violations([1]) == []
    values = torch.tensor([[1.0], [10.0], [100.0]])
    assert path.graph().sums(values).tolist() == [[11.0], [121.0], [110.0]], "summed over the groups of a candidate"
    with pytest.raises(InputError, match="the network has corner; the problem has edge"):
        triangle.for_network(("corner",))


def test_k_is_declared_per_type_and_per_group() -> None:
    """Four guests at two tables of one and three seats, two of them hosts; every table has at least one host."""
    guests, seats = "abcd", {"small": 1, "large": 3}
    tables = Constraints(
        itertools.product(guests, seats),
        exactly={"guest": lambda c: c[0]},
        at_most={"table": lambda c: c[1]},
        at_least={"host": lambda c: c[1] if c[0] in "ab" else None},
        k={"table": seats},
    )
    assert repr(tables) == (
        "Constraints(8 candidates; exactly one: guest (4); at most k: table (2); at least one: host (2))"
    )
    assert tables.counted_types == ("table",)
    assert tables.problem().count_solutions(limit=100) == count_by_enumeration(tables) == 2
    assert tables.problem(given=[("a", "small")]).open.tolist() == [False, False, False, True] + [False, True] * 2
    assert tables.violations([("a", "large"), ("b", "large"), ("c", "large"), ("d", "large")]) == [
        "table: 4 true instead of at most 3 of ('a', 'large'), ('b', 'large'), ('c', 'large'), ('d', 'large')",
        "host: 0 true instead of at least one of ('a', 'small'), ('b', 'small')",
    ]
    listed = Constraints(5, exactly={"x": [[0, 1, 2], [2, 3, 4]]}, k={"x": [2, 1]})
    assert listed.problem().count_solutions(limit=100) == count_by_enumeration(listed)
    for k, message in (({"y": 1}, "k: 'y' is no group type"), ({"x": [1]}, "x: expected one k for each of 2 groups")):
        with pytest.raises(InputError, match=message):
            Constraints(5, exactly={"x": [[0, 1, 2], [2, 3, 4]]}, k=k)


def test_the_exact_search_counts_k_as_an_enumeration_does() -> None:
    rng, counts = np.random.default_rng(3), []
    for _ in range(12):
        types = {name: [rng.choice(8, 4, replace=False).tolist() for _ in range(2)] for name in "abc"}
        k = {name: rng.integers(1, 4, 2).tolist() for name in "abc"}
        constraints = Constraints(8, {"a": types["a"]}, {"b": types["b"]}, {"c": types["c"]}, k)
        counts.append(constraints.problem().count_solutions(limit=1000))
        assert counts[-1] == count_by_enumeration(constraints)
    assert len(set(counts)) > 4


def test_an_impossible_problem_is_explained() -> None:
    board = queens(4).problem(given=[(0, 1)], excluded=[(3, 2)])
    assert board.count_solutions() == 0
    clash = board.explain()
    assert "(0, 1) is given" in clash
    assert 2 <= len(clash) <= 8
    assert queens(4).problem(given=[(0, 1)]).explain() == []
    crossed = Constraints(3, {"pair": [[0, 1], [1, 2]]}, {"none": [[1]]}, {"both": [[0, 2]]}, k={"none": 0, "both": 2})
    assert crossed.problem().explain() == []
    wrong = Constraints(4, {"pair": [[0, 1]], "other": [[2, 3]]}, {"few": [[0, 1, 2]], "far": [[2]]}, k={"few": 0})
    assert wrong.problem().explain() == ["pair: exactly one of 0, 1", "few: at most 0 of 0, 1, 2"]


def test_givens_close_the_candidates_of_their_groups() -> None:
    board = queens(4).problem(given=[(0, 1)], excluded=[(3, 2)])
    open_ = [name for name, is_open in zip(board.constraints.candidates, board.open, strict=True) if is_open]
    assert open_ == [(1, 3), (2, 0), (2, 2), (3, 0), (3, 3)]
    assert board.count_solutions() == 0
    assert queens(4).problem(given=[(0, 1)]).count_solutions() == 1


@pytest.mark.parametrize(
    ("true", "expected"),
    [
        ([(0, 1), (1, 3), (2, 0), (3, 2)], []),
        ([(0, 1), (1, 3), (2, 0)], ["row: 0 true instead of exactly one", "column: 0 true instead of exactly one"]),
        ([(0, 0), (1, 1), (2, 3), (3, 2)], ["down: 2 true instead of at most one", "up: 2 true"]),
    ],
)
def test_violations_are_named(true: list[tuple[int, int]], expected: list[str]) -> None:
    messages = queens(4).violations(true)
    assert len(messages) == len(expected)
    for message, start in zip(messages, expected, strict=True):
        assert message.startswith(start)


def test_an_answer_without_a_given_is_wrong() -> None:
    constraints = Constraints("ab", exactly={"one": ["ab"]})
    problem = constraints.problem(given="a", excluded="b")
    assert problem.violations(np.array([0])) == []
    assert problem.violations(np.array([1])) == ["'a' is given, but not true", "'b' is excluded, but true"]


@pytest.mark.parametrize("box", [(2, 2), (2, 3), (3, 3)])
def test_sudoku_as_declared_constraints(box: tuple[int, int]) -> None:
    """Its open candidates and the sums over its groups are those of the network for Sudoku."""
    rng = np.random.default_rng(0)
    puzzles, solutions = generate(3, rng, box=box)
    puzzles = add_givens(puzzles, solutions, np.array([0, 2, 5]), rng) if box == (3, 3) else puzzles
    constraints, n = sudoku(box), box[0] * box[1]
    for puzzle, solution in zip(puzzles, solutions, strict=True):
        cells = np.flatnonzero(puzzle)
        problem = constraints.problem((int(cell) // n, int(cell) % n, int(puzzle[cell]) - 1) for cell in cells)
        _, open_ = candidates_of(torch.from_numpy(puzzle[None]).long(), box)
        assert problem.open.tolist() == open_[0].tolist()
        graph, _ = open_graph(open_, *group_table(box, open_.device)[:2])
        values = torch.randn(graph.num_nodes, 6 * 2)
        assert torch.allclose(constraints.graph(problem.open).sums(values), graph.sums(values), atol=1e-5)
        answer = np.arange(n * n) * n + solution - 1
        assert problem.violations(answer) == []
        assert problem.count_solutions() == 1


def count_by_enumeration(constraints: Constraints) -> int:
    sizes = range(len(constraints.candidates) + 1)
    choices = (choice for size in sizes for choice in itertools.combinations(constraints.candidates, size))
    return sum(not constraints.violations(choice) for choice in choices)


def test_the_exact_search_counts_as_an_enumeration_does() -> None:
    rng = np.random.default_rng(1)
    counts = []
    for _ in range(12):
        types = {name: [group.tolist() for group in np.array_split(rng.permutation(9), 3)] for name in "abc"}
        constraints = Constraints(9, {"a": types["a"], "b": types["b"]}, {"c": types["c"]})
        counts.append(constraints.problem().count_solutions(limit=1000))
        assert counts[-1] == count_by_enumeration(constraints)
    assert len(set(counts)) > 2


def test_known_numbers_of_solutions() -> None:
    assert [queens(size).problem().count_solutions(limit=1000) for size in (3, 4, 5, 6, 7)] == [0, 2, 10, 4, 40]
    assert [squares(size).problem().count_solutions(limit=1000) for size in (2, 3, 4)] == [2, 12, 576]
    assert queens(7).problem().count_solutions(limit=1000, most_placements=20) == UNKNOWN


@pytest.mark.parametrize("constraints", [squares(5), queens(6)], ids=["square", "queens"])
def test_dug_problems_have_one_solution_and_no_redundant_given(constraints: Constraints) -> None:
    rng = np.random.default_rng(2)
    problems = [constraints.dig(rng) for _ in range(5)]
    for problem in problems:
        assert problem.answer is not None
        assert problem.violations(np.flatnonzero(problem.answer)) == []
        assert problem.count_solutions() == 1
        for name in problem.given:
            fewer = constraints.problem([other for other in problem.given if other != name], problem.excluded)
            assert fewer.count_solutions() == 2
    assert len({tuple(np.flatnonzero(problem.answer)) for problem in problems}) > 1


def test_easier_problems_have_all_givens_and_more() -> None:
    rng = np.random.default_rng(3)
    problem = squares(5).dig(rng)
    left = 25 - len(problem.given)
    easier = problem.with_more_givens(0.5, rng)
    assert len(easier.given) == len(problem.given) + round(0.5 * left)
    assert set(problem.given) <= set(easier.given)
    assert easier.open.sum() < problem.open.sum()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constraints([], {"a": []}), "candidates: expected at least one, got none"),
        (lambda: Constraints("aba", {"a": ["ab"]}), "candidates: 'a' is in the list twice"),
        (lambda: Constraints("ab"), "expected at least one group type, got none"),
        (lambda: Constraints("ab", {"a": ["ab"]}, {"a": ["ab"]}), "'a' is in both"),
        (lambda: Constraints("ab", {"a": ["ab", "bc"]}), "a, group 2: 'c' is no candidate"),
        (lambda: Constraints("ab", {"a": ["aa"]}), "a, group 1: a candidate is in it twice"),
        (lambda: Constraints("ab", {"a": ["ab", ""]}), "a, group 2: it has no candidate"),
        (lambda: queens(4).problem([(0, 0), (2, 2)]), "given: '(0, 0)' and '(2, 2)' are in the same group (down)"),
        (lambda: queens(4).problem([(0, 0)], [(0, 0)]), "given, excluded: '(0, 0)' is in both"),
        (lambda: queens(4).problem(answer=[(0, 0)]), "answer: breaks a rule: row: 0 true instead of exactly one"),
        (lambda: queens(3).dig(np.random.default_rng(0)), "these constraints have no solution, proved by exact search"),
    ],
)
def test_invalid_declarations_are_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        make()  # type: ignore[operator]


def test_names_in_names_out() -> None:
    """The givens of one problem are those of another, for names that are not numbers."""
    dug = squares(4).dig(np.random.default_rng(5))
    again = squares(4).problem(given=dug.given, excluded=dug.excluded)
    assert again.given == dug.given
    assert again.given_numbers.tolist() == dug.given_numbers.tolist()
    assert again.open.tolist() == dug.open.tolist()
    assert all(name in squares(4).candidates for name in again.given)
    excluded = queens(4).problem(excluded=[(3, 2), (0, 0)])
    assert queens(4).problem(excluded=excluded.excluded).excluded == [(3, 2), (0, 0)]
    numbers = Constraints([30, 10, 20], exactly={"one": [[10, 20, 30]]}).problem(given=[20])
    assert numbers.given == [20]
    assert numbers.constraints.problem(given=numbers.given).given_numbers.tolist() == [2]


def test_candidates_are_names_and_none_is_no_group() -> None:
    """Of four lessons, those that are optional need no room."""
    lessons = ["art", "biology", "chess (optional)", "drama (optional)"]
    rooms = Constraints(lessons, at_least={"room": lambda name: None if "optional" in name else name[0]})
    assert rooms.candidates == tuple(lessons)
    assert rooms.counts == (2,)
    assert rooms.violations(["art"]) == ["room: 0 true instead of at least one of biology"]
    assert rooms.problem().count_solutions(limit=10) == 4, "the optional ones may be true or false"


@pytest.mark.parametrize(
    ("problem", "status", "message"),
    [
        (queens(3).problem(), Status.IMPOSSIBLE, "the problem has no solution"),
        (queens(4).problem(given=[(0, 1)]), Status.UNSOLVED, "the problem has one solution"),
        (queens(4).problem(), Status.AMBIGUOUS, "the problem has several solutions"),
    ],
    ids=["impossible", "one solution", "ambiguous"],
)
def test_a_problem_is_diagnosed_by_exact_search(problem: Problem, status: Status, message: str) -> None:
    found, explanation = problem.diagnose()
    assert found is status
    assert explanation.startswith(message)


def test_groups_that_would_take_much_memory_are_refused() -> None:
    stars = [[0, number] for number in range(1, 300)]
    with pytest.raises(InputError, match="pair: too many overlapping groups; the limit is 5,000,000"):
        Constraints(1_000_000, at_most={"pair": stars})
    assert Constraints(1000, at_most={"pair": stars}).member_of.shape == (1000, 299)
