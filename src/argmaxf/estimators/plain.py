"""ML^.5: the classifier as it is, and a classifier whose scores are already there."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from argmaxf.estimators.base import MetaFClassifier
from argmaxf.estimators.labels import Labels

NEUTRAL = {"predict_proba": 0.5, "decision_function": 0.0}


class PlainClassifier(MetaFClassifier):
    """Any classifier at its own threshold, for every kind of target (ML^.5 in the paper)."""

    def __init__(self, estimator: Any, *, pos_label: Any = None) -> None:
        self.estimator = estimator
        self.pos_label = pos_label

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier."""
        target, weight = self._read(X, y, sample_weight)
        self._fit_scorer(X, target, self._fit_params(weight), tuple(NEUTRAL))
        return self

    def _margin(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self._scorer.predict(X) - NEUTRAL[self._scorer.method])


class GivenScores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose input is its scores, one column per label.

    With it, methods that wrap a classifier can be compared on one table of out-of-fold scores. Such
    a table has a block of columns for each of `kinds`: probabilities first where there are any, and
    scores to be cut last.
    """

    def __init__(self, labels: Labels, kinds: tuple[str, ...], settled: bool = True) -> None:
        self.labels = labels
        self.kinds = kinds
        self.settled = settled  # whether the probabilities are to be taken as they are

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels' classes."""
        return self.labels.classes

    @available_if(lambda self: self.kinds[0] == "predict_proba")
    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the first block, as probabilities."""
        return self.labels.both(X[:, : self.labels.n_columns])

    @available_if(lambda self: self.kinds[-1] != "predict_proba")
    def decision_function(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the last block, as decision scores."""
        return self.labels.orient(X[:, -self.labels.n_columns :])

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing: the scores are given."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True
