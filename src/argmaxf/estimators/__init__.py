"""scikit-learn estimators for both approaches."""

from argmaxf.estimators.cost_sensitive import CostSensitiveFClassifier
from argmaxf.estimators.expected import ExpectedFClassifier
from argmaxf.estimators.margin import MarginFClassifier
from argmaxf.estimators.softf import SoftFClassifier
from argmaxf.estimators.threshold import ThresholdFClassifier

__all__ = [
    "CostSensitiveFClassifier",
    "ExpectedFClassifier",
    "MarginFClassifier",
    "SoftFClassifier",
    "ThresholdFClassifier",
]
