"""When the world moves: whether a batch looks like the training rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from argmaxf.estimators.scores import LabelScorer

SURE = 1e-3  # chance of a false alarm, over all labels together
LARGE = 0.1  # distance between the distributions that matters; large batches find any difference


BY_BATCH = ("expected F", "blended F")  # methods that look at the batch they decide
READINGS = (
    "Two readings, which scores alone cannot tell apart. (1) Other rows came, each as likely to be "
    "positive as such rows were in training: the probabilities hold, thresholds tuned in training "
    "do not; ExpectedFClassifier decides by the batch itself. (2) The share of positives moved, "
    "and rows of each class look as before: the probabilities are off; "
    "ExpectedFClassifier(deploy_rate=...) moves them to the new share, or to its estimate with "
    "deploy_rate='estimate'. Each remedy harms where the other reading is true (docs/shift.md)."
)


class ShiftWarning(UserWarning):
    """The batch to be predicted is unlike the training data."""


@dataclass(frozen=True)
class Familiar:
    """Models of folds, and their scores of the rows held out: what a like batch would score.

    Scores of two models differ more than those of like batches, so the same models score both: each
    its share of the batch, as each scored its own fold.
    """

    models: list[LabelScorer]
    scores: NDArray[np.float64]

    def warn_if_unlike(self, X: Any, chosen: str) -> None:
        """Warn where a label's scores differ (Kolmogorov-Smirnov, Bonferroni over labels)."""
        shares = [m.predict(X)[i :: len(self.models)] for i, m in enumerate(self.models)]
        pairs = zip(self.scores.T, np.concatenate(shares).T, strict=True)
        tests = [ks_2samp(*pair, method="asymp") for pair in pairs]
        distance = max(test.statistic for test in tests)
        chance = min(1.0, len(tests) * min(test.pvalue for test in tests))
        if chance < SURE and distance > LARGE:
            seen = f"its scores differ by {distance:.2f} (Kolmogorov-Smirnov, p = {chance:.1g})"
            message = (
                f"this batch is unlike the training data: {seen}. {READINGS} {_advice(chosen)}"
            )
            warnings.warn(message, ShiftWarning, stacklevel=3)


def _advice(chosen: str) -> str:
    """Say what the method in use is worth under each reading."""
    if chosen in BY_BATCH:
        return f"The method in use ({chosen}) is right for the first and wrong for the second."
    return f"The method in use ({chosen}) was tuned in training, and is right for neither."
