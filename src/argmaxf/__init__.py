"""argmaxf: the predictions with the highest F-measure, exact and fast, for any β."""

from argmaxf.metric import fbeta_from_counts, jaccard_from_counts

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "fbeta_from_counts",
    "jaccard_from_counts",
]
