"""rrn solve problem.json: solve a declared problem."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from rrn.cli import print_json
from rrn.cli.puzzles import WRONG
from rrn.constraints import Problem, Solver
from rrn.constraints.files import read_problem
from rrn.constraints.solve import ATTEMPTS, COMMITTING_STEPS, SETTINGS
from rrn.errors import InputError, plural
from rrn.inference.result import Status
from rrn.io.pretrained import shipped

if TYPE_CHECKING:
    from rrn.cli.solve import Options


def solve_declared(options: "Options") -> int:
    if options.device not in ("auto", "cpu"):
        raise InputError(f"--device {options.device}: declared problems are solved on the CPU; use --device cpu")
    problem = read_problem(options.puzzle)
    attempts = options.attempts or ATTEMPTS
    solver = _solver(options.weights, problem)
    # the default of --max-steps is for Sudokus: a solver that commits has its own
    steps = (
        None
        if options.max_steps == type(options).max_steps and not solver.detects_contradictions
        else options.max_steps
    )
    result = solver.solve(problem, max_steps=steps, attempts=attempts, seed=options.seed)[0]
    clash = problem.explain() if result.status is Status.IMPOSSIBLE else []
    if options.json:
        fields: dict[str, Any] = {"status": result.status}
        if result.status is not Status.IMPOSSIBLE:
            fields["solution" if result.solved else "answer"] = result.answers
        fields |= {"valid": result.solved, "steps": result.steps, "attempts": result.attempts}
        if problem.preferences is not None:
            fields["objective"] = result.details["objective"]
        fields |= {"clash": clash} if clash else {}
        print_json(fields | {"message": result.message or None})
        return 0 if result.solved else 1
    console = Console(highlight=False)
    if result.solved and not options.quiet:
        console.print(Text("\n".join(map(str, result.answers))), soft_wrap=True)
    if result.status is Status.SOLVED:
        which = f"attempt {result.attempts}" if result.attempts > 1 else "the first attempt"
        verdict = f" in {plural(result.steps, 'step')} of {which}; the answer breaks no rule"
        if problem.preferences is not None:
            verdict += f"; sum of preferences {result.details['objective']:g}"
    elif result.status is Status.UNSOLVED:
        verdict = f": {plural(result.attempts, 'attempt')} of {steps or COMMITTING_STEPS} steps; {result.message}"
    else:
        verdict = "; ".join([f": {result.message}", *(["these clash: " + "; ".join(clash)] if clash else [])])
    console.print(Text.assemble((result.status, "bold green" if result.solved else WRONG), verdict), soft_wrap=True)
    return 0 if result.solved else 1


def _solver(weights: str, problem: Problem) -> Solver:
    """The solver of a folder that `Solver.save` wrote, or a network for Sudoku, if it has the problem's group types."""
    if weights not in shipped() and (Path(weights) / SETTINGS).is_file():
        solver = Solver.load(weights)
    else:
        from rrn.tasks.sudoku.declared import solver as sudoku_solver

        solver = sudoku_solver(weights)
    try:
        problem.constraints.for_network(solver.group_types)
    except InputError as error:
        raise InputError(
            f"--weights {weights}: {error}. Train a network for these group types (docs/constraints.md) and give its "
            "folder"
        ) from error
    return solver
