"""argmaxf: the predictions with the highest F-measure, exact and fast, for any β."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from argmaxf.empirical.interval import Interval, f_interval
from argmaxf.empirical.threshold import Curve, Threshold, empirical_f_curve, maximize_empirical_f
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.dependent import (
    maximize_expected_f_from_joint,
    maximize_expected_f_from_mixture,
    maximize_expected_f_from_samples,
)
from argmaxf.expected.evaluate import expected_f, expected_f_curve
from argmaxf.expected.general import JointDecision
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.sketch import ProbabilitySketch
from argmaxf.metric import fbeta_from_counts, jaccard_from_counts

if TYPE_CHECKING:
    from argmaxf.frames import decide, summarize

__version__ = "0.1.0"

__all__ = [
    "AutoFClassifier",
    "CostSensitiveFClassifier",
    "Curve",
    "Decision",
    "ExpectedF",
    "ExpectedFClassifier",
    "Interval",
    "JointDecision",
    "JointFClassifier",
    "MarginFClassifier",
    "ProbabilitySketch",
    "SoftFClassifier",
    "Threshold",
    "ThresholdFClassifier",
    "__version__",
    "decide",
    "empirical_f_curve",
    "expected_f",
    "expected_f_curve",
    "f_interval",
    "fbeta_from_counts",
    "jaccard_from_counts",
    "maximize_empirical_f",
    "maximize_expected_f",
    "maximize_expected_f_from_joint",
    "maximize_expected_f_from_mixture",
    "maximize_expected_f_from_samples",
    "summarize",
]


def __getattr__(name: str) -> Any:
    """Import what needs scikit-learn or Narwhals when it is first asked for."""
    if name in __all__:
        part = "estimators" if name.endswith("FClassifier") else "frames"
        return getattr(import_module(f"argmaxf.{part}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
