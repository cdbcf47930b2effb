r"""Training boosted trees for F: soft F as an objective, and F at its best threshold as a metric.

Soft F replaces the decision about each row by its probability s = σ(z), z being the raw score of
the trees (`empirical/soft_f.py`). Boosting needs the derivatives of a loss in every z_i. The loss
is -D F. The constant D, the denominator of a perfect prediction, gives its derivatives the scale of
those of log loss. With g_i = D ∂F/∂s_i,

    first derivative   -g_i s_i (1 - s_i)
    second derivative  |g_i| s_i (1 - s_i)

The second one bounds the curvature that the sigmoid causes, |g_i s_i (1 - s_i) (1 - 2 s_i)|; what
the denominator of F adds is smaller by the number of rows. It is positive, as boosting requires.

Soft F has many local optima and no gradient where all scores are far from the threshold, so
boosting starts with log loss and goes on with soft F (`BoostedFScorer`).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from argmaxf._base.arrays import Floats
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.validation import (
    as_labels,
    as_scores,
    as_weights,
    check_unit_interval,
    ones_unless,
)
from argmaxf.empirical.soft_f import soft_f
from argmaxf.empirical.threshold import maximize_empirical_f
from argmaxf.measures import MeasureLike, Ratio, as_measure

__all__ = ["BestFMetric", "BoostedFScorer", "SoftFObjective"]


class SoftFObjective:
    """Soft F as the objective of LightGBM or XGBoost.

    Pass it as ``objective=`` of `LGBMClassifier` or `XGBClassifier`. Both call it with the labels,
    the raw scores and the weights of the training rows.

    Parameters
    ----------
    measure : str, Measure or callable, default="f1"
        What to maximize: F_β, Dice, Jaccard, Tversky, with smoothing or not.

    Notes
    -----
    Start with some rounds of log loss (`BoostedFScorer` does): soft F alone has local optima.
    A model trained with it has scores that are good for F at the best threshold; they are no
    probabilities.

    Examples
    --------
    >>> gradient, curvature = SoftFObjective()([1, 0, 0], [0.0, 0.0, 0.0])
    >>> gradient.round(3), curvature.round(3)
    (array([-0.32,  0.08,  0.08]), array([0.32, 0.08, 0.08]))
    """

    def __init__(self, measure: MeasureLike = "f1") -> None:
        found = as_measure(measure)
        if not isinstance(found, Ratio):
            raise ValueError(
                "measure must be a ratio of counts such as F, Jaccard or Tversky, got "
                f"{found}; soft F has no other gradients"
            )
        self.measure = found

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Return the first and second derivatives of the loss in every raw score."""
        y, share, w = _rows(y_true, y_pred, sample_weight)
        _, slope = soft_f(y, share, w, measure=self.measure)
        _, b_in, _, _, s1 = self.measure.coefficients()
        scale = (1.0 + b_in) * float(y @ w) + s1
        slope = scale * slope * share * (1.0 - share)
        return -slope, np.abs(slope)

    def value(
        self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return soft F of raw scores.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels, 0/1.
        y_pred : array-like of shape (n,)
            Raw scores, before the sigmoid.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        float
        """
        return soft_f(*_rows(y_true, y_pred, sample_weight), measure=self.measure)[0]


@with_entries_of(SoftFObjective.value)
class BestFMetric:
    """F at the exact best threshold, as a metric for early stopping.

    Pass it as ``eval_metric=`` of `LGBMClassifier.fit`, and its method `loss`, 1 - F, as
    ``eval_metric=`` of `XGBClassifier`, which stops where a metric no longer falls.

    Parameters
    ----------
    measure : str, Measure or callable, default="f1"
        The measure; its best threshold is found exactly after each round.

    Examples
    --------
    >>> BestFMetric()([0, 1, 1, 0], [0.1, 0.4, 0.8, 0.5])
    ('best f1', 0.8, True)
    """

    def __init__(self, measure: MeasureLike = "f1") -> None:
        self.measure = as_measure(measure)
        self.name = f"best {measure if isinstance(measure, str) else self.measure.name}"

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, weight: ArrayLike | None = None
    ) -> tuple[str, float, bool]:
        """Return the name, the value, and that higher is better, as LightGBM wants it."""
        best = maximize_empirical_f(y_true, y_pred, measure=self.measure, sample_weight=weight)
        return self.name, float(best.value), True

    def loss(
        self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return 1 - F, as XGBoost wants it; the scores may be on any scale.

        Parameters
        ----------
        y_true, y_pred, sample_weight : as in `value`

        Returns
        -------
        float
        """
        return 1.0 - self(y_true, y_pred, sample_weight)[1]


class BoostedFScorer(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Boosted trees trained with log loss first and soft F then. Experimental.

    It gives scores; put it inside of `ThresholdFClassifier`, which finds the best threshold on
    rows held out. On 84 real data sets it gained nothing over log loss with a tuned threshold
    (docs/training.md).

    Parameters
    ----------
    estimator : LGBMClassifier or XGBClassifier
        The trees, with the number of rounds in all.
    measure : str, Measure or callable, default="f1"
        What to train for.
    log_loss_share : float, default=0.75
        The part of the rounds that is trained with log loss. The rounds of soft F have three times
        the learning rate of the trees, but at most 0.3, or their own rate if that is higher.

    Attributes
    ----------
    classes_ : ndarray
        The two labels.
    estimator_ : LGBMClassifier or XGBClassifier
        The fitted trees of both parts.

    Examples
    --------
    >>> from argmaxf import ThresholdFClassifier
    >>> from lightgbm import LGBMClassifier
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(1000, weights=[0.95], random_state=0)
    >>> trees = LGBMClassifier(n_estimators=40, n_jobs=1, verbose=-1)
    >>> model = ThresholdFClassifier(BoostedFScorer(trees)).fit(X, y)
    >>> model.predict(X).shape
    (1000,)
    """

    def __init__(
        self, estimator: Any, *, measure: MeasureLike = "f1", log_loss_share: float = 0.75
    ) -> None:
        self.estimator = estimator
        self.measure = measure
        self.log_loss_share = log_loss_share

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the trees, with log loss first.

        Parameters
        ----------
        X : array-like of shape (n, features)
            The rows.
        y : array-like of shape (n,)
            Their labels, of two classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        BoostedFScorer
            The fitted estimator.
        """
        share = check_unit_interval("log_loss_share", self.log_loss_share)
        self.classes_, target = np.unique(y, return_inverse=True)
        if self.classes_.size != 2:
            raise ValueError(
                f"y must have two classes, got {self.classes_.size}; for several labels put this "
                "estimator inside of ThresholdFClassifier, which fits one for each"
            )
        if not hasattr(self.estimator, "get_params") or not (
            {"n_estimators", "objective"} <= set(self.estimator.get_params())
        ):
            raise ValueError(
                "estimator must be an LGBMClassifier or XGBClassifier, got "
                f"{type(self.estimator).__name__}; others take no objective"
            )
        params = self.estimator.get_params()
        rounds = params["n_estimators"] or 100  # None is XGBoost's default
        first = round(share * rounds)
        rate = params["learning_rate"]  # None is XGBoost's default of 0.3
        rate = None if rate is None else max(rate, min(3.0 * rate, 0.3))
        then = {"objective": SoftFObjective(self.measure), "learning_rate": rate}
        goes_on_from = "xgb_model" if hasattr(self.estimator, "get_booster") else "init_model"
        self.estimator_: Any = None
        for number, options in ((first, {}), (rounds - first, then)):
            if number:
                trees = clone(self.estimator).set_params(n_estimators=number, **options)
                start = {goes_on_from: self.estimator_, "sample_weight": sample_weight}
                self.estimator_ = trees.fit(X, target, **start)
        self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the raw scores.

        Parameters
        ----------
        X : array-like of shape (n, features)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        raw = "output_margin" if hasattr(self.estimator_, "get_booster") else "raw_score"
        return np.asarray(self.estimator_.predict(X, **{raw: True}), np.float64)

    def predict(self, X: Any) -> Any:
        """Return the class on whose side of the score 0 each row is.

        Parameters
        ----------
        X : array-like of shape (n, features)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
        """
        positive = self.decision_function(X) >= 0.0
        return self.classes_[positive.astype(int)]


def _rows(
    y_true: ArrayLike, y_pred: ArrayLike, weight: ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    """Return labels, probabilities and weights as numbers."""
    y = as_labels("y_true", y_true).astype(np.float64)
    if not y.any():
        raise ValueError("y_true must have a positive label, got none: soft F is 0 throughout")
    score = as_scores("y_pred", y_pred).astype(np.float64)
    if y.ndim != 1 or score.shape != y.shape:
        raise ValueError(
            f"y_pred must hold one score for each label, got {score.shape} for {y.shape}"
        )
    return y, expit(score), ones_unless(as_weights(weight, y.size), y.size)
