import numpy as np
import pytest

from rrn.errors import InputError
from rrn.tasks.evaluation import by_starts, restarts_of


def test_accuracy_against_compute() -> None:
    """What the third start of 100 steps solves at its 20th step has cost 220 steps; or 140, if the second and the third
    share a search, side by side."""
    found = np.array([True, True, False, True]), np.array([1, 3, 3, 2]), np.array([7, 20, 100, 8])
    shared = by_starts(*found, 3, 100, shared=True)
    assert list(shared["accuracy_by_total_steps"].values()) == [0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0.5, 0.75, 0.75]
    assert shared["accuracy_by_starts"] == {"1": 0.25, "3": 0.75}
    wider = by_starts(*found, 4, 32, shared=True)["accuracy_by_total_steps"]
    assert wider["64"] == 0.5, "32 + 3 · 8 steps, but 32 + 3 · 20 are more"
    apart = by_starts(*found, 3, 100, shared=False)
    assert apart["accuracy_by_starts"] == {"1": 0.25, "2": 0.5, "3": 0.75}
    shares = apart["accuracy_by_total_steps"]
    assert list(map(int, shares)) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert list(shares.values()) == [0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0.5, 0.75, 0.75]


def test_starts_are_counted_with_the_clean_one() -> None:
    assert [restarts_of(None, None, 8), restarts_of(2, None, 8), restarts_of(None, 3, 8)] == [8, 2, 2]
    with pytest.raises(InputError, match="say one of them"):
        restarts_of(2, 3, 8)
