import numpy as np

from rrn.tasks.evaluation import by_attempts


def test_accuracy_against_compute() -> None:
    """A puzzle solved in step 20 of the third attempt of 100 steps cost 220 steps; or 140, if the second and the third
    attempt share a search side by side."""
    found = np.array([True, True, False, True]), np.array([1, 3, 3, 2]), np.array([7, 20, 100, 8])
    shared = by_attempts(*found, 3, 100, shared=True)
    assert list(shared["accuracy_by_total_steps"].values()) == [0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0.5, 0.75, 0.75]
    assert shared["accuracy_by_attempts"] == {"1": 0.25, "3": 0.75}
    wider = by_attempts(*found, 4, 32, shared=True)["accuracy_by_total_steps"]
    assert wider["64"] == 0.5, "32 + 3 · 8 steps, but 32 + 3 · 20 are more"
    apart = by_attempts(*found, 3, 100, shared=False)
    assert apart["accuracy_by_attempts"] == {"1": 0.25, "2": 0.5, "3": 0.75}
    shares = apart["accuracy_by_total_steps"]
    assert list(map(int, shares)) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert list(shares.values()) == [0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0.5, 0.75, 0.75]
