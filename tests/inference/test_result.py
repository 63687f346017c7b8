"""Every entry point returns the same type of result."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from rrn import RRN
from rrn.constraints import Constraints, Solver
from rrn.inference.candidates import make_network
from rrn.inference.result import Result, Status
from rrn.tasks.ages import predict as ages
from rrn.tasks.sudoku import solve
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.weights import from_pretrained


def of_think() -> Result:
    return RRN(2, 4, 3).think(torch.randn(3, 2), torch.tensor([[0, 1], [1, 2]]), max_steps=4)


def of_solver() -> Result:
    constraints = Constraints(4, exactly={"pair": [[0, 1], [2, 3]]})
    return Solver(make_network(1), constraints.group_types).solve([constraints.problem()], max_steps=4)


def of_sudoku() -> Result:
    return solve(EXAMPLES[:2], max_steps=4, attempts=1)


@pytest.mark.parametrize("run", [of_think, of_solver, of_sudoku])
def test_entry_points_return_a_result(run: Callable[[], Result]) -> None:
    result = run()
    assert type(result) is Result
    count = len(result.status)
    assert all(isinstance(status, Status) for status in result.status)
    for column in (result.steps, result.attempts, result.confidence, result.solved):
        assert isinstance(column, np.ndarray)
        assert column.shape == (count,)
    assert len(result.message) == count
    assert ((result.confidence >= 0) & (result.confidence <= 1)).all()


def test_answers_of_ask_are_results_of_one_question() -> None:
    story = ages.parse("Ann is 20. Ann is 4 years older than Bob. How old is Bob?")
    result = ages.predict(from_pretrained("ages"), story, 3)
    assert type(result) is Result
    assert isinstance(result.status, Status)
    assert (result.answers, result.steps) == ("16", 3)
