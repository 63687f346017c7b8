"""rrn solve problem.json: a problem of constraints that a file declares."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from rrn.cli.grids import WRONG
from rrn.cli.options import print_json
from rrn.constraints import Problem, Solver
from rrn.constraints.files import SOLVER, read_problem
from rrn.constraints.search import why_not
from rrn.constraints.solving import STARTS
from rrn.errors import InputError, counted
from rrn.tasks.evaluation import restarts_of

if TYPE_CHECKING:
    from rrn.cli.solve import Options


def solve_declared(options: "Options") -> int:
    if options.device not in ("auto", "cpu"):
        raise InputError(f"--device {options.device}: problems of constraints are solved on the CPU")
    problem = read_problem(options.puzzle)
    solver = _solver(options.weights, problem)
    starts = 1 + restarts_of(options.restarts, options.starts, STARTS - 1)
    found = solver.solve(problem, max_steps=options.max_steps, starts=starts, seed=options.seed)
    valid, steps, tried = bool(found.valid[0]), int(found.steps[0]), int(found.starts[0])
    reason, status = None, "solved"
    if not valid:
        count = problem.count_solutions()
        reason, status = why_not("the problem", count), "not solved" if count else "no solution"
    if options.json:
        answer = {"solution" if valid else "answer": found.answers[0]} if status != "no solution" else {}
        print_json({"status": status, **answer, "valid": valid, "steps": steps, "starts": tried, "reason": reason})
        return 0 if valid else 1
    console = Console(highlight=False)
    if valid and not options.quiet:
        console.print(Text("\n".join(map(str, found.answers[0]))), soft_wrap=True)
    if valid:
        after = f"of start {tried}" if tried > 1 else "from the first start"
        said = Text.assemble(("solved", "bold green"), f" in {counted(steps, 'step')} {after}; it breaks no rule")
    else:
        said = Text.assemble((status, WRONG), f": {counted(tried, 'start')} of {options.max_steps} steps; {reason}")
    console.print(said, soft_wrap=True)
    return 0 if valid else 1


def _solver(weights: str, problem: Problem) -> Solver:
    """The solver of a folder that `Solver.save` wrote, or a network for Sudoku, if it knows the problem's kinds."""
    if (Path(weights) / SOLVER).is_file():
        solver = Solver.load(weights)
    else:
        from rrn.tasks.sudoku.declared import solver as sudoku_solver

        solver = sudoku_solver(weights)
    try:
        problem.constraints.as_kinds(solver.kinds)
    except InputError as error:
        raise InputError(
            f"--weights {weights}: {error}. Train a network for these kinds (docs/constraints.md) and give its folder"
        ) from error
    return solver
