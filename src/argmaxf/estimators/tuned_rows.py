"""The rows that a threshold is tuned on: their labels, scores and weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from argmaxf.arrays import Bools, Floats
from argmaxf.estimators.calibration import Calibrated, from_folds
from argmaxf.estimators.deployed import Deployed
from argmaxf.estimators.scores import LabelScorer
from argmaxf.validation import ones_unless


class TunedRows(NamedTuple):
    """Rows that thresholds are tuned on, with the scores that are cut."""

    columns: Bools
    scores: Floats
    weight: Floats | None  # of each row, or of each of its labels

    @classmethod
    def of(cls, columns: Bools, scores: Floats, weight: Floats | None) -> Self:
        """Take the rows that were held out: the scores of others are NaN."""
        rows = np.flatnonzero(~np.isnan(scores).any(axis=1))
        return cls(columns[rows], scores[rows], None if weight is None else weight[rows])

    def at(self, deployed: Deployed, rates: Floats) -> TunedRows:
        """Return the rows, counted as where the rates are these."""
        moved = deployed.weights(self.columns, rates)
        return self._replace(weight=moved * ones_unless(self.weight, len(moved))[:, None])

    def labels(self) -> Iterator[TunedRows]:
        """Give the rows of each label by itself."""
        weight = self.weight
        for j in range(self.columns.shape[1]):
            own = weight[:, j] if weight is not None and weight.ndim == 2 else weight
            yield TunedRows(self.columns[:, [j]], self.scores[:, [j]], own)

    def counts(self, threshold: Any) -> tuple[Any, Any, Any, Any]:
        """Return true positives, predicted and actual positives of each label, and all rows."""
        selected = self.scores >= threshold
        weight = ones_unless(self.weight, len(selected))
        weight = weight if weight.ndim == 2 else weight[:, None]
        cells = (selected & self.columns, selected, self.columns, np.ones_like(selected))
        true, predicted, actual, rows = (np.sum(weight * cell, axis=0) for cell in cells)
        return true, predicted, actual, rows

    def curves(self, scorer: LabelScorer) -> Calibrated:
        """Return what turns the scores into probabilities: one curve for each label."""
        every = [np.arange(len(self.scores))]
        return from_folds([scorer], every, self.scores, self.columns, "isotonic", self.weight)
