import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rrn._compat import COMPILED
from rrn.tasks.sudoku.exact import count_solutions, generate
from rrn.tasks.sudoku.grid import is_solved, places, solves
from rrn.tasks.sudoku.symmetry import Symmetries, draw_relabellings, draw_symmetries, fingerprints, random_symmetry

seeds = st.integers(0, 2**32)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_a_symmetry_keeps_puzzles_puzzles(some: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    puzzles, solutions = some
    moved, moved_solutions = random_symmetry(puzzles, solutions, np.random.default_rng(seed))
    assert moved.dtype == moved_solutions.dtype == np.uint8
    assert solves(moved_solutions, moved).all()
    assert (count_solutions(moved) == 1).all()
    assert ((moved > 0).sum(axis=1) == (puzzles > 0).sum(axis=1)).all()
    assert (moved != puzzles).any(axis=1).all()


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_the_inverse_leads_back(some: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    symmetries = draw_symmetries(len(some[0]), np.random.default_rng(seed))
    back = Symmetries(symmetries.cells.argsort(1), symmetries.digits.argsort(1).astype(np.uint8))
    assert (back.apply(symmetries.apply(some[0])) == some[0]).all()
    assert (symmetries.apply(back.apply(some[1])) == some[1]).all()


def test_every_kind_of_symmetry_is_drawn() -> None:
    symmetries = draw_symmetries(4000, np.random.default_rng(0))
    assert (np.sort(symmetries.cells, axis=1) == np.arange(81)).all()
    assert (np.sort(symmetries.digits, axis=1) == np.arange(10)).all()
    assert (symmetries.digits[:, 0] == 0).all()
    first, below, right = symmetries.cells[:, 0], symmetries.cells[:, 9], symmetries.cells[:, 1]
    assert np.bincount(first, minlength=81).min() > 20
    assert all(np.bincount(symmetries.digits[:, 1], minlength=10)[1:] > 300)
    row, column, box = places()
    upright = row[first] == row[right]
    assert 0.45 < upright.mean() < 0.55
    assert (upright == (column[first] == column[below])).all()
    assert (box[first] == box[symmetries.cells[:, 20]]).all()
    in_order = upright & (right == first + 1)
    assert 0 < in_order.sum() < upright.sum()


def test_a_relabelling_moves_no_cell(some: tuple[np.ndarray, np.ndarray]) -> None:
    relabelled = draw_relabellings(len(some[0]), np.random.default_rng(0)).apply(some[0])
    assert ((relabelled > 0) == (some[0] > 0)).all()
    assert (relabelled != some[0]).any()


def test_the_same_seed_gives_the_same_symmetries(some: tuple[np.ndarray, np.ndarray]) -> None:
    one, other = (random_symmetry(*some, np.random.default_rng(3)) for _ in range(2))
    assert one[0].tobytes() == other[0].tobytes()
    assert one[1].tobytes() == other[1].tobytes()


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_a_fingerprint_survives_every_symmetry(some: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    moved = draw_symmetries(len(some[1]), np.random.default_rng(seed)).apply(some[1])
    assert is_solved(moved).all()
    assert (fingerprints(moved) == fingerprints(some[1])).all()


def test_unrelated_grids_have_different_fingerprints() -> None:
    count = 2000 if COMPILED else 50
    _, solutions = generate(count, np.random.default_rng(8))
    assert len(np.unique(fingerprints(solutions))) == count
