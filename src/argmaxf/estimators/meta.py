"""What all classifiers share, and the classifier with fixed thresholds that `freeze` returns.

A classifier defines how it is fitted and what its margins are; an entry is predicted positive where
its margin is not negative.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from argmaxf._base.arrays import Bools, Floats
from argmaxf._base.shared_docs import with_entries_of
from argmaxf._base.validation import as_weights, refuse_missing
from argmaxf.empirical.guarantees import refuse_groups
from argmaxf.empirical.threshold import Threshold, maximize_empirical_f
from argmaxf.estimators.calibration import Calibrated
from argmaxf.estimators.fixed_rule import FixedRule, as_sklearn, margin
from argmaxf.estimators.labels import Labels, counted, make_splits
from argmaxf.estimators.scores import (
    HeldOut,
    LabelScorer,
    TrainingData,
    hold_out,
    last_step,
    weight_parameter,
)
from argmaxf.estimators.shift import TargetPrior, check_deploy_rate
from argmaxf.expected.decision import Decision
from argmaxf.expected.values import expected_f
from argmaxf.measures import Interval, Measure, Ratio, as_measure


def best_thresholds(
    columns: Bools, scores: Floats, weight: Any, measure: Measure, average: str, **options: Any
) -> Threshold:
    """Return the best threshold for each label; a constant label is always or never predicted."""
    how: dict[str, Any] = {"measure": measure, "average": average, "sample_weight": weight}
    best = maximize_empirical_f(columns, scores, **how, **options)
    threshold = np.broadcast_to(best.threshold, columns.shape[1])
    if average == "macro":
        threshold = np.where(columns.all(axis=0), -np.inf, threshold)
        threshold = np.where(columns.any(axis=0), threshold, np.inf)
    return replace(best, threshold=threshold)


def macro_gain(measure: Measure, hits: Any, predicted: Any, positives: Any) -> Any:
    """Return how much a macro mean gains per unit of probability above a class's threshold.

    One more row of probability p moves V = cT / (k + b_out S + (b_in - b_out) T), as F_β is, by
    a (p - V / a) / (k + b_out S + (b_in - b_out) T), a = c - (b_in - b_out) V; V / a is the best
    threshold, so margins of different classes compare after this multiplication. The gain of
    measures that are no such ratio is 1.
    """
    if not isinstance(measure, Ratio):
        return 1.0
    c, b_in, b_out, _, _ = measure.coefficients()
    value = measure.value(hits, predicted, positives)
    size = measure.fraction(hits, predicted, positives, None)[1]
    return (c - (b_in - b_out) * value) / np.maximum(size, 1e-9)


def midpoint(proba: Floats, selected: Bools, average: str) -> Floats:
    """Return the probability midway between selected and other items of each decision."""
    axis = {"macro": 0, "samples": 1, "micro": None}[average]
    lowest = np.min(np.where(selected, proba, 1.0), axis=axis, keepdims=True)
    highest = np.max(np.where(selected, 0.0, proba), axis=axis, keepdims=True)
    return np.asarray((lowest + highest) / 2)


def signed(values: Floats, selected: Bools, average: str, gain: Any = 1.0) -> Floats:
    """Return margins whose sign is the decision, also for items tied with the threshold."""
    margin, tiny = gain * (values - midpoint(values, selected, average)), np.finfo(np.float64).tiny
    return np.asarray(np.where(selected, np.maximum(margin, tiny), np.minimum(margin, -tiny)))


class FClassifier(ClassifierMixin, BaseEstimator):
    """Predictions, decisions and fixed thresholds from margins, for every kind of target.

    Docstrings of classifiers may refer to entries of this one, and of others they derive from.

    Parameters
    ----------
    measure : str, Measure or callable, default="f1"
        What to maximize: a name such as ``"f2"``, an object of `argmaxf.measures`, or a function of
        counts.
    pos_label : scalar, default=None
        The positive class of a binary target; by default the last in sorted order.
    """

    measure: Any = "f1"
    pos_label: Any = None
    _labels: Labels
    _rule: FixedRule | None = None  # the scores, with thresholds that decide rows one by one

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        with_entries_of(*(base for base in cls.__mro__[1:] if issubclass(base, FClassifier)))(cls)

    def _margin(self, X: Any) -> Floats:
        """Return (n, n_columns) margins: not negative where the label is predicted."""
        return self.fixed_rule().margin(X)

    def predict(self, X: Any) -> Any:
        """Return the predicted labels, in the form of the training target.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Rows to decide.

        Returns
        -------
        ndarray or sparse matrix
            One label for each row, or a row of 0/1 labels.
        """
        check_is_fitted(self)
        return self._predict(X)

    def _predict(self, X: Any) -> Any:
        return self._labels.decode(self._margin(X))

    def _has_probabilities(self) -> bool:
        """Whether the classifier has, or will have, probabilities."""
        return hasattr(getattr(self, "estimator", None), "predict_proba")

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the fitted model or models.

        Parameters
        ----------
        X : array-like, frame or sparse matrix
            The rows, as the classifier takes them.

        Returns
        -------
        ndarray
            Of each class, or of each label of a multilabel target.
        """
        check_is_fitted(self)
        return self._labels.both(self._proba(X))

    def _proba(self, X: Any) -> Floats:
        """Return the probability of each label, (n, n_columns), of a classifier that has them."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the margin of each entry: the distance to its threshold.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Rows to decide.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Not negative where the label is predicted.
        """
        check_is_fitted(self)
        return self._labels.orient(self._margin(X))

    def decide(self, X: Any) -> Decision:
        """Return the decision for the rows of X: the labels, and the F to expect where it is known.

        Parameters
        ----------
        X : array-like
            The rows over which F will be measured.

        Returns
        -------
        Decision
            The labels that `predict` gives, one entry for each label. Expected F and its spread are
            NaN where the classifier has no calibrated probabilities.
        """
        check_is_fitted(self)
        labels, measure = self._labels, self._measure()
        selected = labels.columns(self._predict(X))
        expected = np.full((selected.shape[1], 2), np.nan)
        if not np.isnan(getattr(self, "expected_", np.nan)).all():  # of a frozen classifier
            pairs = zip(self._proba(X).T, selected.T, strict=True)
            expected = np.array([expected_f(p, chosen, measure=measure) for p, chosen in pairs])
        threshold = np.broadcast_to(getattr(self, "threshold_", np.nan), len(expected))
        each = (selected.sum(axis=0), np.asarray(threshold, float), *expected.T)
        k, cut, mean, std = map(self._for_target, each)
        chosen = selected[:, 0] if labels.is_binary else selected
        beta = float(getattr(measure, "beta", 1.0))
        return Decision(chosen, k, cut, mean, std, beta=beta, n=len(selected))

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
        return self._freeze(X_reference)

    def _freeze(self, X_reference: Any) -> FixedThresholdFClassifier:
        return fix_threshold(copy(self), self._labels)

    def fixed_rule(self) -> FixedRule:
        """Return the scores and fixed thresholds by which each row is decided, for exports."""
        if self._rule is None or np.isnan(self._rule.threshold).any():
            raise ValueError(
                f"{type(self).__name__} decides rows or labels together, so it has no fixed "
                "thresholds to export; export what its freeze() returns, with average='macro' or "
                "'micro' where there are several labels"
            )
        return self._rule

    def _measure(self) -> Measure:
        """Return the measure to maximize."""
        return as_measure(self.measure)

    def _read_target(self, y: Any) -> Labels:
        """Read the labels, and name those that cannot be learned."""
        self._labels = Labels.of(y, self.pos_label)
        self._labels.warn_about_constants(self._labels.columns(y))
        self.classes_ = self._labels.classes
        return self._labels

    def _for_target(self, values: Any) -> Any:
        """Return one value per label as an attribute shows it: a number for a binary target."""
        if values is None or not self._labels.is_binary:
            return values
        return values[0].item() if isinstance(values[0], np.generic) else values[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags


class MetaFClassifier(MetaEstimatorMixin, FClassifier):
    """A wrapper around one scikit-learn classifier; X is passed on to it as it is."""

    estimator: Any
    _holds_out = True  # rows; groups of others are passed on to the wrapped classifier

    @abstractmethod
    def _fit(self, rows: TrainingData) -> None:
        """Fit the wrapped classifier, and learn how to decide by its scores."""

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the classifier, and learn how to decide by its scores.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Training rows, as the classifier takes them.
        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_labels)
            A binary, multiclass or multilabel-indicator target.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in F and, if the classifier takes weights, in its training.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that are held out together. `JointFClassifier` holds out no rows and
            passes them on.
        **fit_params : dict
            Passed on to the classifier's `fit`: eval sets, callbacks, and arrays with one entry for
            each row, of which a fold gets its own rows. With metadata routing, what it requests.

        Returns
        -------
        object
            The fitted classifier itself.
        """
        self._measure()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        labelled = y.tocsr() if sparse.issparse(y) else np.asarray(y)
        if not labelled.shape[0]:
            raise ValueError("y must have at least one row, got none")
        refuse_missing("y", labelled)
        assert_all_finite(labelled, input_name="y")
        check_consistent_length(X, labelled)
        weight = as_weights(sample_weight, labelled.shape[0])
        labels = self._read_target(labelled if weight is None else labelled[weight > 0])
        if groups is not None and not self._holds_out:
            fit_params = {"groups": groups, **fit_params}
        params = route_fit_params(self, weight, fit_params)
        self._fit(TrainingData(X, y, labels, weight, groups, params))
        return self

    def _show_models(self, models: list[Any]) -> None:
        """Show fitted models, and the features of the first as one's own."""
        self.estimators_ = models
        for name in ("n_features_in_", "feature_names_in_"):
            found = [getattr(model, name) for model in models if hasattr(model, name)]
            if found:
                setattr(self, name, found[0])

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing: weights are used here, and passed on where they are requested."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def route_fit_params(meta: MetaFClassifier, weight: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return what the `fit` of the wrapped classifier gets: weights if it takes them, and params.

    Its warning points to the caller of the caller, as of `fit`.
    """
    estimator = meta.estimator
    if isinstance(estimator, FrozenEstimator) or (weight is None and not params):
        return {}
    if get_config()["enable_metadata_routing"]:
        weights = {} if weight is None else {"sample_weight": weight}
        return dict(process_routing(meta, "fit", **weights, **params).estimator.fit)
    if weight is not None and weight_parameter(estimator) is not None:
        return {"sample_weight": weight, **params}
    if weight is not None:
        warnings.warn(
            f"{type(estimator).__name__} takes no sample_weight: the weights are used only in the "
            "F that is maximized",
            stacklevel=3,
        )
    return dict(params)


class ScoreFClassifier(MetaFClassifier):
    """A classifier that decides by the scores of the wrapped one, learned from held-out rows."""

    cv: Any = None  # how rows are held out, where this is needed
    confidence_level: float | None = None
    deploy_rate: Any = None
    _refits = False  # the model on all rows after those of the folds
    _model: LabelScorer
    _prior: TargetPrior

    def _fit(self, rows: TrainingData) -> None:
        self.check(rows)
        self.learn(self.hold_out(rows))

    def check(self, rows: TrainingData) -> None:
        """Refuse parameters that do not suit the target, before anything is fitted.

        Parameters
        ----------
        rows : TrainingData
            The checked arguments of `fit`.
        """
        check_deploy_rate(self.deploy_rate, rows.labels)

    def hold_out(self, rows: TrainingData) -> HeldOut:
        """Return fitted models, and their scores of rows they were not trained on.

        Parameters
        ----------
        rows : TrainingData
            The checked arguments of `fit`.
        """
        if rows.groups is not None and self.confidence_level is not None:
            refuse_groups()
        splits = []
        if self._needs_folds(rows.columns) and not isinstance(self.estimator, FrozenEstimator):
            splits = make_splits(self.cv, rows.columns, rows.target, rows.groups)
        return hold_out(self.estimator, rows, splits, whole=self._refits and len(splits) > 1)

    def _needs_folds(self, columns: Bools) -> bool:
        """Whether rows are held out to learn from them."""
        return False

    def learn(self, held_out: HeldOut) -> Self:
        """Learn how to decide by held-out scores; a comparison shares them among classifiers.

        Parameters
        ----------
        held_out : HeldOut
            The fitted models, and their scores of rows they were not trained on.
        """
        self._labels, self.classes_ = held_out.labels, held_out.labels.classes
        self._seen = counted(held_out.columns, held_out.weight)
        self._prior = TargetPrior.of(self.deploy_rate, held_out)
        self._model = held_out.model
        self._show_models(self._model.models_)
        self._learn(held_out)
        return self

    @abstractmethod
    def _learn(self, held_out: HeldOut) -> None:
        """Learn how to decide; the labels are known."""

    def _cut(self, kind: str, threshold: Any, gain: Any = 1.0) -> None:
        """Predict a label where the scores of a kind reach its threshold."""
        member = Calibrated([self._model], kind)
        self._rule = FixedRule(self._labels, [member], threshold, gain, self._seen)

    def _proba(self, X: Any) -> Floats:
        return self._model.scores(X, "predict_proba")


class PlainClassifier(ScoreFClassifier):
    """Any classifier at its own threshold, for every kind of target (ML^.5 in the paper)."""

    _holds_out = False

    def __init__(self, estimator: Any, *, pos_label: Any = None) -> None:
        self.estimator = estimator
        self.pos_label = pos_label

    def _learn(self, held_out: HeldOut) -> None:
        """Take probabilities, at 0.5, or decision scores at 0 where there are none."""
        kind = next(iter(held_out.tables))
        self.threshold_ = 0.5 if kind == "predict_proba" else 0.0
        self._cut(kind, self.threshold_)


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
    interval_ : Interval or None
        Where F will be with 95 % probability, estimation error included; None where not known.
    classes_ : ndarray
        The labels, as the frozen classifier has them.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from argmaxf import ExpectedFClassifier
    >>> X, y = make_classification(600, weights=[0.9], random_state=0)
    >>> service = ExpectedFClassifier(LogisticRegression()).fit(X, y).freeze()
    >>> round(service.threshold_, 2), service.predict(X[:1])
    (0.46, array([0]))
    """

    threshold_: Any = None
    expected_: Any = np.nan
    std_: Any = np.nan
    interval_: Interval | None = None
    # What a margin on probabilities is worth to each class; None where the classifier decides.
    gain_: Any = None

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    fit, __sklearn_clone__ = FrozenEstimator.fit, FrozenEstimator.__sklearn_clone__

    def _freeze(self, X_reference: Any) -> Self:
        return self

    def _proba(self, X: Any) -> Floats:
        return self._labels.one(self.estimator.predict_proba(X))

    def _margin(self, X: Any) -> Floats:
        if self.gain_ is None:
            return self._labels.margins(self.estimator.decision_function(X))
        return margin(self._proba(X), self.threshold_, self.gain_)

    def fixed_rule(self) -> FixedRule:
        """Return the scores and thresholds by which each row is decided."""
        if self.gain_ is not None:
            rule: FixedRule = self.estimator.probability_rule()
            return replace(rule, threshold=self.threshold_, gain=self.gain_)
        *before, _ = getattr(self.estimator, "steps", [None])
        rule = last_step(self.estimator).fixed_rule()
        return rule.behind(before) if before else rule

    def to_sklearn(self) -> Any:
        """Return a fitted classifier made of scikit-learn's classes, with the same predictions.

        Its pickle is read where argmaxf is not installed. A binary target gives a
        `FixedThresholdClassifier`, a multilabel one a `MultiOutputClassifier` of them, a multiclass
        one a `Pipeline` without probabilities.

        Returns
        -------
        classifier
            Predictions are equal except for rounding: of rows whose score is the threshold to
            fifteen digits, and whose calibrated probability is the threshold to nine.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.linear_model import LogisticRegression
        >>> from argmaxf import ExpectedFClassifier
        >>> X, y = make_classification(2000, weights=[0.9], random_state=0)
        >>> frozen = ExpectedFClassifier(LogisticRegression()).fit(X, y).freeze()
        >>> service = frozen.to_sklearn()
        >>> type(service).__name__, int((service.predict(X) != frozen.predict(X)).sum())
        ('FixedThresholdClassifier', 0)
        """
        return as_sklearn(self.fixed_rule())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")


def fix_threshold(fitted: Any, labels: Labels, **attributes: Any) -> FixedThresholdFClassifier:
    """Return a fitted classifier that decides each row as `fitted` does, or by `threshold_`.

    `attributes` are those of `FixedThresholdFClassifier`; a `threshold_` is one on probabilities.
    """
    frozen = FixedThresholdFClassifier(fitted)
    frozen.threshold_ = getattr(fitted, "threshold_", None)
    frozen.measure = getattr(fitted, "measure", "f1")
    frozen.__dict__.update(_labels=labels, classes_=labels.classes, **attributes)
    return frozen
