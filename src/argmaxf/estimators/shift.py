"""When the world moves: whether a batch looks like training, and at which rate of positives."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from argmaxf.empirical.interval import Interval
from argmaxf.empirical.rates import estimate_rate
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.scores import LabelScorer
from argmaxf.prior import check_rate
from argmaxf.validation import check_choice

SURE = 1e-3  # chance of a false alarm, over all labels together
LARGE = 0.1  # distance between the distributions that matters; large batches find any difference


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
    if chosen == "expected F":
        return "Expected F, in use, is right for the first and wrong for the second."
    return f"The method in use ({chosen}) was tuned in training, and is right for neither."


def check_deploy_rate(deploy_rate: Any, labels: Labels) -> None:
    """Refuse what is no rate for each label, or "estimate"."""
    if deploy_rate is None:
        return
    if labels.kind == "multiclass":
        raise ValueError("deploy_rate is for binary and multilabel targets, got a multiclass one")
    if isinstance(deploy_rate, str):
        check_choice("deploy_rate", deploy_rate, ("estimate",))
    elif np.size(check_rate("deploy_rate", deploy_rate)) not in (1, labels.n_columns):
        raise ValueError(
            f"deploy_rate must be a number or one for each of {labels.n_columns} labels, got "
            f"{np.size(deploy_rate)}"
        )


def estimated_rates(proba: NDArray[np.float64], train_rates: Any) -> list[Interval | None]:
    """Return the most likely rate of each label; None where training saw it always or never."""
    return [
        estimate_rate(p, train_rate=float(rate)) if 0.0 < rate < 1.0 else None
        for p, rate in zip(proba.T, train_rates, strict=True)
    ]
