"""Solvers: what they say is checked, they learn, and they are saved and loaded."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.constraints.test_declaring import queens, squares

from rrn.constraints import Constraints, Problem, Solver
from rrn.constraints.solving import Batch, enter, make_network, run
from rrn.constraints.training import _loss, _right
from rrn.errors import InputError
from rrn.inference.search import FIRST_GUESS
from rrn.tasks import find_preset
from rrn.tasks.sudoku.declared import solver as sudoku_solver
from rrn.tasks.sudoku.declared import sudoku
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.model import build
from rrn.tasks.sudoku.predict import solve


def test_rules_are_checked_in_a_batch_as_one_by_one() -> None:
    """Random answers to problems of several sizes, right ones among them."""
    rng = np.random.default_rng(0)
    problems = [queens(size).dig(rng) for size in (4, 6, 5)]
    batch = Batch(problems, problems[0].constraints.kinds)
    flips = torch.rand(20, len(batch.target)) < torch.tensor([0.0] * 5 + [0.1] * 15)[:, None]
    chosen = batch.target ^ flips
    found = batch.keeps_the_rules(chosen)
    assert 5 <= int(found.sum()) < found.numel()
    for step in range(len(chosen)):
        for place, part in enumerate(chosen[step].split(batch.sizes.tolist())):
            problem = problems[place]
            true = np.concatenate([problem.given, np.flatnonzero(problem.still_open)[part.numpy()]])
            assert bool(found[step, place]) == (problem.broken(true) == [])


def test_the_largest_logit_of_each_group_decides() -> None:
    constraints = Constraints(5, exactly={"a": [[0, 1, 2], [3, 4]]}, at_most={"b": [[0, 3]]})
    batch = Batch([constraints.problem(), constraints.problem(given=[3])], constraints.kinds)
    assert batch.sizes.tolist() == [5, 2]  # 3 closes 0 and 4
    logits = torch.tensor([[3.0, 1, 2, 5, 4, -2, -1]])
    assert batch.decide(logits).tolist() == [[True, False, False, True, False, False, True]]
    assert batch.keeps_the_rules(batch.decide(logits)).tolist() == [[False, True]]
    loose = Constraints(3, at_most={"b": [[0, 1]]})
    batch = Batch([loose.problem()], loose.kinds)
    assert batch.decide(torch.tensor([[1.0, -1, 0.5]])).tolist() == [[True, False, True]]


def test_the_loss_by_hand() -> None:
    constraints = Constraints(5, exactly={"a": [[0, 1, 2], [3, 4]]})
    batch = Batch([constraints.problem(answer=[1, 4])], constraints.kinds)
    logits = torch.tensor([[3.0, 1, 2, 5, 4], [0.0, 9, 0, 0, 9]])
    groups = [(logits[:, :3], 1), (logits[:, 3:], 1)]
    by_hand = torch.stack([-part.log_softmax(1)[:, true] for part, true in groups]).mean()
    assert torch.allclose(_loss(logits, batch), by_hand)
    assert _right(logits, batch).tolist() == [[False], [True]]
    loose = Constraints(2, at_most={"b": [[0, 1]]})
    batch = Batch([loose.problem(answer=[1])], loose.kinds)
    expected = (torch.tensor(1.0).exp().log1p() + torch.tensor(-2.0).exp().log1p()) / 2
    assert torch.allclose(_loss(torch.tensor([[1.0, 2.0]]), batch), expected)


def test_the_loss_where_something_given_is_false_by_hand() -> None:
    """Of the first problem 1 and 4 are true, of the second nothing is: "none", whose logit is zero, is right."""
    constraints = Constraints(5, exactly={"a": [[0, 1, 2], [3, 4]]})
    possible = constraints.problem(answer=[1, 4])
    impossible = constraints.problem(answer=[1, 4]).with_wrong(np.random.default_rng(0))
    assert len(impossible.given) == 1
    assert impossible.given[0] not in (1, 4)
    assert impossible.answer is None
    left = int(impossible.still_open.sum())
    batch = Batch([possible, impossible], constraints.kinds)
    logits = torch.tensor([[3.0, 1, 2, 5, 4, *[-1.0, 0.5, 2.0][:left]], [0.0, 9, 0, 0, 9, *[-7.0] * left]])
    nothing = torch.zeros(2, 1)
    groups = [(logits[:, :3], 1), (logits[:, 3:5], 1), (logits[:, 5:], left)]
    by_hand = torch.stack([-torch.cat([part, nothing], dim=1).log_softmax(1)[:, true] for part, true in groups])
    assert torch.allclose(_loss(logits, batch, refutes=True), by_hand.mean())
    assert _right(logits, batch, refutes=True).tolist() == [[False, False], [True, True]]


def test_the_shipped_weights_solve_sudoku_as_declared() -> None:
    puzzles, solutions = generate(8, np.random.default_rng(4), (3, 3))
    problems = [
        sudoku().problem((int(cell) // 9, int(cell) % 9, int(puzzle[cell]) - 1) for cell in np.flatnonzero(puzzle))
        for puzzle in puzzles
    ]
    found = sudoku_solver().solve(problems, starts=1)
    theirs = solve(puzzles, max_steps=64, restarts=0)
    assert found.valid.tolist() == theirs.valid.tolist()
    assert found.steps.tolist() == theirs.steps.tolist()
    assert found.valid.any()
    for answer, solution, valid in zip(found.answers, solutions, found.valid, strict=True):
        if valid:
            assert [digit + 1 for _, _, digit in answer] == solution.tolist()


def test_guesses_are_the_same_in_sudoku_as_declared() -> None:
    """A network that knows nothing, on what elimination leaves easy: it is solved by guesses alone."""
    torch.manual_seed(0)
    network = build(replace(find_preset("sudoku"), contradiction_share=0.5))
    puzzles, _ = generate(3, np.random.default_rng(2), (26, 26))
    problems = [
        sudoku().problem((int(cell) // 9, int(cell) % 9, int(puzzle[cell]) - 1) for cell in np.flatnonzero(puzzle))
        for puzzle in puzzles
    ]
    declared = Solver(network.rrn, sudoku().kinds, refutes=True)
    found, theirs = (
        declared.solve(problems, starts=1, max_steps=256),
        solve(puzzles, network=network, max_steps=256, restarts=0),
    )
    assert found.valid.tolist() == theirs.valid.tolist()
    assert found.steps.tolist() == theirs.steps.tolist()
    assert int(found.steps[found.valid].max()) > FIRST_GUESS
    assert not declared.solve(problems, starts=1, max_steps=256, guess=False).valid.any()


@pytest.fixture(scope="module")
def solver() -> Solver:
    """Trained on Latin squares of 4 and 5 for a few seconds."""
    return squares(4).fit(lambda rng: squares(int(rng.integers(4, 6))).dig(rng), updates=250, places=8, pool=200)


def unseen(count: int) -> list[Problem]:
    rng = np.random.default_rng(1_000)
    return [squares(5).dig(rng) for _ in range(count)]


def test_training_teaches_and_starts_help(solver: Solver) -> None:
    problems = unseen(40)
    untrained = Solver(make_network(3), squares(5).kinds).solve(problems)
    found = solver.solve(problems)
    shares = found.solved_by_starts()
    assert shares == sorted(shares)
    assert shares[-1] > max(0.6, 2 * untrained.valid.mean())
    for problem, answer, valid in zip(problems, found.answers, found.valid, strict=True):
        numbers = problem.constraints.numbers(answer)
        assert (problem.broken(numbers) == []) == valid
        assert set(problem.given) <= set(numbers)


def test_a_saved_solver_says_the_same(solver: Solver, tmp_path: Path) -> None:
    problems = unseen(10)
    before = solver.solve(problems)
    solver.save(tmp_path / "squares")
    loaded = Solver.load(tmp_path / "squares")
    after = loaded.solve(problems)
    assert loaded.kinds == ("cell", "row", "column")
    assert (after.answers, after.steps.tolist()) == (before.answers, before.steps.tolist())
    assert not loaded.refutes
    Solver(solver.network, solver.kinds, refutes=True).save(tmp_path / "guessing")
    assert Solver.load(tmp_path / "guessing").refutes
    (tmp_path / "squares" / "solver.json").write_text('{"kinds": 3}')
    with pytest.raises(InputError, match=r"solver\.json: not the settings of a solver"):
        Solver.load(tmp_path / "squares")


def test_what_is_all_given_is_solved_and_what_is_impossible_is_not(solver: Solver) -> None:
    constraints = squares(2)
    full = constraints.problem([(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)])
    impossible = constraints.problem(excluded=[(0, 0, 0), (0, 0, 1)])
    found = solver.solve([full, impossible], max_steps=8, starts=2)
    assert found.valid.tolist() == [True, False]
    assert found.starts.tolist() == [1, 2]
    assert solver.solve(full).valid.tolist() == [True]


def test_what_is_refused(solver: Solver) -> None:
    with pytest.raises(InputError, match="the network knows cell, row, column; the problem has row, column, down, up"):
        solver.solve(queens(4).problem())
    with pytest.raises(InputError, match="expected one for 2 kinds of groups, got 3 kinds"):
        Solver(make_network(3), ("a", "b"))
    with pytest.raises(InputError, match="returned a problem without an answer"):
        squares(3).fit(lambda rng: squares(3).problem(), updates=1)
    loose = Constraints(2, at_most={"b": [[0, 1]]})
    with pytest.raises(InputError, match="wrong: only for constraints whose first kind decides"):
        loose.fit(lambda rng: loose.problem(answer=[1]), updates=1, extra=0.0, wrong=0.5)
    with pytest.raises(InputError, match="wrong: expected a share"):
        squares(3).fit(lambda rng: squares(3).problem(), updates=1, wrong=1.0)
    full = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    with pytest.raises(InputError, match="had no open candidate"):
        squares(2).fit(lambda rng: squares(2).problem(full, answer=full), updates=1)


def test_training_with_false_givens_teaches_to_tell_them() -> None:
    make = lambda rng: squares(4).dig(rng)  # noqa: E731
    trained, untrained = (squares(4).fit(make, updates=n, places=8, pool=50, wrong=0.5, rate=4e-3) for n in (200, 1))
    assert trained.refutes
    rng = np.random.default_rng(1_000)
    possible = [squares(4).dig(rng).with_more(0.1, rng) for _ in range(40)]
    impossible = [wrong for problem in possible if (wrong := problem.with_wrong(rng)) is not problem]
    assert len(impossible) > 20
    assert all(problem.count_solutions() == 0 for problem in impossible)
    for problems, share in ((possible, 1.0), (impossible, 0.5)):
        batch = Batch(problems, trained.kinds)
        losses = []
        for solver in (trained, untrained):
            logits, _ = run(solver.network, batch.graph, 8, enter(solver.network, problems)[1])
            losses.append(float(_loss(logits[-1:], batch, refutes=True)))
        assert losses[0] < share * losses[1]


def test_what_is_wrong_does_not_meet_the_eye() -> None:
    """Of two cells with two candidates that exclude each other crosswise, no false one leaves the other cell one."""
    pair = Constraints(4, exactly={"cell": [[0, 1], [2, 3]]}, at_most={"not both": [[0, 2], [1, 3]]})
    problem = pair.problem(answer=[0, 3])
    wrong = problem.with_wrong(np.random.default_rng(0))
    assert len(wrong.given) == 1
    assert wrong.still_open.sum() == 1, "1 or 2 is given, and leaves 2 or 1"
    closed = Constraints(4, exactly={"cell": [[0, 1], [2, 3]]}, at_most={"x": [[1, 2]], "y": [[1, 3]], "z": [[0, 2]]})
    problem = closed.problem(answer=[0, 3])
    assert problem.with_wrong(np.random.default_rng(0)) is problem, "1 and 2 each leave a cell without candidates"
