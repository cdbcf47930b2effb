"""`AutoFClassifier`: compares the methods on the data at hand, and uses the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from argmaxf._base.arrays import Floats
from argmaxf.comparison.cross_validation import CrossValidation, advice_silenced
from argmaxf.comparison.methods import METHODS, Settings
from argmaxf.comparison.result import Comparison, rank
from argmaxf.constraints import Constraints
from argmaxf.estimators.calibration import warn_about_weights
from argmaxf.estimators.expected_f import ProbabilityFClassifier
from argmaxf.estimators.meta import (
    FClassifier,
    FixedThresholdFClassifier,
    MetaFClassifier,
    fix_threshold,
)
from argmaxf.estimators.scores import TrainingData, last_step
from argmaxf.estimators.shift import DriftDetector, check_deploy_rate
from argmaxf.measures import MeasureLike


@dataclass(eq=False, repr=False)
class AutoFClassifier(MetaFClassifier):
    """A classifier that chooses the method with the highest F_β by cross-validation.

    It compares five methods on the same held-out rows: the classifier at threshold 0.5, with a
    tuned threshold (`ThresholdFClassifier`), and with the highest expected F
    (`ExpectedFClassifier`); a linear model trained for F (`SoftFClassifier`); and expected F with
    the mean of the probabilities of both models (`BlendFClassifier`). If the best methods are too
    close to tell apart, it uses the one that lost least on 116 real data sets, which is the blend
    where possible (docs/background/method-study.md). `report_` has the scores and the reason.
    `predict` warns (`ShiftWarning`) when a batch looks unlike the training data.

    Cost: the classifier is fitted once for each fold and once on all rows; a method that trains its
    own model once for each fold, and once more where it is chosen.

    Parameters
    ----------
    estimator : estimator
        The classifier that gives the scores; without `predict_proba` they are calibrated for
        expected F. Inside `FrozenEstimator` no other model is tried.
    measure : str, Measure or callable, default="f1"
        What to maximize: a name such as ``"f2"``, an object of `argmaxf.measures`, or a function.
    methods : list of str and (str, classifier) pairs or dict of str to classifier, default=None
        What to compare. A dict adds classifiers to the standard methods, by names of their own. A
        list names all: keys of `argmaxf.comparison.METHODS`, and pairs of a name and a classifier.
    cv : int, float, splitter object or list of splits, default=5
        How rows are held out, as in `ThresholdFClassifier`.
    set_size : int, default=None
        The number of rows that will be predicted at a time, if F will be measured on such sets.
        Methods are then compared on sets of this size drawn from each fold; by default on whole
        folds. 1 is for online prediction: each row is decided alone, both in the comparison, which
        measures the F of all rows, and by `predict`.
    constraints : dict of str to float, default=None
        What to guarantee: `min_precision`, `min_recall` and `max_selected_rate`, the largest part
        of the rows to be predicted positive, as in ``{"min_precision": 0.8}``. Only methods that
        can guarantee it take part.
    confidence_level : float, default=None
        The probability, over draws of the rows, with which the constraints hold; for precision and
        recall the tuned threshold is used. Expected F guarantees these only if its probabilities
        are right: it is used where `methods` leaves out `"threshold"`.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives in deployment, if it differs from training; for a multiclass target
        the share of each class. Methods are compared on rows weighted to that rate, and made for
        it. With `"estimate"`, the most likely rate of each batch, only expected F and the tuned
        threshold take part. There is then no `ShiftWarning`. Not for multilabel targets, whose rows
        cannot be weighted for all labels at once.
    pos_label : scalar, default=None
        The positive class of a binary target; by default the last in sorted order.

    Attributes
    ----------
    report_ : Comparison
        The comparison; print it.
    chosen_ : str
        The display name of the method used.
    classifier_ : estimator
        That method, fitted on all rows.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, weights=[0.95], class_sep=0.7, random_state=0)
    >>> auto = AutoFClassifier(LogisticRegression()).fit(X, y)
    >>> auto.chosen_
    'blended F'
    >>> print(", ".join(auto.report_.scores))
    threshold 0.5, tuned threshold, expected F, trained for F, blended F
    """

    estimator: Any
    _: KW_ONLY
    measure: MeasureLike = "f1"
    methods: Any = None
    cv: Any = 5
    set_size: int | None = None
    constraints: Constraints | Mapping[str, float] | None = None
    confidence_level: float | None = None
    deploy_rate: Any = None
    pos_label: Any = None

    def _fit(self, rows: TrainingData) -> None:
        check_deploy_rate(self.deploy_rate, self._labels)
        warn_about_weights(rows.columns, rows.weight, self.deploy_rate)
        counted = rows.columns if rows.weight is None else rows.columns[rows.weight > 0]
        if (counted == counted[0]).all():
            self._fit_plain(rows)
            return
        cv = CrossValidation(self, rows, needs_model=True)
        cv.run()
        report = rank(cv)
        self.report_ = replace(report, evidence=None)  # a model need not carry its training rows
        self.chosen_ = report.chosen
        self.classifier_ = cv.fit(report.method.method)
        if cv.online and hasattr(self.classifier_, "freeze"):
            with advice_silenced():
                self.classifier_ = self.classifier_.freeze()
        self._drift: DriftDetector | None = cv.drift_detector
        self._model = cv.held_out.model
        self._show_models(self._model.models_)

    def _fit_plain(self, rows: TrainingData) -> None:
        """Fit the classifier as it is: no label has both positives and negatives."""
        plain = METHODS["plain"]
        classifier = plain.make(self.estimator, Settings(pos_label=self.pos_label))
        held_out = classifier.hold_out(rows)
        self.classifier_, self.chosen_ = classifier.learn(held_out), plain.name
        why = "There is nothing to compare: no label has both positives and negatives."
        nothing: Any = ((), "no rows", 0, (), plain.name, (), why, (), None, None)
        self.report_ = Comparison(self._measure(), self._labels.kind, *nothing)
        self._drift, self._model = None, held_out.model
        self._show_models(self._model.models_)

    def _predict(self, X: Any) -> Any:
        if self.deploy_rate is None and self._drift is not None:
            by_batch = isinstance(self.classifier_, ProbabilityFClassifier)
            self._drift.warn_if_unlike(X, self.chosen_, by_batch)
        predicted = self.classifier_.predict(X)
        return sparse.csr_matrix(predicted) if self._labels.is_sparse else predicted

    def _has_probabilities(self) -> bool:
        chosen = getattr(self, "classifier_", None)
        return hasattr(chosen, "predict_proba") or super()._has_probabilities()

    def _proba(self, X: Any) -> Floats:
        """Return the probabilities of the chosen method, or of the classifier if it has none."""
        if hasattr(self.classifier_, "predict_proba"):
            return self._labels.one(self.classifier_.predict_proba(X))
        return self._model.scores(X, "predict_proba")

    def decide(self, X: Any) -> Any:
        """Return the decision of the chosen method for the rows of X.

        Parameters
        ----------
        X : array-like
            The rows over which F will be measured.

        Returns
        -------
        Decision
            The labels that `predict` gives. Expected F and its spread are NaN where the chosen
            method has no calibrated probabilities, as a tuned threshold.
        """
        check_is_fitted(self)
        chosen = self.classifier_
        return chosen.decide(X) if hasattr(chosen, "decide") else super().decide(X)

    def _freeze(self, X_reference: Any) -> FixedThresholdFClassifier:
        chosen = self.classifier_
        if isinstance(chosen, FixedThresholdFClassifier) and X_reference is not None:
            chosen = chosen.estimator  # refreeze by other rows than those of training
        if isinstance(chosen, FClassifier):
            return chosen.freeze(X_reference)
        own = isinstance(last_step(chosen), FClassifier)  # decides each row alone already
        threshold = getattr(last_step(chosen), "threshold_", None) if own else None
        return fix_threshold(chosen if own else self, self._labels, threshold_=threshold)

    def _margin(self, X: Any) -> Floats:
        """Return the chosen method's margins, or else 1 and -1 by its predictions."""
        if hasattr(self.classifier_, "decision_function"):
            return self._labels.margins(self.classifier_.decision_function(X))
        return np.where(self._labels.columns(self.classifier_.predict(X)), 1.0, -1.0)
