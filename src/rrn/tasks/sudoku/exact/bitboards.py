"""Search on 9 x 9 Sudokus with bit masks, compiled if numba is installed and plain Python otherwise.

Both run the same source and give the same bytes: see `rrn.tasks.sudoku.exact.integers`.

The representation: for each digit d and each band b of three rows, ``candidates[3 * d + b]`` has 27 bits, one per cell
of the band (bit 9 * row + column), set while the digit is possible there. The cells of a digit in a band, as 3 rows x
3 boxes, must contain a permutation, and so must its cells in a stack, as 3 bands x 3 columns. Bits outside every
permutation are removed: one table of 512 entries finds all hidden singles and locked candidates.
"""

from itertools import permutations
from typing import Any

import numpy as np

from rrn._compat import compiled
from rrn.constraints.exact import UNKNOWN
from rrn.tasks.sudoku.exact.integers import UNLIMITED, count_bits, draw, integers, nth_bit, shuffle, table

BAND = (1 << 27) - 1
ROW = (1 << 9) - 1
COLUMN = 1 | 1 << 9 | 1 << 18
CONTRADICTION, SOLVED, OPEN = 0, 1, 2


def _within_permutations(bits: int) -> int:
    """The bits of a 3 x 3 mask that belong to a permutation within it."""
    found = 0
    for columns in permutations(range(3)):
        chosen = sum(1 << 3 * row + column for row, column in enumerate(columns))
        if chosen & bits == chosen:
            found |= chosen
    return found


BOXES_OF_ROW = table([sum(1 << box for box in range(3) if row >> 3 * box & 7) for row in range(512)])
"""The boxes, of three, in which a row of nine bits has bits."""
WITHIN_PERMUTATIONS = table([_within_permutations(bits) for bits in range(512)])
CELLS_OF_MINIROWS = table([sum(7 << 3 * row for row in range(9) if rows >> row & 1) for rows in range(512)])
"""The 27 bits of a band for each mask of its 9 rows x boxes."""
SINGLE_IN_ROW = table([row if row.bit_count() == 1 else 0 for row in range(512)])
FIRST_BOX = np.array([0, 1, 2, 9, 10, 11, 18, 19, 20])

GUESSES = 81 * 29
STACK = GUESSES + 1


@compiled
def _work() -> tuple[Any, Any, Any, Any, Any]:
    """The arrays of a search: candidates, candidates last settled, stack of open guesses, state of the random numbers,
    first solution.

    The stack has 29 entries for each of at most 81 open guesses: the candidates before it, digit, cell. Its last entry
    counts all guesses.
    """
    return integers(27), integers(27), integers(STACK), integers(4), integers(81)


@compiled
def _settle_digit(top: int, middle: int, bottom: int) -> tuple[int, int, int]:
    """Remove the cells of one digit outside every permutation until nothing changes; (0, 0, 0) if none is left."""
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
    """Apply hidden singles, locked candidates and naked singles until nothing changes.

    ``settled`` holds the candidates of each digit after its last `_settle_digit`; only digits with fewer candidates
    since then are processed again.

    SOLVED needs no check of the rules: each digit has a cell in each row, column and box, otherwise it is a
    contradiction, and 81 candidates, one per cell, leave no second one.
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
                cells = candidates[index]
                alone = cells & naked
                if alone == 0:
                    continue
                for row in (ROW, ROW << 9, ROW << 18):
                    if alone & row and alone & row != cells & row:
                        cells = cells & ~row | alone & row
                        moved = True
                candidates[index] = cells
        if filled == 3:
            return SOLVED
        if not moved:
            return OPEN


@compiled
def _choose(candidates: Any, random: Any, at_random: bool) -> tuple[int, int]:
    """The next guess: (index into candidates, bit) of a digit in a cell with the fewest candidates.

    The first such cell and its lowest digit; a random cell and digit if ``at_random``.
    """
    best_band, best_cells, best_size = 0, 0, 5
    for band in range(3):
        once = twice = thrice = four_times = 0
        for index in range(band, 27, 3):
            bits = candidates[index]
            four_times |= thrice & bits
            thrice |= twice & bits
            twice |= once & bits
            once |= bits
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
def search(work: Any, tally: Any, limit: int, most_guesses: int, at_random: bool) -> int:
    """The number of solutions of the candidates in ``work``, counted up to ``limit``.

    UNKNOWN after ``most_guesses`` guesses. ``tally`` is empty, or counts the solutions with each of the 729
    candidates.
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
def load(grid: Any, candidates: Any) -> None:
    """Set the candidates that the givens of a grid leave in their rows and cells."""
    for band in range(3):
        empty = BAND
        for index in range(band, 27, 3):
            candidates[index] = 0
        for cell in range(27):
            digit = grid[27 * band + cell]
            if digit:
                candidates[3 * (digit - 1) + band] |= 1 << cell
                empty &= ~(1 << cell)
        for index in range(band, 27, 3):
            given = candidates[index]
            free = empty
            for row in (ROW, ROW << 9, ROW << 18):
                if given & row:
                    free &= ~row
            candidates[index] = given | free


@compiled
def count(grid: Any, limit: int, at_random: bool, work: Any) -> int:
    """The number of solutions of a grid, counted up to ``limit``."""
    load(grid, work[0])
    return search(work, integers(0), limit, UNLIMITED, at_random)


@compiled
def _fill(grid: Any, work: Any) -> None:
    """Fill a grid at random: draw the three boxes on the diagonal, then search with random guesses."""
    grid[:] = 0
    for box in range(3):
        digits = np.arange(1, 10)
        shuffle(digits, 0, 9, work[3])
        grid[FIRST_BOX + 30 * box] = digits
    count(grid, 1, True, work)
    grid[:] = work[4]


@compiled
def dig(puzzle: Any, order: Any, work: Any) -> None:
    """Remove each given, in this order, unless another digit in its cell allows a second solution."""
    nothing = integers(0)
    for step in range(81):
        cell = int(order[step])
        digit = int(puzzle[cell])
        if digit == 0:
            continue
        puzzle[cell] = 0
        load(puzzle, work[0])
        work[0][3 * (digit - 1) + cell // 27] &= ~(1 << cell % 27)
        if search(work, nothing, 1, UNLIMITED, False):
            puzzle[cell] = digit


@compiled
def start_work(seed: Any) -> tuple[Any, Any]:
    """The arrays of a search, its random numbers seeded with four words of 32 bits, not all zero; and the cells in
    order."""
    work = _work()
    for word in range(4):
        work[3][word] = int(seed[word])
    return work, np.arange(81)


@compiled
def make_puzzle(order: Any, work: Any) -> tuple[Any, Any]:
    """A random solved grid and a minimal puzzle of it; shuffles ``order``."""
    solution = np.zeros(81, np.int64)
    _fill(solution, work)
    puzzle = solution.copy()
    shuffle(order, 0, 81, work[3])
    dig(puzzle, order, work)
    return solution, puzzle


@compiled
def solve_all(puzzles: Any, limit: int, most_guesses: int, solutions: Any, counts: Any, guesses: Any) -> None:
    """Write for each puzzle (n, 81) the number of solutions up to ``limit``, the first one, and the guesses."""
    work, nothing = _work(), integers(0)
    for number in range(len(puzzles)):
        load(puzzles[number], work[0])
        counts[number] = search(work, nothing, limit, most_guesses, False)
        guesses[number] = work[2][GUESSES]
        if counts[number] > 0:
            solutions[number, :] = work[4]


@compiled
def generate_all(seeds: Any, fewest_extra: int, most_extra: int, puzzles: Any, solutions: Any) -> None:
    """Write one minimal puzzle with extra givens for each seed (n, 4)."""
    for number in range(len(seeds)):
        work, order = start_work(seeds[number])
        grid, puzzle = make_puzzle(order, work)
        extra = fewest_extra + draw(work[3], most_extra - fewest_extra + 1)
        shuffle(order, 0, 81, work[3])
        back = order[puzzle[order] == 0][:extra]
        puzzle[back] = grid[back]
        puzzles[number, :] = puzzle
        solutions[number, :] = grid
