"""Thresholds tuned on rows: their labels, scores and weights, and how the best is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.validation import ones_unless
from argmaxf.empirical.cuts import threshold_std
from argmaxf.empirical.guarantees import Guarantee
from argmaxf.empirical.threshold import Threshold, maximize_empirical_f
from argmaxf.estimators.calibration import Calibrated, from_folds
from argmaxf.estimators.deployed import Deployed
from argmaxf.estimators.scores import LabelScorer
from argmaxf.estimators.sides import tune
from argmaxf.measures import Measure


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


class Tuning(NamedTuple):
    """How thresholds are found: what is maximized, over what, and what it must keep to."""

    measure: Measure
    average: str
    confidence_level: float | None
    limits: dict[str, float]

    def thresholds(self, rows: TunedRows) -> tuple[Floats, list[Guarantee] | None]:
        """Return the best threshold of each label, and what is promised of it."""
        if self.together:
            return np.full(rows.columns.shape[1], self._best(rows).threshold), None
        if rows.weight is not None and rows.weight.ndim == 2:
            return np.concatenate([self.thresholds(label)[0] for label in rows.labels()]), None
        if self.confidence_level is None and not self.limits:
            return tune(rows.columns, rows.scores, self.measure, rows.weight), None
        best = self._best(rows)
        found = np.asarray(best.threshold)
        return found, None if self.confidence_level is None else best.guarantee.tolist()

    def reached(self, rows: TunedRows, threshold: Floats) -> Any:
        """Return what each label reaches there, or all labels together."""
        if self.together:
            return self._best(rows).value
        return np.asarray(self.measure.quotient(*rows.counts(threshold)))

    def spread(self, rows: TunedRows, random_state: Any) -> list[float]:
        """Return how far each threshold would move on other data of this size.

        One that labels share is not any label's own, of which alone it can be said: NaN.
        """
        if self.together:
            return [np.nan] * rows.columns.shape[1]
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        return [
            threshold_std(y[:, 0], score[:, 0], rng, measure=self.measure, weight=weight)
            for y, score, weight in rows.labels()
        ]

    @property
    def together(self) -> bool:
        """Whether all labels have one threshold."""
        return self.average != "macro"

    def _best(self, rows: TunedRows) -> Threshold:
        """Return the best threshold of each label, or of all labels."""
        return maximize_empirical_f(
            rows.columns,
            rows.scores,
            measure=self.measure,
            average=self.average,
            sample_weight=rows.weight,
            confidence_level=self.confidence_level,
            **self.limits,
        )
