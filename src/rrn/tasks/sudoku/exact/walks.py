"""Random walks among minimal Sudokus: towards hard ones, and towards ones with few givens."""

from typing import Any

import numpy as np

from rrn._compat import compiled
from rrn.tasks.sudoku.exact.bitboards import GUESSES, count, dig, load, make_puzzle, search, start_work
from rrn.tasks.sudoku.exact.integers import UNLIMITED, draw, shuffle

FIRST_PUZZLES, PATIENCE, MOST_IN_COMMON = 30, 3000, 16
"""Walk to hard puzzles: generated puzzles to choose the start from, steps without success before the walk ends, givens
that two saved puzzles may share."""
RUNS, REMEMBERED = 4, 8
"""Searches that rate a puzzle; the weight of a new search in the running rating is one over REMEMBERED."""
SOLUTIONS_SEEN, MOST_TRIES = 64, 16
"""Solutions of a puzzle without one given that are counted; candidates that are tried in its place."""
FIRST_STEPS, STEPS_BETWEEN = 100, 20
"""Walk to few givens: steps before the first saved puzzle, and between saved puzzles."""


@compiled
def _rate(puzzle: Any, enough: int, most: int, work: Any) -> int:
    """The difficulty of a puzzle: the sum of guesses of RUNS random searches, each counted up to ``most``.

    -1 if there is more than one solution, or as soon as ``enough`` is out of reach.
    """
    total = 0
    for run in range(1, RUNS + 1):
        if count(puzzle, 2, True, work) != 1:
            return -1
        total += min(work[2][GUESSES], most)
        if 2 * RUNS * total < run * enough or (run == RUNS and total < enough):
            return -1
    return total


@compiled
def _most_in_common(puzzle: Any, others: Any, count: int) -> int:
    """The most givens that a puzzle shares with one of the first ``count`` others (n, 81)."""
    most = 0
    for other in range(count):
        most = max(most, int(np.sum((puzzle > 0) & (puzzle == others[other]))))
    return most


@compiled
def _decisive(puzzle: Any, work: Any) -> Any:
    """Candidates that occur in exactly one of the first SOLUTIONS_SEEN solutions of a puzzle."""
    tally = np.zeros(729, np.int64)
    load(puzzle, work[0])
    search(work, tally, SOLUTIONS_SEEN, UNLIMITED, True)
    return np.flatnonzero(tally == 1)


@compiled
def walk_to_hard(seed: Any, level: int, puzzles: Any, solutions: Any) -> int:
    """Walk among minimal puzzles towards those that need ``level`` guesses; returns the number written to ``puzzles``.

    The walk starts from the hardest of FIRST_PUZZLES generated ones. A step replaces a given such that one solution is
    left, mostly another one. It is accepted if the puzzle is as hard as before, or as the level. Puzzles as hard as
    the level are saved if they share few givens with those saved before. The walk ends when ``puzzles`` (n, 81) is
    full, or PATIENCE steps after the last saved puzzle.
    """
    work, order = start_work(seed)
    random, current, rating = work[3], np.zeros(81, np.int64), -1
    for _ in range(FIRST_PUZZLES):
        _, puzzle = make_puzzle(order, work)
        started = _rate(puzzle, rating + 1, UNLIMITED, work)
        if started > rating:
            rating, current = started, puzzle

    saved = tried = 0
    while saved < len(puzzles) and tried < PATIENCE:
        base = current.copy()
        shuffle(order, 0, 81, random)
        base[order[base[order] > 0][0]] = 0
        lone = _decisive(base, work)
        lone = lone[current[lone // 9] != lone % 9 + 1]

        # A rating that is too high by chance would end the walk, so it is averaged with new searches.
        count(current, 2, True, work)
        rating += (RUNS * work[2][GUESSES] - rating) // REMEMBERED
        enough, most = min(RUNS * level, rating), 2 * max(rating // RUNS, FIRST_PUZZLES)
        tried += 1
        for attempt in range(min(MOST_TRIES, len(lone))):
            tried += 1
            chosen = attempt + draw(random, len(lone) - attempt)
            candidate = lone[chosen]
            lone[chosen] = lone[attempt]
            puzzle = base.copy()
            puzzle[candidate // 9] = candidate % 9 + 1
            rated = _rate(puzzle, enough, most, work)
            if rated < 0:
                continue
            rating = rated
            dig(puzzle, order, work)
            current = puzzle
            if (
                rating >= RUNS * level
                and _most_in_common(current, puzzles, saved) <= MOST_IN_COMMON
                and _rate(current, RUNS * level, 2 * level, work) > 0
            ):
                puzzles[saved, :] = current
                solutions[saved, :] = work[4]
                saved += 1
                tried = 0
            break
    return saved


@compiled
def walk_to_few_givens(seed: Any, puzzles: Any, solutions: Any) -> None:
    """Walk among minimal puzzles towards those with few givens; fills ``puzzles`` and ``solutions`` (n, 81).

    A step removes two givens, adds one or two that leave a single solution, and removes redundant ones. It is accepted
    if the number of givens does not grow. The first puzzle is saved after FIRST_STEPS steps, further ones every
    STEPS_BETWEEN.
    """
    work, order = start_work(seed)
    solution, current = make_puzzle(order, work)
    for step in range(1, FIRST_STEPS + STEPS_BETWEEN * (len(puzzles) - 1) + 1):
        shuffle(order, 0, 81, work[3])
        puzzle, givens = current.copy(), order[current[order] > 0]
        puzzle[givens[:2]] = 0
        solutions_left = 2
        for _ in range(2):
            if solutions_left > 1:
                lone = _decisive(puzzle, work)
                if len(lone):
                    candidate = lone[draw(work[3], len(lone))]
                    puzzle[candidate // 9] = candidate % 9 + 1
                    solutions_left = count(puzzle, 2, False, work)
        if solutions_left == 1:
            found = work[4].copy()
            dig(puzzle, order, work)
            if np.count_nonzero(puzzle) <= len(givens):
                current = puzzle
                solution[:] = found
        since = step - FIRST_STEPS
        if since >= 0 and since % STEPS_BETWEEN == 0:
            puzzles[since // STEPS_BETWEEN, :] = current
            solutions[since // STEPS_BETWEEN, :] = solution
