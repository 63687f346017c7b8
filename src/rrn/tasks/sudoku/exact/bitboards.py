"""The usual Sudoku, 9 x 9, searched with bit masks: compiled where numba is installed, plain Python where it is not.

Both run this same source and give the same bytes: see `rrn.tasks.sudoku.exact.integers`.

The representation: for each digit d and each band b of three rows, ``candidates[3 * d + b]`` has 27 bits, one per cell
of the band (bit 9 * row + column), set while the digit is still possible there. In these masks a digit's places in a
band, seen as 3 rows x 3 boxes, must contain a permutation, and its places in a stack, seen as 3 bands x 3 columns,
as well. Whatever lies outside every permutation is removed: all hidden singles and all locked candidates in one
table of 512 entries.
"""

from itertools import permutations
from typing import Any

import numpy as np

from rrn._compat import compiled
from rrn.constraints.search import UNKNOWN
from rrn.tasks.sudoku.exact.integers import UNLIMITED, count_bits, draw, integers, nth_bit, shuffle, table

BAND = (1 << 27) - 1
ROW = (1 << 9) - 1
COLUMN = 1 | 1 << 9 | 1 << 18
CONTRADICTION, SOLVED, OPEN = 0, 1, 2


def _within_permutations(places: int) -> int:
    """Of 3 x 3 bits those that belong to a permutation made of them."""
    kept = 0
    for columns in permutations(range(3)):
        chosen = sum(1 << 3 * row + column for row, column in enumerate(columns))
        if chosen & places == chosen:
            kept |= chosen
    return kept


BOXES_OF_ROW = table([sum(1 << box for box in range(3) if row >> 3 * box & 7) for row in range(512)])
"""Which of the three boxes a row of nine bits has bits in."""
WITHIN_PERMUTATIONS = table([_within_permutations(places) for places in range(512)])
CELLS_OF_MINIROWS = table([sum(7 << 3 * row for row in range(9) if rows >> row & 1) for rows in range(512)])
"""The 27 bits of a band below the 9 bits of its rows x boxes."""
SINGLE_IN_ROW = table([row if row.bit_count() == 1 else 0 for row in range(512)])
FIRST_BOX = np.array([0, 1, 2, 9, 10, 11, 18, 19, 20])

STARTS, PATIENCE, MOST_IN_COMMON = 30, 3000, 16
RUNS, REMEMBERED, SOLUTIONS_SEEN, ATTEMPTS = 4, 8, 64, 16
"""Of the walk towards hard puzzles: generated ones to start from, steps tried in vain, givens that two kept ones may
share; searches that rate a puzzle, and how many of them its rating remembers; solutions seen of a puzzle that lacks a
clue, and candidates of them tried in its place."""

THINNING, KEPT_EVERY = 100, 20
"""Of the walk towards few givens: steps before the first puzzle is kept, and from one to the next."""

GUESSES = 81 * 29
STACK = GUESSES + 1


@compiled
def _work() -> tuple[Any, Any, Any, Any, Any]:
    """What a search works on: candidates, those last settled, the stack of open guesses, the random numbers' state; and
    the first solution it found.

    The stack has 29 places for each of the 81 guesses that can be open at once: candidates before it, digit, cell; and
    a last one in which all guesses made are counted.
    """
    return integers(27), integers(27), integers(STACK), integers(4), integers(81)


@compiled
def _settle_digit(top: int, middle: int, bottom: int) -> tuple[int, int, int]:
    """Remove one digit's places outside every permutation until nothing moves; (0, 0, 0) if none is left."""
    while True:
        rows = BOXES_OF_ROW[top & ROW] | BOXES_OF_ROW[top >> 9 & ROW] << 3 | BOXES_OF_ROW[top >> 18] << 6
        top &= CELLS_OF_MINIROWS[WITHIN_PERMUTATIONS[rows]]
        rows = BOXES_OF_ROW[middle & ROW] | BOXES_OF_ROW[middle >> 9 & ROW] << 3 | BOXES_OF_ROW[middle >> 18] << 6
        middle &= CELLS_OF_MINIROWS[WITHIN_PERMUTATIONS[rows]]
        rows = BOXES_OF_ROW[bottom & ROW] | BOXES_OF_ROW[bottom >> 9 & ROW] << 3 | BOXES_OF_ROW[bottom >> 18] << 6
        bottom &= CELLS_OF_MINIROWS[WITHIN_PERMUTATIONS[rows]]
        if top == 0 or middle == 0 or bottom == 0:
            return 0, 0, 0

        in_top = (top | top >> 9 | top >> 18) & ROW
        in_middle = (middle | middle >> 9 | middle >> 18) & ROW
        in_bottom = (bottom | bottom >> 9 | bottom >> 18) & ROW
        left = WITHIN_PERMUTATIONS[in_top & 7 | (in_middle & 7) << 3 | (in_bottom & 7) << 6]
        centre = WITHIN_PERMUTATIONS[in_top >> 3 & 7 | (in_middle >> 3 & 7) << 3 | (in_bottom >> 3 & 7) << 6]
        right = WITHIN_PERMUTATIONS[in_top >> 6 | (in_middle >> 6) << 3 | (in_bottom >> 6) << 6]
        if left == 0 or centre == 0 or right == 0:
            return 0, 0, 0
        to_top = left & 7 | (centre & 7) << 3 | (right & 7) << 6
        to_middle = left >> 3 & 7 | (centre >> 3 & 7) << 3 | (right >> 3 & 7) << 6
        to_bottom = left >> 6 | (centre >> 6) << 3 | (right >> 6) << 6
        if to_top == in_top and to_middle == in_middle and to_bottom == in_bottom:
            return top, middle, bottom
        top &= to_top * COLUMN
        middle &= to_middle * COLUMN
        bottom &= to_bottom * COLUMN


@compiled
def _singles(band: int) -> int:
    return SINGLE_IN_ROW[band & ROW] | SINGLE_IN_ROW[band >> 9 & ROW] << 9 | SINGLE_IN_ROW[band >> 18] << 18


@compiled
def _propagate(candidates: Any, settled: Any) -> int:
    """Hidden singles, locked candidates and naked singles until nothing moves.

    ``settled`` holds for each digit the candidates `_settle_digit` last left behind, so that only digits that have
    lost some since are looked at again.

    SOLVED is sound without a look at the rules: each digit has a place in each row, column and box, or it would be a
    contradiction, and 81 candidates, one per cell, cannot be more than one for each.
    """
    while True:
        moved = True
        while moved:
            moved = False
            for digit in range(0, 27, 3):
                top, middle, bottom = candidates[digit], candidates[digit + 1], candidates[digit + 2]
                if top == settled[digit] and middle == settled[digit + 1] and bottom == settled[digit + 2]:
                    continue
                moved = True
                top, middle, bottom = _settle_digit(top, middle, bottom)
                if top == 0:
                    return CONTRADICTION
                others_top, others_middle, others_bottom = ~_singles(top), ~_singles(middle), ~_singles(bottom)
                for other in range(0, 27, 3):
                    candidates[other] &= others_top
                    candidates[other + 1] &= others_middle
                    candidates[other + 2] &= others_bottom
                candidates[digit], candidates[digit + 1], candidates[digit + 2] = top, middle, bottom
                settled[digit], settled[digit + 1], settled[digit + 2] = top, middle, bottom

        filled = 0
        for band in range(3):
            once = twice = 0
            for index in range(band, 27, 3):
                twice |= once & candidates[index]
                once |= candidates[index]
            if once != BAND:
                return CONTRADICTION
            if twice == 0:
                filled += 1
                continue
            naked = once & ~twice
            for index in range(band, 27, 3):
                places = candidates[index]
                alone = places & naked
                if alone == 0:
                    continue
                for row in (ROW, ROW << 9, ROW << 18):
                    if alone & row and alone & row != places & row:
                        places = places & ~row | alone & row
                        moved = True
                candidates[index] = places
        if filled == 3:
            return SOLVED
        if not moved:
            return OPEN


@compiled
def _choose(candidates: Any, random: Any, at_random: bool) -> tuple[int, int]:
    """Where to guess: (index into candidates, bit) of a digit in a cell with the fewest candidates left.

    The first such cell and its lowest digit, or any of them and any digit when ``at_random``.
    """
    best_band, best_cells, best_size = 0, 0, 5
    for band in range(3):
        once = twice = thrice = four_times = 0
        for index in range(band, 27, 3):
            places = candidates[index]
            four_times |= thrice & places
            thrice |= twice & places
            twice |= once & places
            once |= places
        if twice & ~thrice:
            size, cells = 2, twice & ~thrice
        elif thrice & ~four_times:
            size, cells = 3, thrice & ~four_times
        else:
            size, cells = 4, four_times
        if cells and (size < best_size or (at_random and size == best_size and draw(random, band + 1) == 0)):
            best_band, best_cells, best_size = band, cells, size
    cell = nth_bit(best_cells, draw(random, count_bits(best_cells)) if at_random else 0)
    possible = 0
    for digit in range(9):
        if candidates[3 * digit + best_band] & cell:
            possible |= 1 << digit
    chosen = nth_bit(possible, draw(random, count_bits(possible)) if at_random else 0)
    for digit in range(9):
        if chosen == 1 << digit:
            return 3 * digit + best_band, cell
    return -1, 0


@compiled
def _search(work: Any, tally: Any, limit: int, most_guesses: int, at_random: bool) -> int:
    """The number of solutions of the candidates in ``work``, counted up to ``limit``.

    UNKNOWN if ``most_guesses`` were made and did not suffice. ``tally`` is empty, or counts for each of the 729
    candidates the solutions it is part of.
    """
    candidates, settled, stack, random, solution = work
    depth = count = 0
    stack[GUESSES] = 0
    for index in range(27):
        settled[index] = -1
    while True:
        status = _propagate(candidates, settled)
        if status == OPEN:
            if stack[GUESSES] == most_guesses:
                return UNKNOWN
            index, cell = _choose(candidates, random, at_random)
            saved = 29 * depth
            stack[saved : saved + 27] = candidates
            stack[saved + 27] = index
            stack[saved + 28] = cell
            depth += 1
            stack[GUESSES] += 1
            for other in range(index % 3, 27, 3):
                candidates[other] &= ~cell
            row = ROW if cell <= ROW else ROW << 9 if cell <= ROW << 9 else ROW << 18
            candidates[index] = candidates[index] & ~row | cell
            continue
        if status == SOLVED:
            if count == 0 or len(tally) > 0:
                for index in range(27):
                    first = index % 3 * 27
                    for cell in range(27):
                        if candidates[index] >> cell & 1:
                            if count == 0:
                                solution[first + cell] = index // 3 + 1
                            if len(tally) > 0:
                                tally[9 * (first + cell) + index // 3] += 1
            count += 1
            if count == limit:
                return count
        if depth == 0:
            return count
        depth -= 1
        saved = 29 * depth
        candidates[:] = stack[saved : saved + 27]
        settled[:] = candidates
        candidates[stack[saved + 27]] &= ~stack[saved + 28]


@compiled
def _load(grid: Any, candidates: Any) -> None:
    """The candidates the givens of a grid leave, seen only along rows and in the cells themselves."""
    for band in range(3):
        empty = BAND
        for index in range(band, 27, 3):
            candidates[index] = 0
        for place in range(27):
            digit = grid[27 * band + place]
            if digit:
                candidates[3 * (digit - 1) + band] |= 1 << place
                empty &= ~(1 << place)
        for index in range(band, 27, 3):
            given = candidates[index]
            free = empty
            for row in (ROW, ROW << 9, ROW << 18):
                if given & row:
                    free &= ~row
            candidates[index] = given | free


@compiled
def _count(grid: Any, limit: int, at_random: bool, work: Any) -> int:
    """The number of solutions of a grid, counted up to ``limit``."""
    _load(grid, work[0])
    return _search(work, integers(0), limit, UNLIMITED, at_random)


@compiled
def _fill(grid: Any, work: Any) -> None:
    """A random solved grid: the three boxes on the diagonal drawn, the rest found by a search with random guesses."""
    grid[:] = 0
    for box in range(3):
        digits = np.arange(1, 10)
        shuffle(digits, 0, 9, work[3])
        grid[FIRST_BOX + 30 * box] = digits
    _count(grid, 1, True, work)
    grid[:] = work[4]


@compiled
def _dig(puzzle: Any, order: Any, work: Any) -> None:
    """Remove each clue, in this order, if no other solution appears with another digit in its place."""
    nothing = integers(0)
    for step in range(81):
        cell = int(order[step])
        digit = int(puzzle[cell])
        if digit == 0:
            continue
        puzzle[cell] = 0
        _load(puzzle, work[0])
        work[0][3 * (digit - 1) + cell // 27] &= ~(1 << cell % 27)
        if _search(work, nothing, 1, UNLIMITED, False):
            puzzle[cell] = digit


@compiled
def _begin(seed: Any) -> tuple[Any, Any]:
    """What a search works on, its random numbers begun with a seed, four words of 32 bits, not all zero; and the cells
    in order."""
    work = _work()
    for word in range(4):
        work[3][word] = int(seed[word])
    return work, np.arange(81)


@compiled
def _make(order: Any, work: Any) -> tuple[Any, Any]:
    """A random solved grid, and a minimal puzzle of it; ``order`` is shuffled."""
    solution = np.zeros(81, np.int64)
    _fill(solution, work)
    puzzle = solution.copy()
    shuffle(order, 0, 81, work[3])
    _dig(puzzle, order, work)
    return solution, puzzle


@compiled
def solve_all(puzzles: Any, limit: int, most_guesses: int, solutions: Any, counts: Any, guesses: Any) -> None:
    """For each puzzle (n, 81) the number of solutions, up to ``limit``, the first one found, and the guesses made."""
    work, nothing = _work(), integers(0)
    for number in range(len(puzzles)):
        _load(puzzles[number], work[0])
        counts[number] = _search(work, nothing, limit, most_guesses, False)
        guesses[number] = work[2][GUESSES]
        if counts[number] > 0:
            solutions[number, :] = work[4]


@compiled
def generate_all(seeds: Any, fewest_extra: int, most_extra: int, puzzles: Any, solutions: Any) -> None:
    """One minimal puzzle with extra givens for each seed (n, 4)."""
    for number in range(len(seeds)):
        work, order = _begin(seeds[number])
        grid, puzzle = _make(order, work)
        extra = fewest_extra + draw(work[3], most_extra - fewest_extra + 1)
        shuffle(order, 0, 81, work[3])
        back = order[puzzle[order] == 0][:extra]
        puzzle[back] = grid[back]
        puzzles[number, :] = puzzle
        solutions[number, :] = grid


@compiled
def _rate(puzzle: Any, enough: int, most: int, work: Any) -> int:
    """How hard a puzzle is: guesses of RUNS searches that guess at random, together, each counted up to ``most``.

    -1 as soon as it is clear that there is more than one solution, or that ``enough`` will hardly be reached.
    """
    total = 0
    for run in range(1, RUNS + 1):
        if _count(puzzle, 2, True, work) != 1:
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
    """What may decide for one solution of a puzzle that has many: candidates in only one of those seen."""
    tally = np.zeros(729, np.int64)
    _load(puzzle, work[0])
    _search(work, tally, SOLUTIONS_SEEN, UNLIMITED, True)
    return np.flatnonzero(tally == 1)


@compiled
def harden(seed: Any, level: int, puzzles: Any, solutions: Any) -> int:
    """A walk among minimal puzzles towards those that need ``level`` guesses; returns how many it put into ``puzzles``.

    It begins at the hardest of STARTS generated ones. A step removes a clue and adds one that leaves a single solution,
    mostly another one than before; it is taken if the puzzle is then as hard as before, or as the level. Puzzles as
    hard as the level are kept, if they have few givens in common with those kept before. The walk ends when ``puzzles``
    (most, 81) is full, or after PATIENCE steps were tried since one was kept.
    """
    work, order = _begin(seed)
    random, current, rating = work[3], np.zeros(81, np.int64), -1
    for _ in range(STARTS):
        _, puzzle = _make(order, work)
        started = _rate(puzzle, rating + 1, UNLIMITED, work)
        if started > rating:
            rating, current = started, puzzle

    kept = tried = 0
    while kept < len(puzzles) and tried < PATIENCE:
        base = current.copy()
        shuffle(order, 0, 81, random)
        base[order[base[order] > 0][0]] = 0
        lone = _decisive(base, work)
        lone = lone[current[lone // 9] != lone % 9 + 1]

        # A rating can be too good by luck, and nothing would ever reach it: so it is averaged with new runs.
        _count(current, 2, True, work)
        rating += (RUNS * work[2][GUESSES] - rating) // REMEMBERED
        enough, most = min(RUNS * level, rating), 2 * max(rating // RUNS, STARTS)
        tried += 1
        for attempt in range(min(ATTEMPTS, len(lone))):
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
            _dig(puzzle, order, work)
            current = puzzle
            if (
                rating >= RUNS * level
                and _most_in_common(current, puzzles, kept) <= MOST_IN_COMMON
                and _rate(current, RUNS * level, 2 * level, work) > 0
            ):
                puzzles[kept, :] = current
                solutions[kept, :] = work[4]
                kept += 1
                tried = 0
            break
    return kept


@compiled
def thin(seed: Any, puzzles: Any, solutions: Any) -> None:
    """A walk among minimal puzzles towards those with few givens; fills ``puzzles`` and ``solutions`` (n, 81).

    A step removes two clues, adds one or two that leave a single solution, and takes away what can then be spared; it
    is taken if there are no more givens than before. The first puzzle is kept after THINNING steps, further ones after
    every KEPT_EVERY.
    """
    work, order = _begin(seed)
    solution, current = _make(order, work)
    for step in range(1, THINNING + KEPT_EVERY * (len(puzzles) - 1) + 1):
        shuffle(order, 0, 81, work[3])
        puzzle, clues = current.copy(), order[current[order] > 0]
        puzzle[clues[:2]] = 0
        ways = 2
        for _ in range(2):
            if ways > 1:
                lone = _decisive(puzzle, work)
                if len(lone):
                    candidate = lone[draw(work[3], len(lone))]
                    puzzle[candidate // 9] = candidate % 9 + 1
                    ways = _count(puzzle, 2, False, work)
        if ways == 1:
            found = work[4].copy()
            _dig(puzzle, order, work)
            if np.count_nonzero(puzzle) <= len(clues):
                current = puzzle
                solution[:] = found
        since = step - THINNING
        if since >= 0 and since % KEPT_EVERY == 0:
            puzzles[since // KEPT_EVERY, :] = current
            solutions[since // KEPT_EVERY, :] = solution
