"""When the world moves: whether a batch looks like the training rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import ks_2samp

from argmaxf._base.arrays import Floats
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


class Distance(NamedTuple):
    """How far two tables of scores differ, in the label in which they do most."""

    largest: float  # Kolmogorov and Smirnov's
    chance: float  # of a distance like it between like tables, Bonferroni over all looks

    @classmethod
    def between(cls, one: Floats, other: Floats, looks: int = 1) -> Self:
        """Compare the scores of each label; `looks` is how many such pairs of tables there are."""
        if min(len(one), len(other)) < 2:  # nothing can be said
            return cls(0.0, 1.0)
        tests = [ks_2samp(*pair, method="asymp") for pair in zip(one.T, other.T, strict=True)]
        chance = min(1.0, looks * len(tests) * min(test.pvalue for test in tests))
        return cls(max(test.statistic for test in tests), chance)

    @property
    def matters(self) -> bool:
        """Whether it is more than chance, and large."""
        return self.chance < SURE and self.largest > LARGE


class ShiftWarning(UserWarning):
    """The batch to be predicted is unlike the training data."""


@dataclass(frozen=True)
class Familiar:
    """Models of folds, and their scores of the rows held out: what a like batch would score.

    Scores of two models differ more than those of like batches, so the same models score both: each
    its share of the batch, as each scored its own fold.
    """

    models: list[LabelScorer]
    scores: Floats

    def warn_if_unlike(self, X: Any, chosen: str) -> None:
        """Warn where a label's scores differ, more than by chance, and much."""
        shares = [m.predict(X)[i :: len(self.models)] for i, m in enumerate(self.models)]
        found = Distance.between(self.scores, np.concatenate(shares))
        if found.matters:
            warnings.warn(
                "this batch is unlike the training data: its scores differ by "
                f"{found.largest:.2f} (Kolmogorov-Smirnov, p = {found.chance:.1g}). {READINGS} "
                f"{_advice(chosen)}",
                ShiftWarning,
                stacklevel=3,
            )


def _advice(chosen: str) -> str:
    """Say what the method in use is worth under each reading."""
    if chosen in BY_BATCH:
        return f"The method in use ({chosen}) is right for the first and wrong for the second."
    return f"The method in use ({chosen}) was tuned in training, and is right for neither."
