"""What all classifiers here share: labels in, one margin per label, labels out.

A classifier says how it is fitted and what its margins are; an entry is predicted positive where
its margin is not negative. `LinearFClassifier` is for models trained here, `MetaFClassifier` for
those that wrap a scikit-learn classifier.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from argmaxf.empirical.cuts import best_threshold
from argmaxf.empirical.linear import LinearModel
from argmaxf.estimators.heldout import HeldOut
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.scores import LabelScorer, response_method, weight_parameter
from argmaxf.measures import Measure, Ratio, as_measure
from argmaxf.validation import as_scores, as_weights

TINY = np.finfo(np.float64).tiny  # the margin of an item tied with one decided the other way


class FClassifier(ClassifierMixin, BaseEstimator):
    """Predict and decision_function from margins, for every kind of target."""

    pos_label: Any = None

    @abstractmethod
    def _margin(self, X: Any) -> NDArray[np.float64]:
        """Return (n, n_columns) margins: not negative where the label is predicted."""

    def predict(self, X: Any) -> Any:
        """Return the predicted labels, in the form of the training target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to decide.

        Returns
        -------
        ndarray or sparse matrix
            One label for each row, or a row of 0/1 labels.
        """
        check_is_fitted(self)
        return self._labels.decode(self._margin(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return how far each entry lies from being decided the other way.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to decide.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Not negative where the label is predicted.
        """
        check_is_fitted(self)
        return self._labels.orient(self._margin(X))

    def _asked(self) -> Measure:
        """Return the measure to be maximized."""
        return as_measure(getattr(self, "measure", "fbeta"), getattr(self, "beta", 1.0))

    def _read_target(self, y: Any) -> Labels:
        """Take note of the labels, and say which of them cannot be learned."""
        self._labels = Labels.of(y, self.pos_label)
        self._labels.warn_of_constants(self._labels.columns(y))
        self.classes_ = self._labels.classes
        return self._labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags


class LinearFClassifier(FClassifier):
    """A linear score per label, trained one label at a time, with its threshold tuned on them."""

    beta: float
    measure: Any = "fbeta"
    n_jobs: int | None = None

    @abstractmethod
    def _fit_label(
        self, X: Any, y: NDArray[np.bool_], weight: NDArray[np.float64] | None
    ) -> LinearModel:
        """Return the score trained for one label that has both positives and negatives."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the coefficients, then the thresholds, for each label.

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
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True)
        X, y, weight = _weighted_rows(X, y, as_weights(sample_weight, X.shape[0]))
        columns = self._read_target(y).columns(y)
        scale = self._scale(X, weight)
        scaled = X if scale is None else scale.transform(X)
        models = Parallel(n_jobs=self.n_jobs)(
            delayed(self._fit_column)(scaled, column, weight) for column in columns.T
        )
        self.models_ = [_unscaled(model, scale) for model in models]
        self.coef_ = np.array([model.coef for model in self.models_])
        self.intercept_ = np.array([model.intercept for model in self.models_])
        self.n_iter_ = np.array([model.n_iter for model in self.models_])
        threshold = self._thresholds(columns, self._scores(X), weight)
        self.threshold_ = float(threshold[0]) if self._labels.kind == "binary" else threshold
        self._warn_if_unfinished()
        return self

    def _scale(self, X: Any, weight: Any) -> StandardScaler | None:
        """Return what brings the features to one scale, None to train on them as they are."""
        return None

    def _fit_column(self, X: Any, column: NDArray[np.bool_], weight: Any) -> LinearModel:
        if is_constant(column):
            return LinearModel(np.zeros(X.shape[1]), n_iter=1)
        return self._fit_label(X, column, weight)

    def _thresholds(self, columns: Any, scores: Any, weight: Any) -> NDArray[np.float64]:
        """Return the thresholds that were learned with the scores, and tune the others."""
        tuned = tune(columns, scores, self._asked(), weight)
        for k, model in enumerate(self.models_):
            tuned[k] = tuned[k] if model.threshold is None else model.threshold
        return tuned

    def _warn_if_unfinished(self) -> None:
        names = [
            str(name)
            for name, model in zip(self._labels.names, self.models_, strict=True)
            if not model.converged
        ]
        if names:
            warnings.warn(
                f"training stopped before it converged, for {', '.join(names)}: raise max_iter, "
                "scale the features, or regularize more",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _margin(self, X: Any) -> NDArray[np.float64]:
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return margin(self._scores(X), self.threshold_)


class MetaFClassifier(MetaEstimatorMixin, FClassifier):
    """A wrapper around one scikit-learn classifier; X is passed on to it untouched."""

    estimator: Any
    _scorer: Any

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[NDArray[Any], Any]:
        """Return the checked target to train on and the checked weights."""
        y = self._check_target(y)
        check_consistent_length(X, y)
        weight = as_weights(sample_weight, np.shape(y)[0])
        rows = slice(None) if weight is None else weight > 0
        self._read_target(y[rows])
        return self._labels.target(y), weight

    def _fit_params(self, weight: Any, given: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the wrapped classifier's `fit` gets of the weights, and what was given."""
        params = dict(given or {})
        if isinstance(self.estimator, FrozenEstimator) or (weight is None and not params):
            return {}
        if get_config()["enable_metadata_routing"]:
            weights = {} if weight is None else {"sample_weight": weight}
            return dict(process_routing(self, "fit", **weights, **params).estimator.fit)
        if weight is None:
            return params
        if weight_parameter(self.estimator) is not None:
            return {"sample_weight": weight, **params}
        warnings.warn(
            f"{type(self.estimator).__name__} takes no sample_weight: the weights only count in "
            "the F to be maximized",
            stacklevel=3,
        )
        return params

    def _fit_scorer(self, X: Any, target: Any, params: dict[str, Any], methods: Any) -> None:
        """Fit the wrapped classifier, and show it."""
        method = response_method(self.estimator, methods)
        self._scorer = LabelScorer(self.estimator, self._labels, method).fit(X, target, **params)
        self._show(self._scorer.models_)

    def _put_on(self, held_out: HeldOut) -> Self:
        """Return this classifier, which learned from given scores, on the model that gives them."""
        self.estimator = held_out.estimator
        self._scorer = held_out.model.reading(held_out.kind_of(self._scorer.method))
        self._show(self._scorer.models_)
        return self

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the wrapped classifier's probabilities; `predict` need not follow them.

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
        return self._labels.both(self._scorer.scores(X, "predict_proba"))

    def _show(self, models: list[Any]) -> None:
        """Show the fitted models and the features they were fitted with."""
        self.estimators_ = models
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing: weights are used here, and passed on where they are asked for."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def _check_target(self, y: Any) -> Any:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = y.tocsr() if sparse.issparse(y) else np.asarray(y)
        if not y.shape[0]:
            raise ValueError("y must have at least one row, got none")
        assert_all_finite(y, input_name="y")
        return y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        return tags


def _unscaled(model: LinearModel, scale: StandardScaler | None) -> LinearModel:
    """Return a score of scaled features as one of the features themselves."""
    if scale is None:
        return model
    coef = model.coef / scale.scale_
    shift = coef @ scale.mean_ if scale.with_mean else 0.0
    return replace(model, coef=coef, intercept=model.intercept - float(shift))


def _weighted_rows(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Leave out rows of weight zero: they must count for nothing."""
    if weight is None or weight.all():
        return X, y, weight
    return X[weight > 0], y[weight > 0], weight[weight > 0]


def is_constant(column: NDArray[np.bool_]) -> bool:
    """Whether a label has no positives, or nothing else."""
    return bool(column.all() or not column.any())


def tune(
    columns: NDArray[np.bool_], scores: NDArray[np.float64], measure: Measure, weight: Any
) -> NDArray[np.float64]:
    """Return the best threshold of each label; a constant label is always or never predicted."""
    pairs = zip(columns.T, as_scores("score", scores).T, strict=True)
    best = [best_threshold(y, score, weight, measure) for y, score in pairs]
    threshold = np.where(columns.all(axis=0), -np.inf, best)
    return np.where(columns.any(axis=0), threshold, np.inf)


def macro_gain(hits: Any, predicted: Any, positives: Any, measure: Measure) -> Any:
    """Return how much a macro mean gains per unit of probability above a class's threshold.

    One more row of probability p moves V = cT / (k + b_out S + (b_in - b_out) T), as F_β is, by
    a (p - V / a) / (k + b_out S + (b_in - b_out) T), a = c - (b_in - b_out) V; V / a is the best
    threshold, so margins of different classes compare after this multiplication. Measures that are
    no such ratio are left as they are.
    """
    if not isinstance(measure, Ratio):
        return 1.0
    c, b_in, b_out, _, _ = measure.coefficients()
    value = measure.value(hits, predicted, positives)
    size = measure.fraction(hits, predicted, positives, None)[1]
    return (c - (b_in - b_out) * value) / np.maximum(size, 1e-9)


def decided_gain(proba: Any, selected: Any, measure: Measure) -> Any:
    """Return that gain for classes that were decided by their probabilities."""
    hits = (proba * selected).sum(axis=0)
    return macro_gain(hits, selected.sum(axis=0), proba.sum(axis=0), measure)


def margin(scores: NDArray[np.float64], threshold: Any, gain: Any = 1.0) -> NDArray[np.float64]:
    """Return how far scores lie above their thresholds, 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(scores == threshold, 0.0, gain * (scores - threshold))


def boundary(proba: Any, selected: Any, average: str) -> Any:
    """Return the probability midway between the selected and the others of each decision."""
    axis = {"macro": 0, "samples": 1, "micro": None}[average]
    lowest = np.min(np.where(selected, proba, 1.0), axis=axis, keepdims=True)
    highest = np.max(np.where(selected, 0.0, proba), axis=axis, keepdims=True)
    return (lowest + highest) / 2


def signed(margin: Any, selected: Any) -> NDArray[np.float64]:
    """Return margins whose sign is the decision, also for items tied across the boundary."""
    return np.asarray(np.where(selected, np.maximum(margin, TINY), np.minimum(margin, -TINY)))
