"""Online prediction: a fitted classifier that decides each row alone, by fixed thresholds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from argmaxf._base.arrays import Floats
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.margins import margin
from argmaxf.estimators.meta import FClassifier


class FixedThresholdFClassifier(MetaEstimatorMixin, FClassifier):
    """A fitted classifier that decides each row alone; `freeze` returns it.

    The same row always gets the same labels, whatever it is predicted with. This is scikit-learn's
    `FixedThresholdClassifier` for every kind of target. Like a `FrozenEstimator` it does not change
    when it is cloned or fitted.

    Parameters
    ----------
    estimator : classifier
        The fitted classifier of this package that was frozen.

    Attributes
    ----------
    threshold_ : float, ndarray or None
        The probability from which a label is predicted, one for each label where F is macro:
        ``predict_proba(X)[:, 1] >= threshold_`` is `predict` for a binary target. Of a classifier
        without probabilities, its threshold on the scores. None where each row is decided over its
        labels.
    expected_ : float or ndarray
        The expected F on rows like the reference. NaN where it is not known; so for a tuned
        threshold, whose F on the tuning rows (`estimator.f_`) is higher than on new rows.
    std_ : float or ndarray
        Standard deviation of F on a set of the reference's size.
    classes_ : ndarray
        The labels, as the frozen classifier has them.
    """

    threshold_: Any = None
    expected_: Any = np.nan
    std_: Any = np.nan
    # What a margin on probabilities is worth to each class; None where the classifier decides.
    gain_: Any = None

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing: the classifier is fitted, and its thresholds are fixed.

        Parameters
        ----------
        X : object
            Ignored.
        y : object
            Ignored.

        Returns
        -------
        FixedThresholdFClassifier
            The classifier itself.
        """
        return self

    def _margin(self, X: Any) -> Floats:
        if self.gain_ is None:
            return self._labels.margins(self.estimator.decision_function(X))
        proba = self._labels.one(self.estimator.predict_proba(X))
        return margin(proba, self.threshold_, self.gain_)

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


def fix_threshold(fitted: Any, labels: Labels, **attributes: Any) -> FixedThresholdFClassifier:
    """Return a fitted classifier that decides each row as `fitted` does, or by `threshold_`.

    `attributes` are those of `FixedThresholdFClassifier`; a `threshold_` is one on probabilities.
    """
    frozen = FixedThresholdFClassifier(fitted)
    frozen.threshold_ = getattr(fitted, "threshold_", None)
    frozen.__dict__.update(_labels=labels, classes_=labels.classes, **attributes)
    return frozen


class FreezeMixin:
    """`freeze` for classifiers that can be turned into one with fixed thresholds."""

    def freeze(self, X_reference: Any = None) -> FixedThresholdFClassifier:
        """Return a fitted classifier that decides each row alone: for online prediction.

        Parameters
        ----------
        X_reference : array-like, default=None
            Rows like those to come, without labels. A classifier that decides a batch jointly takes
            the threshold of their decision, with a warning where they hold fewer than three
            positives on average; with ``deploy_rate="estimate"`` their rate is kept. By default the
            training rows, with their probabilities while held out.

        Returns
        -------
        FixedThresholdFClassifier
            With `threshold_`, and the expected F in `expected_` and `std_` where it is known: they
            are NaN where the probabilities are known to be wrong.
        """
        check_is_fitted(self)
        return self._freeze(X_reference)  # type: ignore[attr-defined,no-any-return]
