from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrn.compiled import COMPILED
from rrn.errors import InputError
from rrn.tasks.sudoku import exact
from rrn.tasks.sudoku.exact import count_solutions, generate, solve_exactly
from rrn.tasks.sudoku.grid import solves


def test_puzzles_are_unique_and_minimal(some: tuple[np.ndarray, np.ndarray]) -> None:
    puzzles, solutions = some
    found, counts = solve_exactly(puzzles)
    assert (counts == 1).all()
    assert (found == solutions).all()
    for puzzle in puzzles:
        clues = np.flatnonzero(puzzle)
        without = np.tile(puzzle, (len(clues), 1))
        without[np.arange(len(clues)), clues] = 0
        assert (count_solutions(without) == 2).all()


@given(st.integers(0, 2**32), st.integers(0, 17), st.integers(0, 17))
@settings(max_examples=10, deadline=None)
def test_extra_givens_come_from_the_solution(seed: int, one: int, other: int) -> None:
    fewest, most = sorted((one, other))
    minimal, _ = generate(5, np.random.default_rng(seed))
    puzzles, solutions = generate(5, np.random.default_rng(seed), (fewest, most))
    assert solves(solutions, puzzles).all()
    assert (count_solutions(puzzles) == 1).all()
    extra = (puzzles > 0).sum(axis=1) - (minimal > 0).sum(axis=1)
    assert extra.min() >= fewest
    assert extra.max() <= most
    assert ((puzzles == minimal) | (minimal == 0)).all()


def test_every_number_of_extra_givens_is_drawn() -> None:
    count = 600 if COMPILED else 150
    minimal, _ = generate(count, np.random.default_rng(1))
    puzzles, _ = generate(count, np.random.default_rng(1), (0, 17))
    drawn = np.bincount((puzzles > 0).sum(axis=1) - (minimal > 0).sum(axis=1), minlength=18)
    assert len(drawn) == 18
    assert drawn.min() > count / 60


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    one, other = (generate(50, np.random.default_rng(7), (0, 17)) for _ in range(2))
    assert one[0].tobytes() == other[0].tobytes()
    assert one[1].tobytes() == other[1].tobytes()
    third = generate(50, np.random.default_rng(8), (0, 17))
    assert (third[1] != one[1]).any(axis=1).all()


def test_no_grid_comes_twice() -> None:
    count = 3000 if COMPILED else 50
    _, solutions = generate(count, np.random.default_rng(2))
    assert len(np.unique(solutions, axis=0)) == count


def test_plain_python_gives_the_same_bytes(plain_bitboards: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with_numba = generate(25, np.random.default_rng(11), (0, 17))
    monkeypatch.setattr(exact, "bitboards", plain_bitboards)
    without = generate(25, np.random.default_rng(11), (0, 17))
    assert with_numba[0].tobytes() == without[0].tobytes()
    assert with_numba[1].tobytes() == without[1].tobytes()


def test_version_1_of_the_generator_is_what_it_was() -> None:
    assert exact.GENERATOR_VERSION == 1
    puzzles, _ = generate(2, np.random.default_rng(0), 1)
    assert ["".join(map(str, puzzle)) for puzzle in puzzles] == [
        "070000900205900000000050401009700004004002030002109000000006003800070040007030500",
        "004020700002190504000740802020070008910000000508000000400900005080030006009210000",
    ]


@pytest.mark.parametrize("extra", [-1, 51, (5, 3)])
def test_extra_givens_out_of_range_are_refused(extra: int | tuple[int, int]) -> None:
    with pytest.raises(InputError, match="extra givens"):
        generate(1, np.random.default_rng(0), extra)
