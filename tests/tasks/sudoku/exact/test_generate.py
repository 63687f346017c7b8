from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrn._compat import COMPILED
from rrn.errors import InputError
from rrn.tasks.sudoku import exact
from rrn.tasks.sudoku.exact import (
    count_guesses,
    count_solutions,
    generate,
    generate_few_givens,
    generate_hard,
    solve_exactly,
)
from rrn.tasks.sudoku.grid import solves
from rrn.tasks.sudoku.symmetry import draw_symmetries, fingerprints


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


def test_version_2_of_the_generator_is_what_it_was() -> None:
    assert exact.GENERATOR_VERSION == 2
    puzzles, _ = generate(2, np.random.default_rng(0), 1)
    assert ["".join(map(str, puzzle)) for puzzle in puzzles] == [
        "070000900205900000000050401009700004004002030002109000000006003800070040007030500",
        "004020700002190504000740802020070008910000000508000000400900005080030006009210000",
    ]


@pytest.mark.parametrize("extra", [-1, 51, (5, 3)])
def test_extra_givens_out_of_range_are_refused(extra: int | tuple[int, int]) -> None:
    with pytest.raises(InputError, match="extra givens"):
        generate(1, np.random.default_rng(0), extra)


def is_minimal(puzzle: np.ndarray) -> bool:
    clues = np.flatnonzero(puzzle)
    without = np.tile(puzzle, (len(clues), 1))
    without[np.arange(len(clues)), clues] = 0
    return bool((count_solutions(without) == 2).all())


@pytest.fixture(scope="module")
def hard() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eight hard puzzles of one walk or more, their solutions and guesses."""
    if not COMPILED:
        pytest.skip("without numba the search for hard puzzles takes minutes: NOT tried")
    return generate_hard(8, np.random.default_rng(0), 10)


def test_hard_puzzles_are_rated_unique_minimal_and_unrelated(hard: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    puzzles, solutions, guesses = hard
    found, counts = solve_exactly(puzzles)
    assert (counts == 1).all()
    assert (found == solutions).all()
    assert guesses.min() >= 10
    assert (guesses == count_guesses(puzzles)).all()
    assert all(is_minimal(puzzle) for puzzle in puzzles)
    assert len(np.unique(fingerprints(solutions))) == len(solutions)


def test_hard_puzzles_are_far_harder_than_generated_ones(hard: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    generated = count_guesses(generate(500, np.random.default_rng(0))[0])
    assert (generated >= 10).mean() < 0.05
    assert np.median(hard[2]) > np.quantile(generated, 0.99)


def test_the_same_seed_gives_the_same_hard_puzzles_and_relatives_are_avoided(
    hard: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    again = generate_hard(8, np.random.default_rng(0), 10)
    assert all(one.tobytes() == other.tobytes() for one, other in zip(hard, again, strict=True))
    related = draw_symmetries(2, np.random.default_rng(1)).apply(hard[1][[0, 3]])
    others = generate_hard(8, np.random.default_rng(0), 10, avoid=fingerprints(related))
    assert (others[0][:6] == hard[0][[1, 2, 4, 5, 6, 7]]).all()
    assert not np.isin(fingerprints(others[1]), fingerprints(related)).any()


def test_plain_python_walks_to_the_same_hard_puzzles(plain_bitboards: ModuleType) -> None:
    kept = []
    for module in (exact.walks, plain_bitboards.walks):
        puzzles, solutions = np.zeros((2, 2, 81), dtype=np.uint8)
        count = module.walk_to_hard(np.array([1, 2, 3, 4]), 1, puzzles, solutions)
        kept.append((count, puzzles.tobytes(), solutions.tobytes()))
        assert count == 2
        assert solves(solutions, puzzles).all()
        assert ((puzzles[0] == puzzles[1]) & (puzzles[0] > 0)).sum() <= exact.walks.MOST_IN_COMMON
    assert kept[0] == kept[1]


def test_no_hard_puzzles_and_too_easy_ones() -> None:
    assert [len(part) for part in generate_hard(0, np.random.default_rng(0))] == [0, 0, 0]
    with pytest.raises(InputError, match="least_guesses: expected at least 1, got 0"):
        generate_hard(1, np.random.default_rng(0), 0)


@pytest.mark.skipif(not COMPILED, reason="without numba the walk takes minutes: NOT tried")
def test_thin_puzzles_have_fewer_givens_than_any_generated_one() -> None:
    puzzles, solutions = generate_few_givens(20, np.random.default_rng(0))
    found, counts = solve_exactly(puzzles)
    assert (counts == 1).all()
    assert (found == solutions).all()
    assert all(is_minimal(puzzle) for puzzle in puzzles)
    givens = (puzzles > 0).sum(1)
    assert givens.mean() < 21 < (generate(200, np.random.default_rng(0))[0] > 0).sum(1).min() + 1
    assert len(np.unique(puzzles, axis=0)) == 20
    again = generate_few_givens(20, np.random.default_rng(0))
    assert all(one.tobytes() == other.tobytes() for one, other in zip((puzzles, solutions), again, strict=True))
    assert [len(part) for part in generate_few_givens(0, np.random.default_rng(0))] == [0, 0]


def test_plain_python_walks_to_the_same_puzzles_with_few_givens(plain_bitboards: ModuleType) -> None:
    """The length of the walk is a compiled constant, so the plain walk is as long: seconds for one puzzle."""
    kept = []
    for module in (exact.walks, plain_bitboards.walks):
        puzzles, solutions = np.zeros((2, 1, 81), dtype=np.uint8)
        module.walk_to_few_givens(np.array([1, 2, 3, 4]), puzzles, solutions)
        assert solves(solutions, puzzles).all()
        kept.append((puzzles.tobytes(), solutions.tobytes()))
    assert kept[0] == kept[1]
