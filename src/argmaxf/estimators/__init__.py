"""scikit-learn estimators for both approaches."""

from argmaxf.estimators.auto import AutoFClassifier
from argmaxf.estimators.cost_sensitive import CostSensitiveFClassifier
from argmaxf.estimators.expected import ExpectedFClassifier
from argmaxf.estimators.joint import JointFClassifier
from argmaxf.estimators.margin import MarginFClassifier
from argmaxf.estimators.report import Report
from argmaxf.estimators.shift import ShiftWarning
from argmaxf.estimators.softf import SoftFClassifier
from argmaxf.estimators.threshold import ThresholdFClassifier

__all__ = [
    "AutoFClassifier",
    "CostSensitiveFClassifier",
    "ExpectedFClassifier",
    "JointFClassifier",
    "MarginFClassifier",
    "Report",
    "ShiftWarning",
    "SoftFClassifier",
    "ThresholdFClassifier",
]
