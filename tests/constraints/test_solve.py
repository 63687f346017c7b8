"""Solvers: their answers are checked, training improves them, and they are saved and loaded."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.constraints.test_declare import queens, squares

from rrn.constraints import Constraints, Problem, Solver
from rrn.constraints.training import are_right, loss_of, targets_of
from rrn.errors import InputError
from rrn.inference.attempts import Slots
from rrn.inference.candidates import CandidateBatch, make_network
from rrn.inference.result import Result, Status
from rrn.inference.search import FIRST_SPLIT
from rrn.tasks import find_preset
from rrn.tasks.sudoku.declared import solver as sudoku_solver
from rrn.tasks.sudoku.declared import sudoku
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.model import build
from rrn.tasks.sudoku.predict import solve


def candidate_batch(problems: list[Problem]) -> CandidateBatch:
    """Problems with an untrained network."""
    types = problems[0].constraints.group_types
    return untrained(types).batch_of(problems, search=False)


def untrained(types: Sequence[str]) -> Solver:
    return Solver(make_network(len(types)), types)


def test_rules_of_a_batch_are_checked_as_those_of_each_problem() -> None:
    """Random answers to problems of several sizes, with some valid answers."""
    rng = np.random.default_rng(0)
    problems = [queens(size).dig(rng) for size in (4, 6, 5)]
    batch = candidate_batch(problems)
    answers = torch.zeros(len(problems), batch.true.shape[1], dtype=torch.bool)
    for row, problem in enumerate(problems):
        answers[row, : len(problem.open)] = torch.from_numpy(problem.answer)
    widths = torch.tensor([len(problem.open) for problem in problems])
    real = torch.arange(answers.shape[1]) < widths[:, None]
    chosen = answers ^ (real & (torch.rand(20, *answers.shape) < torch.tensor([0.0] * 5 + [0.02] * 15)[:, None, None]))
    valid = batch.keeps_rules(chosen, torch.arange(3))
    assert 15 <= int(valid.sum()) < valid.numel()
    for step in range(len(chosen)):
        for row, problem in enumerate(problems):
            true = np.flatnonzero(chosen[step, row, : len(problem.open)])
            assert bool(valid[step, row]) == (problem.violations(true) == [])


def test_the_largest_logit_of_each_group_is_chosen() -> None:
    constraints = Constraints(5, exactly={"a": [[0, 1, 2], [3, 4]]}, at_most={"b": [[0, 3]]})
    batch = candidate_batch([constraints.problem(), constraints.problem(given=[3])])
    assert batch.batch["open"].sum(1).tolist() == [5, 2], "3 closes 0 and 4"
    logits = torch.tensor([[[3.0, 1, 2, 5, 4], [-20, -2, -1, 20, -20]]])
    chosen = batch.choose(logits, torch.arange(2))
    assert chosen[0, 0].tolist() == [True, False, False, True, False]
    assert chosen[0, 1].tolist() == [False, False, True, True, False]
    assert batch.keeps_rules(chosen, torch.arange(2)).tolist() == [[False, True]]
    loose = candidate_batch([Constraints(3, at_most={"b": [[0, 1]]}).problem()])
    assert loose.choose(torch.tensor([[[1.0, -1, 0.5]]]), torch.arange(1)).tolist() == [[[True, False, True]]]


def test_the_loss_equals_the_cross_entropy_of_each_group() -> None:
    constraints = Constraints(5, exactly={"a": [[0, 1, 2], [3, 4]]})
    problems = [constraints.problem(answer=[1, 4])]
    batch, targets = candidate_batch(problems), targets_of(problems, candidate_batch(problems))
    logits = torch.tensor([[[3.0, 1, 2, 5, 4]], [[0.0, 9, 0, 0, 9]]])
    groups = [(logits[:, 0, :3], 1), (logits[:, 0, 3:], 1)]
    expected = torch.stack([-part.log_softmax(1)[:, true] for part, true in groups]).mean()
    assert torch.allclose(loss_of(logits, targets, batch), expected)
    assert are_right(logits, targets, batch).tolist() == [[False], [True]]
    problems = [Constraints(2, at_most={"b": [[0, 1]]}).problem(answer=[1])]
    batch = candidate_batch(problems)
    expected = (torch.tensor(1.0).exp().log1p() + torch.tensor(-2.0).exp().log1p()) / 2
    assert torch.allclose(loss_of(torch.tensor([[[1.0, 2.0]]]), targets_of(problems, batch), batch), expected)


def test_the_loss_of_a_contradictory_problem() -> None:
    """In the first problem 1 and 4 are true. In the second no candidate is: "none", whose logit is zero, is."""
    constraints = Constraints(5, exactly={"a": [[0, 1, 2], [3, 4]]})
    possible = constraints.problem(answer=[1, 4])
    impossible = constraints.problem(answer=[1, 4]).with_contradiction(np.random.default_rng(0))
    assert len(impossible.given) == 1
    assert impossible.given[0] not in (1, 4)
    assert impossible.answer is None
    left = int(impossible.open.sum())
    problems = [possible, impossible]
    batch, targets = candidate_batch(problems), targets_of(problems, candidate_batch(problems))
    logits = torch.where(batch.true, 20.0, -20.0).repeat(2, 1, 1)
    logits[:, 0] = torch.tensor([[3.0, 1, 2, 5, 4], [0.0, 9, 0, 0, 9]])
    among = logits[:, 1, torch.from_numpy(impossible.open)] = torch.tensor([[-1.0, 0.5, 2.0][:left], [-7.0] * left])
    nothing = torch.zeros(2, 1)
    groups = [(logits[:, 0, :3], 1), (logits[:, 0, 3:], 1), (among, left)]
    expected = torch.stack([-torch.cat([part, nothing], dim=1).log_softmax(1)[:, true] for part, true in groups])
    assert torch.allclose(loss_of(logits, targets, batch, contradictions=True), expected.mean())
    assert are_right(logits, targets, batch, contradictions=True).tolist() == [[False, False], [True, True]]


def test_the_shipped_weights_solve_declared_sudokus() -> None:
    puzzles, solutions = generate(8, np.random.default_rng(4), (3, 3))
    problems = [
        sudoku().problem((int(cell) // 9, int(cell) % 9, int(puzzle[cell]) - 1) for cell in np.flatnonzero(puzzle))
        for puzzle in puzzles
    ]
    found = sudoku_solver().solve(problems, attempts=1)
    expected = solve(puzzles, max_steps=64, attempts=1)
    assert found.solved.tolist() == expected.solved.tolist()
    assert found.steps.tolist() == expected.steps.tolist()
    assert found.solved.any()
    for answer, solution, solved in zip(found.answers, solutions, found.solved, strict=True):
        if solved:
            assert [digit + 1 for _, _, digit in answer] == solution.tolist()


def test_search_is_the_same_for_declared_sudokus() -> None:
    """An untrained network on easy puzzles: only the search solves them."""
    torch.manual_seed(0)
    network = build(replace(find_preset("sudoku"), contradiction_share=0.5))
    puzzles, _ = generate(3, np.random.default_rng(2), (26, 26))
    problems = [
        sudoku().problem((int(cell) // 9, int(cell) % 9, int(puzzle[cell]) - 1) for cell in np.flatnonzero(puzzle))
        for puzzle in puzzles
    ]
    declared = Solver(network.rrn, sudoku().group_types, detects_contradictions=True)
    found, expected = (
        declared.solve(problems, attempts=1, max_steps=256),
        solve(puzzles, network=network, max_steps=256, attempts=1),
    )
    assert found.solved.tolist() == expected.solved.tolist()
    assert found.steps.tolist() == expected.steps.tolist()
    assert int(found.steps[found.solved].max()) > FIRST_SPLIT
    assert not declared.solve(problems, attempts=1, max_steps=256, search=False).solved.any()


@pytest.fixture(scope="module")
def solver() -> Solver:
    """Trained on Latin squares of 4 and 5 for a few seconds."""
    return squares(4).fit(lambda rng: squares(int(rng.integers(4, 6))).dig(rng), updates=250, slots=8, pool=200)


def unseen(count: int) -> list[Problem]:
    rng = np.random.default_rng(1_000)
    return [squares(5).dig(rng) for _ in range(count)]


def test_training_and_further_attempts_solve_more(solver: Solver) -> None:
    problems = unseen(40)
    untrained = Solver(make_network(3), squares(5).group_types).solve(problems, search=False)
    found = solver.solve(problems, search=False)
    shares = found.solved_by_attempts()
    assert shares == sorted(shares)
    assert shares[-1] > max(0.6, 2 * untrained.solved.mean())
    for problem, answer, solved in zip(problems, found.answers, found.solved, strict=True):
        numbers = problem.constraints.numbers(answer)
        assert (problem.violations(numbers) == []) == solved
        assert set(problem.given) <= set(answer)


def test_a_saved_solver_gives_the_same_answers(solver: Solver, tmp_path: Path) -> None:
    problems = unseen(10)
    before = solver.solve(problems)
    solver.save(tmp_path / "squares")
    loaded = Solver.load(tmp_path / "squares")
    after = loaded.solve(problems)
    assert loaded.group_types == ("cell", "row", "column")
    assert (after.answers, after.steps.tolist()) == (before.answers, before.steps.tolist())
    assert not loaded.detects_contradictions
    Solver(solver.network, solver.group_types, detects_contradictions=True).save(tmp_path / "search")
    assert Solver.load(tmp_path / "search").detects_contradictions
    (tmp_path / "squares" / "solver.json").write_text('{"group_types": 3}')
    with pytest.raises(InputError, match=r"solver\.json: not the settings of a solver"):
        Solver.load(tmp_path / "squares")


def test_a_solver_saved_by_an_earlier_version_is_loaded(solver: Solver, tmp_path: Path) -> None:
    Solver(solver.network, solver.group_types, detects_contradictions=True).save(tmp_path)
    settings = json.loads((tmp_path / "solver.json").read_text())
    settings |= {"kinds": settings.pop("group_types"), "refutes": settings.pop("detects_contradictions")}
    (tmp_path / "solver.json").write_text(json.dumps(settings))
    loaded = Solver.load(tmp_path)
    assert (loaded.group_types, loaded.detects_contradictions) == (solver.group_types, True)


CROSSED = Constraints(4, {"pair": [[0, 1], [2, 3]]}, {"both": [[0, 2], [1, 3], [0, 3], [1, 2]]})
"""Impossible, though no group is empty."""


def zero_solver(types: tuple[str, ...]) -> Solver:
    """A network whose logits are all zero, so that it never decides between candidates."""
    network = make_network(len(types))
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
    return Solver(network, types)


def test_impossible_problems_cost_one_attempt() -> None:
    assert CROSSED.problem().count_solutions() == 0
    for solver in (zero_solver(CROSSED.group_types), Solver(make_network(2), CROSSED.group_types)):
        result = solver.solve(CROSSED.problem(), max_steps=8, attempts=5)
        assert result.status == [Status.IMPOSSIBLE]
        assert result.attempts.tolist() == [1]
        assert result.message == ["the problem has no solution, proved by exact search"]
    unknown = zero_solver(CROSSED.group_types).solve(CROSSED.problem(), max_steps=8, attempts=5, diagnose=False)
    assert (unknown.status, unknown.attempts.tolist()) == ([Status.UNSOLVED], [5])


def test_ambiguous_problems_get_all_attempts() -> None:
    result = zero_solver(("cell", "row", "column")).solve(squares(3).problem(), max_steps=8, attempts=4, noise=0.0)
    assert result.status == [Status.AMBIGUOUS]
    assert result.attempts.tolist() == [4]
    assert result.message == ["the problem has several solutions, and the network found none of them"]


def test_an_ambiguous_problem_can_be_solved(solver: Solver) -> None:
    """Any of its solutions is accepted."""
    result = solver.solve(squares(4).problem(given=[(0, 0, 0)]), attempts=40)
    assert squares(4).problem(given=[(0, 0, 0)]).count_solutions() == 2
    assert result.status == [Status.SOLVED]
    assert result.message == [""]
    assert squares(4).violations(result.answers[0]) == []


def test_problems_without_open_candidates_need_no_attempt(solver: Solver) -> None:
    constraints = squares(2)
    full = constraints.problem([(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)])
    empty = constraints.problem(excluded=constraints.candidates)
    result = solver.solve([full, empty, squares(4).dig(np.random.default_rng(3))], max_steps=8, attempts=2)
    assert result.status[:2] == [Status.ALREADY_SOLVED, Status.IMPOSSIBLE]
    assert result.attempts[:2].tolist() == [0, 0]
    assert result.attempts[2] > 0
    assert result.answers[0] == full.given
    assert solver.solve(full).solved.tolist() == [True]


def test_the_result_of_each_problem(solver: Solver) -> None:
    result = solver.solve(unseen(3), max_steps=16)
    assert isinstance(result, Result)
    assert len(result) == len(result.answers) == len(result.confidence) == len(result.message) == 3
    for row, one in enumerate(result):
        assert isinstance(one, Result)
        assert (one.status, one.answers, one.steps) == (result.status[row], result.answers[row], result.steps[row])
        assert 0 < one.confidence <= 1


def breaks_a_rule(true: set[int], exactly: dict[str, Any], at_most: dict[str, Any]) -> bool:
    """Whether an answer breaks a rule as it was declared, checked independently of `Constraints`."""
    counts = {name: [len(true & set(group)) for group in groups] for name, groups in (exactly | at_most).items()}
    return any(count > 1 or (count == 0 and name in exactly) for name in counts for count in counts[name])


def random_rules(rng: np.random.Generator, overlapping: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Random groups of nine candidates: partitions, or subsets that may overlap."""

    def partition() -> list[list[int]]:
        return [part.tolist() for part in np.array_split(rng.permutation(9), 3)]

    def subsets() -> list[list[int]]:
        return [rng.choice(9, int(rng.integers(2, 4)), replace=False).tolist() for _ in range(3)]

    draw = subsets if overlapping else partition
    return {"a": draw()}, {"b": draw()} if overlapping else {"b": draw(), "c": draw()}


@pytest.mark.parametrize("overlapping", [False, True])
def test_an_answer_that_breaks_a_declared_rule_is_never_solved(overlapping: bool) -> None:
    rng = np.random.default_rng(7)
    statuses = []
    for seed in range(25):
        exactly, at_most = random_rules(rng, overlapping)
        constraints = Constraints(9, exactly, at_most)
        given, excluded = ([int(number)] for number in rng.choice(9, 2, replace=False))
        problem = constraints.problem(given=given, excluded=excluded)
        torch.manual_seed(seed)
        solver = Solver(make_network(len(constraints.group_types)), constraints.group_types, seed % 2 == 1)
        result = solver.solve([problem, constraints.problem()], max_steps=12, attempts=2, noise=2.0)
        statuses += result.status
        for row, (wanted, unwanted) in enumerate(((given, excluded), ([], []))):
            true = set(result.answers[row])
            valid = not breaks_a_rule(true, exactly, at_most) and set(wanted) <= true and not true & set(unwanted)
            if result.solved[row]:
                assert valid, (seed, row)
            elif result.status[row] is Status.IMPOSSIBLE:
                assert not valid
    assert statuses.count(Status.SOLVED) >= 5
    assert statuses.count(Status.SOLVED) <= len(statuses) - 5


def test_the_declared_rules_decide_whatever_the_batch_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CandidateBatch, "keeps_rules", lambda self, chosen, _: chosen.new_ones(chosen.shape[:2]))
    constraints = Constraints(4, {"pair": [[0, 1], [2, 3]]}, {"v": [[0, 2]], "v 2": [[1, 3]], "v 3": [[1, 2]]})
    broken = 0
    for seed in range(10):
        torch.manual_seed(seed)
        result = untrained(constraints.group_types).solve(constraints.problem(), max_steps=4, search=False)
        assert result.solved[0] == (constraints.violations(result.answers[0]) == [])
        broken += not result.solved[0]
    assert broken


def test_an_excluded_candidate_is_never_the_answer() -> None:
    """Although the network predicts lower logits for the open candidates than the logit of excluded ones."""
    constraints = Constraints(6, exactly={"a": [[0, 1, 2], [3, 4, 5]]})
    network = make_network(1)
    with torch.no_grad():
        network.readout.weight.copy_(network.readout.weight.abs() * -1e6)
    result = Solver(network, ("a",)).solve(constraints.problem(excluded=[0, 4]), max_steps=16, attempts=2)
    assert not {0, 4} & set(result.answers[0])


def test_invalid_arguments_are_refused(solver: Solver) -> None:
    with pytest.raises(InputError, match="the network has cell, row, column; the problem has row, column, down, up"):
        solver.solve(queens(4).problem())
    with pytest.raises(InputError, match="expected one for 2 group types, got 3 types"):
        Solver(make_network(3), ("a", "b"))
    with pytest.raises(InputError, match="returned a problem without an answer"):
        squares(3).fit(lambda rng: squares(3).problem(), updates=1)
    loose = Constraints(2, at_most={"b": [[0, 1]]})
    with pytest.raises(InputError, match="contradiction_share: only for constraints whose first group type decides"):
        loose.fit(lambda rng: loose.problem(answer=[1]), updates=1, extra_givens=0.0, contradiction_share=0.5)
    with pytest.raises(InputError, match="contradiction_share: expected 0 to less than 1"):
        squares(3).fit(lambda rng: squares(3).problem(), updates=1, contradiction_share=1.0)
    full = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    with pytest.raises(InputError, match="had no open candidate"):
        squares(2).fit(lambda rng: squares(2).problem(full, answer=full), updates=1)


def test_training_with_contradictions_teaches_to_detect_them() -> None:
    make = lambda rng: squares(4).dig(rng)  # noqa: E731
    trained, untrained = (
        squares(4).fit(make, updates=n, slots=8, pool=50, contradiction_share=0.5, lr=4e-3) for n in (200, 1)
    )
    assert trained.detects_contradictions
    rng = np.random.default_rng(1_000)
    possible = [squares(4).dig(rng).with_more_givens(0.1, rng) for _ in range(40)]
    impossible = [wrong for problem in possible if (wrong := problem.with_contradiction(rng)) is not problem]
    assert len(impossible) > 20
    assert all(problem.count_solutions() == 0 for problem in impossible)
    for problems, share in ((possible, 1.0), (impossible, 0.5)):
        losses = []
        for solver in (trained, untrained):
            batch, numbers = solver.batch_of(problems, search=False), torch.arange(len(problems))
            logits, _ = batch.run(Slots.enter(numbers, *batch.enter(numbers)), 8)
            losses.append(float(loss_of(logits[-1:], targets_of(problems, batch), batch, contradictions=True)))
        assert losses[0] < share * losses[1]


def test_a_contradiction_leaves_every_group_a_candidate() -> None:
    """Two cells whose candidates exclude each other crosswise: a false given leaves the other cell one candidate."""
    pair = Constraints(4, exactly={"cell": [[0, 1], [2, 3]]}, at_most={"not both": [[0, 2], [1, 3]]})
    problem = pair.problem(answer=[0, 3])
    wrong = problem.with_contradiction(np.random.default_rng(0))
    assert len(wrong.given) == 1
    assert wrong.open.sum() == 1, "1 or 2 is given, and leaves 2 or 1"
    closed = Constraints(4, exactly={"cell": [[0, 1], [2, 3]]}, at_most={"x": [[1, 2]], "y": [[1, 3]], "z": [[0, 2]]})
    problem = closed.problem(answer=[0, 3])
    assert problem.with_contradiction(np.random.default_rng(0)) is problem, (
        "1 and 2 each leave a cell without candidates"
    )
