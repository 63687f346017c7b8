"""Problems with many solutions: overlapping groups, k, preferences, openness, beliefs, CP-SAT, saving."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.constraints.test_declare import count_by_enumeration, queens, squares

from rrn.constraints import Constraints, Problem, Solver
from rrn.constraints.files import read_problem
from rrn.errors import InputError
from rrn.inference.candidates import make_network
from rrn.inference.result import Status

SMALL: dict[str, Any] = {"slots": 4, "pool": 10, "hidden": 12, "message_width": 4, "layer_width": 24, "segment": 4}
SMALL |= {"progress": False}


def ring(regions: int) -> Constraints:
    """A map whose regions lie in a ring, to be coloured with three colours."""
    borders = [(region, (region + 1) % regions) for region in range(regions)]
    return Constraints(
        itertools.product(range(regions), range(3)),
        exactly={"region": lambda c: c[0]},
        at_most={"border": [[(a, colour), (b, colour)] for a, b in borders for colour in range(3)]},
    )


def tables(guests: int, seats: list[int]) -> Constraints:
    return Constraints(
        itertools.product(range(guests), range(len(seats))),
        exactly={"guest": lambda c: c[0]},
        at_most={"seats": lambda c: c[1]},
        k={"seats": seats},
    )


def untrained(constraints: Constraints, preferences: bool = False) -> Solver:
    torch.manual_seed(0)
    features = 1 + len(constraints.counted_types) + preferences
    network = make_network(len(constraints.group_types), features=features)
    return Solver(network, constraints.group_types, False, constraints.counted_types, preferences)


def test_one_network_colours_maps_of_all_sizes() -> None:
    solver = ring(5).fit(lambda rng: ring(int(rng.integers(4, 7))).dig(rng), updates=3, **SMALL)
    result = solver.solve([ring(size).problem() for size in (4, 7, 12)])
    assert result.solved.all()
    for size, answer in zip((4, 7, 12), result.answers, strict=True):
        assert ring(size).violations(answer) == []
    star = Constraints(8, exactly={"region": lambda c: c // 2}, at_most={"border": [[0, 2], [0, 4], [0, 6]]})
    assert solver.solve(star.problem()).solved.all(), "more borders than any map of training"


def test_empty_problems_are_solved_by_committing() -> None:
    problems = [squares(6).problem(), queens(8).problem(), squares(6).problem(given=[(0, 0, 0)])]
    for problem in problems:
        solver = untrained(problem.constraints)
        assert solver.solve(problem).solved.all()
        assert not solver.solve(problem, search=False, attempts=2).solved.all()


def test_k_is_given_to_the_network_and_kept() -> None:
    constraints = tables(7, [2, 4, 1])
    solver = untrained(constraints)
    problem = constraints.problem(given=[(0, 1)])
    batch = solver.batch_of([problem])
    left = batch.inputs(torch.tensor([0]))[0]["features"]
    assert left[0, :, 0].view(7, 3).tolist() == [[2.0, 3.0, 1.0]] * 7, "a seat of the second table is taken"
    other = constraints.problem(given=[(0, 0)])
    assert not torch.equal(solver.beliefs(problem)[:, :, 3:], solver.beliefs(other)[:, :, 3:])
    result = solver.solve([problem, tables(3, [3, 3]).problem()])
    assert result.solved.all()
    assert np.bincount([table for _, table in result.answers[0]]).tolist() == [2, 4, 1]
    with pytest.raises(InputError, match="k: the network was trained with k = 1 for 'seats'"):
        Solver(make_network(2), constraints.group_types).solve(problem)


def test_preferences_are_optimised_and_reported() -> None:
    """An assignment: the best of eight attempts is near the best of all."""
    rng = np.random.default_rng(0)
    names = list(itertools.product(range(5), repeat=2))
    assignment = Constraints(names, exactly={"row": lambda c: c[0], "column": lambda c: c[1]})
    wishes = dict(zip(names, rng.normal(size=25).tolist(), strict=True))
    best = max(sum(wishes[i, j] for i, j in enumerate(p)) for p in itertools.permutations(range(5)))
    problem = assignment.problem(preferences=wishes)
    result = untrained(assignment).solve(problem, attempts=8)
    assert result.solved.all()
    objective = result.details["objective"][0]
    assert objective == pytest.approx(sum(wishes[name] for name in result.answers[0]), abs=1e-4)
    one = untrained(assignment).solve(problem, attempts=1).details["objective"][0]
    assert one <= objective + 1e-6
    assert objective > 0.6 * best
    assert untrained(assignment).solve(assignment.problem()).details["objective"].tolist() == [0.0]


def test_a_trained_network_reads_preferences() -> None:
    """A pair of candidates: the preferred one is chosen, although nothing else distinguishes them."""
    pairs = Constraints(8, exactly={"pair": lambda c: c // 2}, at_most={"none": [[0, 7]]})
    rng = np.random.default_rng(1)

    def make(rng: np.random.Generator) -> Problem:
        return pairs.problem(answer=[2 * n + int(rng.integers(2)) for n in range(3)] + [6])

    solver = pairs.fit(make, updates=150, preferences=True, extra_givens=0.3, pool=100, slots=8, progress=False)
    assert solver.reads_preferences
    right = 0
    for _ in range(20):
        wishes = {n: float(rng.normal(scale=3)) for n in range(6)}
        answer = solver.solve(pairs.problem(preferences=wishes), attempts=1).answers[0]
        right += sum(wishes[n] >= wishes[n ^ 1] for n in answer if n < 6)
    assert right >= 50, "of 60"


def test_beliefs_are_differentiable_by_input_logits() -> None:
    constraints = squares(3)
    solver = untrained(constraints, preferences=True)
    problem = constraints.problem(given=[(0, 0, 0)])
    logits = torch.randn(27, requires_grad=True)
    beliefs = solver.beliefs(problem, logits, steps=3)
    assert beliefs.shape == (3, 1, 27)
    (gradient,) = torch.autograd.grad(beliefs[-1, 0, 14], logits)
    assert bool((gradient[torch.from_numpy(problem.open)] != 0).any())
    assert not bool(gradient[torch.from_numpy(~problem.open)].any()), "closed candidates are no nodes"
    step = torch.zeros(27)
    step[int(gradient.abs().argmax())] = 1e-2
    with torch.no_grad():
        change = solver.beliefs(problem, logits + step, steps=3) - solver.beliefs(problem, logits - step, steps=3)
    assert float(change[-1, 0, 14]) / 2e-2 == pytest.approx(
        float(gradient.abs().max() * gradient.sign()[gradient.abs().argmax()]), rel=0.05
    )
    with pytest.raises(InputError, match="this network does not read any"):
        untrained(constraints).beliefs(problem, logits)
    with pytest.raises(InputError, match=r"logits: expected shape \(1, 27\), got \(3,\)"):
        solver.beliefs(problem, torch.zeros(3))


def test_open_training_targets_are_valid_solutions_near_the_logits() -> None:
    from rrn.constraints.training import SlotObjective

    constraints = squares(4)
    solver = untrained(constraints)
    settings = {"seed": 0, "extra_givens": 0.0, "contradiction_share": 0.0, "validation": 0, "slots": 6, "pool": 5}
    settings |= {"openness": 1.0, "preferences": False, "noise": 0.0, "segment": 2}
    objective = SlotObjective(solver, constraints.dig, settings, "cpu")
    objective.loss(0, 0.0)
    assert objective.ambiguous
    several, others = 0, 0
    for problem, target in zip(objective.problems.values(), objective.targets.numpy(), strict=True):
        true = target[: len(problem.open)]
        assert problem.violations(np.flatnonzero(true)) == []
        several += problem.count_solutions() > 1
        others += bool((true != problem.answer).any())
    assert several >= 3
    assert others >= 2, "another valid answer is not punished"


def test_fit_makes_problems_and_open_ones_by_itself() -> None:
    solver = squares(4).fit(updates=3, openness=0.5, **SMALL)
    assert solver.solve(squares(4).problem()).solved.all()


def test_more_than_eight_types_fit() -> None:
    """The layer is as wide as the messages need."""
    many = Constraints(4, exactly={f"type {n}": [[0, 1], [2, 3]] for n in range(12)})
    solver = many.fit(lambda rng: many.problem(answer=[0, 2]), updates=1, extra_givens=0.0, progress=False)
    assert solver.network.update.first.shape[1] == 12 * 16


def test_a_solver_describes_itself_and_its_training() -> None:
    solver = squares(4).fit(updates=2, validation=2, validate_every=1, **SMALL)
    assert "2 updates in 0.0 min: " in repr(solver)
    assert "% of held-out problems" in repr(solver)
    assert {"updates", "minutes", "solved", "validation"} <= solver.training.keys()
    limited = squares(4).fit(minutes=0.002, **SMALL)
    assert limited.training["updates"] >= 1


def test_training_on_a_terminal_shows_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    squares(4).fit(updates=2, **SMALL | {"progress": True})
    assert "ETA 0:00:0" in capsys.readouterr().err
    squares(4).fit(updates=2, **SMALL)
    assert capsys.readouterr().err == ""


def test_all_of_a_solver_is_saved_and_loaded(tmp_path: Path) -> None:
    constraints = tables(5, [2, 3])
    solver = constraints.fit(
        lambda rng: constraints.problem(answer=[(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)]),
        updates=1, preferences=True, **SMALL,
    )  # fmt: skip
    solver.save(tmp_path)
    loaded = Solver.load(tmp_path)
    assert (loaded.counted_types, loaded.reads_preferences) == (("seats",), True)
    assert loaded.training == solver.training
    problem = constraints.problem(preferences={(0, 1): 2.0})
    assert torch.equal(loaded.beliefs(problem), solver.beliefs(problem))


def test_cp_sat_solves_declared_problems() -> None:
    pytest.importorskip("ortools")
    from rrn.constraints.cp_sat import solve_exactly

    found = solve_exactly(tables(6, [1, 2, 3]).problem(given=[(0, 0)]))
    assert found.status is Status.SOLVED
    assert tables(6, [1, 2, 3]).violations(found.answers) == []
    assert solve_exactly(queens(3).problem()).status is Status.IMPOSSIBLE
    loose = Constraints(4, at_least={"some": [[0, 1, 2]]}, at_most={"few": [[1, 2, 3]]}, k={"some": 2})
    best = solve_exactly(loose.problem(preferences={0: -1.0, 1: 2.0, 2: 0.5, 3: 9.0}, excluded=[3]))
    assert (best.answers, best.details["objective"], best.details["optimal"]) == ([0, 1], 1.0, True)
    assert count_by_enumeration(loose) > 1
    hinted = solve_exactly(squares(4).problem(), solver=untrained(squares(4)))
    assert squares(4).violations(hinted.answers) == []


PARTY = """{
  "candidates": ["ann red", "ann blue", "bob red", "bob blue", "cy red", "cy blue"],
  "exactly_one": {"guest": [["ann red", "ann blue"], ["bob red", "bob blue"], ["cy red", "cy blue"]]},
  "at_most": {
    "seats": {"k": [1, 2], "groups": [["ann red", "bob red", "cy red"], ["ann blue", "bob blue", "cy blue"]]}
  },
  "preferences": [["bob red", 2.5], ["cy blue", 1]]
}"""


def test_rrn_solve_reads_k_and_preferences(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    path = tmp_path / "problem.json"
    path.write_text(PARTY)
    problem = read_problem(path)
    assert problem.constraints.counted_types == ("seats",)
    untrained(problem.constraints).save(tmp_path / "weights")
    code, out, _ = call("solve", path, "--weights", tmp_path / "weights", "--json")
    found = json.loads(out)
    assert (code, found["status"], found["objective"]) == (0, "solved", 3.5)
    assert found["solution"] == ["ann blue", "bob red", "cy blue"]
    assert "sum of preferences 3.5" in call("solve", path, "--weights", tmp_path / "weights")[1]
    path.write_text(PARTY.replace('"k": [1, 2]', '"k": [1, 1]'))
    code, out, _ = call("solve", path, "--weights", tmp_path / "weights", "--json")
    found = json.loads(out)
    assert (code, found["status"]) == (1, "impossible")
    assert "seats: at most one of ann red, bob red, cy red" in found["clash"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            '"k": [1, 2]',
            '"k": [1]',
            "line 5: at_most, seats, k: expected a whole number from 0, or a list of 2 of them",
        ),
        ('"k": [1, 2], ', "", 'line 5: at_most, seats: expected an object with "k" and "groups"'),
        (
            '["ann blue", "bob blue", "cy blue"]]}',
            '["x"]]}',
            "line 5: at_most, seats, groups, group 2: 'x' is no candidate",
        ),
        ('["cy blue", 1]', '["cy blue"]', "line 7: preferences: expected pairs: a candidate and its weight"),
        ('["cy blue", 1]', '["bob red", 1]', "line 7: preferences: 'bob red' is named twice"),
        ('["cy blue", 1]', '["dan", 1]', "line 7: preferences: 'dan' is no candidate"),
    ],
)
def test_errors_in_k_and_preferences_are_named(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "problem.json"
    assert before in PARTY
    path.write_text(PARTY.replace(before, after))
    with pytest.raises(InputError) as refused:
        read_problem(path)
    assert str(refused.value).startswith(f"{path}: {message}")
