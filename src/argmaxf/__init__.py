"""argmaxf: the predictions with the highest F-measure, exact and fast, for any β."""

from typing import Any

from argmaxf.empirical.interval import Interval, f_interval
from argmaxf.empirical.threshold import Curve, Threshold, empirical_f_curve, maximize_empirical_f
from argmaxf.expected.decision import Decision, ExpectedF
from argmaxf.expected.evaluate import expected_f, expected_f_curve
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.sketch import ProbabilitySketch
from argmaxf.frames import decide, summarize
from argmaxf.metric import fbeta_from_counts, jaccard_from_counts

__version__ = "0.1.0"

__all__ = [
    "CostSensitiveFClassifier",
    "Curve",
    "Decision",
    "ExpectedF",
    "ExpectedFClassifier",
    "Interval",
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
    "summarize",
]


def __getattr__(name: str) -> Any:
    """Import the estimators, and scikit-learn with them, when one is first asked for."""
    if name.endswith("FClassifier") and name in __all__:
        from argmaxf import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
