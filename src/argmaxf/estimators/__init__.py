"""scikit-learn estimators for both approaches."""

from argmaxf.estimators.cost_sensitive import CostSensitiveFClassifier
from argmaxf.estimators.doubts import CalibrationWarning
from argmaxf.estimators.expected import ExpectedFClassifier
from argmaxf.estimators.joint import JointFClassifier
from argmaxf.estimators.margin import MarginFClassifier
from argmaxf.estimators.rowwise import RowwiseFClassifier, SmallBatchWarning
from argmaxf.estimators.shift import ShiftWarning
from argmaxf.estimators.softf import SoftFClassifier
from argmaxf.estimators.threshold import ThresholdFClassifier

__all__ = [
    "CalibrationWarning",
    "CostSensitiveFClassifier",
    "ExpectedFClassifier",
    "JointFClassifier",
    "MarginFClassifier",
    "RowwiseFClassifier",
    "ShiftWarning",
    "SmallBatchWarning",
    "SoftFClassifier",
    "ThresholdFClassifier",
]
