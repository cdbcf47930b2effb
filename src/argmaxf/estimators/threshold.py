"""ML^δ: scores from any classifier, and the threshold on them with the highest F."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state

from argmaxf.empirical.spread import threshold_std
from argmaxf.estimators.base import MetaFClassifier, macro_gain, margin, tune
from argmaxf.estimators.folds import folds
from argmaxf.estimators.scores import PREFERRED
from argmaxf.validation import check_choice, ones_unless


class ThresholdFClassifier(MetaFClassifier):
    """A classifier whose decision threshold is tuned for F_β, exactly (ML^δ in the paper).

    Parameters
    ----------
    estimator : estimator
        A classifier with `decision_function` or `predict_proba`. A fitted one inside
        `FrozenEstimator` keeps its model and only gets a threshold.
    beta : float, default=1.0
        Weight of recall against precision.
    measure : str or Measure, default="fbeta"
        What to maximize: `"fbeta"`, `"jaccard"` or an object of `argmaxf.measures`.
    cv : int, float, splitter or iterable, default=5
        Folds for the out-of-fold scores on which the threshold is tuned: a number of them, the
        share of rows to hold out once, a splitter, or splits. Only rows held out tune. None tunes
        on the training scores themselves, as the paper does; that is overfitted where rows are few
        for the model.
    response_method : str, default="auto"
        The scores to cut: `"decision_function"`, `"log_odds"` (of naive Bayes, whose probabilities
        saturate), `"predict_proba"`, or `"auto"` for the first of these that the classifier has
        (the last for multiclass targets).
    pos_label : scalar, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the folds.
    random_state : int or RandomState, default=0
        Seed of the folds.

    Attributes
    ----------
    estimators_ : list of estimator
        The classifier fitted on all rows; one per label where it cannot hold them all.
    threshold_ : float or ndarray of shape (n_labels,)
        The threshold on its scores; a number for a binary target.
    f_ : float or ndarray of shape (n_labels,)
        The F_β, or the measure asked for, reached there, on the scores the threshold was tuned on.
    threshold_std_ : float or ndarray of shape (n_labels,)
        The standard deviation of the threshold, estimated from disjoint parts of the data; NaN
        where there are too few positives to say.
    response_method_ : str
        Which scores these are.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        beta: float = 1.0,
        measure: Any = "fbeta",
        cv: Any = 5,
        response_method: str = "auto",
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.measure = measure
        self.cv = cv
        self.response_method = response_method
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier on all rows, and its threshold on out-of-fold scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            A binary, multiclass or multilabel-indicator target.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        object
            The fitted classifier itself.
        """
        target, weight = self._read(X, y, sample_weight)
        columns = self._labels.columns(target)
        params = self._fit_params(weight)
        self._fit_scorer(X, target, params, self._methods())
        scores = self._tuning_scores(X, target, columns, params)
        rows = ~np.isnan(scores).any(axis=1)  # those that were held out
        self._set_thresholds(columns[rows], scores[rows], None if weight is None else weight[rows])
        return self

    @property
    def response_method_(self) -> str:
        """Which scores are cut."""
        return str(self._scorer.method)

    def _methods(self) -> tuple[str, ...]:
        choices = ("auto", "decision_function", "log_odds", "predict_proba")
        method = check_choice("response_method", self.response_method, choices)
        return PREFERRED[self._labels.kind] if method == "auto" else (method,)

    def _tuning_scores(self, X: Any, target: Any, columns: Any, params: Any) -> Any:
        """Return out-of-fold scores, or training scores where those are wanted or all there is."""
        training = self._scorer.predict(X)
        lonely = np.minimum(columns.sum(axis=0), (~columns).sum(axis=0)) < 2
        if self.cv is None or isinstance(self.estimator, FrozenEstimator) or lonely.all():
            return training
        splits = folds(self.cv, columns, target, self.random_state)
        held_out, _ = self._scorer.out_of_fold(X, target, splits, n_jobs=self.n_jobs, params=params)
        return np.where(lonely, training, held_out)

    def _set_thresholds(self, columns: Any, scores: Any, weight: Any) -> None:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        measure = self._asked()
        threshold = tune(columns, scores, measure, weight)
        std = [
            threshold_std(y, score, rng, measure=measure, weight=weight)
            for y, score in zip(columns.T, scores.T, strict=True)
        ]
        reached = np.asarray(measure.value(*_counts(columns, scores >= threshold, weight)))
        self._gain = self._class_gain(columns, scores >= threshold, weight)
        binary = self._labels.kind == "binary"
        self.f_ = float(reached[0]) if binary else reached
        self.threshold_ = float(threshold[0]) if binary else threshold
        self.threshold_std_ = std[0] if binary else np.array(std)

    def _class_gain(self, columns: Any, selected: Any, weight: Any) -> Any:
        """Return what a margin is worth to each class when classes compete for a row."""
        if self._labels.kind != "multiclass" or self.response_method_ != "predict_proba":
            return 1.0
        return macro_gain(*_counts(columns, selected, weight)[:3], self._asked())

    def _margin(self, X: Any) -> NDArray[np.float64]:
        return margin(self._scorer.predict(X), self.threshold_, self._gain)


def _counts(columns: Any, selected: Any, weight: Any) -> tuple[Any, Any, Any, float]:
    """Return true positives, predicted and actual positives of each label, and all rows."""
    weight = ones_unless(weight, len(columns))
    return weight @ (selected & columns), weight @ selected, weight @ columns, weight.sum()
