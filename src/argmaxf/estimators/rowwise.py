"""Rows as they come: a fitted classifier that decides each row alone, by thresholds it keeps."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if

from argmaxf._base.arrays import Floats
from argmaxf.estimators.base import FClassifier
from argmaxf.estimators.sides import boundary, decided_gain, margin
from argmaxf.expected.decision import Decision

FEW = 3.0  # positives that a batch should hold on average: with fewer, points of F are lost


class SmallBatchWarning(UserWarning):
    """The batch is too small to be decided as a whole."""


class SmallBatches:
    """What is said of the first small batch only; Python's own filter forgets too easily."""

    def __init__(self) -> None:
        self.said = False

    def warn(self, n: int, rates: Floats) -> None:
        """Warn the caller's caller that n rows hold too few positives at these rates."""
        few = least_rows(rates)
        if self.said or n >= few:
            return
        self.said = True
        warnings.warn(
            f"a batch of fewer than {np.ceil(few):.0f} rows holds fewer than {FEW:.0f} positives "
            "on average, and rows are selected that no larger batch would select; for rows as they "
            "come, freeze() gives a classifier that decides each alone",
            SmallBatchWarning,
            stacklevel=3,
        )


def least_rows(rates: Floats) -> float:
    """Return how many rows hold enough positives on average, at the median of these rates."""
    return float(FEW / np.median(rates)) if rates.size else 0.0


def warn_of_small_reference(n: int, rates: Floats) -> None:
    """Warn the caller's caller that a threshold comes from too few rows."""
    few = least_rows(rates)
    if n < few:
        warnings.warn(
            f"a reference of fewer than {np.ceil(few):.0f} rows holds fewer than {FEW:.0f} "
            "positives on average, and its threshold selects rows that no larger one would select; "
            "give freeze() more rows, without labels",
            SmallBatchWarning,
            stacklevel=3,
        )


class RowwiseFClassifier(MetaEstimatorMixin, FClassifier):
    """A fitted classifier that decides each row alone; `freeze` makes it.

    Rows may come one at a time, in any order and any number: the same row always gets the same
    labels. It is scikit-learn's `FixedThresholdClassifier` for every kind of target. Like a
    `FrozenEstimator` it stays as it is when it is cloned or fitted.

    Parameters
    ----------
    estimator : classifier
        The fitted classifier of this package that was frozen.

    Attributes
    ----------
    threshold_ : float, ndarray or None
        The probability from which a label is predicted, one for each label where F is macro. Of a
        classifier that has a threshold already it is that one, on the scores it cuts
        (`response_method_`). None where each row is decided over its labels, by no threshold.
    expected_ : float or ndarray
        The F to expect on rows like the reference, NaN where nothing can be promised: of a tuned
        threshold, too, as the F it reached (`estimator.f_`) is the best of many on the same rows,
        and new rows fall short of it.
    std_ : float or ndarray
        Standard deviation of F on a set of the reference's size.
    classes_ : ndarray
        The labels, as the frozen classifier has them.
    """

    threshold_: Any = None
    expected_: Any = np.nan
    std_: Any = np.nan
    _cuts: bool = False  # whether the thresholds here decide, and not the classifier itself
    _gain: Any = 1.0  # what a margin is worth to each class, where classes compete for a row

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @classmethod
    def of(cls, fitted: Any, *, expected: Any = np.nan, std: Any = np.nan) -> Self:
        """Return a classifier that decides as `fitted` does, which looks at single rows already."""
        frozen = cls(fitted)
        frozen._labels, frozen.classes_ = fitted._labels, fitted.classes_
        frozen.expected_, frozen.std_ = expected, std
        frozen.threshold_ = getattr(fitted, "threshold_", None)
        return frozen

    def cut_like(self, decision: Decision, proba: NDArray[np.float64], average: str) -> Self:
        """Take the thresholds from a decision about a reference set with these probabilities."""
        selected = np.asarray(decision.selected).reshape(proba.shape)
        one = self._labels.kind == "binary" or average == "micro"
        middle = np.squeeze(boundary(proba, selected, average), axis=0)
        threshold = np.where(selected.any(axis=None if average == "micro" else 0), middle, np.inf)
        self.threshold_, self._cuts = float(threshold[0]) if one else threshold, True
        if self._labels.kind == "multiclass":
            self._gain = decided_gain(proba, selected, self.estimator._asked())
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing: the classifier is fitted, and its thresholds are kept.

        Parameters
        ----------
        X : object
            Ignored.
        y : object
            Ignored.

        Returns
        -------
        RowwiseFClassifier
            The classifier itself.
        """
        return self

    def _margin(self, X: Any) -> NDArray[np.float64]:
        if not self._cuts:
            return np.asarray(self.estimator._margin(X))
        return margin(self.estimator._proba(X), self.threshold_, self._gain)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the frozen classifier.

        Parameters
        ----------
        X : array-like
            The rows.

        Returns
        -------
        ndarray
            Of each class, or of each label of a multilabel target.
        """
        proba: NDArray[np.float64] = self.estimator.predict_proba(X)
        return proba

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")
