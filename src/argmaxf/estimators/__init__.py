"""scikit-learn estimators for both approaches."""

from argmaxf.estimators.calibration import CalibrationWarning
from argmaxf.estimators.cost_sensitive_f import CostSensitiveFClassifier
from argmaxf.estimators.expected_f import ExpectedFClassifier, SmallBatchWarning
from argmaxf.estimators.joint_f import JointFClassifier
from argmaxf.estimators.labels import MultilabelStratifiedKFold
from argmaxf.estimators.linear_f import MarginFClassifier, SoftFClassifier
from argmaxf.estimators.meta import FixedThresholdFClassifier
from argmaxf.estimators.shift import ShiftWarning
from argmaxf.estimators.threshold_f import ThresholdFClassifier

__all__ = [
    "CalibrationWarning",
    "CostSensitiveFClassifier",
    "ExpectedFClassifier",
    "FixedThresholdFClassifier",
    "JointFClassifier",
    "MarginFClassifier",
    "MultilabelStratifiedKFold",
    "ShiftWarning",
    "SmallBatchWarning",
    "SoftFClassifier",
    "ThresholdFClassifier",
]
