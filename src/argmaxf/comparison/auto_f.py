"""`AutoFClassifier` uses the best method for the data at hand; `compare` shows how good each is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from argmaxf._base.arrays import Floats
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.validation import as_weights, how_many
from argmaxf.comparison.cross_validation import CrossValidation, Progress, advice_silenced
from argmaxf.comparison.methods import METHODS
from argmaxf.comparison.result import Comparison, rank
from argmaxf.constraints import Constraints
from argmaxf.estimators.calibration import warn_about_weights
from argmaxf.estimators.expected_f import ExpectedFClassifier, interval_around
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.meta import (
    FClassifier,
    FixedThresholdFClassifier,
    MetaFClassifier,
    fix_threshold,
    route_fit_params,
)
from argmaxf.estimators.scores import TrainingData, last_step
from argmaxf.estimators.shift import DriftDetector, check_deploy_rate
from argmaxf.measures import Interval, MeasureLike

LEARNING_RATE = 0.2  # errors fall with this power of the number of rows, on the study's sets


@dataclass(eq=False, repr=False)
class AutoFClassifier(MetaFClassifier):
    """A classifier that chooses the method with the highest F_β by cross-validation.

    It compares five methods on the same held-out rows: the classifier at threshold 0.5, with a
    tuned threshold (`ThresholdFClassifier`), and with the highest expected F
    (`ExpectedFClassifier`); a linear model trained for F (`SoftFClassifier`); and expected F with
    the mean of the probabilities of both models (`BlendFClassifier`). If the best methods are too
    close to tell apart, it uses the one that lost least on 116 real data sets, which is the blend
    where possible (docs/background/method-study.md). `report_` has the scores and the reason.
    `predict` warns (`ShiftWarning`) if a batch looks unlike the training data.

    Cost: the classifier is fitted once for each fold and once on all rows. A method that trains its
    own model is fitted once for each fold, and once on all rows if it is chosen.

    Parameters
    ----------
    estimator : estimator
        The classifier that gives the scores; without `predict_proba` they are calibrated for
        expected F. Inside `FrozenEstimator` no other model is tried.
    measure : as in `FClassifier`
    methods : list of str and (str, classifier) pairs or dict of str to classifier, default=None
        What to compare. A dict of names and classifiers adds these classifiers to the five standard
        methods ("plain", "threshold", "expected", "soft", "blend"). A list replaces the standard
        methods: it holds keys of these or of the other methods ("margin", "cost", "uncalibrated"),
        and pairs of a name and a classifier. docs/choosing.md describes the methods.
    cv : int, float, splitter object or list of splits, default=5
        How rows are held out, as in `ThresholdFClassifier`.
    set_size : int, default=None
        The number of rows in a call of `predict`, if F will be measured on the rows of each call.
        Methods are then compared on sets of this size drawn from each fold; by default on whole
        folds. 1 is for online prediction: each row is decided alone, both by `predict` and in the
        comparison, which measures the F of all rows together.
    constraints : dict of str to float, default=None
        What to guarantee: `min_precision`, `min_recall` and `max_selected_rate`, the maximum share
        of rows to be predicted positive, as in ``{"min_precision": 0.8}``. Needs
        `confidence_level`. Only methods that can guarantee the constraints take part.
    confidence_level : float, default=None
        The probability, over draws of the rows, with which the constraints hold. Precision and
        recall are guaranteed by the tuned threshold, which is then used. Expected F guarantees them
        only if its probabilities are right, so it is used only if `methods` leaves out
        `"threshold"`.
    deploy_rate : float, array-like of float, "estimate" or None, default=None
        The rate of positives in deployment, if it differs from training; for a multiclass target
        the share of each class. Methods are fitted for that rate and compared on rows weighted to
        it. `"estimate"` takes the most likely rate of each batch; only expected F and the tuned
        threshold then take part, and there is no `ShiftWarning`. Not for multilabel targets, whose
        rows cannot be weighted for all labels at once.
    pos_label : as in `FClassifier`

    Attributes
    ----------
    report_ : Comparison
        The comparison; `print` shows it as a table.
    chosen_ : str
        The display name of the method used.
    classifier_ : estimator
        The classifier of that method, fitted on all rows.

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
        self._held_out_f: tuple[Interval, Interval] | None = None
        if self.deploy_rate is None and rows.weight is None and self.set_size in (None, 1):
            # The models of the folds had fewer rows to learn from, unless they were fitted before.
            train = float(np.mean([len(part) for part, _ in cv.splits])) / len(rows.columns)
            f, best = report.method.score, report.measure.ends[1]
            gain = 0.0 if report.prefit else (best - f.value) * (1.0 - train**LEARNING_RATE)
            more = {name: getattr(f, name) + gain for name in ("low", "value", "high")}
            self._held_out_f = f, replace(f, **more)
        self._drift: DriftDetector | None = cv.drift_detector
        self._model = cv.held_out.model
        self._show_models(self._model.models_)

    def _fit_plain(self, rows: TrainingData) -> None:
        """Fit the classifier as it is: no label has both positives and negatives."""
        plain = METHODS["plain"]
        classifier = plain.make(self)
        held_out = classifier.hold_out(rows)
        self.classifier_, self.chosen_ = classifier.learn(held_out), plain.name
        why = "There is nothing to compare: no label has both positives and negatives."
        nothing: Any = ((), "no rows", 0, (), plain.name, (), why, (), None, None)
        self.report_ = Comparison(self._measure(), self._labels.kind, *nothing)
        self._drift, self._model, self._held_out_f = None, held_out.model, None
        self._show_models(self._model.models_)

    def _predict(self, X: Any) -> Any:
        if self.deploy_rate is None and self._drift is not None:
            by_batch = isinstance(self.classifier_, ExpectedFClassifier)
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
        """Return the decision of the chosen method: the labels that `predict` gives.

        Expected F and its spread are NaN where that method has no calibrated probabilities, as a
        tuned threshold. The value of `interval` is the F that the comparison measured, corrected
        for the rows that its models were trained without. Its low end is not corrected, because not
        every model gains by more rows (docs/background/studies.md).
        """
        check_is_fitted(self)
        chosen = self.classifier_
        decision = chosen.decide(X) if hasattr(chosen, "decide") else super().decide(X)
        return replace(
            decision, interval=self._interval(decision.expected, decision.std) or decision.interval
        )

    def _interval(self, expected: Any, std: Any) -> Interval | None:
        """Return where the F of a decision will be, if the comparison measured such an F.

        The interval contains those of all gains by more rows, from none to the expected one.
        """
        if self._held_out_f is None:
            return None
        least, most = (
            interval_around(expected, std, found, self._measure(), share=0.0)
            for found in self._held_out_f
        )
        return replace(most, low=least.low)

    def _freeze(self, X_reference: Any) -> FixedThresholdFClassifier:
        chosen = self.classifier_
        if isinstance(chosen, FixedThresholdFClassifier) and X_reference is not None:
            chosen = chosen.estimator  # refreeze by other rows than those of training
        if isinstance(chosen, FClassifier):
            frozen = chosen.freeze(X_reference)
        else:
            own = isinstance(last_step(chosen), FClassifier)  # decides each row alone already
            threshold = getattr(last_step(chosen), "threshold_", None) if own else None
            frozen = fix_threshold(chosen if own else self, self._labels, threshold_=threshold)
        interval = self._interval(frozen.expected_, frozen.std_)
        frozen.interval_ = interval or frozen.interval_
        return frozen

    def _margin(self, X: Any) -> Floats:
        """Return the chosen method's margins, or else 1 and -1 by its predictions."""
        if hasattr(self.classifier_, "decision_function"):
            return self._labels.margins(self.classifier_.decision_function(X))
        return np.where(self._labels.columns(self.classifier_.predict(X)), 1.0, -1.0)


@with_entries_of(AutoFClassifier)
def compare(
    X: Any,
    y: Any,
    estimator: Any,
    *,
    measure: MeasureLike = "f1",
    methods: Any = None,
    cv: Any = 5,
    test_set: tuple[Any, Any] | None = None,
    sample_weight: Any = None,
    constraints: Constraints | Mapping[str, float] | None = None,
    confidence_level: float | None = None,
    progress: Progress = False,
) -> Comparison:
    """Compare the ways to turn a classifier into predictions with a high F_β, and choose one.

    Every method is evaluated on the same rows: those of the test set, or those that `cv` holds out.
    No model is evaluated on rows on which it was trained. Thresholds are tuned on held-out scores
    of other rows.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n, features)
        The rows to learn from, in any form that `estimator` takes.
    y : array-like of shape (n,) or (n, labels)
        Their target: two classes, several, or a 0/1 table of labels (compared by macro F).
    estimator : estimator
        The classifier that gives the scores, not fitted. If it is a pipeline, every method uses its
        preprocessing. If it is an `AutoFClassifier`, the comparison has all its options, such as
        `set_size`, `pos_label` and `deploy_rate`; `measure`, `methods`, `cv`, `constraints` and
        `confidence_level` must then be set on it and not be passed to `compare`.
    measure : str, Measure or callable, default="f1"
        What to compare by: a name such as ``"f2"``, an object of `argmaxf.measures`, or a function.
        Methods that do not support it are left out; naming one of them is an error.
    methods, cv : as in `AutoFClassifier`
    test_set : tuple of array-like, default=None
        ``(X_test, y_test)``: rows to compare on. By default those that `cv` holds out.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows, in training and in F.
    constraints, confidence_level : as in `AutoFClassifier`
    progress : bool or callable, default=False
        True prints a line for each model that is fitted. A function is called as ``progress(done,
        total, name)`` before each fit.

    Returns
    -------
    Comparison
        The result of each method, the one to use and why; it prints as a table.

    Notes
    -----
    For each fold, the classifier is fitted once, and so is each method that trains its own model.
    A test set needs one more fit of the classifier. The time of all other steps is linear in the
    number of rows.
    Models are fitted in parallel inside ``joblib.parallel_config(n_jobs=4)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> found = compare(X, y, LogisticRegression())
    >>> print(f"{found.chosen}: {found.scores[found.chosen]:.2f}")
    blended F: 0.94
    """
    given = {
        "measure": measure,
        "methods": methods,
        "cv": cv,
        "constraints": constraints,
        "confidence_level": confidence_level,
    }
    if not isinstance(estimator, AutoFClassifier):
        estimator = AutoFClassifier(estimator, **given)
    elif list(given.values()) != ["f1", None, 5, None, None]:
        raise ValueError(
            f"{', '.join(given)} must be set on the AutoFClassifier, not passed to compare"
        )
    return compare_methods(X, y, estimator, test_set, sample_weight, progress=progress)


def compare_methods(
    X: Any,
    y: Any,
    auto: AutoFClassifier,
    test_set: tuple[Any, Any] | None = None,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    names: tuple[str, str] = ("X", "X_test"),
    progress: Progress = False,
) -> Comparison:
    """Return the comparison that `auto` makes; `names` are those of the rows in messages."""
    labels = Labels.of(y, auto.pos_label)
    titles = labels.titles(y)
    if len(labels.classes) < 2:
        raise ValueError(
            f"target {titles[0]!r} of {names[0]} is always {labels.classes[0]}: nothing to learn"
        )
    check_consistent_length(X, y)
    weight = as_weights(sample_weight, np.shape(y)[0])
    rows = TrainingData(X, y, labels, weight, groups, route_fit_params(auto, weight, {}))
    cv = CrossValidation(auto, rows, _checked_test(test_set, labels, titles, names[1]))
    _check_enough(cv, titles, names[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cv.run(progress)
        comparison = rank(cv, names)
        if cv.test is not None:
            joint = comparison.method.method.joint
            cv.drift_detector.warn_if_unlike(cv.test[0], comparison.chosen, joint)
    warned = dict.fromkeys(str(w.message) for w in caught)
    return replace(comparison, notes=(*comparison.notes, *warned))


def _check_enough(cv: CrossValidation, titles: tuple[str, ...], rows: str) -> None:
    """Refuse rows with too few positives or negatives of some label for each fold to have one."""
    columns, asked = cv.rows.columns, cv.auto.cv
    n_folds = getattr(asked, "n_splits", asked)
    n_folds = n_folds if isinstance(n_folds, int) else len(cv.splits)
    if len(columns) < 2 * n_folds:
        raise ValueError(
            f"{rows} has {how_many(len(columns), 'row')}; {n_folds} folds need at least "
            f"{2 * n_folds}"
        )
    for name, positive in zip(titles, columns.sum(axis=0).tolist(), strict=True):
        for count, kind in [(positive, "positive"), (len(columns) - positive, "negative")]:
            if count < n_folds:
                raise ValueError(
                    f"{name!r} has {how_many(count, f'{kind} row')} in {rows}, too few for one in "
                    f"each of {n_folds} folds"
                )


def _checked_test(test_set: Any, labels: Labels, titles: tuple[str, ...], rows: str) -> Any:
    """Return the test set with its target as an array; it must have positives of each label."""
    if test_set is None:
        return None
    if not isinstance(test_set, tuple | list) or len(test_set) != 2:
        raise ValueError("test_set must be a pair (X_test, y_test)")
    X_test, y_test = test_set
    check_consistent_length(X_test, y_test)
    target = labels.target(y_test)
    unknown = set(np.unique(target).tolist()) - set(labels.classes.tolist())
    if target.ndim == 1 and unknown:
        value = sorted(map(str, unknown))[0]
        raise ValueError(f"target of {rows} has the class {value!r}, never seen in training")
    for name, positive in zip(titles, labels.columns(target).sum(axis=0).tolist(), strict=True):
        if not positive:
            raise ValueError(f"{rows} has no positive row of {name!r}: F is not defined there")
    return X_test, target
