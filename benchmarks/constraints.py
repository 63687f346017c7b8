"""Declared problems, most of them with many solutions: trained in minutes of one core, beside controls and CP-SAT.

python -m benchmarks.constraints                    # all rows: results/constraints.json
python -m benchmarks.constraints maps roster        # some of them
python -m benchmarks.constraints --tiny maps        # a trial of seconds; writes nothing

Each family is trained once. Unseen instances are solved by the trained network and by three controls with the same
elimination by the rules and the same steps and attempts: an untrained network, random choices, and a candidate of the
group with the fewest options. "choices_alone" is one attempt in which no choice is taken back: what the choices are
worth without search. CP-SAT solves the same instances on one core.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from examples import queens as queens_example
from examples.timetable import school
from torch import Tensor

from benchmarks import open_problems as problems
from rrn.constraints import Constraints, Problem, Solver
from rrn.constraints.cp_sat import solve_exactly
from rrn.inference.candidates import CandidateBatch, make_network
from rrn.inference.result import Result
from rrn.inference.search import Branch, CommitQueue, Committing
from rrn.io.files import write_json
from rrn.tasks.evaluation import machine

OUT = Path(__file__).parent.parent / "results" / "constraints.json"
SEED, UNSEEN, ATTEMPTS = 0, 2_000_000, 8
COUNT = 50
"""Instances of a row."""

Make = Callable[[np.random.Generator], Problem]


class RandomChoices(CommitQueue):
    """Any open candidate may be next."""

    def scores(self, branch: Branch, logits: Tensor) -> tuple[np.ndarray, np.ndarray]:
        score = self.rng.random(len(logits))
        return np.full(len(logits), 1e-3), score


class FewestOptions(CommitQueue):
    """A random candidate of a group of the first type with the fewest options."""

    def scores(self, branch: Branch, logits: Tensor) -> tuple[np.ndarray, np.ndarray]:
        probability = self.layout.predict(branch.open, torch.zeros_like(logits)).probability.double().numpy()
        return probability.clip(0, 0.5), np.log(probability.clip(1e-9)) + 1e-3 * self.rng.random(len(logits))


class Control(Solver):
    """A solver with another queue of choices."""

    queue: type[CommitQueue]

    def batch_of(self, *arguments: Any, **named: Any) -> CandidateBatch:
        candidates = super().batch_of(*arguments, **named)
        if isinstance(candidates.search, Committing):
            candidates.search.queue_of = self._queue_of(candidates)
        return candidates

    def _queue_of(self, candidates: CandidateBatch) -> Callable[[int, int], CommitQueue]:
        def make(problem: int, attempt: int) -> CommitQueue:
            rng, state = np.random.default_rng([SEED, problem, attempt]), candidates._initial_state
            return self.queue(*candidates._start(problem), lambda: state(problem), decides=candidates.decides, rng=rng)

        return make


def give_up(queue: CommitQueue) -> tuple[np.ndarray, np.ndarray]:
    """Close all candidates: the answer breaks a rule, and no further choice is made in this attempt."""
    return np.zeros(len(queue.root.open), bool), queue.root.true.numpy().copy()


def with_queue(queue: type[CommitQueue], solver: Solver, take_back: bool = True) -> Solver:
    """The same network with another queue of choices; without taking back, a wrong choice ends the attempt."""
    if not take_back:
        queue = type("ChoicesAlone", (queue,), {"_take_back": give_up})
    kind = type("Control", (Control,), {"queue": queue})
    made: Solver = kind(solver.network, solver.group_types, False, solver.counted_types, solver.reads_preferences)
    return made


def untrained(like: Solver) -> Solver:
    torch.manual_seed(SEED)
    network = make_network(len(like.group_types), features=like.network.features).eval()
    return Solver(network, like.group_types, False, like.counted_types, like.reads_preferences)


def evaluate(solver: Solver, instances: Sequence[Problem], attempts: int) -> dict[str, Any]:
    started = time.process_time()
    result = solver.solve(instances, attempts=attempts, diagnose=False, seed=SEED)
    seconds = time.process_time() - started
    for problem, answer, solved in zip(instances, result.answers, result.solved, strict=True):
        assert not solved or not problem.constraints.violations(answer)
    shares = result.solved_by_attempts()
    figures = {"one_attempt": float((result.solved & (result.attempts == 1)).mean()), "all_attempts": shares[-1]}
    if instances[0].preferences is not None:
        solved = result.details["objective"][result.solved]
        figures = {"all_attempts": shares[-1], "mean_preference": float(solved.mean()) if len(solved) else None}
    return figures | {"mean_steps": float(result.steps.mean()), "seconds_per_instance": seconds / len(instances)}


def exactly(instances: Sequence[Problem], solver: Solver | None) -> dict[str, Any]:
    """CP-SAT: the time to a first valid answer, and with preferences the best answer and its time."""
    solve_exactly(instances[0], solver=solver)  # imports and first calls

    def timed(problems: Sequence[Problem]) -> tuple[list[Result], float]:
        started = time.process_time()
        found = [solve_exactly(problem, solver=solver) for problem in problems]
        return found, (time.process_time() - started) / len(found)

    found, seconds = timed([replace(problem, preferences=None) for problem in instances])
    figures = {
        "n": len(found),
        "solved": float(np.mean([one.solved for one in found])),
        "seconds_per_instance": seconds,
    }
    if instances[0].preferences is not None:
        found, figures["seconds_per_best_answer"] = timed(instances)
        figures["mean_preference"] = float(np.mean([one.details["objective"] for one in found]))
        figures["optimal"] = float(np.mean([one.details["optimal"] for one in found]))
    return figures


def train(constraints: Constraints, make: Make, **settings: Any) -> tuple[Solver, dict[str, Any]]:
    started = time.process_time()
    solver = constraints.fit(make, seed=SEED, progress=False, **settings)
    return solver, settings | {"processor_minutes": (time.process_time() - started) / 60}


def measure(solver: Solver, instances: dict[str, tuple[list[Problem], int]]) -> dict[str, Any]:
    """Rows by name: the instances and the attempts."""
    rows: dict[str, Any] = {}
    fresh = untrained(solver)
    kinds = {
        "trained": (solver, CommitQueue),
        "untrained": (fresh, CommitQueue),
        "random_choices": (fresh, RandomChoices),
        "fewest_options": (fresh, FewestOptions),
    }
    for name, (unseen, attempts) in instances.items():
        rows[name] = {"n": len(unseen), "attempts": attempts}
        for what, (network, queue) in kinds.items():
            whole = network if queue is CommitQueue else with_queue(queue, network)
            rows[name][what] = evaluate(whole, unseen, attempts)
            alone = with_queue(queue, network, take_back=False).solve(unseen, attempts=1, diagnose=False)
            rows[name][what]["choices_alone"] = float(alone.solved.mean())
        rows[name]["cp_sat"] = exactly(unseen, None)
        rows[name]["cp_sat_with_hints"] = exactly(unseen, solver)
        print(name, json.dumps(rows[name], indent=2), flush=True)
    return rows


def draw(make: Make, count: int) -> list[Problem]:
    rng = np.random.default_rng(UNSEEN)
    return [make(rng) for _ in range(count)]


def maps(updates: int = 1000, count: int = COUNT) -> dict[str, Any]:
    def make(rng: np.random.Generator) -> Problem:
        return problems.map_colouring(int(rng.integers(10, 16)), rng).dig(rng)

    example = problems.map_colouring(10, np.random.default_rng(SEED))
    solver, training = train(example, make, updates=updates, pool=200, openness=0.5)
    rows = {}
    for low, high in ((10, 15), (30, 30), (60, 60)):
        of_size = draw(
            lambda rng, low=low, high=high: problems.map_colouring(int(rng.integers(low, high + 1)), rng).problem(),
            count,
        )
        rows[f"{low} to {high} regions" if low < high else f"{low} regions"] = of_size, ATTEMPTS
    return {"training": training, "rows": measure(solver, rows)}


def roster(updates: int = 2000, count: int = COUNT) -> dict[str, Any]:
    solver, training = train(
        problems.roster(), problems.training_roster, updates=updates, pool=300, openness=0.8, preferences=True
    )
    rows = {
        "empty": ([problems.roster(order).problem() for order in range(count)], 1),
        "empty, nurses away 30 %": (draw(lambda rng: problems.solvable_roster(rng, 0.3), count), 1),
        "empty, nurses away 50 %": (draw(lambda rng: problems.solvable_roster(rng, 0.5), count), 1),
        "with preferences": (draw(lambda rng: problems.solvable_roster(rng, 0.2, True), count), ATTEMPTS),
    }
    return {"training": training, "rows": measure(solver, rows)}


def seating(updates: int = 300, count: int = COUNT) -> dict[str, Any]:
    def make(rng: np.random.Generator) -> Problem:
        return problems.seating(int(rng.integers(10, 17)), rng, dig=True)

    example = problems.seating(12, np.random.default_rng(SEED)).constraints
    solver, training = train(example, make, updates=updates, pool=300, openness=0.5)
    sizes = (12, 16, 20)
    rows = {f"{size} guests": (draw(lambda rng, s=size: problems.seating(s, rng), count), ATTEMPTS) for size in sizes}
    return {"training": training, "rows": measure(solver, rows)}


def latin(updates: int = 400, count: int = COUNT) -> dict[str, Any]:
    def make(rng: np.random.Generator) -> Problem:
        return problems.latin_square(int(rng.integers(7, 9))).dig(rng)

    solver, training = train(problems.latin_square(7), make, updates=updates, slots=8, pool=200)
    rng = np.random.default_rng(UNSEEN)
    dug = [problems.latin_square(8).dig(rng) for _ in range(count)]
    rows = {
        "one solution": (dug, ATTEMPTS),
        "40 % of the givens": ([problem.with_fewer_givens(0.6, rng) for problem in dug], 1),
        "empty": ([problems.latin_square(8).problem()], 1),
    }
    return {"training": training, "rows": measure(solver, rows)}


def queens(updates: int = 1000, count: int = COUNT) -> dict[str, Any]:
    def make(rng: np.random.Generator) -> Problem:
        return queens_example.draw(int(rng.integers(8, 13)), rng, testing=False)

    solver, training = train(queens_example.queens(8), make, updates=updates, slots=32, pool=2000)
    sizes = (8, 10, 12)
    rows = {
        f"{n} × {n}": (draw(lambda rng, n=n: queens_example.draw(n, rng, testing=True), count), ATTEMPTS) for n in sizes
    }
    return {"training": training, "rows": measure(solver, rows)}


def timetable(updates: int = 800, count: int = COUNT) -> dict[str, Any]:
    example = school(4, 5, np.random.default_rng(SEED)).constraints
    solver, training = train(example, lambda rng: school(4, 5, rng), updates=updates)
    rows = {
        f"{c} classes, {s} slots": (draw(lambda rng, c=c, s=s: school(c, s, rng), count), ATTEMPTS)
        for c, s in ((4, 5), (5, 6))
    }
    return {"training": training, "rows": measure(solver, rows)}


FAMILIES: dict[str, Callable[..., dict[str, Any]]] = {
    "maps": maps,
    "roster": roster,
    "seating": seating,
    "latin": latin,
    "queens": queens,
    "timetable": timetable,
}


def main() -> None:
    tiny = "--tiny" in sys.argv
    names = [name for name in sys.argv[1:] if name != "--tiny"] or list(FAMILIES)
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        sys.exit(f"no family {unknown[0]!r}; there are {', '.join(FAMILIES)}")
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        figures = FAMILIES[name](updates=2, count=2) if tiny else FAMILIES[name]()
        figures |= {"command": f"python -m benchmarks.constraints {name}", "seed": SEED, "unseen_seed": UNSEEN}
        figures |= {"date": date.today().isoformat(), "machine": f"{machine()}, 1 used"}
        if not tiny:
            write_json(OUT, (json.loads(OUT.read_text()) if OUT.exists() else {}) | {name: figures})


if __name__ == "__main__":
    main()
