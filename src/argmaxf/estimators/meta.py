"""What all classifiers share: `FClassifier`, and `MetaFClassifier` for those that wrap another.

A classifier defines how it is fitted and what its margins are; an entry is predicted positive where
its margin is not negative.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
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
from argmaxf._base.validation import as_weights
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.margins import margin
from argmaxf.estimators.scores import HeldOutScores, LabelScorer, response_method, weight_parameter
from argmaxf.measures import Measure, as_measure


class FClassifier(ClassifierMixin, BaseEstimator):
    """Predict and decision_function from margins, for every kind of target."""

    measure: Any = "f1"
    pos_label: Any = None
    _labels: Labels

    @abstractmethod
    def _margin(self, X: Any) -> Floats:
        """Return (n, n_columns) margins: not negative where the label is predicted."""

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


@dataclass(frozen=True)
class TrainingData:
    """The checked arguments of `fit`."""

    X: Any  # passed on as it is
    y: Any  # as it was given, with the column names of a frame
    target: NDArray[Any]  # as the wrapped classifier takes it
    columns: Bools  # one for each label
    weight: Floats | None
    groups: Any  # of rows that are held out together
    params: dict[str, Any]  # for the wrapped classifier's `fit`

    def all_params(self) -> dict[str, Any]:
        """Return the parameters for a classifier that holds out no rows: groups are one of them."""
        return self.params if self.groups is None else {"groups": self.groups, **self.params}


class MetaFClassifier(MetaEstimatorMixin, FClassifier):
    """A wrapper around one scikit-learn classifier; X is passed on to it as it is."""

    estimator: Any
    _scorer: Any

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
        labelled = self._check_target(y)
        check_consistent_length(X, labelled)
        weight = as_weights(sample_weight, labelled.shape[0])
        labels = self._read_target(labelled if weight is None else labelled[weight > 0])
        target = labels.target(labelled)
        self._fit(TrainingData(X, y, target, labels.columns(target), weight, groups, fit_params))
        return self

    def _fit_params(self, weight: Any, params: dict[str, Any]) -> dict[str, Any]:
        return route_fit_params(self, weight, params)

    def _fit_scorer(self, rows: TrainingData, params: dict[str, Any], methods: Any) -> None:
        """Fit the wrapped classifier on all rows."""
        scorer = LabelScorer(self.estimator, self._labels, response_method(self.estimator, methods))
        self._use(scorer.fit(rows.X, rows.target, **params))

    def _use(self, scorer: Any) -> None:
        """Decide by this scorer, and show its fitted models and their features."""
        self._scorer, self.estimators_ = scorer, scorer.models_
        self._show_features(self.estimators_[0])

    def _show_features(self, model: Any) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def use_models(self, *held_out: HeldOutScores) -> Self:
        """Replace precomputed scores, on which this classifier was fitted, by their models.

        Parameters
        ----------
        *held_out : HeldOutScores
            The scores of each classifier, and the fitted models that gave them.

        Returns
        -------
        object
            The fitted classifier itself, for rows of X.
        """
        self.estimator = held_out[0].estimator
        self._replace_models(*held_out)
        return self

    def _replace_models(self, held_out: HeldOutScores, *_: HeldOutScores) -> None:
        assert held_out.model is not None
        self._use(held_out.model.reading(held_out.kind_of(self._scorer.method)))

    def _has_probabilities(self) -> bool:
        """Whether the classifier has, or will have, probabilities."""
        return hasattr(self.estimator, "predict_proba")

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
        """Return the probability of each label, (n, n_columns)."""
        proba: Floats = self._scorer.scores(X, "predict_proba")
        return proba

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing: weights are used here, and passed on where they are requested."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

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
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def route_fit_params(meta: MetaFClassifier, weight: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return what the `fit` of the wrapped classifier gets: weights if it takes them, and params.

    Its warning points to the caller of `fit`, where `_fit` calls this through `_fit_params`.
    """
    estimator = meta.estimator
    if isinstance(estimator, FrozenEstimator) or (weight is None and not params):
        return {}
    if get_config()["enable_metadata_routing"]:
        weights = {} if weight is None else {"sample_weight": weight}
        return dict(process_routing(meta, "fit", **weights, **params).estimator.fit)
    if weight is None:
        return dict(params)
    if weight_parameter(estimator) is not None:
        return {"sample_weight": weight, **params}
    warnings.warn(
        f"{type(estimator).__name__} takes no sample_weight: the weights only count in the F to be "
        "maximized",
        stacklevel=5,
    )
    return dict(params)


class PlainClassifier(MetaFClassifier):
    """Any classifier at its own threshold, for every kind of target (ML^.5 in the paper)."""

    def __init__(self, estimator: Any, *, pos_label: Any = None) -> None:
        self.estimator = estimator
        self.pos_label = pos_label

    def _fit(self, rows: TrainingData) -> None:
        params = self._fit_params(rows.weight, rows.all_params())
        self._fit_scorer(rows, params, ("predict_proba", "decision_function"))

    @property
    def threshold_(self) -> float:
        """The threshold on probabilities, or on decision scores where there are none."""
        return 0.5 if self._scorer.method == "predict_proba" else 0.0

    def _margin(self, X: Any) -> Floats:
        return margin(self._scorer.predict(X), self.threshold_)
