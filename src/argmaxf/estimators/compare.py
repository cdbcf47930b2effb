"""Held-out rows on which methods are compared, each method seeing exactly the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from argmaxf.estimators.labels import Labels, constants_said
from argmaxf.estimators.plain import GivenScores
from argmaxf.estimators.report import Held, rate_rows, rate_sets

SETS = 400  # how many sets are drawn where their size is given


@dataclass(frozen=True)
class HeldOut:
    """Targets, folds and out-of-fold scores of the rows, and the sets of them to be predicted."""

    labels: Labels
    target: NDArray[Any]
    weight: NDArray[np.float64] | None
    scores: NDArray[np.float64]
    method: str
    splits: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    sets: list[list[NDArray[np.int64]]]  # of each fold; the fold itself where no size is given
    whole: bool  # whether the sets are the folds

    def rate_wrapper(self, wrap: Callable[[Any], Any], beta: float) -> Held:
        """Rate a method that wraps a classifier, from the scores: refitted for each fold."""
        given = FrozenEstimator(GivenScores(self.labels, self.method))
        guesses = []
        for (train, _), sets in zip(self.splits, self.sets, strict=True):
            fitted = self._fit(wrap(given), train)
            guesses += [self.labels.columns(fitted.predict(self.scores[rows])) for rows in sets]
        return self._rate(guesses, beta)

    def rate_predictions(self, predicted: Any, beta: float) -> Held:
        """Rate out-of-fold predictions, one for each row."""
        columns = self.labels.columns(predicted)
        return self._rate([columns[rows] for sets in self.sets for rows in sets], beta)

    def _fit(self, classifier: Any, rows: Any) -> Any:
        weight = None if self.weight is None else self.weight[rows]
        with constants_said():
            return classifier.fit(self.scores[rows], self.target[rows], sample_weight=weight)

    def _rate(self, guesses: list[Any], beta: float) -> Held:
        truth = self.labels.columns(self.target)
        sets = [rows for sets in self.sets for rows in sets]
        if not self.whole:
            return rate_sets(truth, guesses, sets, beta)
        rows = np.concatenate(sets)
        weight = None if self.weight is None else self.weight[rows]
        return rate_rows(truth[rows], np.concatenate(guesses), beta, weight)


def draw_sets(
    splits: list[tuple[Any, NDArray[np.int64]]], size: int | None, rng: np.random.Generator
) -> list[list[NDArray[np.int64]]]:
    """Return sets of `size` rows out of each fold, or the folds themselves."""
    if size is None:
        return [[test] for _, test in splits]
    each = -(-SETS // len(splits))
    return [[rng.choice(test, size, replace=size > len(test)) for _ in range(each)]
            for _, test in splits]  # fmt: skip
