"""Estimators with the interface of scikit-learn."""

from rrn.estimators.classifier import RRNClassifier
from rrn.estimators.regressor import RRNRegressor

__all__ = ["RRNClassifier", "RRNRegressor"]
