"""ML^δ: scores from any classifier, and the threshold on them with the highest F."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state

from argmaxf.constraints import Constraints
from argmaxf.empirical.promises import Promise
from argmaxf.empirical.spread import threshold_std
from argmaxf.empirical.threshold import maximize_empirical_f
from argmaxf.estimators.base import MetaFClassifier, macro_gain, margin, tune
from argmaxf.estimators.folds import folds, held_out_part
from argmaxf.estimators.heldout import HeldOut
from argmaxf.estimators.scores import PREFERRED, LabelScorer, is_given, response_method
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
        What to maximize, `"fbeta"`, `"jaccard"` or an object of `argmaxf.measures`.
    cv : int, float, splitter object, list of splits or None, default=5
        Folds for the out-of-fold scores on which the threshold is tuned: a number of them, the
        share of rows to hold out once, a splitter, or splits. Only rows held out tune. With a share
        and `confidence`, the model that predicts is trained on the other rows alone. None tunes
        on the training scores themselves, as the paper does; that is overfitted where rows are few
        for the model.
    min_precision : float, default=None
        The least precision, on the scores the threshold is tuned on.
    min_recall : float, default=None
        The least recall, on the same.
    max_selected_rate : float, default=None
        The largest part of the rows to be predicted positive. A number of rows in each batch is
        no threshold: `ExpectedFClassifier(max_selected=…)` keeps to one.
    confidence : float, default=None
        The probability with which these hold for new rows (see `maximize_empirical_f`). It is
        proven where the model did not see the rows the threshold is tuned on: with `cv` a share
        of the rows, or a `FrozenEstimator`. With folds it is about what was measured in
        docs/promises.md: the threshold comes from other models than the one that predicts.
    response_method : {"auto", "decision_function", "log_odds", "predict_proba"}, default="auto"
        The scores to cut; `"log_odds"` is for naive Bayes, whose probabilities saturate, and
        `"auto"` is the first of these that the classifier has (the last for multiclass targets).
    pos_label : scalar, default=None
        The class F counts in a binary target; by default the last in sorted order.
    n_jobs : int, default=None
        Processes for the folds.
    random_state : int or RandomState, default=0
        Seed of the folds.

    Attributes
    ----------
    estimators_ : list of estimator
        The classifier fitted on all rows, or on those not held out; one per label where it cannot
        hold them all.
    threshold_ : float or ndarray of shape (n_labels,)
        The threshold on its scores; a number for a binary target.
    f_ : float or ndarray of shape (n_labels,)
        The F_β, or the measure asked for, reached there, on the scores the threshold was tuned on.
    threshold_std_ : float or ndarray of shape (n_labels,)
        The standard deviation of the threshold, estimated from disjoint parts of the data; NaN
        where there are too few positives to say.
    promise_ : Promise, list of Promise or None
        What is promised for new rows, and what it costs; one per label, or one for a binary target.
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
        min_precision: float | None = None,
        min_recall: float | None = None,
        max_selected_rate: float | None = None,
        confidence: float | None = None,
        response_method: str = "auto",
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.beta = beta
        self.measure = measure
        self.cv = cv
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.max_selected_rate = max_selected_rate
        self.confidence = confidence
        self.response_method = response_method
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier, and its threshold on scores of rows it has not seen.

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
        limits = Constraints(self.min_precision, self.min_recall, self.max_selected_rate).given()
        self._check_constraints(limits)
        params = self._fit_params(weight)
        if self._promises_on_unseen_rows():
            rows, scores = self._hold_out(X, target, params)
        else:
            self._fit_scorer(X, target, params, self._methods())
            scores = self._tuning_scores(X, target, columns, params)
            rows = np.flatnonzero(~np.isnan(scores).any(axis=1))  # those that were held out
            scores = scores[rows]
        weight = None if weight is None else weight[rows]
        self._set_thresholds(columns[rows], scores, weight, limits)
        if not is_given(self.estimator):  # a comparison asks for it of the method chosen only
            self._set_spread(columns[rows], scores, weight)
        return self

    def _put_on(self, held_out: HeldOut) -> Self:
        """Return this classifier on the model of its scores, with its spread."""
        super()._put_on(held_out)
        scores = held_out.of_kind(self._scorer.method)
        rows = ~np.isnan(scores).any(axis=1)
        weight = None if held_out.weight is None else held_out.weight[rows]
        self._set_spread(held_out.columns[rows], scores[rows], weight)
        return self

    def _promises_on_unseen_rows(self) -> bool:
        """Whether the model must not see the rows its threshold is tuned on."""
        frozen = isinstance(self.estimator, FrozenEstimator)
        return self.confidence is not None and isinstance(self.cv, float) and not frozen

    def _hold_out(self, X: Any, target: Any, params: Any) -> tuple[Any, NDArray[np.float64]]:
        """Fit the classifier on some rows; return the others and their scores."""
        split = held_out_part(self.cv, len(target), self.random_state)
        method = response_method(self.estimator, self._methods())
        scorer = LabelScorer(self.estimator, self._labels, method)
        scores, self._scorer = scorer.on_held_out(X, target, split, params=params)
        self._show(self._scorer.models_)
        return split[1], scores

    def _check_constraints(self, limits: dict[str, float]) -> None:
        """Refuse constraints on classes that compete for rows."""
        if limits and self._labels.kind == "multiclass":
            raise ValueError(
                "constraints need a binary or multilabel target: where classes compete for rows, "
                f"a threshold does not decide alone; got {len(self.classes_)} classes"
            )

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

    def _set_thresholds(
        self, columns: Any, scores: Any, weight: Any, limits: dict[str, float]
    ) -> None:
        """Keep the thresholds, and what they reach on the scores they were tuned on."""
        threshold, promises = self._tuned(columns, scores, weight, limits)
        counts = _counts(columns, scores >= threshold, weight)
        reached = np.asarray(self._asked().quotient(*counts))
        self._gain = self._class_gain(counts)
        binary = self._labels.kind == "binary"
        self.f_ = float(reached[0]) if binary else reached
        self.threshold_ = float(threshold[0]) if binary else threshold
        self.promise_ = promises[0] if promises and binary else promises

    def _set_spread(self, columns: Any, scores: Any, weight: Any) -> None:
        """Keep how far the thresholds would move on other data of this size."""
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        measure = self._asked()
        std = [
            threshold_std(y, score, rng, measure=measure, weight=weight)
            for y, score in zip(columns.T, scores.T, strict=True)
        ]
        self.threshold_std_ = std[0] if self._labels.kind == "binary" else np.array(std)

    def _tuned(
        self, columns: Any, scores: Any, weight: Any, limits: dict[str, float]
    ) -> tuple[Any, list[Promise] | None]:
        """Return the best threshold of each label, and what is promised of it."""
        if self.confidence is None and not limits:
            return tune(columns, scores, self._asked(), weight), None
        best = maximize_empirical_f(
            columns,
            scores,
            measure=self._asked(),
            average="macro",
            sample_weight=weight,
            confidence=self.confidence,
            **limits,
        )
        return best.threshold, None if self.confidence is None else best.promise.tolist()

    def _class_gain(self, counts: tuple[Any, Any, Any, float]) -> Any:
        """Return what a margin is worth to each class when classes compete for a row."""
        if self._labels.kind != "multiclass" or self.response_method_ != "predict_proba":
            return 1.0
        return macro_gain(*counts[:3], self._asked())

    def _margin(self, X: Any) -> NDArray[np.float64]:
        return margin(self._scorer.predict(X), self.threshold_, self._gain)


def _counts(columns: Any, selected: Any, weight: Any) -> tuple[Any, Any, Any, float]:
    """Return true positives, predicted and actual positives of each label, and all rows."""
    weight = ones_unless(weight, len(columns))
    return weight @ (selected & columns), weight @ selected, weight @ columns, weight.sum()
