"""Who is tried how often: no start in vain, and the stronger network last."""

import numpy as np

from rrn.constraints.outcome import Outcome, work_out

SOLVED_BY = {0: "before", 1: "first", 2: "nobody", 3: "restarts", 4: "stronger", 5: "nobody"}
SOLUTIONS = np.array([1, 1, 0, 1, 1, 2])


def attempts(restarts: int, stronger: bool) -> tuple[list[Outcome], list[tuple[list[int], int, bool]]]:
    asked = []

    def attempt(rows: np.ndarray, again: int, by_stronger: bool) -> list[Outcome]:
        asked.append((rows.tolist(), again, by_stronger))
        who = "stronger" if by_stronger else "restarts" if again else "first"
        return [Outcome(row, "", "solved" if SOLVED_BY[row] == who else "not solved", 5, 1 + again) for row in rows]

    before = [Outcome(0, "", "already solved"), *(Outcome(row, None) for row in range(1, 6))]
    found = work_out(before, attempt, lambda rows: SOLUTIONS[rows], restarts=restarts, stronger=stronger)
    return found, asked


def test_only_what_can_be_solved_is_tried_again() -> None:
    found, asked = attempts(restarts=3, stronger=True)
    assert asked == [([1, 2, 3, 4, 5], 0, False), ([3, 4, 5], 3, False), ([4, 5], 3, True)]
    status = ["already solved", "solved", "no solution", "solved", "solved", "not solved"]
    assert [outcome.status for outcome in found] == status
    assert [outcome.starts for outcome in found] == [0, 1, 1, 4, 8, 8]
    assert [outcome.handed_over for outcome in found] == [False] * 4 + [True] * 2
    assert found[2].reason == "the problem has no solution, as an exact search shows"
    assert found[5].reason == "the problem has several solutions; any of them would have been accepted"


def test_without_restarts_there_is_one_attempt() -> None:
    found, asked = attempts(restarts=0, stronger=True)
    assert len(asked) == 1
    assert [outcome.valid for outcome in found] == [True, True, False, False, False, False]
