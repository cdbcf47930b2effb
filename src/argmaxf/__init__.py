"""argmaxf: the predictions with the highest F-measure, exact and fast, for any β."""

from argmaxf.empirical.threshold import Curve, Threshold, empirical_f_curve, maximize_empirical_f
from argmaxf.metric import fbeta_from_counts, jaccard_from_counts

__version__ = "0.1.0"

__all__ = [
    "Curve",
    "Threshold",
    "__version__",
    "empirical_f_curve",
    "fbeta_from_counts",
    "jaccard_from_counts",
    "maximize_empirical_f",
]
