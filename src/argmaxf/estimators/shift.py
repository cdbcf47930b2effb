"""Whether a batch looks like training: a two-sample test on its scores."""

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


class ShiftWarning(UserWarning):
    """The batch to be predicted is unlike the training data."""


@dataclass(frozen=True)
class Familiar:
    """A model, and its scores of rows it was not trained on: what a like batch would score.

    Scores of two models differ more than those of like batches, so one model scores both.
    """

    model: LabelScorer
    scores: NDArray[np.float64]

    def warn_if_unlike(self, X: Any, chosen: str) -> None:
        """Warn where a label's scores differ (Kolmogorov-Smirnov, Bonferroni over labels)."""
        pairs = zip(self.scores.T, self.model.predict(X).T, strict=True)
        tests = [ks_2samp(*pair, method="asymp") for pair in pairs]
        distance = max(test.statistic for test in tests)
        chance = min(1.0, len(tests) * min(test.pvalue for test in tests))
        if chance < SURE and distance > LARGE:
            warnings.warn(
                f"this batch is unlike the training data: its scores differ by {distance:.2f} "
                f"(Kolmogorov-Smirnov, p = {chance:.1g}), so a threshold tuned there is unsafe "
                f"here (section 4.1.2 of the paper); {_advice(chosen)}",
                ShiftWarning,
                stacklevel=3,
            )


def _advice(chosen: str) -> str:
    if chosen == "expected F":
        return "expected F, in use, decides by the probabilities of the batch itself"
    return f"{chosen} is in use, ExpectedFClassifier would decide by the batch itself"
