"""scikit-learn estimators for both approaches."""

from argmaxf.estimators.threshold import ThresholdFClassifier

__all__ = ["ThresholdFClassifier"]
