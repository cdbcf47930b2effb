"""scikit-learn estimators for both approaches."""

from argmaxf.estimators.expected import ExpectedFClassifier
from argmaxf.estimators.threshold import ThresholdFClassifier

__all__ = ["ExpectedFClassifier", "ThresholdFClassifier"]
