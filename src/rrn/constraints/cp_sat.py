"""Declared problems for OR-Tools CP-SAT, an exact solver, with or without a network's predictions as hints.

It needs the extra ``exact``: ``pip install 'torch-rrn[exact]'``.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rrn.constraints.problem import Problem
from rrn.errors import needs_extra
from rrn.inference.result import Result, Status

if TYPE_CHECKING:
    from rrn.constraints.solve import Solver

SCALE = 1000
"""CP-SAT's objective has whole numbers: preferences are multiplied by this and rounded."""


def solve_exactly(
    problem: Problem, *, solver: "Solver | None" = None, seconds: float = 10.0, workers: int = 1, seed: int = 0
) -> Result:
    """Solve a problem with CP-SAT: a valid answer, the best one if it has preferences.

    Args:
        problem: what to solve.
        solver: the predictions of its network after 32 steps are hints. None: no hints.
        seconds: time limit.
        workers: threads of CP-SAT.
        seed: of CP-SAT.

    Returns:
        the `Result` of one problem; details has ``objective``, ``optimal`` (proved to be the best) and ``seconds``.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise needs_extra("CP-SAT", "exact") from error
    model: Any = cp_model.CpModel()
    constraints, layout = problem.constraints, problem.constraints.layout
    variables = [model.new_bool_var(str(number)) for number in range(len(constraints.candidates))]
    _, starts, members, lower, upper = layout.arrays
    for group in range(len(lower)):
        inside = [variables[member] for member in members[starts[group] : starts[group + 1]]]
        if lower[group] == upper[group] == 1:
            model.add_exactly_one(inside)
        elif lower[group] == 0 and upper[group] == 1:
            model.add_at_most_one(inside)
        else:
            model.add_linear_constraint(sum(inside), int(lower[group]), int(upper[group]))
    for numbers, value in ((problem.given_numbers, 1), (problem.excluded_numbers, 0)):
        for number in numbers:
            model.add(variables[number] == value)
    if problem.preferences is not None:
        weights = np.rint(problem.preferences.astype(float) * SCALE).astype(int).tolist()
        model.maximize(sum(weight * variable for weight, variable in zip(weights, variables, strict=True)))
    if solver is not None:
        with torch.no_grad():
            logits = solver.beliefs(problem)[-1, 0]
        for variable, true in zip(variables, (logits > 0).tolist(), strict=False):
            model.add_hint(variable, true)
    engine: Any = cp_model.CpSolver()
    engine.parameters.max_time_in_seconds = seconds
    engine.parameters.num_workers, engine.parameters.random_seed = workers, seed
    status = engine.solve(model)
    details: dict[str, Any] = {"optimal": status == cp_model.OPTIMAL, "seconds": engine.wall_time}
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        impossible = status == cp_model.INFEASIBLE
        message = "the problem has no solution, proved by CP-SAT" if impossible else f"no answer in {seconds:g} s"
        known = Status.IMPOSSIBLE if impossible else Status.UNSOLVED
        return Result(known, [], 0, 1, 0.0, message, details=details | {"objective": 0.0})
    true = np.flatnonzero([engine.boolean_value(variable) for variable in variables])
    assert not problem.violations(true)
    names = [constraints.candidates[number] for number in true]
    return Result(Status.SOLVED, names, 0, 1, 1.0, "", details=details | {"objective": problem.objective(true)})
