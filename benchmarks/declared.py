"""Random declared problems, solved, and their answers checked by code that shares nothing with the package.

A result that is solved must keep every declared rule, the givens and the exclusions; a problem that is called
impossible must have no solution. Names of types and candidates are chosen to clash.
"""

import itertools
import random
from typing import Any

import torch

from rrn import RRN
from rrn.constraints import Constraints
from rrn.constraints.solve import Solver
from rrn.errors import InputError
from rrn.inference.candidates import make_network
from rrn.inference.result import Status

NAMES = ["v", "v 2", "v 3", "v2", "v_2", "2", "v 2 2", " v", "V"]
SOLVED = (Status.SOLVED, Status.ALREADY_SOLVED)


class Declared:
    """A random problem: its rules as plain lists, and as the package reads them."""

    def __init__(self, rng: random.Random) -> None:
        self.candidates: list[Any] = rng.choice(
            [list(range(rng.randint(1, 7))), ["v", "v 2", 2, "2", "x", -1][: rng.randint(1, 6)]]
        )
        names = rng.sample(NAMES, rng.randint(1, 4))
        cut = rng.randint(0, len(names))
        self.exactly = {name: self._groups(rng) for name in names[:cut]}
        self.at_most = {name: self._groups(rng) for name in names[cut:]}
        shuffled = rng.sample(self.candidates, len(self.candidates))
        given, excluded = rng.randint(0, 2), rng.randint(0, 2)
        self.given, self.excluded = shuffled[:given], shuffled[given : given + excluded]

    def _groups(self, rng: random.Random) -> list[list[Any]]:
        return [rng.sample(self.candidates, rng.randint(1, len(self.candidates))) for _ in range(rng.randint(1, 4))]

    def keeps(self, answer: set[Any]) -> bool:
        """Whether an answer keeps every rule, literally."""
        counts_exactly = [sum(name in answer for name in group) for groups in self.exactly.values() for group in groups]
        counts_at_most = [sum(name in answer for name in group) for groups in self.at_most.values() for group in groups]
        rules = all(count == 1 for count in counts_exactly) and all(count <= 1 for count in counts_at_most)
        return rules and answer >= set(self.given) and not answer & set(self.excluded)

    def is_solvable(self) -> bool:
        """By trying all answers."""
        return any(
            self.keeps({name for name, chosen in zip(self.candidates, choice, strict=True) if chosen})
            for choice in itertools.product((False, True), repeat=len(self.candidates))
        )


def _small_network(types: int) -> RRN:
    return make_network(types, hidden=6, message_width=2, layer_width=2 * types + 6)


def attack(trials: int, seed: int) -> tuple[dict[str, Any], list[str]]:
    """Solve ``trials`` problems. Returns how many were solved, impossible and refused; and the losses."""
    losses: list[str] = []
    counts = {"trials": trials, "solved": 0, "impossible": 0, "refused": 0}
    solvers: dict[int, Solver] = {}
    for trial in range(trials):
        rng = random.Random(f"{seed} {trial}")
        declared = Declared(rng)
        torch.manual_seed(trial)
        try:
            constraints = Constraints(declared.candidates, declared.exactly, declared.at_most)
            problem = constraints.problem(declared.given, declared.excluded)
            types = constraints.group_types
            if len(types) not in solvers:
                solvers[len(types)] = Solver(_small_network(len(types)), types)
            solver = solvers[len(types)]
            solver.group_types = tuple(types)
            result = solver.solve(problem, max_steps=4, attempts=2)[0]
        except InputError:
            counts["refused"] += 1  # such as givens that contradict each other
            if declared.is_solvable():
                losses.append(f"problem {trial}: refused, though it has a solution")
            continue
        if result.status in SOLVED:
            counts["solved"] += 1
            if not declared.keeps(set(result.answers)):
                losses.append(f"problem {trial}: called solved, but a rule is broken: {result.answers}")
        elif result.status == Status.IMPOSSIBLE:
            counts["impossible"] += 1
            if declared.is_solvable():
                losses.append(f"problem {trial}: called impossible, but it has a solution")
    return counts, losses
